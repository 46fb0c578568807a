"""Periods and times as Reflexio has them: whole seconds, both ends counted, and compared as texts by its database."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil
from typing import Any, NamedTuple

from evalr.errors import InputError
from evalr.inputs import Clock, resolve_now
from evalr.logs.reasons import Reason

DAY = 24 * 60 * 60
WEEK = 7 * DAY
MONTH = 30 * DAY

LAST = 253_402_300_799
"""The last second of the year 9999."""

MILLISECONDS_FROM = 1_500_000_000_000
"""From here on a number is taken for milliseconds where a text is made of it, and nowhere else."""

IS_USUAL = "coalesce(strftime('%Y-%m-%dT%H:%M:%S+00:00', {0}, '+0 days') = {0} COLLATE BINARY AND +{0} >= '1000', 0)"
"""Whether a column holds a time as Reflexio writes it, in SQL: 1 or 0. Its day is then the first ten characters.

SQLite takes the 30th of February for a time, and writes it as it is unless it has to count from it. Whatever the
column was declared to be, its texts are compared as texts, byte by byte.
"""

Moment = datetime | int
"""A datetime, or Reflexio's own `from_ts` or `to_ts`: seconds since 1970, of which the last one counts."""


class Window(NamedTuple):
    """`from_ts` and `to_ts`, both of them inside."""

    start: int
    end: int


def window_of(since: Moment | None, until: Moment | None, now: int) -> Window:
    """The window of a period: a datetime `until` is outside of it, as everywhere; a number is Reflexio's own.

    Raises:
        InputError: a naive datetime, a number below 0, or a period that is empty.
    """
    start = 0 if since is None else seconds_of(since, "since")
    end = now if until is None else seconds_of(until, "until") - isinstance(until, datetime)
    if start > end:
        raise InputError(f"the period is empty: since={since!r} is not before until={until!r}")
    return Window(start, end)


def seconds_of(moment: Moment, name: str) -> int:
    """Seconds since 1970, a part of one rounded up."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InputError(f"{name}={moment!r} must be a datetime with its time zone")
        return ceil(moment.timestamp())
    if isinstance(moment, bool) or not isinstance(moment, int) or moment < 0:
        raise InputError(f"{name}={moment!r} must be a datetime, or seconds since 1970")
    return moment


def now_of(now: datetime | Clock) -> int:
    """The reading time in whole seconds."""
    return int(resolve_now(now).timestamp())


def text_of_time(seconds: int) -> str:
    """The text that Reflexio compares stored times with."""
    if MILLISECONDS_FROM <= seconds <= LAST * 1000:
        seconds //= 1000
    return datetime.fromtimestamp(max(0, min(seconds, LAST)), tz=UTC).isoformat()


def time_of(text: Any) -> int:
    """A stored time in whole seconds. Raises Reason where Reflexio would take the time of its reading instead."""
    try:
        return int(moment_of(text).timestamp())
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise Reason("unreadable time" if text else "no time") from None


def seconds_in_sql(column: str) -> str:
    """`time_of` of a usual time, in SQL."""
    return f"CAST(strftime('%s', {column}) AS INTEGER)"


def moment_of(text: Any) -> datetime:
    """A stored time, in UTC where it names no zone. Raises ValueError or a kin of it where it is none."""
    time: datetime = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
