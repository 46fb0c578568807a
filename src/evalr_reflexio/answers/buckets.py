"""Days, weeks and months of UTC, and the trends over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from evalr.estimates.buckets import bucket_words, buckets_between
from evalr.estimates.estimate import Estimate, Trend
from evalr.measures.session_outcome import success_rate
from evalr.summaries import Summary
from evalr.tallies.counts import Counts
from evalr.tallies.numbering import OWN, Numbering
from evalr.tallies.tally import Entry, Tally
from evalr_reflexio.answers.arm_sums import ArmSums
from evalr_reflexio.answers.asked import Bucket, date_of
from evalr_reflexio.answers.feeding import alone, of_singles

Sums = dict[int, dict[int, int]]
"""By bucket, then by the number of the user: sessions, and above bit 32 those that succeeded."""

_SUCCESS = 32
_SUCCEEDED = (1 << _SUCCESS) + 1
_SESSIONS = (1 << _SUCCESS) - 1


def _apart(both: int) -> tuple[int, int]:
    """Sessions that succeeded, and sessions."""
    return both >> _SUCCESS, both & _SESSIONS


@lru_cache(maxsize=4096)
def name_of_bucket(day: int, bucket: Bucket) -> str:
    """The name of the bucket that a day is in, as `Trend`s have it."""
    return bucket_words(date_of(_first_day(day, bucket)), bucket)


@lru_cache(maxsize=4096)
def _first_day(day: int, bucket: Bucket) -> int:
    date = date_of(day)
    if bucket == "week":
        return day - date.weekday()
    return day - (date - date.replace(day=1)).days if bucket == "month" else day


def success_trend(parts: Iterable[ArmSums], bucket: Bucket, level: float, given_by: tuple[str, str]) -> Trend:
    """The success rate of one arm, or of several together, over time."""
    buckets: Sums = {}
    numbering = Numbering()
    for sums in parts:
        numbering = sums.numbering
        days: dict[int, dict[int, int]] = {}
        for day in set(sums.days):
            days[day] = buckets.setdefault(_first_day(day, bucket), {})
        for user, day, success in zip(sums.users, sums.days, sums.successes, strict=True):
            users = days[day]
            users[user] = users.get(user, 0) + (_SUCCEEDED if success else 1)
    found = {}
    for day, users in buckets.items():
        own_hits, own = _apart(users.pop(OWN, 0))
        rows = [(numbering.keys[user], *_apart(both)) for user, both in users.items()]
        entry = Entry(Counts.of_sums(rows, of_singles(own_hits, own, own)))
        entry.results = entry.counted = sum(map(_SESSIONS.__and__, users.values())) + own
        found[name_of_bucket(day, bucket)] = success_rate.estimate(alone(success_rate, entry, given_by), level=level)
    return in_order(bucket, found, success_rate, level)


def in_order(bucket: Bucket, found: Mapping[str, Estimate], summary: Summary[Any], level: float) -> Trend:
    """A trend of what was found in some buckets; those between them hold nothing, and are undefined."""
    nothing = summary.estimate(Tally(summary.reads()), level=level)
    return Trend(bucket, {name: found.get(name, nothing) for name in buckets_between(found, bucket)})
