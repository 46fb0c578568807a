"""Drop-off: was the agent left waiting on a person who never came back?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from evalr.estimates.words import seconds_text, window_words
from evalr.evaluators import FunctionEvaluator
from evalr.inputs import Now, OpenProposals, Session, check_window, reading_time, resolve_now, utc_now
from evalr.measures.measure import Marker, Measure
from evalr.measures.rows import ActivityRow, OpenSince, RowReader, SessionRow
from evalr.summaries import Rate, Summary, TimeTo
from evalr.summaries.columns import Hits, Times
from evalr.summaries.summary import PENDING

WINDOW = timedelta(hours=1)


class DropOff(BaseModel):
    """How a session ended: dropped (and why), continued, or pending while it is too soon to tell.

    `waited` is how long the agent's clock ran, in seconds: from its last activity, or from a proposal that is still
    open where that is older, to a person's return or to the reading time. `came_late` says that this return was after
    the window: such a session dropped, though its wait has ended.
    """

    outcome: Literal["dropped", "continued", "pending"]
    cause: Literal["no_reply", "unresolved_proposal"] | None = None
    waited: float | None = Field(default=None, ge=0, allow_inf_nan=False, repr=False)
    came_late: bool = Field(default=False, repr=False)

    @model_validator(mode="after")
    def _drops_have_a_cause(self) -> DropOff:
        if (self.outcome == "dropped") != (self.cause is not None):
            raise ValueError("a session that dropped has a cause, and only such a session")
        if self.came_late and self.cause != "no_reply":
            raise ValueError("only a session that dropped for want of a reply can have had one too late")
        return self


def measure_drop_off(session: Session, *, window: timedelta = WINDOW, now: Now) -> DropOff:
    """How a session ended, as seen at `now` (or at its `read_at`, where that is earlier).

    - dropped, unresolved_proposal: a proposal is open and has been for the window.
    - dropped, no_reply: no person acted within the window after the agent's last activity.
    - continued: a person did, or the session was closed after the agent's last activity, or the agent never acted.
    - pending: the window has not passed yet.

    A reply at exactly the window is in time, and a wait of exactly the window is over.

    Args:
        session: its activities after the reading time do not exist yet.
        window: how long a person has to come back.
        now: an aware datetime, or a clock that returns one.
    """
    check_window(window)
    return _drop_off(session, window, reading_time(session, resolve_now(now)))


def _drop_off(session: Session, window: timedelta, now: datetime) -> DropOff:
    proposals = OpenProposals()
    last_word = answered = None
    closed = False
    for position, activity in enumerate(session.until(now)):
        kind = activity.kind
        if kind == "closed":
            closed = True
            proposals.close()
        elif kind in ("proposal", "resolution"):
            proposals.see(position, activity)
        if activity.role == "agent" and kind != "closed":
            last_word, answered, closed = activity.at, None, False
        elif answered is None and (activity.role == "person" or closed):
            answered = activity.at

    if last_word is None:
        return DropOff(outcome="continued", waited=0)
    if closed and answered is not None:
        return DropOff(outcome="continued", waited=min(window, answered - last_word).total_seconds())
    proposal = proposals.oldest()
    if proposal is not None:
        return _open(now - proposal.at, window, "unresolved_proposal")
    if answered is None:
        return _open(now - last_word, window, "no_reply")
    waited = answered - last_word
    if waited <= window:
        return DropOff(outcome="continued", waited=waited.total_seconds())
    return DropOff(outcome="dropped", cause="no_reply", waited=waited.total_seconds(), came_late=True)


def _open(waited: timedelta, window: timedelta, cause: Literal["no_reply", "unresolved_proposal"]) -> DropOff:
    if waited < window:
        return DropOff(outcome="pending", waited=waited.total_seconds())
    return DropOff(outcome="dropped", cause=cause, waited=waited.total_seconds())


def drop_off_evaluator(*, window: timedelta = WINDOW, now: Now = utc_now) -> FunctionEvaluator[Session, DropOff]:
    """`measure_drop_off` as an evaluator, versioned by its window: `1:3600s`.

    The reading time is each verdict's `as_of`.
    """
    check_window(window)

    def drop_off(session: Session, now: datetime) -> DropOff:
        return _drop_off(session, window, now)

    return FunctionEvaluator(
        "drop_off",
        f"1:{seconds_text(window)}",
        drop_off,
        Session,
        DropOff,
        now=now,
        inline=True,
        pending=lambda v: v.outcome == "pending",
    )


drop_off_rate = Rate(
    "drop_off_decided",
    of=DropOff,
    hits=lambda v: v.outcome == "dropped",
    leaves_out=lambda v: "pending" if v.outcome == "pending" else None,
    title="drop-off, decided only",
    noun="session",
)
"""The share of decided sessions that dropped off: pending ones are left out, which flatters while a log is young."""

drop_off_share = TimeTo(
    "drop_off",
    of=DropOff,
    after=lambda v: v.waited,
    end=lambda v: "continued" if v.outcome == "continued" or v.came_late else None,
    event="continued",
    within=WINDOW,
    open=True,
    title="drop-off",
    noun="session",
)
"""The share of sessions without a return within the window, pending ones kept for as long as they were followed.

The same number as `drop_off_rate` when none is pending and `within` is the window of the verdicts.
"""


NO_TIME = timedelta(0)
_HIT, _MISS = (1, 1), (0, 1)


def _rows(columns: tuple[Times, Hits], *, window: timedelta) -> RowReader:
    """`_drop_off` in the columns of `drop_off_share` and `drop_off_rate`.

    It goes through a row from its end, where a few activities mostly decide.
    """
    check_window(window)
    times, hits = columns
    add_waited, add_end, add_dropped = times.after.append, times.end.append, hits.of.append

    def read(row: SessionRow, now: datetime) -> None:
        activities = row["activities"]
        answered = last_word = None
        closed = False
        for activity in reversed(activities):
            if activity["kind"] == "closed":
                closed, answered = True, activity["at"]
            elif activity["role"] == "agent":
                last_word = activity["at"]
                break
            elif activity["role"] == "person":
                answered = activity["at"]

        waited = NO_TIME
        end: str | None = "continued"
        dropped: tuple[int, int] | str = _MISS
        if last_word is None:
            pass
        elif closed and answered is not None:
            waited = min(window, answered - last_word)
        else:
            since = _open_since(activities)
            if since is None and answered is not None:
                waited = answered - last_word
                dropped = _MISS if waited <= window else _HIT
            else:
                waited, end = now - (since or last_word), None
                dropped = PENDING if waited < window else _HIT
        add_waited(waited.total_seconds())
        add_end(end)
        add_dropped(dropped)

    return read


def _open_since(activities: Sequence[ActivityRow]) -> datetime | None:
    """Since when the oldest proposal that is still open is open, if one is."""
    proposals: OpenSince | None = None  # as most rows need none
    for activity in activities:
        kind = activity["kind"]
        if kind == "proposal":
            if proposals is None:
                proposals = OpenSince()
            proposals.see(activity)
        elif proposals is not None:
            if kind == "resolution":
                proposals.see(activity)
            elif kind == "closed":
                proposals.close()
    return None if proposals is None else proposals.oldest()


def _summaries(*, window: timedelta) -> Sequence[Summary[Any]]:
    title = f"drop-off after {window_words(window)}"
    return (replace(drop_off_share, within=window, title=title), drop_off_rate)


measure = Measure(
    name="drop_off",
    question="was the agent left waiting on a person who never came back?",
    input=Session,
    verdict=DropOff,
    summaries=_summaries,
    settings={"window": WINDOW},
    evaluator=drop_off_evaluator,
    marker=Marker(
        seen=lambda session: any(activity.kind == "closed" for activity in session.activities),
        without="no session in this log is marked as closed, so drop-off says who spoke last rather than who gave up",
        seen_in_row=lambda row: any(activity["kind"] == "closed" for activity in row["activities"]),
    ),
    rows=_rows,
)
