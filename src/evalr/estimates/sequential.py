"""May one look every day? Intervals and p that hold over all looks at once, however often and whenever one stops.

An interval for one look shows a difference that is not there at a quarter of those who look daily for two weeks. These
do not; they are about half as wide again at the planned end. Wald's and Robbins' mixtures: Robbins 1970; as the mSPRT,
Johari, Koomen, Pekelis & Walsh 2022; as asymptotic confidence sequences, Waudby-Smith et al. 2024 (the same interval).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from evalr.errors import InputError
from evalr.estimates.interval import NOTHING_COUNTED, Interval, around, no_interval, tail

NO_VARIANCE = "the variance is not known, or 0, as yet"
TOO_EARLY = "too few clusters as yet: the sequence is valid from about 30 in each arm"
LEAST_CLUSTERS = 30


class AlwaysValid(NamedTuple):
    """An interval that holds at all looks together, and the p of this look; `running_p` joins those of several."""

    interval: Interval
    p: float | None


def always_valid(
    value: float,
    variance: float | None,
    *,
    tau2: float,
    level: float = 0.95,
    clusters: int | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> AlwaysValid:
    """The interval of an estimate with a (cluster-robust) variance at this look, and its p of no effect.

    `value ± sqrt(V (V + tau2) / tau2 * (2 log(1 / alpha) + log((V + tau2) / V)))`. `tau2` is the variance of the
    effects that one expects, and is fixed before the first look; `planned_tau2` finds it from the variance planned for.

    The theory is asymptotic: give `clusters`, the smaller arm's, and there are no limits with fewer than 30 of them.
    No limits, and a reason, where the variance is None or 0. `bounds` are those of the value.

    Raises InputError for a tau2 that is not positive, a negative variance or a level outside 0..1.
    """
    tail(level)
    _check(tau2, 1.0 if variance is None else variance)
    if not variance:
        return AlwaysValid(no_interval(NO_VARIANCE), None)
    if clusters is not None and clusters < LEAST_CLUSTERS:
        return AlwaysValid(no_interval(TOO_EARLY, variance), None)
    radius = mixture_radius(variance, tau2, level)
    low, high = around(value - radius, value, value + radius, floor=bounds[0], ceiling=bounds[1])
    return AlwaysValid(Interval(low, high, variance, "normal-mixture/1", None), mixture_p(value, variance, tau2))


def mixture_radius(variance: float, tau2: float, level: float) -> float:
    """Half the width of the always-valid interval."""
    alpha = 2 * tail(level)
    return math.sqrt(variance * (variance + tau2) / tau2 * (2 * math.log(1 / alpha) + math.log1p(tau2 / variance)))


def mixture_p(value: float, variance: float, tau2: float) -> float:
    """`min(1, 1 / Lambda)` of the mixture likelihood ratio: 1 minus the highest level whose interval leaves 0 out."""
    log_ratio = tau2 * value * value / (2 * variance * (variance + tau2)) - math.log1p(tau2 / variance) / 2
    return math.exp(min(0.0, -log_ratio))


def planned_tau2(variance: float, level: float = 0.95) -> float:
    """The `tau2` whose interval is about narrowest when the variance has come down to `variance`, at the planned end.

    `V (-2 log alpha + log(1 - 2 log alpha))`: Waudby-Smith et al. 2024, where t* looks of one row each are planned for.
    Raises InputError for a variance that is not positive or a level outside 0..1.
    """
    alpha = 2 * tail(level)
    _check(variance, variance)
    return variance * (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha)))


def running_p(looks: Iterable[float | None]) -> list[float]:
    """The always-valid p after each look: the smallest so far, 1 before there was any."""
    lowest = 1.0
    found = []
    for p in looks:
        lowest = lowest if p is None else min(lowest, p)
        found.append(lowest)
    return found


def rate_sequence(k: int, n: int, *, level: float = 0.95) -> Interval:
    """The always-valid interval of one rate, `k` of `n` independent rows: exact, from the first row on.

    The rates p with `B(k + 1/2, n - k + 1/2) / (B(1/2, 1/2) p^k (1 - p)^(n - k)) < 1 / alpha`, the mixture over a
    Beta(1/2, 1/2) (Robbins 1970). Raises InputError for k outside 0..n or a level outside 0..1.
    """
    alpha = 2 * tail(level)
    if not 0 <= k <= n:
        raise InputError(f"a rate counts hits of a total, 0 to all of them, not {k} of {n}")
    if n == 0:
        return no_interval(NOTHING_COUNTED)
    rate = k / n
    mixed = math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1) - math.log(math.pi)

    def held(p: float) -> bool:
        likelihood = (k * math.log(p) if k else 0.0) + ((n - k) * math.log1p(-p) if n > k else 0.0)
        return mixed - likelihood < -math.log(alpha)

    low, high = _edge(held, 0.0, rate), _edge(held, 1.0, rate)
    limits = around(low if k else 0.0, rate, high if k < n else 1.0, floor=0.0, ceiling=1.0)
    return Interval(*limits, rate * (1 - rate) / n, "beta-mixture/1", float(n))


def _edge(held: Callable[[float], bool], outside: float, inside: float) -> float:
    """The last number outside, towards `inside`, that is not held; the ends 0 and 1 themselves are not tried."""
    for _ in range(60):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if held(middle) else (middle, inside)
    return outside


def _check(tau2: float, variance: float) -> None:
    if not (0 < tau2 < math.inf and 0 <= variance < math.inf):
        raise InputError(f"tau2 is positive and a variance not negative, both finite: not {tau2} and {variance}")
