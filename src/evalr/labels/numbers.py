"""Statistics of pairs as estimates, each with its account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from evalr.estimates.compare import Difference
from evalr.estimates.estimate import Estimate, Status
from evalr.estimates.judged import Part
from evalr.estimates.rate import rate_interval
from evalr.estimates.words import Unit, count_words
from evalr.quoting import safe_text
from evalr.summaries.keys import Key, cluster_kinds
from evalr.summaries.summary import LOW_CONFIDENCE_UNDER
from evalr.tallies.moments import Moments

Cluster = Hashable | None
"""Of a row; None where it is one by itself."""


class Asked(NamedTuple):
    """What a caller asks of every number."""

    level: float
    cluster: Key | None

    @property
    def cluster_word(self) -> str:
        """What a cluster is called that was named, or that a dataset's examples have as their group."""
        if self.cluster is None:
            return "group"
        # A slash in a noun separates its plural.
        return self.cluster if isinstance(self.cluster, str) and "/" not in self.cluster else "cluster"


class Account(NamedTuple):
    """What holds for all numbers that are made of the same pairs."""

    versions: Mapping[str, int] = {}
    left_out: Mapping[str, int] = {}
    flags: tuple[str, ...] = ()


def estimate_of(
    name: str,
    part: Part | Difference,
    clusters: Sequence[Cluster],
    asked: Asked,
    account: Account,
    *,
    unit: Unit = "share",
    noun: str = "pair",
    counts: Mapping[str, float] | None = None,
    bounds: tuple[float, float] | None = None,
    status: Status | None = None,
    keep_reason: bool = False,
    resting_on: int | None = None,
) -> Estimate:
    """The estimate that a statistic over rows of those clusters is.

    `keep_reason` is for reasons that say how a number was come by, and not only why there is none. `resting_on` says
    how many clusters decide whether they are few, where those are not all.
    """
    value, interval = part.value, part.interval
    if status is None:
        no_limits = interval.low is None and interval.high is None
        status = "undefined" if value is None else "degenerate" if no_limits else "ok"
    by, total = clustered_by(clusters, asked, noun)
    few = (
        ("low_confidence",)
        if value is not None and (total if resting_on is None else resting_on) < LOW_CONFIDENCE_UNDER
        else ()
    )
    return Estimate(
        name=name,
        value=value,
        low=interval.low,
        high=interval.high,
        level=asked.level,
        unit=unit,
        noun=noun,
        counts=counts or {},
        n=len(clusters),
        clusters=total,
        clustered_by=by,
        variance=interval.variance,
        bounds=bounds,
        method=interval.method,
        status=status,
        reason=interval.reason if status != "ok" or keep_reason else None,
        flags=(*few, *account.flags),
        left_out={reason: n for reason, n in account.left_out.items() if n},
        versions=account.versions,
    )


def clustered_by(clusters: Iterable[Cluster], asked: Asked, noun: str) -> tuple[dict[str, int], int]:
    """How many clusters there are of each kind, in words, and of all kinds; no words where every row is its own."""
    rows = list(clusters)
    kinds = cluster_kinds({each for each in rows if each is not None}, rows.count(None))
    total = sum(kinds.values())
    if kinds["own"] == total:
        return {}, total
    words = {"user": "user", "parent": "session", "named": asked.cluster_word, "own": noun, "repeated": "item"}
    return {word: kinds[kind] for kind, word in words.items() if kinds[kind]}, total


def cluster_words(clusters: Iterable[Cluster], asked: Asked, noun: str) -> str:
    """`120 pairs of 40 users`."""
    rows = list(clusters)
    by, _ = clustered_by(rows, asked, noun)
    of = " and ".join(count_words(n, safe_text(word)) for word, n in by.items())
    return count_words(len(rows), noun) + (f" of {of}" if of else "")


def share_part(rows: Iterable[tuple[Cluster, bool]], level: float) -> Part:
    """The share of hits, with the interval of a rate over the clusters."""
    sums: dict[Hashable, list[int]] = {}
    for number, (cluster, hit) in enumerate(rows):
        of = sums.setdefault((number, None) if cluster is None else (cluster,), [0, 0])
        of[0] += hit
        of[1] += 1
    moments = Moments.of_clusters((y, m, m) for y, m in sums.values())
    return Part(None if moments.ratio is None else float(moments.ratio), rate_interval(moments, level=level))


def hit_counts(rows: Sequence[tuple[Cluster, bool]]) -> dict[str, float]:
    """The counts of a share."""
    return {"hits": sum(hit for _, hit in rows), "total": len(rows)}


def version_words(versions: Counter[tuple[str, str]]) -> dict[str, int]:
    """Verdicts by `evaluator@version`."""
    return {f"{evaluator}@{version}": n for (evaluator, version), n in sorted(versions.items())}
