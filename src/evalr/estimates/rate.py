"""How sure are we of a rate? Hits over total, one trial a cluster or many."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from evalr.errors import InputError
from evalr.estimates.interval import (
    ALL_ALIKE,
    NOTHING_COUNTED,
    SINGLE_CLUSTER,
    Interval,
    around,
    no_interval,
    normal_quantile,
    padded_effective_n,
    padded_share,
    t_quantile,
    tail,
)
from evalr.tallies.moments import Moments

RateMethod = Literal["wilson", "wilson_cr1", "jeffreys", "clopper_pearson"]
METHODS: tuple[RateMethod, ...] = ("wilson", "wilson_cr1", "jeffreys", "clopper_pearson")


def wilson(p: float, n: float, q: float) -> tuple[float, float]:
    """Wilson's score limits for a share `p` of `n` trials (n need not be whole) at the quantile `q`.

    Wilson 1927; Brown, Cai & DasGupta 2001. The far limit comes from the centre and the near one from the
    product of the roots, so that a share of one in a billion keeps its digits.
    """
    if p > 0.5:
        low, high = wilson(1 - p, n, q)
        return 1 - high, 1 - low
    shrink = 1 + q * q / n
    high = (p + q * q / (2 * n) + q * math.sqrt(p * (1 - p) / n + q * q / (4 * n * n))) / shrink
    return p * p / (shrink * high), high


def jeffreys(k: float, n: float, level: float) -> tuple[float, float]:
    """Equal-tailed limits of Beta(k + 1/2, n - k + 1/2); 0 at k = 0, 1 at k = n (Brown et al. 2001)."""
    from scipy.special import betaincinv

    alpha = tail(level)
    low = 0.0 if k <= 0 else float(betaincinv(k + 0.5, n - k + 0.5, alpha))
    # the upper tail of one beta is the lower tail of its mirror image, which keeps digits near 1
    high = 1.0 if k >= n else 1 - float(betaincinv(n - k + 0.5, k + 0.5, alpha))
    return low, high


def clopper_pearson(k: float, n: float, level: float) -> tuple[float, float]:
    """The exact limits: Beta(k, n - k + 1) and Beta(k + 1, n - k) quantiles (Clopper & Pearson 1934)."""
    from scipy.special import betaincinv

    alpha = tail(level)
    low = 0.0 if k <= 0 else float(betaincinv(k, n - k + 1, alpha))
    high = 1.0 if k >= n else 1 - float(betaincinv(n - k, k + 1, alpha))
    return low, high


def rate_interval(
    moments: Moments, *, level: float = 0.95, method: RateMethod = "wilson", units: float | None = None
) -> Interval:
    """The interval of `moments.y / moments.m`, a share of 0..1.

    One trial a cluster: the plain interval at n. Otherwise the interval at the effective n, the number of
    independent trials with the same variance (Korn & Graubard 1998; Franco et al. 2019), with Student's t on
    clusters - 1 degrees of freedom:

    - `wilson_cr1`: effective n = p (1 - p) / CR1 variance, at most the trials counted.
    - `wilson`: the same with `padded_effective_n`, which holds its level where `wilson_cr1` does not.
    - `clopper_pearson`, `jeffreys`: the beta limits at the effective n of `wilson`, shrunk by (z / t)² for
      the degrees of freedom (Korn & Graubard 1998, who have the t of all rows for z, which shrinks a little less).

    Where every cluster has the same share, the variance says nothing: the effective n is then Kish's, as if a
    cluster always acted as one. Nothing counted, or a single cluster: no limits, and a reason.

    `units` is how many trials were counted, where `m` is not that (sampling weights): an effective n is at most that.

    Raises InputError for a rate outside 0..1, an unknown method or a level outside 0..1.
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    tail(level)
    ratio = moments.ratio
    if ratio is None:
        return no_interval(NOTHING_COUNTED)
    if not 0 <= ratio <= 1:
        raise InputError(f"a rate counts hits of a total, 0 to all of them, not {moments.y} of {moments.m}")
    p = float(ratio)
    if moments.singletons(units):
        n = moments.clusters
        limits = _plain(method, int(ratio * n), n, level)
        return Interval(*_limits(limits, p), p * (1 - p) / n, _PLAIN[method], float(n))
    variance, kish = moments.robust_variance(), moments.kish
    if variance is None or kish is None:
        return no_interval(SINGLE_CLUSTER)
    if variance == 0:
        limits = _plain(method, p * kish, kish, level)
        return Interval(*_limits(limits, p), 0.0, _KISH[method], kish, ALL_ALIKE)
    if method == "wilson_cr1":
        measured: float | Fraction = ratio * (1 - ratio) / variance
    else:
        squares = moments.squares_around(padded_share(ratio, moments.clusters))
        measured = padded_effective_n(p, moments.clusters, float(squares))
    n_effective = float(min(moments.m if units is None else units, measured))
    t = t_quantile(level, moments.clusters - 1)
    if method in {"wilson", "wilson_cr1"}:
        limits = wilson(p, n_effective, t)
    else:
        n_effective *= (normal_quantile(level) / t) ** 2
        limits = _plain(method, p * n_effective, n_effective, level)
    return Interval(*_limits(limits, p), float(variance), _CLUSTERED[method], n_effective)


def _plain(method: RateMethod, k: float, n: float, level: float) -> tuple[float, float]:
    if method == "jeffreys":
        return jeffreys(k, n, level)
    if method == "clopper_pearson":
        return clopper_pearson(k, n, level)
    return wilson(k / n, n, normal_quantile(level))


def _limits(limits: tuple[float, float], p: float) -> tuple[float, float]:
    return around(limits[0], p, limits[1], floor=0.0, ceiling=1.0)


_PLAIN: dict[RateMethod, str] = {
    "wilson": "wilson/1",
    "wilson_cr1": "wilson/1",
    "jeffreys": "jeffreys/1",
    "clopper_pearson": "clopper-pearson/1",
}
_CLUSTERED: dict[RateMethod, str] = {
    "wilson": "wilson-padded-effective-n/1",
    "wilson_cr1": "wilson-effective-n/1",
    "jeffreys": "jeffreys-effective-n/1",
    "clopper_pearson": "korn-graubard/1",
}
_KISH: dict[RateMethod, str] = {
    "wilson": "wilson-kish/1",
    "wilson_cr1": "wilson-kish/1",
    "jeffreys": "jeffreys-kish/1",
    "clopper_pearson": "clopper-pearson-kish/1",
}
