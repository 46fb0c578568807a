"""Retention: how much of what an agent wrote is still there after people worked on it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, Field, model_validator

from evalr.estimates.words import seconds_text, window_words
from evalr.evaluators import FunctionEvaluator
from evalr.inputs import Draft, History, Now, check_window, known_reading_time
from evalr.measures.drafts import WINDOW, fate_of, split_drafts
from evalr.measures.measure import Measure, Ranking
from evalr.measures.share_changed import Alignment, align, normalized
from evalr.summaries import Mean, Summary


def _share(fields: dict[str, Any]) -> float | None:
    added, kept = fields.get("added"), fields.get("kept")
    return kept / added if added and kept is not None else None


class Retention(BaseModel):
    """How much of the text that an agent added is still there, in characters.

    `added` is what decided drafts added, `kept` what is still there of it, and `share` kept over added (None where
    nothing was added). `pending` is what those drafts added whose window has not passed. `edited` says of a single
    draft whether a person revised it in that time. `compared` names the comparison where a text was too large for the
    exact one.
    """

    added: int = Field(ge=0)
    kept: int = Field(ge=0)
    share: float | None = Field(default_factory=_share)
    pending: int = Field(default=0, ge=0)
    edited: bool | None = Field(default=None, repr=False)
    compared: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Retention:
        if self.kept > self.added:
            raise ValueError("kept cannot be more than added")
        if self.share != _share({"added": self.added, "kept": self.kept}):
            raise ValueError("share must be kept over added, or left out")
        return self

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        says_nothing = [("pending", 0), ("compared", None)]
        return [shown for shown in super().__repr_args__() if shown not in says_nothing]


def measure_retention(
    given: History | Draft, *, window: timedelta = WINDOW, now: Now | None = None, normalize: bool = False
) -> Retention:
    """How much of what the agent added is still there in the last revision that people made of it in time.

    A draft added those of its characters that are not the same in the text before it, and all of them where it began
    the artifact. Kept are those that are the same in the last revision by people within the window, before the agent
    wrote again; where there is none, all of them. What is the same is what `share_changed` finds to be.

    Args:
        given: a history, whose drafts are summed, or one draft of it.
        window: how long people have; a revision at exactly the window is in time.
        now: the reading time: what is later does not exist yet, and what drafts added whose window has not passed then
            is pending, unless the agent wrote again. None (and no `read_at`) means that nothing is pending.
        normalize: compare texts, and count characters, with newlines and Unicode normalised.
    """
    check_window(window)
    moment = known_reading_time(given, now)
    drafts = split_drafts(given, moment) if isinstance(given, History) else [given]
    parts = [_of_draft(draft, window, moment, normalize) for draft in drafts]
    if isinstance(given, Draft):
        return parts[0]
    return Retention(
        added=sum(part.added for part in parts),
        kept=sum(part.kept for part in parts),
        pending=sum(part.pending for part in parts),
        compared=next((part.compared for part in parts if part.compared), None),
    )


def _of_draft(draft: Draft, window: timedelta, now: datetime | None, normalize: bool) -> Retention:
    def read(text: str) -> str:
        return normalized(text) if normalize else text

    fate, text = fate_of(draft, window, now), read(draft.text)
    origin = Alignment([], None) if draft.before is None else align(read(draft.before), text)
    new = bytearray(b"\1") * len(text)  # a mark for each character that the agent added
    for _, start, size in origin.matches:
        new[start : start + size] = bytes(size)
    added = new.count(1)
    edited = fate.followed is not None
    if not fate.decided:
        return Retention(added=0, kept=0, pending=added, edited=edited, compared=origin.method)
    if fate.followed is None or not added:
        return Retention(added=added, kept=added, edited=edited, compared=origin.method)
    outcome = align(text, read(fate.followed.text))
    kept = sum(new.count(1, start, start + size) for start, _, size in outcome.matches)
    return Retention(added=added, kept=kept, edited=True, compared=origin.method or outcome.method)


def retention_evaluator(
    *, window: timedelta = WINDOW, now: Now | None = None, normalize: bool = False
) -> FunctionEvaluator[History | Draft, Retention]:
    """`measure_retention` as an evaluator, versioned by its settings: `1:3600s`."""
    check_window(window)

    def retention(given: History | Draft, now: datetime | None = None) -> Retention:
        return measure_retention(given, window=window, now=now, normalize=normalize)

    version = f"1:{seconds_text(window)}{':normalize' if normalize else ''}"
    return FunctionEvaluator(
        "retention",
        version,
        retention,
        (History, Draft),
        Retention,
        now=now,
        inline=True,
        pending=lambda v: v.pending > 0,
    )


def _nothing_added(verdict: Retention) -> str | None:
    return None if verdict.added or verdict.pending else "nothing added"


def _not_edited(verdict: Retention) -> str | None:
    if verdict.edited is None:
        return "unknown"
    return _nothing_added(verdict) if verdict.edited or verdict.pending else "not edited"


retention_share = Mean(
    "retention",
    of=Retention,
    value=lambda v: Fraction(v.kept, v.added),
    weight=lambda v: v.added,
    pending=lambda v: v.pending,
    leaves_out=_nothing_added,
    bounds=(0, 1),
    unit="share",
    title="agent's text kept",
    noun="draft",
    parent="history",
)
"""The share that is still there of all the characters that the agent added, pooled over drafts."""

retention_of_edited = replace(
    retention_share, name="retention_edited", leaves_out=_not_edited, title="agent's text kept where people edited"
)
"""The same of single drafts that a person edited at all: what stays when people look."""


_rewritten_files = Ranking(
    title="most rewritten files",
    what="what people took out of the text that agents added",
    by="path",
    part=lambda v: v.added - v.kept,
    whole=lambda v: v.added,
    unit="character",
    noun="draft",
)


def _summaries(*, window: timedelta) -> Sequence[Summary[Any]]:
    return (
        replace(retention_share, title=f"agent's text kept after {window_words(window)}"),
        replace(retention_of_edited, title="kept where people edited"),
    )


measure = Measure(
    name="retention",
    question="how much of what the agent wrote is still there after people worked on it?",
    input=Draft,
    verdict=Retention,
    summaries=_summaries,
    settings={"window": WINDOW},
    evaluator=retention_evaluator,
    whole=History,
    split=split_drafts,
    rankings=(_rewritten_files, replace(_rewritten_files, title="most rewritten directories", by="directory")),
)
