"""What an answer is asked for, and which sessions and verdicts that takes in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal, get_args

from evalr.errors import InputError
from evalr.estimates.interval import tail
from evalr.inputs import check_window
from evalr.measures.drop_off import WINDOW
from evalr_reflexio.assigning import AssignmentRule
from evalr_reflexio.stored import Served

Bucket = Literal["day", "week", "month"]

TURNS = 3
PLANNED = 1_000
NEWEST = 100
LISTED = 20

_FIRST_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked, checked once; see `evalr.reflexio.impact` for what each means."""

    now: datetime
    since: datetime | None = None
    until: datetime | None = None
    level: float = 0.95
    bucket: Bucket = "day"
    turns: int = TURNS
    window: timedelta = WINDOW
    shadow: Served = "served"
    evaluator: str | None = None
    shadow_version: str | None = None
    holdout: float | None = None
    assigned: AssignmentRule | None = None
    planned: int = PLANNED
    always_valid: bool = False
    newest: int = NEWEST
    listed: int = LISTED
    _all_times: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        tail(self.level)
        check_window(self.window)
        for name in ("now", "since", "until"):
            time = getattr(self, name)
            if time is not None and (not isinstance(time, datetime) or time.tzinfo is None):
                raise InputError(f"{name}={time!r} must be a datetime with its time zone")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InputError(
                f"the period is empty: since={self.since.isoformat()} is not before until={self.until.isoformat()}"
            )
        if self.bucket not in get_args(Bucket):
            raise InputError(f"bucket={self.bucket!r} must be 'day', 'week' or 'month'")
        for name, least in (("turns", 1), ("newest", 0), ("listed", 0)):
            number = getattr(self, name)
            if type(number) is not int or number < least:
                raise InputError(f"{name}={number!r} must be a whole number from {least}")
        if self.holdout is not None and not 0 < self.holdout < 1:
            raise InputError(f"holdout={self.holdout!r} must be a share above 0 and below 1, such as 0.1")
        object.__setattr__(self, "_all_times", self.since is None and self.until is None)

    def takes_in(self, at: datetime) -> bool:
        """Whether what began then counts: in the period, and not after the reading time."""
        if at > self.now:
            return False
        if self._all_times:
            return True
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


def day_of(at: datetime) -> int:
    """The day of a time in UTC, counted from 1970."""
    return at.toordinal() - _FIRST_DAY


def date_of(day: int) -> date:
    """The date of such a day."""
    return date.fromordinal(day + _FIRST_DAY)
