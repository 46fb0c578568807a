"""Waits: each time an agent waited on a person, how long until the person came back?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, Field

from evalr.estimates.words import window_words
from evalr.evaluators import FunctionEvaluator
from evalr.inputs import Now, Session, Wait, reading_time, resolve_now, utc_now
from evalr.measures.measure import Measure
from evalr.summaries import Summary, TimeTo

WINDOW = timedelta(hours=1)


class Waited(BaseModel):
    """How long an agent waited on a person, in seconds, and how the wait ended, if it did."""

    after: float = Field(ge=0, allow_inf_nan=False)
    ended: Literal["returned", "closed", "still_open"]


def measure_wait(wait: Wait, *, now: Now) -> Waited:
    """How long a wait lasted, as seen at `now` (or at its `read_at`, where that is earlier)."""
    return _measure_wait(wait, reading_time(wait, resolve_now(now)))


def _measure_wait(wait: Wait, now: datetime) -> Waited:
    if wait.until is not None and wait.ended is not None and wait.until <= now:
        return Waited(after=(wait.until - wait.since).total_seconds(), ended=wait.ended)
    return Waited(after=max(timedelta(0), now - wait.since).total_seconds(), ended="still_open")


def wait_evaluator(*, now: Now = utc_now) -> FunctionEvaluator[Wait, Waited]:
    """`measure_wait` as an evaluator, for the waits of `Session.waits`."""
    return FunctionEvaluator("waits", "1", _measure_wait, Wait, Waited, now=now, inline=True)


back_within = TimeTo(
    "waits",
    of=Waited,
    after=lambda v: v.after,
    end=lambda v: None if v.ended == "still_open" else v.ended,
    event="returned",
    within=WINDOW,
    title="came back",
    noun="wait",
)
"""The share of waits after which the person came back within the window."""

typical_wait = replace(back_within, name="waits_median", within=None, title="typical wait (median)")
"""The time by which the person had come back after half of all waits."""


def _summaries(*, window: timedelta) -> Sequence[Summary[Any]]:
    return (replace(back_within, within=window, title=f"came back within {window_words(window)}"), typical_wait)


def _evaluator(*, now: Now, window: timedelta) -> FunctionEvaluator[Wait, Waited]:
    return wait_evaluator(now=now)  # the window is the summaries' alone: a wait lasts as long as it lasts


measure = Measure(
    name="waits",
    question="how long until the person came back?",
    input=Wait,
    verdict=Waited,
    summaries=_summaries,
    settings={"window": WINDOW},
    evaluator=_evaluator,
    whole=Session,
    split=lambda session, now: session.waits(now=now),
)
