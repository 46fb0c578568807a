"""What every interval is made of: its limits, how they were reached, and the quantiles behind them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, TypeVar

from evalr.errors import InputError

Number = TypeVar("Number", float, Fraction)

NOTHING_COUNTED = "nothing was counted"
SINGLE_CLUSTER = "a single cluster shows no variation between clusters"
ALL_ALIKE = "all clusters are alike: each counts as one trial"
NO_VARIATION = "all clusters have the same mean, and no bounds say how far the next may lie"


class Interval(NamedTuple):
    """Two limits and how they were computed, or no limits and the reason why."""

    low: float | None
    high: float | None
    variance: float | None
    """Of the estimate, as measured (cluster-robust where rows are clustered); None where it is not known."""
    method: str
    """Name and version of what made the limits; `none` where nothing did."""
    effective_n: float | None
    """How many independent trials the rows are worth, where the method uses such a number."""
    reason: str | None = None
    """Why there are no limits, or why they rest on a worst case."""


def no_interval(reason: str, variance: float | None = None) -> Interval:
    """No limits, because of `reason`."""
    return Interval(None, None, variance, "none", None, reason)


def spread_of(interval: Interval, value: float, level: float) -> float | None:
    """The variance of a normal estimate whose interval reaches as far, on the side where it is longer.

    The variance as measured is 0 where nobody fails, and too small just where the estimate is too high. This is not,
    and what is planned by it or made to hold for many looks is never narrower than the interval itself. None without
    both limits.
    """
    if interval.low is None or interval.high is None:
        return None
    error = max(value - interval.low, interval.high - value) / normal_quantile(level)
    return error * error


def tail(level: float) -> float:
    """The probability above the upper limit of a two-sided interval. Raises InputError outside 0..1."""
    if not isinstance(level, int | float):
        raise InputError(f"level must be a number between 0 and 1, not {level!r}")
    above = (1 - level) / 2
    # A level too near to 0 for a float leaves half above, and limits without a distance.
    if not 0 < above < 0.5:
        raise InputError(f"level must lie between 0 and 1, both excluded, not {level}")
    return above


def normal_quantile(level: float) -> float:
    """The z of a two-sided interval: 1.96 for 0.95."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf(tail(level))


def t_quantile(level: float, df: float) -> float:
    """Student's t of a two-sided interval with `df` degrees of freedom."""
    from scipy.special import stdtrit

    return -float(stdtrit(df, tail(level)))


def padded_share(share: Number, clusters: int) -> Number:
    """The share after one cluster of hits and one of misses, of the mean size, were added to `clusters`."""
    return (share * clusters + 1) / (clusters + 2)


def padded_effective_n(share: float, clusters: int, squares: float) -> float:
    """How many independent trials have the variance of a share, measured after two clusters were added to `clusters`.

    One cluster of hits and one of misses, both of the mean size, as Agresti & Coull 1998 add trials. With few
    misses in few clusters, the variance is too small just where the share is too high; the two clusters repair
    that (benchmarks/coverage.md). `squares` is the sum over the clusters themselves of `((y - p m) / sum m)²`
    around the padded share p. The addition is ours.
    """
    p = padded_share(share, clusters)
    together = squares + (p * p + (1 - p) * (1 - p)) / clusters**2
    return p * (1 - p) * (clusters + 1) / (clusters * together)


def padded_variance(share: float, clusters: int, squares: float) -> float:
    """The cluster-robust variance of a share that `padded_effective_n` stands for."""
    return share * (1 - share) / padded_effective_n(share, clusters, squares)


def around(low: float, value: float, high: float, *, floor: float, ceiling: float) -> tuple[float, float]:
    """Limits that hold the value, stay in floor..ceiling and differ, whatever rounding did to them."""
    low = max(floor, min(low, value))
    high = min(ceiling, max(high, value))
    if low == high:
        return max(floor, math.nextafter(low, -math.inf)), min(ceiling, math.nextafter(high, math.inf))
    return low, high


def log_minus_log(share: float, variance: float, quantile: float) -> tuple[float, float]:
    """Limits for a share in 0..1, both excluded, on the log(-log) scale: `S ** exp(±q se / (S |log S|))`.

    Kalbfleisch & Prentice 1980, section 1.4.
    """
    log_share = math.log(share)
    stretch = quantile * math.sqrt(variance) / (share * -log_share)
    # beyond this the limits are 0 and 1 in floating point, and exp would overflow
    stretch = min(stretch, 700.0)
    return math.exp(log_share * math.exp(stretch)), math.exp(log_share * math.exp(-stretch))
