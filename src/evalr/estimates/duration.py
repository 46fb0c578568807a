"""How long until it happened? Shares ended by a time, and typical times, from logs that end too early for some.

A row has a duration `after` (0 or more, any unit) and an `end`: 0 when it was still open then (censored), 1 when the
event happened, 2 when something else ended it. The share ended by a time is the Aalen-Johansen cumulative incidence,
which is 1 minus Kaplan & Meier's curve where nothing else ends a row. Censoring must not depend on what would have
happened: the end of a log does not, a person who was dropped from it does.

Every answer is the same, to the last digit, for any order of the rows and any numbering of the clusters: tables hold
counts, a row's influence depends on its duration and end alone, and sums over rows are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from evalr.errors import InputError
from evalr.estimates.along import Steps, influences_along, total
from evalr.estimates.interval import (
    ALL_ALIKE,
    NOTHING_COUNTED,
    SINGLE_CLUSTER,
    Interval,
    around,
    log_minus_log,
    no_interval,
    normal_quantile,
    padded_share,
    padded_variance,
    t_quantile,
    tail,
)
from evalr.estimates.rate import wilson
from evalr.estimates.words import Unit, value_words
from evalr.tallies.durations import COMPETING, EVENT, OPEN

if TYPE_CHECKING:
    from numpy import float64, int8, int32, int64
    from numpy.typing import NDArray

Status = Literal["ok", "undefined", "not_reached"]

SAME_TIME = "all that ended did so after the same time"
NONE_ENDED = "none had ended by then"

_PART = 1 << 18
"""Rows that are worked on at a time."""

_ROUNDING = 1e-12
"""Far above what rounding does to a share, far below what one row does to it."""


class Incidence(NamedTuple):
    """The share for which the event happened by a time, and who it rests on."""

    value: float | None
    interval: Interval
    status: Status
    reason: str | None
    at_risk: int
    """Rows that lasted at least until then (one that ended or was cut off exactly then is still at risk)."""
    followed: int
    """Rows whose state at that time is known: ended by then, or followed until then."""
    ended: int
    """Rows whose event happened by then."""
    competed: int
    """Rows that ended in another way by then."""
    censored: int
    """Rows still open when they were cut off before then."""
    clusters: int
    longest: float | None
    """The longest duration of any row, ended or not."""

    def complement(self) -> Incidence:
        """The same for the share for which it did not happen: S(t) where nothing else ends a row."""
        if self.value is None:
            return self
        # One rounding, not two: two of three are then what a rate of them is, and within their bounds.
        value = 1 - self.value if self.censored else (self.followed - self.ended) / self.followed
        interval = self.interval
        if interval.low is not None and interval.high is not None:
            low, high = around(1 - interval.high, value, 1 - interval.low, floor=0.0, ceiling=1.0)
            interval = interval._replace(low=low, high=high)
        return self._replace(value=value, interval=interval)


class Quantile(NamedTuple):
    """The time by which a share of all has ended, with an interval of times."""

    value: float | None
    interval: Interval
    """`high` is None, and `low` is not, where the data cannot say how late it may be."""
    status: Status
    reason: str | None
    ended: int
    competed: int
    censored: int
    clusters: int
    longest: float | None


class RestrictedMean(NamedTuple):
    """How long it takes on average, where no row counts as longer than a time."""

    value: float | None
    interval: Interval
    status: Status
    reason: str | None
    ended: int
    competed: int
    censored: int
    clusters: int
    longest: float | None
    squared_error: float | None = None
    """What the limits are made of: of independent rows a little more than the variance; None without limits."""


class Curve(NamedTuple):
    """The share ended by each of several times, with pointwise limits (None where there are none)."""

    times: list[float]
    shares: list[float]
    lows: list[float | None]
    highs: list[float | None]


def incidence(
    after: NDArray[float64],
    end: NDArray[int8],
    cluster: NDArray[Any] | None = None,
    *,
    at: float,
    level: float = 0.95,
    unit: Unit = "number",
) -> Incidence:
    """The share for which the event happened by `at`, that moment included.

    Limits by log(-log) on the complement. Variance: the sum of squared influences (infinitesimal jackknife), which is
    Greenwood's where nothing competes; with clusters the influences are summed within each first, times
    G / (G - 1), with Student's t on G - 1 degrees of freedom (Ying & Wei 1994). Where the share is exactly 0 or 1, or
    the clusters show no variation: Wilson's limits on those followed, at Kish's effective n with clusters.

    `cluster` numbers each row's cluster (None: every row is its own). Not reached where nobody was followed as long as
    `at` while some had yet to end; `unit` is what the reason names times in. Raises InputError for durations that are
    negative or not finite, an unknown end, arrays of different lengths, an `at` that is negative or not finite, or a
    level outside 0..1.
    """
    if not (at >= 0 and math.isfinite(at)):
        raise InputError(f"at is a time of 0 or more, not {at}")
    rows = _rows(after, end, cluster, level)
    table = _table(rows)
    return _incidence(rows, table, at, unit)


def influences(after: NDArray[float64], end: NDArray[int8], cluster: NDArray[Any], *, at: float) -> dict[int, float]:
    """What the rows of each cluster do to the share ended by `at`, by the cluster's number; they sum to 0.

    Their squares sum to the robust variance, but for G / (G - 1). Clusters that do nothing to it may be left out.
    """
    import numpy as np

    rows = _rows(after, end, None, 0.95)
    rows = rows._replace(cluster=np.unique(cluster, return_inverse=True)[1])
    rows = rows._replace(sizes=np.bincount(rows.cluster)) if rows.cluster is not None else rows
    table = _table(rows)
    k = int(np.searchsorted(table.times, at, side="right")) - 1
    if rows.cluster is None or table.place is None or k < 0:
        return {}
    sums = _influences(rows, rows.cluster, table.place, table, k)
    return dict(zip(np.unique(cluster).tolist(), sums.tolist(), strict=True))


def quantile(
    after: NDArray[float64],
    end: NDArray[int8],
    cluster: NDArray[Any] | None = None,
    *,
    q: float = 0.5,
    level: float = 0.95,
    unit: Unit = "number",
) -> Quantile:
    """The first time by which the event had happened for a share `q` of all; the median by default.

    Limits: the times where the limits of the share cross `q` (Brookmeyer & Crowley 1982), on the same limits as
    `incidence`; the lower one is 0 where so few were followed that the upper limit of the share is `q` before the
    first time. A crossing is looked for step by step, away from the value, over 64 steps and then between two of
    them. Durations come in steps in real logs (minutes, turns): limits that fall on one time are moved to the times
    beside it. Raises InputError as `incidence` does, and for `q` outside 0..1.
    """
    if not 0 < q < 1:
        raise InputError(f"q is a share between 0 and 1, both excluded, not {q}")
    rows = _rows(after, end, cluster, level)
    table = _table(rows)
    return _quantile(rows, table, q, unit)


def restricted_mean(
    after: NDArray[float64],
    end: NDArray[int8],
    cluster: NDArray[Any] | None = None,
    *,
    at: float,
    level: float = 0.95,
    unit: Unit = "number",
) -> RestrictedMean:
    """How long it takes until the event on average, where no row counts as longer than `at`.

    The area under 1 minus the share ended, up to `at` (Irwin 1949): under Kaplan & Meier's curve where nothing else
    ends a row. A row that ends in another way never has the event, and counts as `at`. Variance: the sum of squared
    influences, which is Greenwood's sum of the area still to come (Klein & Moeschberger 2003, section 4.5); with
    clusters that of the influences summed within each, times G / (G - 1). Limits: Student's t on G - 1 degrees of
    freedom, in 0..at; independent rows are clusters of one there, so that ten of them are covered as well as ten users.
    No limits where the variance is 0. Not reached, and errors, as for `incidence`; so for an `at` of 0, too.
    """
    if not (at > 0 and math.isfinite(at)):
        raise InputError(f"at is a time above 0, not {at}")
    rows = _rows(after, end, cluster, level)
    table = _table(rows)
    found = _incidence(rows, table, at, unit)
    value, interval, squared_error = None, no_interval(found.reason or ""), None
    if found.value is not None:
        value, interval, squared_error = _area(rows, table, at)
    return RestrictedMean(
        value,
        interval,
        found.status,
        found.reason,
        found.ended,
        found.competed,
        found.censored,
        found.clusters,
        found.longest,
        squared_error,
    )


def curve(
    after: NDArray[float64],
    end: NDArray[int8],
    cluster: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    points: int = 200,
) -> Curve:
    """The share ended by each of the times at which rows ended, at most `points` of them, spread over the rows."""
    import numpy as np

    rows = _rows(after, end, cluster, level)
    table = _table(rows)
    size = len(table.times)
    chosen = np.unique(np.linspace(0, size - 1, min(points, size)).round().astype(np.int64)).tolist() if size else []
    variances = _variances_along(rows, table, chosen)
    limits = [_limits(rows, table, k, float(table.times[k]), next(variances, None)) for k in chosen]
    return Curve(
        [float(table.times[k]) for k in chosen],
        [float(table.share[k]) for k in chosen],
        [each.low for each in limits],
        [each.high for each in limits],
    )


class _Rows(NamedTuple):
    """The rows as they are given, in any order: a sorted copy of millions would take more than they do."""

    after: NDArray[float64]
    end: NDArray[int8]
    cluster: NDArray[Any] | None
    """From 0, without large gaps; None where every row is its own."""
    clusters: int
    sizes: NDArray[int64]
    """Rows of each cluster, by its number."""
    level: float


def _rows(after: NDArray[float64], end: NDArray[int8], cluster: NDArray[Any] | None, level: float) -> _Rows:
    import numpy as np

    tail(level)
    after, end = np.asarray(after, dtype=np.float64), np.asarray(end)
    size, alone = len(after), np.zeros(0, dtype=np.int64)
    if len(end) != size or (cluster is not None and len(cluster) != size):
        raise InputError("after, end and cluster must have one entry for each row")
    if size == 0:
        return _Rows(after, end.astype(np.int8), None, 0, alone, level)
    if not (after.min() >= 0 and after.max() < math.inf):
        raise InputError("a duration is a finite number of 0 or more")
    whole = end.dtype.kind in "biu" or bool((np.rint(end) == end).all())
    if not (whole and end.min() >= OPEN and end.max() <= COMPETING):
        raise InputError("an end is 0 (still open), 1 (the event) or 2 (ended in another way)")
    end = end.astype(np.int8, copy=False)
    if cluster is None:
        return _Rows(after, end, None, size, alone, level)
    cluster = np.asarray(cluster)
    if cluster.min() < 0 or cluster.max() > 4 * size:
        cluster = np.unique(cluster, return_inverse=True)[1]
    sizes = np.zeros(int(cluster.max()) + 1, dtype=np.int64)
    for part in _parts(size):
        sizes += np.bincount(cluster[part], minlength=len(sizes))
    clusters = int(np.count_nonzero(sizes))
    if clusters == size:
        return _Rows(after, end, None, size, alone, level)
    return _Rows(after, end, cluster, clusters, sizes, level)


def _parts(size: int) -> Iterator[slice]:
    """The rows in parts, for what would otherwise take room for several numbers a row."""
    return (slice(start, start + _PART) for start in range(0, size, _PART))


class _Table(NamedTuple):
    """One entry for each time at which a row ended: counts, and the curves just after it."""

    times: NDArray[float64]
    at_risk: NDArray[int64]
    events: NDArray[int64]
    ends: NDArray[int64]
    """Events and competing ends."""
    weight: NDArray[float64]
    """What one event adds to the share: those still open just before, over those at risk."""
    share: NDArray[float64]
    """For which the event has happened."""
    place: NDArray[int32] | None = None
    """For each row, how many of the times are at most its duration; with clusters only."""


class _Counts(NamedTuple):
    """How many were at risk, had the event and ended at each time at which a row ended."""

    times: NDArray[float64]
    at_risk: NDArray[int64]
    events: NDArray[int64]
    ends: NDArray[int64]


def _counts(rows: _Rows) -> _Counts:
    import numpy as np

    times = rows.after[rows.end != OPEN]
    if len(times) == 0:
        none = np.zeros(0, dtype=np.int64)
        return _Counts(times, none, none, none)
    times.sort()
    first = np.flatnonzero(np.concatenate(([True], times[1:] != times[:-1])))
    ends = np.diff(first, append=len(times))
    times = times[first] + 0.0  # no -0.0, which would depend on the order of the rows
    at_risk = len(rows.after) - first - np.searchsorted(_sorted(rows, OPEN), times, side="left")
    others = _sorted(rows, COMPETING)
    events = ends - np.searchsorted(others, times, side="right") + np.searchsorted(others, times, side="left")
    return _Counts(times, at_risk, events, ends)


def _sorted(rows: _Rows, kind: int) -> NDArray[float64]:
    found: NDArray[float64] = rows.after[rows.end == kind]
    found.sort()
    return found


def _places(rows: _Rows, times: NDArray[float64]) -> NDArray[int32] | None:
    import numpy as np

    if rows.cluster is None:
        return None
    place = np.empty(len(rows.after), dtype=np.int32)
    for part in _parts(len(place)):
        place[part] = np.searchsorted(times, rows.after[part], side="right")
    return place


def _table(rows: _Rows) -> _Table:
    """The curves over all times.

    Between two censorings the survivors' product telescopes to a ratio of two counts, so it is computed as that: half
    of all is then exactly one half, and rounding grows with the censorings, not with the rows.
    """
    import numpy as np

    counts = _counts(rows)
    times, at_risk, events, ends = counts
    if len(times) == 0:
        return _Table(*counts, times, times, _places(rows, times))
    starts = np.flatnonzero(np.concatenate(([True], at_risk[1:] != at_risk[:-1] - ends[:-1])))
    lasts = np.append(starts[1:], len(times)) - 1
    lengths = lasts - starts + 1
    exposed = at_risk[starts]
    still_open = np.cumprod(np.concatenate(([1.0], (at_risk[lasts[:-1]] - ends[lasts[:-1]]) / exposed[:-1])))
    happened = np.cumsum(events)
    before = happened[starts] - events[starts]
    gained = still_open * (happened[lasts] - before) / exposed
    share = (happened - np.repeat(before, lengths)).astype(np.float64)
    share *= np.repeat(still_open, lengths)
    share /= np.repeat(exposed, lengths)
    share += np.repeat(np.concatenate(([0.0], np.cumsum(gained)[:-1])), lengths)
    np.minimum(share, 1.0, out=share)
    if at_risk[-1] == ends[-1] and happened[-1] == ends.sum():
        share[-1] = 1.0
    return _Table(*counts, np.repeat(still_open / exposed, lengths), share, _places(rows, times))


def _incidence(rows: _Rows, table: _Table, at: float, unit: Unit) -> Incidence:
    import numpy as np

    size = len(rows.after)
    before = rows.after < at
    ended, competed = (int(np.count_nonzero((rows.end == kind) & (rows.after <= at))) for kind in (EVENT, COMPETING))
    censored = int(np.count_nonzero((rows.end == OPEN) & before))
    longest = float(rows.after.max()) if size else None
    status: Status = "ok"
    reason = None
    value = None
    interval = None
    if longest is None:
        status, reason = "undefined", NOTHING_COUNTED
    elif longest < at and (rows.end[rows.after == longest] == OPEN).any():
        status = "not_reached"
        reason = f"nothing was followed for {value_words(at, unit)}: the longest was {value_words(longest, unit)}"
    else:
        last = int(np.searchsorted(table.times, at, side="right")) - 1
        value = float(table.share[last]) if last >= 0 else 0.0
        interval = _limits(rows, table, last, at)
    return Incidence(
        value,
        interval or no_interval(reason or ""),
        status,
        reason,
        at_risk=size - int(np.count_nonzero(before)),
        followed=size - censored,
        ended=ended,
        competed=competed,
        censored=censored,
        clusters=rows.clusters,
        longest=longest,
    )


def _quantile(rows: _Rows, table: _Table, q: float, unit: Unit) -> Quantile:
    import numpy as np

    ended, competed, censored = (int(np.count_nonzero(rows.end == kind)) for kind in (EVENT, COMPETING, OPEN))
    longest = float(rows.after.max()) if len(rows.after) else None
    place = int(np.searchsorted(table.share, q - _ROUNDING, side="left"))
    status: Status = "ok"
    reason = None
    value = None
    interval = None
    if longest is None:
        status, reason = "undefined", NOTHING_COUNTED
    elif place == len(table.times):
        status = "not_reached"
        reached = float(table.share[-1]) if place else 0.0
        share, wanted = value_words(reached, "share"), value_words(q, "share")
        reason = f"the share comes to {share} by {value_words(longest, unit)}, and never to {wanted}"
    else:
        value = float(table.times[place])
        interval = _crossings(rows, table, place, q)
    return Quantile(
        value,
        interval or no_interval(reason or ""),
        status,
        reason,
        ended=ended,
        competed=competed,
        censored=censored,
        clusters=rows.clusters,
        longest=longest,
    )


def _crossings(rows: _Rows, table: _Table, place: int, q: float) -> Interval:
    """The first times at which the upper and then the lower limit of the share reach `q`."""
    here = _limits(rows, table, place, float(table.times[place]))
    if here.low is None:
        return here
    last = len(table.times) - 1

    def upper_reached(k: int) -> bool:
        high = _limits(rows, table, k, float(table.times[max(k, 0)])).high
        return high is not None and high >= q

    def lower_reached(k: int) -> bool:
        low = _limits(rows, table, k, float(table.times[k])).low
        return low is not None and low >= q

    step = max(1, last // 64)
    low_place = _first_until(upper_reached, place, step)
    high_place = place if here.low >= q else _first_after(lower_reached, place, step, last)
    if high_place == low_place:
        if last == 0:
            return no_interval(SAME_TIME)
        low_place, high_place = max(0, low_place - 1), min(last, low_place + 1)
    # With so few rows that the upper limit is at `q` before any event, no time is too early.
    low = 0.0 if low_place == 0 and upper_reached(-1) else float(table.times[low_place])
    high = None if high_place is None else float(table.times[high_place])
    return Interval(low, high, None, f"brookmeyer-crowley-{here.method}", here.effective_n, here.reason)


def _area(rows: _Rows, table: _Table, at: float) -> tuple[float, Interval, float | None]:
    """The area above the curve of the share up to `at`, its limits, and the squared error that they are made of.

    What a row does to it is the sum of what it does to the share at each moment until then.
    """
    import numpy as np

    k = int(np.searchsorted(table.times, at, side="right")) - 1
    times, share = table.times[: k + 1], table.share[: k + 1]
    pieces = share * np.diff(times, append=at)
    value = at - math.fsum(pieces.tolist())
    if rows.cluster is not None and rows.clusters < 2:
        return value, no_interval(SINGLE_CLUSTER), None
    rest = at - times
    gained = np.cumsum(pieces[::-1])[::-1]  # from each time until `at`
    left = table.at_risk[: k + 1] - table.ends[: k + 1]
    any_end = np.zeros(k + 1)
    np.divide(share * rest - gained, left, out=any_end, where=left > 0)
    jumps = (table.weight[: k + 1] * rest + any_end, any_end)
    if rows.cluster is None or table.place is None:
        variance, method = _variance(table, k, jumps), "restricted-mean-greenwood/1"
        # Few rows vary less around their own curve than around the true one, as clusters do.
        used = variance * rows.clusters / max(1, rows.clusters - 1)
    else:
        moved = any(jump.any() for jump in jumps)
        sums = _influences(rows, rows.cluster, table.place, table, k, jumps).tolist() if moved else []
        method = "restricted-mean-clustered/1"
        used = variance = math.fsum(each * each for each in sums) * rows.clusters / (rows.clusters - 1)
    if variance <= _ROUNDING * at * at / len(rows.after):
        return value, no_interval(SAME_TIME if k >= 0 else NONE_ENDED, 0.0), None
    half = t_quantile(rows.level, rows.clusters - 1) * math.sqrt(used)
    limits = around(value - half, value, value + half, floor=0.0, ceiling=at)
    return value, Interval(*limits, variance, method, None), used


def _first_until(reached: Callable[[int], bool], yes: int, step: int) -> int:
    """The first index with `reached`, walking down from one that has it."""
    no = yes - step
    while no >= 0 and reached(no):
        yes, no = no, no - step
    return _first_between(reached, max(no, -1), yes)


def _first_after(reached: Callable[[int], bool], no: int, step: int, last: int) -> int | None:
    """The first index up to `last` with `reached`, walking up from one that has it not; None where none has it."""
    while no < last:
        yes = min(no + step, last)
        if reached(yes):
            return _first_between(reached, no, yes)
        no = yes
    return None


def _first_between(reached: Callable[[int], bool], no: int, yes: int) -> int:
    while yes - no > 1:
        middle = (yes + no) // 2
        yes, no = (middle, no) if reached(middle) else (yes, middle)
    return yes


def _limits(rows: _Rows, table: _Table, k: int, at: float, variances: tuple[float, float] | None = None) -> Interval:
    """The limits of the share at the time `at`, up to which `k + 1` of the table's times lie.

    `variances` are those of clusters, where they are known already.
    """
    share = float(table.share[k]) if k >= 0 else 0.0
    if rows.cluster is not None and rows.clusters < 2:
        return no_interval(SINGLE_CLUSTER)
    if share in {0.0, 1.0}:
        return _on_followed(rows, share, at)
    spread = share * (1 - share)
    if rows.cluster is None or table.place is None:
        variance = used = _variance(table, k)
        quantile = normal_quantile(rows.level)
        method = "log-log-greenwood/1" if _alone(table, k) else "log-log-aalen-johansen/1"
    else:
        variance, used = variances or _clustered_variances(rows, rows.cluster, table.place, table, k)
        quantile = t_quantile(rows.level, rows.clusters - 1)
        method = "log-log-padded-clustered/1"
    if variance * len(rows.after) <= _ROUNDING * spread:
        return _on_followed(rows, share, at)
    low, high = log_minus_log(1 - share, used, quantile)
    limits = around(1 - high, share, 1 - low, floor=0.0, ceiling=1.0)
    return Interval(*limits, variance, method, spread / used)


def _alone(table: _Table, k: int) -> bool:
    """Whether nothing but the event ended a row by time `k`."""
    return bool((table.ends[: k + 1] == table.events[: k + 1]).all())


def _on_followed(rows: _Rows, share: float, at: float) -> Interval:
    """Wilson's limits on those whose state at `at` is known, each cluster counting as one trial."""
    import numpy as np

    known = (rows.end != OPEN) | (rows.after >= at)
    count = float(np.count_nonzero(known))
    reason = None
    method = "wilson-followed/1"
    if rows.cluster is not None:
        count = count * count / float((np.bincount(rows.cluster[known]) ** 2).sum())
        reason = ALL_ALIKE
        method = "wilson-followed-kish/1"
    low, high = wilson(share, count, normal_quantile(rows.level))
    return Interval(*around(low, share, high, floor=0.0, ceiling=1.0), 0.0, method, count, reason)


def _jumps(table: _Table, k: int) -> tuple[NDArray[float64], NDArray[float64]]:
    """What an event and what any end, at each time up to `k`, does to the share just after time `k`.

    An event adds `weight` to the share; any end takes away its part of what the share still gains until `k`.
    """
    import numpy as np

    left = table.at_risk[: k + 1] - table.ends[: k + 1]
    any_end = np.zeros(k + 1)
    np.divide(table.share[: k + 1] - table.share[k], left, out=any_end, where=left > 0)
    return table.weight[: k + 1] + any_end, any_end


Jumps: TypeAlias = "tuple[NDArray[float64], NDArray[float64]]"
"""What an event and what any end, at each of the table's times, does to an answer."""


def _variance(table: _Table, k: int, jumps: Jumps | None = None) -> float:
    """The sum of squared influences of independent rows: martingale increments, multinomial at each time.

    They are on the share at time `k`, unless `jumps` says what ends up to then do to another answer.
    """
    n, events, ends = table.at_risk[: k + 1], table.events[: k + 1], table.ends[: k + 1]
    others = ends - events
    event, other = _jumps(table, k) if jumps is None else jumps
    at_each = events * (n - events) * event**2 + others * (n - others) * other**2 - 2 * events * others * event * other
    return float((at_each / n).sum())


def _clustered_variances(
    rows: _Rows, cluster: NDArray[Any], places: NDArray[int32], table: _Table, k: int
) -> tuple[float, float]:
    """Influences summed within clusters, squared and summed, times G / (G - 1); and the same after padding.

    Around another share a row's influence moves by the difference times the row's part of all rows.
    """
    sums = _influences(rows, cluster, places, table, k)
    share, clusters = float(table.share[k]), rows.clusters
    moved = sums + (share - padded_share(share, clusters)) / len(rows.after) * rows.sizes
    robust, around_padded = (total(each * each) for each in (sums, moved))
    return robust * clusters / (clusters - 1), padded_variance(share, clusters, around_padded)


def _variances_along(rows: _Rows, table: _Table, chosen: Sequence[int]) -> Iterator[tuple[float, float]]:
    """The same at each of several times in order; of nothing where rows are no clusters, or are all of one."""
    if rows.cluster is None or table.place is None or rows.clusters < 2:
        return
    steps = Steps(table.at_risk, table.events, table.ends, table.weight, table.share)
    squared_sizes = float((rows.sizes.astype(float) ** 2).sum())
    for k, sums in zip(
        chosen, influences_along(steps, table.place, rows.end, rows.cluster, rows.sizes, chosen), strict=True
    ):
        share, clusters = float(table.share[k]), rows.clusters
        moved = (share - padded_share(share, clusters)) / len(rows.after)
        robust = total(sums * sums)
        around_padded = robust + 2 * moved * total(sums * rows.sizes) + moved * moved * squared_sizes
        padded = padded_variance(share, clusters, around_padded) if 0 < share < 1 else 0.0
        yield robust * clusters / (clusters - 1), padded


def _influences(
    rows: _Rows,
    cluster: NDArray[Any],
    places: NDArray[int32],
    table: _Table,
    k: int,
    jumps_at: Jumps | None = None,
) -> NDArray[float64]:
    """What each cluster does to the share at the table's time `k`, or to what `jumps_at` says, by its number.

    The influence of a row is what its end does to the share, less what was expected of it while it was at risk.
    """
    import numpy as np

    expected, jumps = _by_place(table, k, _jumps(table, k) if jumps_at is None else jumps_at)
    largest = float(np.abs(expected).max() + max(np.abs(jump).max() for jump in jumps.values()))
    # on a grid of a power of two this coarse, every sum within a cluster is exact, in whatever order
    grid = 2.0 ** (52 - math.ceil(math.log2(int(rows.sizes.max()) * largest)))

    sums = np.zeros(len(rows.sizes))
    for part in _parts(len(places)):
        place, end = np.minimum(places[part], k + 2), rows.end[part]
        influence = -expected[place]
        for kind, jump in jumps.items():
            influence += jump[place] * (end == kind)
        influence *= grid
        np.rint(influence, out=influence)
        sums += np.bincount(cluster[part], weights=influence, minlength=len(sums))
    summed: NDArray[float64] = sums / grid
    return summed


def _by_place(table: _Table, k: int, jumps: Jumps) -> tuple[NDArray[float64], dict[int, NDArray[float64]]]:
    """What was expected of a row, and what each kind of end does, by its place in the table up to time `k`.

    A row at place 0 was cut off before the first time; one beyond `k + 1` is at risk until time `k`, and ends later.
    """
    import numpy as np

    event, other = jumps
    at_risk, events, ends = table.at_risk[: k + 1], table.events[: k + 1], table.ends[: k + 1]
    expected = np.zeros(k + 3)
    np.cumsum((events * event + (ends - events) * other) / at_risk, out=expected[1:-1])
    expected[-1] = expected[-2]
    return expected, {kind: np.pad(jump, 1) for kind, jump in ((EVENT, event), (COMPETING, other))}
