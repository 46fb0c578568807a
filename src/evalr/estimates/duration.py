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
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evalr.errors import InputError
from evalr.estimates.interval import (
    ALL_ALIKE,
    NOTHING_COUNTED,
    SINGLE_CLUSTER,
    Interval,
    around,
    log_minus_log,
    no_interval,
    normal_quantile,
    t_quantile,
    tail,
)
from evalr.estimates.rate import wilson

if TYPE_CHECKING:
    from numpy import float64, int8, int64
    from numpy.typing import NDArray

Status = Literal["ok", "undefined", "not_reached"]

OPEN, EVENT, COMPETING = 0, 1, 2
SAME_TIME = "all that ended did so after the same time"

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
        value, interval = 1 - self.value, self.interval
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
) -> Incidence:
    """The share for which the event happened by `at`, that moment included.

    Limits by log(-log) on the complement. Variance: the sum of squared influences (infinitesimal jackknife), which is
    Greenwood's where nothing competes; with clusters the influences are summed within each first, times
    G / (G - 1), with Student's t on G - 1 degrees of freedom (Ying & Wei 1994). Where the share is exactly 0 or 1, or
    the clusters show no variation: Wilson's limits on those followed, at Kish's effective n with clusters.

    `cluster` numbers each row's cluster (None: every row is its own). Not reached where nobody was followed as long as
    `at` while some had yet to end. Raises InputError for durations that are negative or not finite, an unknown end,
    arrays of different lengths, an `at` that is negative or not finite, or a level outside 0..1.
    """
    if not (at >= 0 and math.isfinite(at)):
        raise InputError(f"at is a time of 0 or more, not {at}")
    rows = _Rows.checked(after, end, cluster, level)
    table = _table(rows, until=at)
    return _incidence(rows, table, at)


def quantile(
    after: NDArray[float64],
    end: NDArray[int8],
    cluster: NDArray[Any] | None = None,
    *,
    q: float = 0.5,
    level: float = 0.95,
) -> Quantile:
    """The first time by which the event had happened for a share `q` of all; the median by default.

    Limits: the times where the limits of the share cross `q` (Brookmeyer & Crowley 1982), on the same limits as
    `incidence`. A crossing is looked for step by step, away from the value, over 64 steps and then between two of
    them. Durations come in steps in real logs (minutes, turns): limits that fall on one time are moved to the times
    beside it. Raises InputError as `incidence` does, and for `q` outside 0..1.
    """
    if not 0 < q < 1:
        raise InputError(f"q is a share between 0 and 1, both excluded, not {q}")
    rows = _Rows.checked(after, end, cluster, level)
    table = _table(rows, until=math.inf)
    return _quantile(rows, table, q)


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

    rows = _Rows.checked(after, end, cluster, level)
    table = _table(rows, until=math.inf)
    size = len(table.times)
    chosen = np.unique(np.linspace(0, size - 1, min(points, size)).round().astype(np.int64)).tolist() if size else []
    limits = [_limits(rows, table, k) for k in chosen]
    return Curve(
        [float(table.times[k]) for k in chosen],
        [float(table.share[k]) for k in chosen],
        [each.low for each in limits],
        [each.high for each in limits],
    )


class _Rows(NamedTuple):
    after: NDArray[float64]
    end: NDArray[int8]
    cluster: NDArray[Any] | None
    """From 0, without large gaps; None where every row is its own."""
    clusters: int
    largest: int
    level: float

    @classmethod
    def checked(
        cls, after: NDArray[float64], end: NDArray[int8], cluster: NDArray[Any] | None, level: float
    ) -> _Rows:
        import numpy as np

        tail(level)
        after = np.asarray(after, dtype=np.float64)
        end = np.asarray(end)
        size = len(after)
        if len(end) != size or (cluster is not None and len(cluster) != size):
            raise InputError("after, end and cluster must have one entry for each row")
        if size == 0:
            return cls(after, end.astype(np.int8), None, 0, 0, level)
        if not (after.min() >= 0 and after.max() < math.inf):
            raise InputError("a duration is a finite number of 0 or more")
        if end.min() < OPEN or end.max() > COMPETING:
            raise InputError("an end is 0 (still open), 1 (the event) or 2 (ended in another way)")
        end = end.astype(np.int8, copy=False)
        if cluster is None:
            return cls(after, end, None, size, 1, level)
        cluster = np.asarray(cluster)
        if cluster.min() < 0 or cluster.max() > 4 * size:
            cluster = np.unique(cluster, return_inverse=True)[1]
        sizes = np.bincount(cluster)
        clusters = int(np.count_nonzero(sizes))
        if clusters == size:
            return cls(after, end, None, size, 1, level)
        return cls(after, end, cluster, clusters, int(sizes.max()), level)


class _Table(NamedTuple):
    """One entry for each time at which a row ended: counts, and the curves just after it."""

    times: NDArray[float64]
    at_risk: NDArray[int64]
    events: NDArray[int64]
    ends: NDArray[int64]
    """Events and competing ends."""
    weight: NDArray[float64]
    """What one end adds to its share: still open just before, over those at risk."""
    share: NDArray[float64]
    """For which the event has happened."""


def _table(rows: _Rows, *, until: float) -> _Table:
    """The curves up to `until`.

    Between two censorings the survivors' product telescopes to a ratio of two counts, so it is computed as that: half
    of all is then exactly one half, and rounding grows with the censorings, not with the rows.
    """
    import numpy as np

    size = len(rows.after)
    early = rows.after <= until if until < math.inf else np.ones(size, dtype=bool)
    event_times, event_counts = np.unique(rows.after[early & (rows.end == EVENT)], return_counts=True)
    other_times, other_counts = np.unique(rows.after[early & (rows.end == COMPETING)], return_counts=True)
    if len(other_times):
        times = np.union1d(event_times, other_times)
        events = np.zeros(len(times), dtype=np.int64)
        events[np.searchsorted(times, event_times)] = event_counts
        ends = events.copy()
        ends[np.searchsorted(times, other_times)] += other_counts
    else:
        times, events, ends = event_times, event_counts, event_counts
    censored = np.sort(rows.after[early & (rows.end == OPEN)])
    ended_before = np.cumsum(ends) - ends
    at_risk = size - ended_before - np.searchsorted(censored, times, side="left")
    if len(times) == 0:
        return _Table(times, at_risk, events, ends, times, times)

    left = at_risk - ends
    starts = np.flatnonzero(np.concatenate(([True], at_risk[1:] != left[:-1])))
    lasts = np.append(starts[1:], len(times)) - 1
    stretch = np.repeat(np.arange(len(starts)), lasts - starts + 1)
    kept = np.cumprod(left[lasts] / at_risk[starts])
    open_at_start = np.concatenate(([1.0], kept[:-1]))
    happened = np.cumsum(events)
    before_start = happened[starts] - events[starts]
    gained = open_at_start * (happened[lasts] - before_start) / at_risk[starts]
    share_at_start = np.concatenate(([0.0], np.cumsum(gained)[:-1]))
    weight = (open_at_start / at_risk[starts])[stretch]
    within = open_at_start[stretch] * (happened - before_start[stretch]) / at_risk[starts][stretch]
    share = np.minimum(share_at_start[stretch] + within, 1.0)
    if left[-1] == 0 and len(other_times) == 0:
        share[-1] = 1.0
    return _Table(times, at_risk, events, ends, weight, share)


def _incidence(rows: _Rows, table: _Table, at: float) -> Incidence:
    import numpy as np

    size = len(rows.after)
    at_risk = int(np.count_nonzero(rows.after >= at))
    ended = int(table.events.sum())
    competed = int(table.ends.sum()) - ended
    censored = int(np.count_nonzero((rows.after < at) & (rows.end == OPEN)))
    longest = float(rows.after.max()) if size else None
    status: Status = "ok"
    reason = None
    value = None
    if longest is None:
        status, reason = "undefined", NOTHING_COUNTED
    elif longest < at and ended + competed < size:
        last = len(table.times) - 1
        if last < 0 or table.at_risk[last] > table.ends[last]:
            status = "not_reached"
            reason = f"nobody was followed as long as {at:g}: the longest duration is {longest:g}"
    if status == "ok":
        last = len(table.times) - 1
        value = float(table.share[last]) if last >= 0 else 0.0
        interval = _limits(rows, table, last, at=at)
    else:
        interval = no_interval(reason or "")
    return Incidence(
        value, interval, status, reason, at_risk, size - censored, ended, competed, censored, rows.clusters, longest
    )


def _quantile(rows: _Rows, table: _Table, q: float) -> Quantile:
    import numpy as np

    size = len(rows.after)
    ended = int(table.events.sum())
    competed = int(table.ends.sum()) - ended
    longest = float(rows.after.max()) if size else None
    place = int(np.searchsorted(table.share, q - _ROUNDING, side="left"))
    value = None
    status: Status = "ok"
    reason = None
    if longest is None:
        status, reason = "undefined", NOTHING_COUNTED
    elif place == len(table.times):
        status = "not_reached"
        reached = float(table.share[-1]) if place else 0.0
        reason = f"the share ended comes to {reached:.3g} by {longest:g}, and never to {q:g}"
    else:
        value = float(table.times[place])
    interval = no_interval(reason or "") if value is None else _crossings(rows, table, place, q)
    return Quantile(
        value, interval, status, reason, ended, competed, size - ended - competed, rows.clusters, longest
    )


def _crossings(rows: _Rows, table: _Table, place: int, q: float) -> Interval:
    """The first times at which the upper and then the lower limit of the share reach `q`."""
    here = _limits(rows, table, place)
    if here.low is None:
        return here
    last = len(table.times) - 1

    def upper_reached(k: int) -> bool:
        high = _limits(rows, table, k).high
        return high is not None and high >= q

    def lower_reached(k: int) -> bool:
        low = _limits(rows, table, k).low
        return low is not None and low >= q

    low_place = _first_reached(upper_reached, place, -1, last)
    high_place = place if here.low >= q else _first_reached(lower_reached, place, 1, last)
    low = table.times[low_place]
    if high_place == low_place:
        if last == 0:
            return no_interval(SAME_TIME)
        low = table.times[max(0, low_place - 1)]
        high_place = min(last, low_place + 1)
    high = None if high_place is None else float(table.times[high_place])
    return Interval(float(low), high, None, f"brookmeyer-crowley-{here.method}", here.effective_n, here.reason)


def _first_reached(reached: Callable[[int], bool], place: int, direction: Literal[-1, 1], last: int) -> int | None:
    """The first index with `reached`, looked for downwards from one that has it or upwards from one that has not."""
    step = max(1, last // 64)
    if direction < 0:
        yes = place
        no = yes - step
        while no >= 0 and reached(no):
            yes, no = no, no - step
        no = max(no, -1)
    else:
        no = place
        yes = min(no + step, last)
        while not reached(yes):
            if yes == last:
                return None
            no, yes = yes, min(yes + step, last)
    while yes - no > 1:
        middle = (yes + no) // 2
        yes, no = (middle, no) if reached(middle) else (yes, middle)
    return yes


def _limits(rows: _Rows, table: _Table, k: int, *, at: float | None = None) -> Interval:
    """The limits of the share just after the time numbered `k`, which is -1 before any, or at `at`."""
    share = float(table.share[k]) if k >= 0 else 0.0
    if rows.cluster is not None and rows.clusters < 2:
        return no_interval(SINGLE_CLUSTER)
    time = at if at is not None else float(table.times[k])
    if share in {0.0, 1.0}:
        return _on_followed(rows, share, time)
    competing = bool((table.ends[: k + 1] != table.events[: k + 1]).any())
    if rows.cluster is None:
        variance = _variance(table, k)
        quantile = normal_quantile(rows.level)
        method = "aalen-johansen" if competing else "greenwood"
    else:
        variance = _clustered_variance(rows, table, k)
        quantile = t_quantile(rows.level, rows.clusters - 1)
        method = "aalen-johansen-clustered" if competing else "kaplan-meier-clustered"
    spread = share * (1 - share)
    if variance * len(rows.after) <= _ROUNDING * spread:
        return _on_followed(rows, share, time)
    low, high = log_minus_log(1 - share, variance, quantile)
    limits = around(1 - high, share, 1 - low, floor=0.0, ceiling=1.0)
    return Interval(*limits, variance, f"log-log-{method}/1", spread / variance)


def _on_followed(rows: _Rows, share: float, time: float) -> Interval:
    """Wilson's limits on those whose state at `time` is known, each cluster counting as one trial."""
    import numpy as np

    known = (rows.end != OPEN) | (rows.after >= time)
    count = int(np.count_nonzero(known))
    if rows.cluster is None:
        limits = wilson(share, count, normal_quantile(rows.level))
        return Interval(
            *around(limits[0], share, limits[1], floor=0.0, ceiling=1.0), 0.0, "wilson-followed/1", float(count)
        )
    squares = int((np.bincount(rows.cluster[known]).astype(np.int64) ** 2).sum())
    kish = count * count / squares
    limits = wilson(share, kish, normal_quantile(rows.level))
    limits = around(limits[0], share, limits[1], floor=0.0, ceiling=1.0)
    return Interval(*limits, 0.0, "wilson-followed-kish/1", kish, ALL_ALIKE)


def _jumps(table: _Table, k: int) -> tuple[NDArray[float64], NDArray[float64]]:
    """What an event and what any end, at each time up to `k`, does to the share just after time `k`.

    An event adds `weight` to the share; any end takes away its part of what the share still gains until `k`.
    """
    import numpy as np

    left = table.at_risk[: k + 1] - table.ends[: k + 1]
    any_end = np.zeros(k + 1)
    np.divide(table.share[: k + 1] - table.share[k], left, out=any_end, where=left > 0)
    return table.weight[: k + 1] + any_end, any_end


def _variance(table: _Table, k: int) -> float:
    """The sum of squared influences of independent rows: martingale increments, multinomial at each time."""
    n, events, ends = table.at_risk[: k + 1], table.events[: k + 1], table.ends[: k + 1]
    others = ends - events
    event, other = _jumps(table, k)
    at_each = events * (n - events) * event**2 + others * (n - others) * other**2 - 2 * events * others * event * other
    return float((at_each / n).sum())


def _clustered_variance(rows: _Rows, table: _Table, k: int) -> float:
    """Influences summed within clusters, squared and summed, times G / (G - 1).

    The influence of a row is what its end does to the share, less what was expected of it while it was at risk.
    """
    import numpy as np

    assert rows.cluster is not None
    event, other = _jumps(table, k)
    drift = table.events[: k + 1] * event + (table.ends[: k + 1] - table.events[: k + 1]) * other
    expected = np.concatenate(([0.0], np.cumsum(drift / table.at_risk[: k + 1])))
    largest_influence = float(np.abs(expected).max() + max(np.abs(event).max(), np.abs(other).max()))
    # on a grid of a power of two this coarse, every sum within a cluster is exact, in whatever order
    grid = 2.0 ** (52 - math.ceil(math.log2(rows.largest * largest_influence)))
    place = np.searchsorted(table.times[: k + 1], rows.after, side="right")
    influence = -expected[place]
    for kind, jump in ((EVENT, event), (COMPETING, other)):
        chosen = np.flatnonzero((rows.end == kind) & (rows.after <= table.times[k]))
        influence[chosen] += jump[place[chosen] - 1]
    influence *= grid
    np.rint(influence, out=influence)
    sums = np.bincount(rows.cluster, weights=influence)
    sums *= sums
    return math.fsum(sums.tolist()) / (grid * grid) * rows.clusters / (rows.clusters - 1)
