"""Days, weeks and months of UTC, and the trends over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
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
from evalr_reflexio.answers.feeding import add_hit, entry_of


@lru_cache(maxsize=4096)
def name_of_bucket(day: int, bucket: Bucket) -> str:
    """The name of the bucket that a day is in, as `Trend`s have it."""
    date = date_of(day)
    if bucket == "week":
        date -= timedelta(days=date.weekday())
    elif bucket == "month":
        date = date.replace(day=1)
    return bucket_words(date, bucket)


def success_trend(sums: ArmSums, bucket: Bucket, level: float, given_by: tuple[str, str]) -> Trend:
    """The success rate of an arm over time."""
    places: dict[str, list[int]] = {}
    for place, day in enumerate(sums.days):
        places.setdefault(name_of_bucket(day, bucket), []).append(place)
    found = {}
    keys = sums.numbering.keys
    for name, members in places.items():  # one bucket at a time, so that a year of them takes no more room than one
        entry = entry_of(Counts, Numbering())
        for place in members:
            user = sums.users[place]
            add_hit(entry, bool(sums.successes[place]), None if user == OWN else keys[user])
        found[name] = success_rate.estimate(alone(success_rate, entry, given_by), level=level)
    return in_order(bucket, found, success_rate, level)


def alone(summary: Summary[Any], entry: Entry[Any], given_by: tuple[str, str] | None = None) -> Tally[Any]:
    """The tally of one entry, all of whose verdicts are by one evaluator and version where these are given."""
    if given_by is not None:
        entry.versions = Counter({given_by: entry.results})
    tally: Tally[Any] = Tally(summary.reads())
    tally.entries[None] = entry
    return tally


def in_order(bucket: Bucket, found: Mapping[str, Estimate], summary: Summary[Any], level: float) -> Trend:
    """A trend of what was found in some buckets; those between them hold nothing, and are undefined."""
    nothing = summary.estimate(Tally(summary.reads()), level=level)
    return Trend(bucket, {name: found.get(name, nothing) for name in buckets_between(found, bucket)})
