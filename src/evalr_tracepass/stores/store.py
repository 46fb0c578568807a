"""What a store of passes, and one of results, must do. Every call is on behalf of an account, and sees no other's rows.

`evalr.testing.StoreContract` is the same as tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from evalr_tracepass.records import Account, Item, Pass, Result
from evalr_tracepass.signal_files import Preset
from evalr_tracepass.signals import Signal

KEPT_FOR = timedelta(days=365)
"""How long results are kept, in every store."""

LATEST = "latest"
ALL = "all"

BatchStatus = Literal["prepared", "sent", "ended"]
"""Of a batch: its rows are known and it may have been sent; its id is saved; its results are stored."""

ItemStatus = Literal["open", "completed", "failed"]


class Batch(NamedTuple):
    """One upload of a pass.

    Attributes:
        pass_id: which.
        number: its place in the pass, from 0.
        attempt: how often its rows had been sent before: that of its results.
        key: the idempotency key that it is sent under, and again after a crash.
        status: where it stands here.
        batch_id: as the service names it, "" until that is known.
        said: the service's last word on it.
        created_at: before it was sent.
    """

    pass_id: str
    number: int
    attempt: int
    key: str
    status: BatchStatus
    batch_id: str
    said: str
    created_at: datetime


class AlreadyRead(NamedTuple):
    """What a result is of: a row, as it can be known again in another pass, and a model.

    It is completed, or `too_long`: then its text would fail again.
    """

    user: str
    convo_id: str
    request_id: str
    transform_version: int
    model: str
    input_hash: str
    too_long: bool = False


class Chip(NamedTuple):
    """A label that was selected in a conversation, with the highest score that it had there."""

    model: str
    signal_id: str
    label: str
    score: float


class Conversation(NamedTuple):
    """One conversation as a pass found it, or the latest pass with each signal did.

    Attributes:
        convo_id: which.
        user: its end user, "" where unknown.
        run_id: the pass; of several, the latest.
        passed_at: when that was made.
        last_at: the latest time of a row, None where the log has none.
        fired_count: results that fired.
        completed: results in all, but for those that failed.
        failed: those.
        chips: of signals that fired, the top label of each, highest score first.
        max_scores: the highest score of a top label, by model.
    """

    convo_id: str
    user: str
    run_id: str
    passed_at: datetime
    last_at: datetime | None
    fired_count: int
    completed: int
    failed: int
    chips: tuple[Chip, ...]
    max_scores: dict[str, float]


class Totals(NamedTuple):
    """What a pass came to.

    Attributes:
        conversations: with at least one completed result.
        flagged: of these, where something fired.
        fired: results that fired.
        selected_labels: labels that were selected on them.
        completed: results that are no failures.
        failed: failures that no later attempt has settled.
    """

    conversations: int
    flagged: int
    fired: int
    selected_labels: int
    completed: int
    failed: int


class MonitorState(NamedTuple):
    """Where a monitor stands.

    Attributes:
        name: of the monitor.
        watermark: conversations that ended before it have been read; None before the first run.
        pass_id: the pass that reads what ended before `until`, None between runs.
        until: the watermark when that pass has ended.
    """

    name: str
    watermark: datetime | None = None
    pass_id: str | None = None
    until: datetime | None = None


@runtime_checkable
class ResultStore(Protocol):
    """Results, and what is asked of them.

    `passes` says of which pass: "latest" is, of each conversation and signal, the latest completed pass in which that
    signal read it; "all" is every completed pass; anything else is the id of one pass, completed or not.
    """

    def write(self, account: Account, results: Iterable[Result]) -> None:
        """Keep results. One that is there already (of the same pass, row, model and attempt) changes nothing."""

    def finish(self, account: Account, found: Pass) -> None:
        """Say that a pass has been completed: from now on it counts among the latest.

        Said again, what was written of it since is counted, too.
        """

    def results(
        self,
        account: Account,
        *,
        passes: str = LATEST,
        convo_id: str | None = None,
        signal_id: str | None = None,
        fired: bool | None = None,
        failed: bool | None = None,
        history: bool = False,
    ) -> Iterator[Result]:
        """Results, by conversation and time. With `history`, those too that a later attempt has replaced."""

    def conversations(
        self,
        account: Account,
        *,
        passes: str = LATEST,
        convo_ids: Sequence[str] | None = None,
        signal_id: str | None = None,
        flagged: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Conversation]:
        """Conversations of completed passes, the latest first. `signal_id` keeps those in which that signal fired."""

    def totals(self, account: Account, pass_id: str) -> Totals:
        """What a pass came to, as far as it has come."""

    def answered(self, account: Account, convo_ids: Sequence[str]) -> set[AlreadyRead]:
        """What need not be read again of these conversations: by any pass, what did not fail, or was too long."""

    def prune(self, account: Account, *, now: datetime | None = None) -> int:
        """Remove what has expired; how many results that were, where the store can say. They are never read again."""

    def close(self) -> None:
        """Let go of files and connections."""


@runtime_checkable
class PassStore(Protocol):
    """Passes while they run, with their rows and batches; and signals, presets and monitors."""

    def add_pass(self, account: Account, made: Pass) -> None:
        """Keep a new pass."""

    def save_pass(self, account: Account, changed: Pass) -> None:
        """Keep a pass as it now is."""

    def get_pass(self, account: Account, pass_id: str) -> Pass:
        """A pass.

        Raises:
            StoreError: the account has none of that id.
        """

    def passes(self, account: Account, *, limit: int = 100) -> list[Pass]:
        """Passes, the latest first."""

    def claim(self, account: Account, pass_id: str, owner: str, seconds: float) -> bool:
        """Claim a pass for so long, by the store's clock, or claim it anew; whether no other owner's claim stands."""

    def release(self, account: Account, pass_id: str, owner: str) -> None:
        """Give up a claim. Where it is another's by now, that stands."""

    def add_batch(
        self, account: Account, batch: Batch, items: Sequence[Item], *, statuses: Sequence[ItemStatus] | None = None
    ) -> None:
        """Keep a batch and its rows, all or nothing, before it is sent.

        Rows that an earlier batch sent belong to this one from now on. They are open, unless `statuses` says how each
        has ended.

        Raises:
            StoreError: the pass has a batch of that number, as when two processes run it at once.
        """

    def add_failed(self, account: Account, pass_id: str, items: Sequence[Item]) -> None:
        """Keep rows that failed before they could be sent."""

    def save_batch(self, account: Account, batch: Batch) -> None:
        """Keep a batch as it now is."""

    def batches(self, account: Account, pass_id: str) -> list[Batch]:
        """A pass's batches, by number."""

    def items(self, account: Account, pass_id: str, *, number: int | None = None) -> list[Item]:
        """The rows of a pass, or of one of its batches in the order in which they are sent."""

    def asked(self, account: Account, pass_id: str) -> dict[str, tuple[str, ...]]:
        """The models that the rows of a pass are for, by the ids of the rows."""

    def settle(self, account: Account, pass_id: str, statuses: Iterable[tuple[str, ItemStatus]]) -> None:
        """Say how rows ended, by their ids."""

    def counts(self, account: Account, pass_id: str) -> dict[ItemStatus, int]:
        """How many rows of a pass are open, completed and failed."""

    def save_signal(self, account: Account, signal: Signal) -> None:
        """Keep a signal of one's own, in place of one of its id."""

    def signals(self, account: Account) -> dict[str, Signal]:
        """The account's own signals, by their ids."""

    def delete_signal(self, account: Account, signal_id: str) -> bool:
        """Forget a signal; whether there was one."""

    def save_preset(self, account: Account, preset: Preset) -> None:
        """Keep a preset, in place of one of its name."""

    def presets(self, account: Account) -> dict[str, Preset]:
        """The account's presets, by their names."""

    def delete_preset(self, account: Account, name: str) -> bool:
        """Forget a preset; whether there was one."""

    def monitor(self, account: Account, name: str) -> MonitorState:
        """Where a monitor stands; one that never ran has no watermark."""

    def move_monitor(self, account: Account, was: MonitorState, now: MonitorState) -> bool:
        """Move a monitor on, if it still stands where it was; otherwise another process has moved it."""

    def alerted(self, account: Account, pass_id: str) -> int:
        """Up to which attempt of a pass alerts have been sent; -1 before any has."""

    def save_alerted(self, account: Account, pass_id: str, attempt: int) -> None:
        """Remember that."""


@runtime_checkable
class Store(PassStore, ResultStore, Protocol):
    """Both in one place."""


class SignalSum(NamedTuple):
    """What one signal came to in one conversation of one pass.

    Attributes:
        run_id: the pass.
        passed_at: when that was made.
        last_at: the latest time of a row, None where the log has none.
        model: of the signal.
        fired: results that fired.
        completed: results that did not fail.
        failed: those that did.
        top_score: the highest score of a top label, None where all failed.
        label: of what fired, the label with the highest score.
        score: its score.
    """

    run_id: str
    passed_at: datetime
    last_at: datetime | None
    model: str
    fired: int
    completed: int
    failed: int
    top_score: float | None
    label: str
    score: float


def added(one: SignalSum, other: SignalSum) -> SignalSum:
    """What a signal came to with two models in one pass."""
    times = [each.last_at for each in (one, other) if each.last_at is not None]
    scores = [each.top_score for each in (one, other) if each.top_score is not None]
    surer = other if other.fired and (not one.fired or other.score > one.score) else one
    return one._replace(
        last_at=max(times, default=None),
        fired=one.fired + other.fired,
        completed=one.completed + other.completed,
        failed=one.failed + other.failed,
        top_score=max(scores, default=None),
        label=surer.label,
        score=surer.score,
    )


def conversation_of(convo_id: str, user: str, sums: Mapping[str, SignalSum]) -> Conversation:
    """One conversation from what its signals came to, by their ids."""
    newest = max(sums.values(), key=lambda each: (each.passed_at, each.run_id))
    times = [each.last_at for each in sums.values() if each.last_at is not None]
    chips = [Chip(each.model, signal_id, each.label, each.score) for signal_id, each in sums.items() if each.fired]
    scores: dict[str, float] = {}
    for each in sums.values():
        if each.top_score is not None:
            scores[each.model] = max(each.top_score, scores.get(each.model, 0.0))
    return Conversation(
        convo_id,
        user,
        newest.run_id,
        newest.passed_at,
        max(times, default=None),
        sum(each.fired for each in sums.values()),
        sum(each.completed for each in sums.values()),
        sum(each.failed for each in sums.values()),
        tuple(sorted(chips, key=lambda chip: (-chip.score, chip.signal_id))),
        scores,
    )


def latest_sums(passes: Iterable[Mapping[str, SignalSum]]) -> dict[str, SignalSum]:
    """Of each signal, what the latest pass with it came to."""
    found: dict[str, SignalSum] = {}
    for sums in passes:
        for signal_id, each in sums.items():
            known = found.get(signal_id)
            if known is None or (each.passed_at, each.run_id) > (known.passed_at, known.run_id):
                found[signal_id] = each
    return found
