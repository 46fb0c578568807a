"""Buckets of time for trends: hours, days, weeks and months of a time zone's own calendar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Literal, get_args

from evalr.errors import InputError
from evalr.inputs import About

Bucket = Literal["hour", "day", "week", "month"]
"""How long each stretch of a trend is, by the calendar of its time zone."""

_MOST_FILLED = 20_000
"""Beyond this many buckets between the first and the last, only those that hold something are listed."""


@dataclass(frozen=True, slots=True)
class TimeBucket:
    """A key to group by: the name of the bucket that a result's time is in, None where it has no time."""

    bucket: Bucket = "day"
    tz: str | tzinfo = "UTC"

    def __post_init__(self) -> None:
        if self.bucket not in get_args(Bucket):
            raise InputError(f"bucket={self.bucket!r} must be 'hour', 'day', 'week' or 'month'")
        object.__setattr__(self, "tz", zone(self.tz))

    def __call__(self, about: About) -> str | None:
        """The bucket's name."""
        return None if about.at is None else bucket_words(bucket_of(about.at, self.bucket, zone(self.tz)), self.bucket)


def zone(tz: str | tzinfo) -> tzinfo:
    """The time zone that `tz` names, such as "Europe/Berlin"."""
    if isinstance(tz, tzinfo):
        return tz
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(tz)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError(f"tz={tz!r} is not a known time zone: use a name such as 'UTC' or 'Europe/Berlin'") from error


def bucket_of(at: datetime, bucket: Bucket, tz: tzinfo) -> date | datetime:
    """The first day of the bucket that `at` falls in; for hours, the moment in UTC at which the local hour began."""
    local = at.astimezone(tz)
    if bucket == "hour":
        # Through UTC, so that the hour that is repeated when clocks go back is two buckets.
        past = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
        return at.astimezone(UTC) - past
    day = local.date()
    if bucket == "day":
        return day
    if bucket == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1)


def bucket_words(start: date | datetime, bucket: Bucket) -> str:
    """The bucket's name, which sorts by time: `2026-09`, `2026-09-28`, `2026-09-28T09:00Z`."""
    if isinstance(start, datetime):
        return start.strftime("%Y-%m-%dT%H:%MZ")
    return start.strftime("%Y-%m") if bucket == "month" else start.isoformat()


def buckets_between(names: Iterable[str], bucket: Bucket) -> list[str]:
    """The names and those of the buckets between them that are missing, in order."""
    present = sorted(set(names))
    if not present:
        return []
    filled = [present[0]]
    for name in present[1:]:
        # From each name anew: a zone that changes its offset by half an hour moves where its hours begin.
        current, following = _next(_start(filled[-1], bucket), bucket), _start(name, bucket)
        while current < following:
            filled.append(bucket_words(current if bucket == "hour" else current.date(), bucket))
            current = _next(current, bucket)
            if len(filled) > _MOST_FILLED:
                return present
        filled.append(name)
    return filled


def _start(name: str, bucket: Bucket) -> datetime:
    form = {"hour": "%Y-%m-%dT%H:%MZ", "month": "%Y-%m"}.get(bucket, "%Y-%m-%d")
    return datetime.strptime(name, form).replace(tzinfo=UTC)


def _next(start: datetime, bucket: Bucket) -> datetime:
    if bucket == "month":
        return (start + timedelta(days=31)).replace(day=1)
    return start + {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}[bucket]
