"""Rewrites: how much of what an agent wrote did people substantially rewrite soon after?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, model_validator

from evalr.errors import InputError
from evalr.estimates.words import seconds_text, window_words
from evalr.evaluators import FunctionEvaluator
from evalr.inputs import Draft, History, Now, check_window, known_reading_time
from evalr.measures.drafts import WINDOW, fate_of, split_drafts
from evalr.measures.measure import Measure
from evalr.measures.share_changed import changed_at_least
from evalr.summaries import Rate, Summary, TimeTo

THRESHOLD = 0.2

End = Literal["rewritten", "superseded"]


def _rate(fields: dict[str, Any]) -> float | None:
    revisions, rewritten = fields.get("agent_revisions"), fields.get("rewritten")
    return rewritten / revisions if revisions and rewritten is not None else None


class Rewrites(BaseModel):
    """How many of an agent's revisions people rewrote.

    `agent_revisions` are those decided, `pending` those whose window has not passed. `followed` are those that a person
    edited at all. For a single draft, `after` is the seconds until it was rewritten, or until the agent wrote again
    (superseded), or for which it has stood; `ended` is which. `compared` names the comparison where a text was too
    large for the exact one. Of a pending draft, `after` and `ended` are as it stood when it was read.
    """

    agent_revisions: int = Field(ge=0)
    rewritten: int = Field(ge=0)
    rate: float | None = Field(default_factory=_rate)
    pending: int = Field(default=0, ge=0)
    followed: int | None = Field(default=None, ge=0, repr=False)
    after: float | None = Field(default=None, ge=0, allow_inf_nan=False, repr=False)
    ended: Literal["rewritten", "superseded"] | None = Field(default=None, repr=False)
    compared: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Rewrites:
        if self.rewritten > self.agent_revisions:
            raise ValueError("rewritten cannot be more than agent_revisions")
        if self.followed is not None and not self.rewritten <= self.followed <= self.agent_revisions:
            raise ValueError("followed must be from rewritten to agent_revisions")
        if self.rate != _rate({"agent_revisions": self.agent_revisions, "rewritten": self.rewritten}):
            raise ValueError("rate must be rewritten over agent_revisions, or left out")
        return self

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        says_nothing = [("pending", 0), ("compared", None)]
        return [shown for shown in super().__repr_args__() if shown not in says_nothing]


def measure_rewrites(
    given: History | Draft,
    *,
    window: timedelta = WINDOW,
    threshold: float = THRESHOLD,
    now: Now | None = None,
    normalize: bool = False,
) -> Rewrites:
    """How many of the agent's revisions a person rewrote within the window, before the agent wrote again.

    Of several revisions by people, the last in the window counts: it rewrites the agent's where it changed at least
    `threshold` of its text. A person's revision at exactly the window is in time.

    Args:
        given: a history, or one draft of it.
        window: how long people have.
        threshold: the share of the text, as `share_changed` has it.
        now: the reading time: what is later does not exist yet, and drafts whose window has not passed then are
            pending, unless the agent wrote again. None (and no `read_at`) means that nothing is pending.
        normalize: compare texts with newlines and Unicode normalised.
    """
    check_window(window)
    _check_threshold(threshold)
    moment = known_reading_time(given, now)
    drafts = split_drafts(given, moment) if isinstance(given, History) else [given]
    outcomes = [_outcome(draft, window, threshold, moment, normalize) for draft in drafts]
    decided = [outcome for outcome in outcomes if outcome.decided]
    alone = outcomes[0] if isinstance(given, Draft) else None
    return Rewrites(
        agent_revisions=len(decided),
        rewritten=sum(outcome.ended == "rewritten" for outcome in decided),
        pending=len(outcomes) - len(decided),
        followed=sum(outcome.followed for outcome in decided),
        after=alone.after if alone else None,
        ended=alone.ended if alone else None,
        compared=next((outcome.compared for outcome in outcomes if outcome.compared), None),
    )


class _Outcome(NamedTuple):
    decided: bool
    followed: bool
    after: float
    ended: End | None
    compared: str | None


def _outcome(draft: Draft, window: timedelta, threshold: float, now: datetime | None, normalize: bool) -> _Outcome:
    fate = fate_of(draft, window, now)
    ended: End | None = "superseded" if fate.superseded else None
    after, compared = fate.stood, None
    if fate.followed is not None:
        changed, compared = changed_at_least(draft.text, fate.followed.text, threshold, normalize=normalize)
        if changed:
            # Of a pending draft this may yet be undone; to take it for untouched would be wrong far more often.
            after, ended = fate.followed.at - draft.written, "rewritten"
    return _Outcome(fate.decided, fate.followed is not None, after.total_seconds(), ended, compared)


def _check_threshold(threshold: float) -> None:
    if not (isinstance(threshold, int | float) and 0 < threshold <= 1):
        raise InputError(f"threshold={threshold!r} must be a share of a text, above 0 and at most 1")


def rewrite_evaluator(
    *,
    window: timedelta = WINDOW,
    threshold: float = THRESHOLD,
    now: Now | None = None,
    normalize: bool = False,
) -> FunctionEvaluator[History | Draft, Rewrites]:
    """`measure_rewrites` as an evaluator, versioned by its settings: `2:3600s:0.2`."""
    check_window(window)
    _check_threshold(threshold)

    def rewrites(given: History | Draft, now: datetime | None = None) -> Rewrites:
        return measure_rewrites(given, window=window, threshold=threshold, now=now, normalize=normalize)

    version = f"2:{seconds_text(window)}:{float(threshold)!r}{':normalize' if normalize else ''}"
    return FunctionEvaluator(
        "rewrites",
        version,
        rewrites,
        (History, Draft),
        Rewrites,
        now=now,
        inline=True,
        pending=lambda v: v.pending > 0,
    )


rewrite_rate = Rate(
    "rewrites",
    of=Rewrites,
    hits=lambda v: v.rewritten,
    total=lambda v: v.agent_revisions,
    pending=lambda v: v.pending,
    title="rewritten",
    noun="draft",
    parent="history",
)
"""The share of the agent's revisions that people rewrote, pooled over artifacts."""

followed_rate = replace(
    rewrite_rate, name="rewrites_followed", hits=lambda v: v.followed, title="edited by a person at all"
)
"""The share of the agent's revisions that a person edited at all, an undone edit included."""

time_to_rewrite = TimeTo(
    "rewrites_time",
    of=Rewrites,
    after=lambda v: v.after,
    end=lambda v: v.ended,
    event="rewritten",
    quantile=0.1,
    title="time to rewrite",
    noun="draft",
    parent="history",
)
"""How long until a draft was rewritten, over verdicts of single drafts; the agent writing again is a competing end."""


def _summaries(*, window: timedelta, **_: Any) -> Sequence[Summary[Any]]:
    return (
        replace(rewrite_rate, title=f"rewritten within {window_words(window)}"),
        replace(followed_rate, title=f"edited within {window_words(window)}"),
        replace(time_to_rewrite, title="time until 10% were rewritten"),
    )


measure = Measure(
    name="rewrites",
    question="how much of what the agent wrote did people rewrite?",
    input=Draft,
    verdict=Rewrites,
    summaries=_summaries,
    settings={"window": WINDOW, "threshold": THRESHOLD},
    evaluator=rewrite_evaluator,
    whole=History,
    split=split_drafts,
)
