"""What a pass is made of, from a prediction to the row that a store keeps of it. None of it but a `Row` holds a text.

Names are those of the columns in which stores and exports keep them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from evalr.errors import InputError
from evalr.input_fields import Time

InputKind = Literal["user_chat", "agent_chat", "full_trace"]
"""What a text shows: what a person wrote, what an agent did, or both."""

Mode = Literal["single_label", "multi_label"]
"""Whether a classifier selects exactly one of its labels, or any number."""

INPUT_TOO_LONG = "input_too_long"
"""The error type of a text that is over the limit and must not be cut, here and at a service."""

LONGEST_TEXT = 350_000
"""Characters of one text, at most."""

LARGEST_BATCH = 10_000
"""Rows of one upload, at most."""


# ---------------------------------------------------------------------------------------------------------------------
# Who
# ---------------------------------------------------------------------------------------------------------------------


class Account(NamedTuple):
    """Whose traces and results: every call of a store takes one, and sees the rows of no other.

    With an organisation, everyone in it sees its rows; without one, they are the user's own.
    """

    user: str
    org: str = ""

    def checked(self) -> Account:
        """The account itself.

        Raises:
            InputError: it names neither a user nor an organisation, or no store can hold its name.
        """
        if not all(isinstance(part, str) for part in self) or not (self.user or self.org):
            raise InputError("an account needs the id of a user, of an organisation, or of both, as texts")
        for part in self:
            if "\0" in part or not _is_unicode(part):
                raise InputError("the id of an account holds NUL, or half of a character: no store has such texts")
        return self


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


# ---------------------------------------------------------------------------------------------------------------------
# Classifiers
# ---------------------------------------------------------------------------------------------------------------------


class LabelScore(NamedTuple):
    """One label, its score from 0 to 1, and whether the classifier selected it."""

    label: str
    score: float
    selected: bool


class ErrorInfo(NamedTuple):
    """Why there is no prediction: a word for programs, such as `input_too_long`, and one for people."""

    type: str
    message: str


class Prediction(NamedTuple):
    """What one model says of one text: the scores of its labels, or why it could say nothing.

    Attributes:
        model: its alias, as the row asked for it.
        mode: "" where there is an error, or nobody said.
        classes: in the order given.
        error: None where there are classes.
        version: of the model; "" where nobody said.
    """

    model: str
    mode: Mode | Literal[""] = ""
    classes: tuple[LabelScore, ...] = ()
    error: ErrorInfo | None = None
    version: str = ""


Predictions: TypeAlias = Sequence[Prediction] | Awaitable[Sequence[Prediction]]


@runtime_checkable
class Reflex(Protocol):
    """A classifier of texts. It may also have `kind` ("heuristic", "trained", "judge") and `cost_per_text`, dollars."""

    @property
    def name(self) -> str:
        """Its alias: what a signal's `model` names."""

    @property
    def version(self) -> str:
        """Changes whenever its predictions may."""

    @property
    def labels(self) -> Sequence[str]:
        """What it tells apart."""

    def predict(self, texts: Sequence[str], /) -> Predictions:
        """One prediction for each text, in order. It may be an async function."""


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


class Item(NamedTuple):
    """Where one row came from, and what is asked of it: the pass's mapping, without the text.

    Attributes:
        request_id: unique in its pass. It is never parsed: this mapping says what it stands for.
        convo_id: the trace.
        event_id: the turn that the text is about, "" for a whole conversation.
        span_id: the span of that turn, "" where the log has none.
        turn_index: the turn's place in the trace, from 0; None for a whole conversation.
        user: the end user, "" where unknown: what intervals cluster by.
        release: of the application, "" where unknown.
        input_kind: what the text shows.
        transform_id: how the text was made.
        transform_version: of that transform.
        source_start_time: when the turn, or the conversation, began; None where the log does not say.
        selected_models: the aliases of the models that are to read it.
        truncated: whether part of it was cut to fit.
        input_hash: an HMAC of the text under the caller's key, which tells a text again and not what it says; "" where
            no key was given.
    """

    request_id: str
    convo_id: str
    event_id: str
    span_id: str
    turn_index: int | None
    user: str
    release: str
    input_kind: InputKind
    transform_id: str
    transform_version: int
    source_start_time: datetime | None
    selected_models: tuple[str, ...]
    truncated: bool = False
    input_hash: str = ""


class Row(NamedTuple):
    """One text for the models of one transform. With an `error` it failed before it could be sent, and has no text."""

    item: Item
    text: str
    error: ErrorInfo | None = None

    @property
    def request_id(self) -> str:
        """Unique in its pass."""
        return self.item.request_id

    @property
    def models(self) -> tuple[str, ...]:
        """The aliases of the models that are to read it."""
        return self.item.selected_models

    @property
    def truncated(self) -> bool:
        """Whether part of it was cut to fit."""
        return self.item.truncated


# ---------------------------------------------------------------------------------------------------------------------
# Scopes and estimates
# ---------------------------------------------------------------------------------------------------------------------

ScopeKind = Literal[
    "all", "current_filters", "conversation", "date_range", "since_last_run", "selection", "random_sample"
]
"""How the traces of a pass were chosen."""

Chosen = Literal["all", "filtered", "selected", "random"]
"""What that makes of them. Only all of them, or a random sample, say something of the traces that were not read."""

CHOSEN: dict[ScopeKind, Chosen] = {
    "all": "all",
    "current_filters": "filtered",
    "conversation": "selected",
    "date_range": "filtered",
    "since_last_run": "filtered",
    "selection": "selected",
    "random_sample": "random",
}


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Filters(_Stored):
    """Which traces to take: those that match every one that is given.

    Attributes:
        search: a text that some turn of the conversation holds, in any case.
        user: the end user's id.
        errors_only: only conversations in which something failed: a turn, a span or a tool call.
        since: those that began at that time or later.
        until: those that began before it.
    """

    search: str | None = None
    user: str | None = None
    errors_only: bool = False
    since: Time | None = None
    until: Time | None = None


class Scope(_Stored):
    """Which traces a pass reads, and how they were chosen, since a hand-picked pass is no sample.

    Attributes:
        kind: how they were chosen.
        filters: what they had to match before anything else.
        convo_ids: of "conversation" and "selection", which.
        since: of "since_last_run", from when on rows are new: those of turns at that time or later.
        fraction: of "random_sample", the share of conversations, above 0 and at most 1.
        seed: of "random_sample": the same seed takes the same conversations.
        ended_since: of a monitor, only conversations whose last turn was at that time or later, with all their turns.
        ended_until: and before that one.
    """

    kind: ScopeKind = "all"
    filters: Filters = Filters()
    convo_ids: tuple[str, ...] = ()
    since: Time | None = None
    fraction: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    ended_since: Time | None = None
    ended_until: Time | None = None

    @property
    def chosen(self) -> Chosen:
        """How the traces were chosen: a random sample of what filters let through is "random"."""
        if self.kind == "all" and self.filters != Filters():
            return "filtered"
        return CHOSEN[self.kind]


class TransformEstimate(_Stored):
    """What one transform will send.

    Attributes:
        transform_id: which.
        transform_version: of it.
        models: what reads its texts.
        inputs: texts to be sent.
        predictions: `inputs` times models.
        not_retained: targets without a text, which make no row.
        truncated: texts that were cut to fit.
        too_long: rows that fail before they are sent, with `input_too_long`.
    """

    transform_id: str
    transform_version: int
    models: tuple[str, ...]
    inputs: int = 0
    predictions: int = 0
    not_retained: int = 0
    truncated: int = 0
    too_long: int = 0


class PlanEstimate(_Stored):
    """What a plan will send, and what it leaves out. Nothing is paid for before it is known.

    Attributes:
        conversations: that the scope let through.
        inputs: texts to be sent.
        predictions: what is paid for: each text once for each of its models.
        cost: in US dollars, before volume discounts; None where no rate is known, which is not 0.
        rate: US dollars for one prediction, on average; None as `cost`.
        batches: uploads that it takes.
        not_retained: turns (or whole conversations) whose content the log does not have: no row is made of them.
        truncated: texts that were cut to fit.
        too_long: rows that fail before they are sent.
        left_out: conversations that were not read, by reason.
        transforms: the same for each transform.
    """

    conversations: int = 0
    inputs: int = 0
    predictions: int = 0
    cost: float | None = None
    rate: float | None = None
    batches: int = 0
    not_retained: int = 0
    truncated: int = 0
    too_long: int = 0
    left_out: dict[str, int] = Field(default_factory=dict)
    transforms: tuple[TransformEstimate, ...] = ()

    @property
    def before_discounts(self) -> bool:
        """Whether it is so much that a service may ask less: more than a million predictions."""
        return self.predictions > 1_000_000


# ---------------------------------------------------------------------------------------------------------------------
# Passes and results
# ---------------------------------------------------------------------------------------------------------------------

PassStatus = Literal["estimating", "ready", "running", "complete", "partial_failure", "failed"]
"""Where a pass stands. `partial_failure`: it ended, and some rows failed."""

Rerun = Literal["all", "new"]
"""What a pass does about results that there are already: reads everything again, or only what has none."""

ResultStatus = Literal["completed", "failed"]
"""Of one model on one row. Pending ones are not kept."""


class Pass(NamedTuple):
    """One run of signals over the traces of a scope. Its rows and results are kept under its id.

    Attributes:
        id: which; results name it as `run_id`.
        account: whose.
        status: where it stands.
        scope: which traces, and how they were chosen.
        selected_signals: as they were when it was made, as `Signal.to_dict` writes them.
        transform_plan: transforms as they were, each with its models.
        estimate: what was planned, with what was not retained and what was left out.
        total_inputs: rows in all.
        total_predictions: predictions in all.
        completed_inputs: rows that came back.
        failed_inputs: rows that failed.
        error_message: why it stopped, where it did.
        created_at: and so on, with their zones; None where it has not come to that.
        rerun: whether it reads what other passes have read already: "all", or "new" for only what none has.
        answered: predictions that "new" spared it, since another pass has them.
        planned: whether every row of its scope is among its items: until then a resumed pass reads the traces again.
    """

    id: str
    account: Account
    status: PassStatus
    scope: Scope
    selected_signals: tuple[dict[str, object], ...]
    transform_plan: tuple[dict[str, object], ...]
    estimate: PlanEstimate
    total_inputs: int
    total_predictions: int
    completed_inputs: int
    failed_inputs: int
    error_message: str | None
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    rerun: Rerun = "all"
    answered: int = 0
    planned: bool = False


class Result(NamedTuple):
    """What one model said of one row: one record for each prediction, and one for each that failed.

    The account's two ids are columns of a store beside these. `batch_id` is "" where no batch of the pass brought it:
    the row was too long to be sent, or an earlier pass had read it, and the conversation has gone on since.
    `classes_json` has every label with its score; `top_label` is the one with the highest, "" with score 0 where there
    is none. `attempt` is how often the row had been sent before: of two results of one model on one row, that of the
    later attempt stands, and the other is history.
    """

    run_id: str
    batch_id: str
    request_id: str
    convo_id: str
    event_id: str
    span_id: str
    turn_index: int | None
    user: str
    release: str
    input_kind: InputKind
    transform_id: str
    transform_version: int
    signal_id: str
    reflex_model: str
    model_version: str
    status: ResultStatus
    mode: Mode | Literal[""]
    top_label: str
    top_score: float
    selected_labels: tuple[str, ...]
    fired: bool
    threshold: float | None
    truncated: bool
    classes_json: str
    error_type: str
    error_message: str
    source_start_time: datetime | None
    created_at: datetime
    input_hash: str = ""
    attempt: int = 0
