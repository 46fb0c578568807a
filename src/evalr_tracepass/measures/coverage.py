"""Coverage: how much of what a pass was to read was read, and what the missing part could change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from evalr.estimates import display
from evalr.estimates.estimate import Estimate
from evalr.estimates.plot import Plotted
from evalr.estimates.shown import Printed
from evalr.estimates.words import count_words, share_digits
from evalr.inputs import About
from evalr.quoting import safe_text
from evalr.summaries.summary import PENDING
from evalr.verdicts import Result as Outcome
from evalr.verdicts import Skip
from evalr_tracepass.measures.fired import KIND, Fired, fired_conversations, fired_results, fired_turns
from evalr_tracepass.records import Chosen, Pass, Result
from evalr_tracepass.signals import Precision, Signal

NOT_RETAINED = "content not retained"

CHOSEN_WORDS: dict[Chosen, str] = {
    "all": "all traces",
    "random": "a random sample of the traces",
    "filtered": "the traces that a filter let through: no sample of the others",
    "selected": "traces picked by hand: no sample, and their rates speak for no others",
}


@dataclass(frozen=True)
class Coverage(Printed):
    """What became of the texts that one signal was to read.

    Attributes:
        signal: its id.
        planned: texts of its transform, those among them that are too long to be sent.
        completed: those it answered.
        failed: those it could not answer.
        truncated: of the completed, those that were cut to fit.
        not_retained: turns (or conversations) whose content the log does not have, so that there is no text.
    """

    signal: str
    planned: int
    completed: int
    failed: int
    truncated: int
    not_retained: int

    @property
    def pending(self) -> int:
        """Texts of which nothing came back."""
        return max(0, self.planned - self.completed - self.failed)

    @property
    def missing(self) -> int:
        """All that could have fired, and of which nobody knows."""
        return self.failed + self.pending + self.not_retained

    @property
    def share(self) -> float | None:
        """The share of all that there was to read that was read; None where there was nothing."""
        whole = self.planned + self.not_retained
        return self.completed / whole if whole else None

    def __str__(self) -> str:
        whole = self.planned + self.not_retained
        words = [f"{safe_text(self.signal)}: read {self.completed:,} of {count_words(whole, 'text')}"]
        if self.share is not None:
            words[0] += f", {share_digits(self.share)}%"
        parts = {"failed": self.failed, PENDING: self.pending, NOT_RETAINED: self.not_retained}
        words += [f"{count:,} {name}" for name, count in parts.items() if count]
        if self.truncated:
            words.append(f"{self.truncated:,} cut to fit")
        return " · ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "signal": self.signal,
            "planned": self.planned,
            "completed": self.completed,
            "failed": self.failed,
            "pending": self.pending,
            "truncated": self.truncated,
            "not_retained": self.not_retained,
            "share": self.share,
        }


@dataclass(frozen=True)
class SignalRates(Plotted):
    """How often one signal of a pass fired.

    Attributes:
        signal: as the pass had it.
        conversations: the share of conversations in which it fired.
        turns: the share of texts on which it fired.
        coverage: what it read, and what it did not.
        chosen: how the traces were chosen.
        precision: what people's labels say of it as it was run; None where it was not calibrated so, and its rates are
            then of what it says, right or wrong.
    """

    signal: Signal
    conversations: Estimate
    turns: Estimate
    coverage: Coverage
    chosen: Chosen
    precision: Precision | None

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        return [("conversations", self.conversations), ("turns", self.turns)]

    def _repr_html_(self) -> str:
        known = "not calibrated: a rate of what it says" if self.precision is None else str(self.precision)
        lines = [display.line(name, each) for name, each in self.drawn()]
        table = display.table("", self.turns.level, lines, caption=f"{self.signal.display_name} ({known})")
        return display.shown(table, *map(display.paragraph, (str(self.coverage), CHOSEN_WORDS[self.chosen])))

    def __str__(self) -> str:
        known = "not calibrated: a rate of what it says" if self.precision is None else str(self.precision)
        return "\n".join(
            (
                f"{safe_text(self.signal.display_name)} ({known})",
                f"  conversations {_line(self.conversations)}",
                f"  turns {_line(self.turns)}",
                f"  {self.coverage}",
                f"  {CHOSEN_WORDS[self.chosen]}",
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "signal": self.signal.signal_id,
            "chosen": self.chosen,
            "conversations": self.conversations.to_dict(),
            "turns": self.turns.to_dict(),
            "coverage": self.coverage.to_dict(),
            "precision": None if self.precision is None else self.precision.model_dump(mode="json"),
        }


def _line(estimate: Estimate) -> str:
    return str(estimate).removeprefix(f"{estimate.name} ")


def coverage(records: Iterable[Result], of: Pass) -> list[Coverage]:
    """What became of the texts of each signal of a pass.

    Args:
        records: its own, one of a signal for each text; see `latest_records`.
        of: the pass.
    """
    found = list(records)
    planned = {each.transform_id: each for each in of.estimate.transforms}
    parts = []
    for signal in map(Signal.model_validate, of.selected_signals):
        own = [each for each in found if each.signal_id == signal.signal_id]
        known = planned.get(signal.transform.id)
        completed = [each for each in own if each.status == "completed"]
        parts.append(
            Coverage(
                signal=signal.signal_id,
                planned=len(own) if known is None else max(len(own), known.inputs + known.too_long),
                completed=len(completed),
                failed=len(own) - len(completed),
                truncated=sum(each.truncated for each in completed),
                not_retained=0 if known is None else known.not_retained,
            )
        )
    return parts


def pass_rates(records: Iterable[Result], of: Pass, *, level: float = 0.95) -> list[SignalRates]:
    """How often each signal of a pass fired, in conversations and in turns, with what it could not read.

    What failed, is pending or was not retained is never counted clean: the value is of what was read, and `bounds` say
    where it could lie whatever the missing ones are.

    Args:
        records: its own, one of a signal for each text; see `latest_records`.
        of: the pass.
        level: of the intervals, clustered by user where users are known.

    Raises:
        MixedVersionsError: several versions of a signal's classifier read, as in a pass of only what was new since it
            changed. A pass that reads all again has one; `fired_conversations.by(..., mix_versions=True)` pools them.
    """
    found = list(records)
    rates = []
    for part, plain in zip(coverage(found, of), of.selected_signals, strict=True):
        signal = Signal.model_validate(plain)
        own = [each for each in found if each.signal_id == part.signal]
        results = fired_results(own, passes=of)
        versions = {each.model_version for each in own if each.status == "completed"}
        rates.append(
            SignalRates(
                signal=signal,
                conversations=_with_unread(_own(fired_conversations.estimate(results, level=level)), part),
                turns=_named(fired_turns.estimate([*results, *_unread(part)], level=level), part),
                coverage=part,
                chosen=of.scope.chosen,
                precision=signal.precision_with(versions.pop()) if len(versions) == 1 else None,
            )
        )
    return rates


def _own(estimate: Estimate) -> Estimate:
    """A share of conversations whose users nobody knows: each is its own cluster, which goes without saying."""
    alone = estimate.clustered_by == {estimate.noun: estimate.n}
    return replace(estimate, clustered_by={}) if alone else estimate


def _unread(part: Coverage) -> list[Outcome[Fired]]:
    """One result without a verdict for each text that was not read, and about which no record says anything."""
    reasons = [reason for reason, count in _missing(part).items() for _ in range(count)]
    return [Skip(reason, part.signal, about=About(KIND, id=f"unread {place}")) for place, reason in enumerate(reasons)]


def _named(estimate: Estimate, part: Coverage) -> Estimate:
    """A share of texts whose unread ones are left out under why they are, and not all of them as skipped."""
    others = {reason: count for reason, count in estimate.left_out.items() if reason != Skip.status}
    return replace(estimate, left_out=others | _missing(part))


def _missing(part: Coverage) -> dict[str, int]:
    """The texts of which no record says anything, by reason."""
    return {name: count for name, count in ((PENDING, part.pending), (NOT_RETAINED, part.not_retained)) if count}


def _with_unread(estimate: Estimate, part: Coverage) -> Estimate:
    """The bounds of a share of conversations where further turns of them, or of others, were not read.

    Which conversations those are nobody knows: they may make clean ones flagged, or be conversations of their own.
    """
    missing = _missing(part)
    if not missing:
        return estimate
    unread = sum(missing.values())
    left_out = {**estimate.left_out, **missing}
    if estimate.bounds is None:
        return replace(estimate, left_out=left_out)
    low, high = estimate.bounds
    n = estimate.n
    return replace(
        estimate, left_out=left_out, bounds=(low * n / (n + unread), min(1.0, high + unread / n) if n else 1.0)
    )
