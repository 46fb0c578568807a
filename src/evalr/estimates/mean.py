"""How sure are we of a mean? A number over a weight, with bounds or without."""

from __future__ import annotations

import math

from evalr.errors import InputError
from evalr.estimates.interval import (
    NO_VARIATION,
    NOTHING_COUNTED,
    SINGLE_CLUSTER,
    Interval,
    around,
    no_interval,
    t_quantile,
    tail,
)
from evalr.estimates.rate import rate_interval
from evalr.tallies.moments import Moments, exact


def mean_interval(moments: Moments, *, level: float = 0.95, bounds: tuple[float, float] | None = None) -> Interval:
    """The interval of the mean `moments.y / moments.m`, where `y` sums weight * value and `m` the weights.

    With bounds (a rating of 1 to 5, a chance of 0 to 1) the mean is a share of the way between them, and gets
    the interval of a rate at the effective n, which never leaves the bounds. The variance may be far below
    that of hits and misses with the same mean, so the effective n may exceed the number of rows
    (benchmarks/coverage.md).

    Without bounds: mean ± t * sqrt(CR1 variance) on clusters - 1 degrees of freedom (Liang & Zeger 1986;
    Cameron & Miller 2015; the clustered form of Miller 2024), and no limits where the variance is 0.

    Raises InputError for bounds that are not low < high, a mean outside of them, or a level outside 0..1.
    """
    tail(level)
    mean = moments.ratio
    if bounds is not None:
        return _between(moments, level, bounds)
    if mean is None:
        return no_interval(NOTHING_COUNTED)
    variance = moments.robust_variance()
    if variance is None:
        return no_interval(SINGLE_CLUSTER)
    if variance == 0:
        return no_interval(NO_VARIATION, variance=0.0)
    half = t_quantile(level, moments.clusters - 1) * math.sqrt(variance)
    limits = around(float(mean) - half, float(mean), float(mean) + half, floor=-math.inf, ceiling=math.inf)
    return Interval(*limits, float(variance), "cr1-t/1", None)


def _between(moments: Moments, level: float, bounds: tuple[float, float]) -> Interval:
    floor, ceiling = bounds
    if not floor < ceiling:
        raise InputError(f"bounds are (low, high) with low < high, not {bounds}")
    mean = moments.ratio
    if mean is None:
        return no_interval(NOTHING_COUNTED)
    if not floor <= mean <= ceiling:
        raise InputError(f"a mean of {float(mean)} lies outside its bounds, {floor} to {ceiling}")
    width = ceiling - floor
    share = rate_interval(moments.rescaled(exact(floor), exact(ceiling)), level=level, units=math.inf)
    if share.low is None or share.high is None or share.variance is None:
        return share
    low, high = around(floor + width * share.low, float(mean), floor + width * share.high, floor=floor, ceiling=ceiling)
    return share._replace(low=low, high=high, variance=width * width * share.variance)
