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
from evalr.measures.rows import ActivityRow, OpenSince, RowReader, SessionRow
from evalr.summaries import Summary, TimeTo
from evalr.summaries.columns import Times

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
    return FunctionEvaluator(
        "waits", "1", _measure_wait, Wait, Waited, now=now, inline=True, pending=lambda v: v.ended == "still_open"
    )


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


def _rows(columns: tuple[Times], *, window: timedelta, began: list[datetime] | None = None) -> RowReader:
    """What `Session.waits` and `measure_wait` say, in the columns of `back_within`."""
    (times,) = columns
    add_after, add_end = times.after.append, times.end.append
    add_began = None if began is None else began.append

    def put(since: datetime, until: datetime, end: str | None) -> None:
        add_after((until - since).total_seconds())
        add_end(end)
        if add_began is not None:
            add_began(since)

    def put_all(proposals: OpenSince | None, last_word: ActivityRow | None, until: datetime, end: str | None) -> None:
        if proposals is not None:
            for since in proposals.close():
                put(since, until, end)
        if last_word is not None:
            put(last_word["at"], until, end)

    def read(row: SessionRow, now: datetime) -> None:
        proposals: OpenSince | None = None  # as most rows need none
        last_word: ActivityRow | None = None
        for activity in row["activities"]:
            kind, role = activity["kind"], activity["role"]
            if kind != "message":  # as most are
                if kind == "closed":
                    put_all(proposals, last_word, activity["at"], "closed")
                    last_word = None
                    continue
                if kind == "proposal" or (kind == "resolution" and proposals is not None):
                    proposals = proposals or OpenSince()
                    since = proposals.see(activity)
                    if since is not None:
                        put(since, activity["at"], "returned" if role == "person" else "closed")
            if role == "agent":
                last_word = activity
            elif last_word is not None and role == "person":
                # As `put`, without its call: most waits end here.
                add_after((activity["at"] - last_word["at"]).total_seconds())
                add_end("returned")
                if add_began is not None:
                    add_began(last_word["at"])
                last_word = None
        put_all(proposals, last_word, now, None)

    return read


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
    rows=_rows,
    part_attributes=("wait",),
)
