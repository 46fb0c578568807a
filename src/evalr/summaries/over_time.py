"""Arms over time: one tally by bucket and group, from which the trend of each, of all, and each group are added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from statistics import median
from typing import TYPE_CHECKING, Any

from evalr.estimates.buckets import Bucket, TimeBucket, bucket_of, bucket_words, buckets_between, zone
from evalr.estimates.estimate import Trend
from evalr.estimates.trends import Trends
from evalr.inputs import About
from evalr.summaries.keys import Key, group_reader
from evalr.tallies.fingerprint import fingerprint
from evalr.tallies.tally import Tally

if TYPE_CHECKING:
    from evalr.summaries.summary import Summary

_MOST_DAYS: Mapping[Bucket, float] = {"day": 45, "week": 7 * 60, "month": float("inf")}
"""The longest times that are shown in points of a day, a week or a month."""

_ENOUGH = 5
"""Results that a typical point should be of."""

_FEWEST_POINTS = 3
"""Points that are still a course."""


@dataclass(frozen=True)
class OverTime:
    """A key to group by: the bucket of time that a result is in, together with its group."""

    bucket: TimeBucket
    by: Key = "arm"

    def __call__(self, about: About) -> list[str]:
        """The bucket and the group as one text each; `split_name` takes them apart."""
        at = self.bucket(about) or ""
        return [_name(at, group) for group in group_reader(self.by)(about)]

    def namer(self, own: tzinfo | None = None) -> Callable[[datetime | None, str | None], str]:
        """What gives the same text from the time and the group that a result has, and keeps those that it gave.

        Args:
            own: the time zone that most times have, and whose days are those of the bucket's zone: it is faster then.
        """
        names: dict[str | None, dict[int | date | None, str]] = {}
        bucket, tz = self.bucket.bucket, zone(self.bucket.tz)
        by_day = bucket == "day"

        def name(at: datetime | None, group: str | None) -> str:
            start: int | date | None = None
            if at is not None:
                start = at.toordinal() if by_day and at.tzinfo is own else bucket_of(at, bucket, tz)
            try:
                return names[group][start]
            except KeyError:
                words = "" if at is None else bucket_words(bucket_of(at, bucket, tz), bucket)
                return names.setdefault(group, {}).setdefault(start, _name(words, group))

        return name


def _name(at: str, group: str | None) -> str:
    return f"{at}\n" if group is None else f"{at}\n={group}"


def split_name(name: str | None) -> tuple[str | None, str | None]:
    """The bucket and the group of a name that `OverTime` gave, each None where a result has none."""
    bucket, _, group = (name or "").partition("\n")
    return bucket or None, group[1:] if group else None


def regrouped(tally: Tally[Any], group_of: Callable[[str | None], str | None], by: Key | None) -> Tally[Any]:
    """The tally by other groups, of which each holds whole groups of this one."""
    found: Tally[Any] = Tally(tally.reads, by=fingerprint(by), cluster=tally.cluster)
    found.overlap, found.numbering = tally.overlap, tally.numbering
    for name, entry in tally.entries.items():
        found.entry(group_of(name), entry.cells.empty).merge(entry)
    return found


def of_groups(tally: Tally[Any], by: Key) -> Tally[Any]:
    """The same by group alone."""
    return regrouped(tally, lambda name: split_name(name)[1], by)


def of_buckets(tally: Tally[Any], bucket: TimeBucket) -> Tally[Any]:
    """The same by bucket alone; one of days may be asked for weeks or months."""
    return regrouped(tally, lambda name: _coarser(split_name(name)[0], bucket.bucket), bucket)


def fitting_bucket(tally: Tally[Any]) -> Bucket | None:
    """Days, weeks or months: the shortest whose points are few enough to be read, and of enough results to say much.

    None where all is of one day.
    """
    results: Counter[str] = Counter()
    for name, entry in tally.entries.items():
        day, _ = split_name(name)
        if day is not None:
            results[day] += entry.results
    if len(results) < 2:
        return None
    span = (date.fromisoformat(max(results)) - date.fromisoformat(min(results))).days + 1
    first, *longer = [bucket for bucket, most in _MOST_DAYS.items() if span <= most]
    chosen = first
    for bucket in longer:
        if median(_by(results, chosen).values()) >= _ENOUGH or len(_by(results, bucket)) < _FEWEST_POINTS:
            break
        chosen = bucket
    return chosen


def _by(results: Mapping[str, int], bucket: Bucket) -> Counter[str | None]:
    found: Counter[str | None] = Counter()
    for day, count in results.items():
        found[_coarser(day, bucket)] += count
    return found


def _coarser(day: str | None, bucket: Bucket) -> str | None:
    if day is None or bucket in ("hour", "day"):
        return day
    if bucket == "month":
        return day[:7]
    start = date.fromisoformat(day)
    return (start - timedelta(days=start.weekday())).isoformat()


def trends_of(
    summary: Summary[Any], tally: Tally[Any], bucket: Bucket, by: str, *, level: float, mix_versions: bool = False
) -> Trends:
    """The trend of each group of a tally that is by `OverTime`, of the same or of shorter buckets."""
    places: dict[str | None, dict[str | None, list[str | None]]] = {}
    for name in tally.entries:
        day, group = split_name(name)
        places.setdefault(group, {}).setdefault(_coarser(day, bucket), []).append(name)
    named = [at for buckets in places.values() for at in buckets if at is not None]
    buckets: list[str | None] = list(buckets_between(named, bucket))
    trends: dict[str | None, Trend] = {}
    for group in (*sorted(group for group in places if group is not None), *([None] if None in places else [])):
        members = {name: at for at, names in places[group].items() for name in names}
        own = regrouped(_part(tally, members), members.get, None)
        timeless: list[str | None] = [None] if None in own.entries else []
        trends[group] = Trend(
            bucket, {at: summary._group(own, at, level, mix_versions) for at in [*buckets, *timeless]}
        )
    return Trends(by, bucket, trends)


def _part(tally: Tally[Any], names: dict[str | None, str | None]) -> Tally[Any]:
    part: Tally[Any] = Tally(tally.reads, by=tally.by, cluster=tally.cluster)
    part.numbering = tally.numbering
    part.entries = {name: tally.entries[name] for name in names}
    return part
