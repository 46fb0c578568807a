"""Days, weeks and months of UTC, and the trends over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from evalr.estimates.buckets import bucket_words, buckets_between
from evalr.estimates.estimate import Estimate, Trend
from evalr.measures.session_outcome import success_rate
from evalr.summaries import Summary
from evalr.tallies.counts import Counts
from evalr.tallies.numbering import OWN
from evalr.tallies.tally import Entry, Tally
from evalr_reflexio.answers.arm_sums import ArmSums
from evalr_reflexio.answers.asked import Bucket, date_of
from evalr_reflexio.answers.feeding import alone, of_singles


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
    buckets: dict[int, list[int]] = {}
    keys: Sequence[Hashable] = []
    for sums in parts:
        keys = sums.numbering.keys
        days = {day: buckets.setdefault(_first_day(day, bucket), []) for day in set(sums.days)}
        for user, day, success in zip(sums.users, sums.days, sums.successes, strict=True):
            days[day].append(2 * user + success)
    found = {}
    for day, sessions in buckets.items():
        count = Counter(sessions).get
        hits = {user: count(2 * user + 1, 0) for user in {each >> 1 for each in sessions}}
        known = {user: count(2 * user, 0) + hit for user, hit in hits.items()}
        own = of_singles(hits.pop(OWN, 0), known.get(OWN, 0), known.pop(OWN, 0))
        entry = Entry(Counts.of_sums(((keys[user], hit, known[user]) for user, hit in hits.items()), own))
        entry.results = entry.counted = len(sessions)
        found[name_of_bucket(day, bucket)] = success_rate.estimate(alone(success_rate, entry, given_by), level=level)
    return in_order(bucket, found, success_rate, level)


def in_order(bucket: Bucket, found: Mapping[str, Estimate], summary: Summary[Any], level: float) -> Trend:
    """A trend of what was found in some buckets; those between them hold nothing, and are undefined."""
    nothing = summary.estimate(Tally(summary.reads()), level=level)
    return Trend(bucket, {name: found.get(name, nothing) for name in buckets_between(found, bucket)})
