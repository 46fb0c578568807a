"""How far apart are two arms, and how sure are we? Treatment minus control, and treatment over control.

The default intervals join those of the two arms by MOVER, the method of variance estimates recovery (Zou & Donner 2008;
Donner & Zou 2012). They keep what the arms' intervals have: never a width of 0, no limit where no difference can lie,
a level that holds with few users. Newcombe's interval (1998, method 10) is the case of independent rows. That the arms'
intervals may be those at an effective n of users is our composition (benchmarks/coverage_lift.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, NamedTuple

from evalr.errors import InputError
from evalr.estimates.duration import Incidence, RestrictedMean
from evalr.estimates.interval import (
    NO_VARIATION,
    NOTHING_COUNTED,
    Interval,
    around,
    log_minus_log,
    no_interval,
    normal_quantile,
    padded_share,
    t_quantile,
    tail,
)
from evalr.estimates.mean import mean_interval
from evalr.estimates.p_values import inverted_p, normal_p, t_p
from evalr.estimates.rate import RateMethod, rate_interval, wilson
from evalr.estimates.scores import miettinen_nurminen
from evalr.tallies.moments import Moments, exact
from evalr.tallies.shared import SharedMoments

DifferenceMethod = Literal["mover", "mover_cr1", "agresti_caffo", "miettinen_nurminen"]
DIFFERENCE_METHODS: tuple[DifferenceMethod, ...] = ("mover", "mover_cr1", "agresti_caffo", "miettinen_nurminen")
RelativeMethod = Literal["mover", "log"]
RELATIVE_METHODS: tuple[RelativeMethod, ...] = ("mover", "log")

NOT_INDEPENDENT = "the method is for independent rows: here users have several, or are in both arms"
ALL_THE_SAME = "the two arms differ by the same in every cluster, and no bounds say how far the next may be"
CONTROL_NOT_POSITIVE = "a lift is not relative to a control of 0 or less"
TREATMENT_NOT_POSITIVE = "a treatment of 0 or less has no logarithm"


Units = tuple[float | None, float | None]
"""What `rate_interval` takes as `units`, for each arm."""


class Difference(NamedTuple):
    """Treatment compared with control: by how much, how sure, and how likely as much were if nothing set them apart."""

    value: float | None
    """None where it is not defined; `interval.reason` says why."""
    interval: Interval
    p: float | None
    """Two-sided, of no difference; None where there is no interval."""
    test: str
    """Name and version of what gave `p`; `none` where nothing did."""
    df: float | None = None
    """Degrees of freedom, where the arms have them together."""
    correlation: float = 0.0
    """Of the arms through the clusters they share, as the interval uses it."""

    def mirrored(self) -> Difference:
        """The difference with the arms swapped, or of the complements of two shares."""
        if self.value is None or self.interval.low is None or self.interval.high is None:
            return self if self.value is None else self._replace(value=-self.value)
        swapped = self.interval._replace(low=-self.interval.high, high=-self.interval.low)
        return self._replace(value=-self.value, interval=swapped)


Limits = tuple[float, float, float]
"""Low, value, high."""


def square_and_add(first: Limits, second: Limits, correlation: float = 0.0) -> tuple[float, float]:
    """Limits of first - second from the limits of both, and their correlation r.

    `d - sqrt((p1 - l1)² + (u2 - p2)² - 2 r (p1 - l1)(u2 - p2))`, and mirrored above: Newcombe 1998 (method 10; for
    pairs, with phi for r), MOVER in general (Zou 2007).
    """
    (low1, value1, high1), (low2, value2, high2) = first, second
    down = _third_side(value1 - low1, high2 - value2, correlation)
    up = _third_side(high1 - value1, value2 - low2, correlation)
    return value1 - value2 - down, value1 - value2 + up


def ratio_limits(first: Limits, second: Limits, correlation: float = 0.0) -> tuple[float, float]:
    """Limits of first / second from the limits of both, none negative and the second's value positive.

    They hold the ratios R for which the limits of first - R second by `square_and_add` hold 0, the roots of a quadratic
    equation (Donner & Zou 2012). The upper one is infinite where the second's lower limit is 0.
    """
    (low1, value1, high1), (low2, value2, high2) = first, second
    low, high = 0.0, math.inf
    constant = low1 * (2 * value1 - low1)
    if constant > 0:
        half = value1 * value2 - correlation * (value1 - low1) * (high2 - value2)
        square = high2 * (2 * value2 - high2)
        root = math.sqrt(max(half * half - square * constant, 0.0))
        # the same root in the form that loses no digits
        low = constant / (half + root) if half > 0 else (half - root) / square
    square = low2 * (2 * value2 - low2)
    if square > 0:
        half = value1 * value2 - correlation * (high1 - value1) * (value2 - low2)
        high = (half + math.sqrt(max(half * half - square * high1 * (2 * value1 - high1), 0.0))) / square
    return low, high


def rate_difference(
    treatment: Moments,
    control: Moments,
    *,
    shared: SharedMoments | None = None,
    level: float = 0.95,
    method: DifferenceMethod = "mover",
    units: Units = (None, None),
) -> Difference:
    """The difference of two rates, each `moments.y / moments.m`, a share of 0..1.

    - `mover`: over the arms' default intervals (`rate_interval`); Newcombe's where every cluster is one trial.
    - `mover_cr1`: over those at the plain effective n (`wilson_cr1`), which come out narrow where few users fail.
    - `agresti_caffo` (2000), `miettinen_nurminen` (1985): for independent rows; no interval for others.

    `shared` sums up the users who are in both arms; without it, nobody is. An arm with several rows of a single user
    has no interval, and neither has the difference.

    p is that of the score test with the factor N / (N - 1) (Miettinen & Nurminen 1985) for independent rows, else one
    minus the highest level at which the interval leaves 0 out: it never contradicts the interval, as a p from the
    cluster-robust variance would with few users.

    `units` is, for each arm, as in `rate_interval`. Raises InputError as that does, and for an unknown method.
    """
    if method not in DIFFERENCE_METHODS:
        raise InputError(f"method must be one of {', '.join(DIFFERENCE_METHODS)}, not {method!r}")
    arms: RateMethod = "wilson_cr1" if method == "mover_cr1" else "wilson"
    shared = shared or SharedMoments()
    independent = treatment.singletons(units[0]) and control.singletons(units[1]) and not shared.clusters
    found = _mover(
        _Pair(
            treatment,
            control,
            shared,
            lambda at: rate_interval(treatment, level=at, method=arms, units=units[0]),
            lambda at: rate_interval(control, level=at, method=arms, units=units[1]),
            (0, 1),
            independent,
        ),
        level,
    )
    if found.value is None or method in {"mover", "mover_cr1"}:
        return found
    if not independent:
        return Difference(found.value, no_interval(NOT_INDEPENDENT, found.interval.variance), None, "none")
    low, high = _limits_of_independent(method, treatment, control, level)
    limits = around(low, found.value, high, floor=-1.0, ceiling=1.0)
    return found._replace(interval=Interval(*limits, found.interval.variance, f"{method.replace('_', '-')}/1", None))


def mean_difference(
    treatment: Moments,
    control: Moments,
    *,
    bounds: tuple[float, float] | None = None,
    shared: SharedMoments | None = None,
    level: float = 0.95,
) -> Difference:
    """The difference of two means, each `moments.y / moments.m`, where `y` sums weight * value and `m` the weights.

    With bounds: MOVER over the arms' bounded intervals (`mean_interval`), and p from it, as for rates.

    Without: Welch's t on the cluster-robust variances (CR1), with Satterthwaite's degrees of freedom over clusters, at
    most the number of different clusters less one. With one row a cluster it is Welch's t test. No limits where an arm
    shows no variation. It is too narrow where values are skewed and users few, as in `mean_interval`.

    `shared` as in `rate_difference`. Raises InputError as `mean_interval` does.
    """
    shared = shared or SharedMoments()
    if bounds is None:
        return _welch(treatment, control, shared, level)
    pair = _Pair(
        treatment,
        control,
        shared,
        lambda at: mean_interval(treatment, level=at, bounds=bounds),
        lambda at: mean_interval(control, level=at, bounds=bounds),
        bounds,
    )
    return _mover(pair, level)


def incidence_difference(
    treatment: Incidence, control: Incidence, *, level: float = 0.95, correlation: float = 0.0
) -> Difference:
    """The difference of two shares ended by a time, as `incidence` gave them at that level; pending ones are kept.

    That of two complements, the shares S(t) still open, is `mirrored()`. MOVER over the arms' own limits: log(-log), or
    Wilson's where a share is 0 or 1. p as for clustered rates. `correlation` is that of the two shares through users
    who are in both arms; it is not found here.

    Medians and other quantiles are not subtracted. Their limits are the times where the limits of a curve cross a
    level: often one is open, and no variance stands behind them that MOVER could recover. Compare shares at a time.

    Raises InputError for complements, another level, or a correlation not between -1 and 1, both excluded.
    """
    tail(level)
    if not -1 < correlation < 1:
        raise InputError(f"a correlation lies between -1 and 1, both excluded, not {correlation}")
    first, second = treatment.interval, control.interval
    value = None if treatment.value is None or control.value is None else treatment.value - control.value
    if value is None or first.low is None or second.low is None:
        return Difference(value, no_interval(_reasons(first, second) or NOTHING_COUNTED), None, "none")
    for arm in (treatment, control):
        low, _, high = _incidence_limits(arm, level)
        if not (_near(low, arm.interval.low) and _near(high, arm.interval.high)):
            raise InputError(
                f"both shares are those ended by a time, not complements, with limits at the level {level}"
            )

    def limits_at(at: float) -> tuple[float, float]:
        return square_and_add(_incidence_limits(treatment, at), _incidence_limits(control, at), correlation)

    limits = around(limits_at(level)[0], value, limits_at(level)[1], floor=-1.0, ceiling=1.0)
    variance = _correlated(first, second, correlation)
    interval = Interval(*limits, variance, _joint_method(first, second, correlation), None, _reasons(first, second))
    p = inverted_p(lambda p: _leaves_out(limits_at(1 - p)), value)
    return Difference(value, interval, p, "mover-inverted/1", None, correlation)


def restricted_mean_difference(
    treatment: RestrictedMean, control: RestrictedMean, *, at: float, level: float = 0.95
) -> Difference:
    """The difference of two means, as `restricted_mean` gave them up to one `at`, of arms that share no cluster.

    Welch's t on the arms' squared errors, with Satterthwaite's degrees of freedom over clusters (rows are clusters of
    one where they have none). Of times that all ended by `at` it is Welch's test itself. No limits where an arm has
    none.
    """
    tail(level)
    first, second = treatment, control
    value = None if first.value is None or second.value is None else first.value - second.value
    if value is None or first.squared_error is None or second.squared_error is None:
        return Difference(
            value, no_interval(_reasons(first.interval, second.interval) or NOTHING_COUNTED), None, "none"
        )
    errors, clusters = (first.squared_error, second.squared_error), (first.clusters, second.clusters, 0)
    found = on_t(value, errors, 0.0, clusters, level, "restricted-mean-welch/1")
    low, high = found.interval.low, found.interval.high
    if low is None or high is None:
        return found
    low, high = around(low, value, high, floor=-at, ceiling=at)
    return found._replace(interval=found.interval._replace(low=low, high=high))


def incidence_ratio(
    treatment: Incidence,
    control: Incidence,
    *,
    level: float = 0.95,
    correlation: float = 0.0,
    still_open: bool = False,
) -> Difference:
    """The relative lift of two shares ended by a time, or with `still_open` of their complements: as `relative_lift`.

    MOVER over the arms' own limits, so p is that of the difference. Arguments and errors as `incidence_difference`.
    """
    apart = incidence_difference(treatment, control, level=level, correlation=correlation)
    if apart.value is None or treatment.value is None or control.value is None:
        return apart
    arms = [_incidence_limits(arm, level) for arm in (treatment, control)] if apart.interval.low is not None else []
    values = [1 - arm.value if still_open else arm.value for arm in (treatment, control) if arm.value is not None]
    if values[1] <= 0:
        return Difference(None, no_interval(CONTROL_NOT_POSITIVE), None, "none")
    value = values[0] / values[1] - 1
    if not arms:
        return apart._replace(value=value)
    if still_open:
        arms = [(1 - high, 1 - share, 1 - low) for low, share, high in arms]
    low, high = ratio_limits(arms[0], arms[1], correlation)
    low, high = around(low - 1, value, high - 1, floor=-1.0, ceiling=math.inf)
    variance = _over(_correlated(treatment.interval, control.interval, correlation, value + 1), values[1])
    method = f"ratio-{_joint_method(treatment.interval, control.interval, correlation)}"
    highest = None if high == math.inf else high
    return apart._replace(value=value, interval=Interval(low, highest, variance, method, None, apart.interval.reason))


def relative_lift(
    treatment: Moments,
    control: Moments,
    *,
    bounds: tuple[float, float] | None = (0, 1),
    shared: SharedMoments | None = None,
    level: float = 0.95,
    method: RelativeMethod = "mover",
    units: Units = (None, None),
) -> Difference:
    """Treatment over control, minus 1: 0.5 is half as much again. None where the control is 0.

    - `mover`: `ratio_limits` of the same arms as in the difference, 0 left out by both or by neither; so p is that of
      the difference. There are limits, and a width, where the treatment is 0 or both are 1. There is no upper one, and
      a lower one, where the control's own lower limit is 0.
    - `log`: on the logarithm of the ratio. Katz et al. 1978 for independent rows; else on the cluster-robust variances
      (CR1) with Student's t, as in `mean_difference` without bounds. The only one without bounds.

    `bounds` are the values' own, 0 to 1 for a rate; values are not negative. `units` is, for each arm, as in
    `rate_interval`: infinite for a mean between 0 and 1, whose rows are no hits or misses. The limits of a difference
    are never divided by the control, which would take the control for known.

    Raises InputError as `mean_interval` does, for an unknown method, negative values, and `mover` without bounds.
    """
    if method not in RELATIVE_METHODS:
        raise InputError(f"method must be one of {', '.join(RELATIVE_METHODS)}, not {method!r}")
    if bounds is None and method == "mover":
        raise InputError("without bounds a lift is found from logarithms: method='log'")
    if bounds is not None and bounds[0] < 0:
        raise InputError(f"a relative lift takes values of 0 or more, not bounds {bounds}")
    tail(level)
    shared = shared or SharedMoments()
    if treatment.ratio is None or control.ratio is None:
        return Difference(None, no_interval(NOTHING_COUNTED), None, "none")
    if control.ratio <= 0:
        return Difference(None, no_interval(CONTROL_NOT_POSITIVE), None, "none")
    value = float(treatment.ratio / control.ratio - 1)
    if bounds is None or method == "log":
        return _log_lift(treatment, control, value, shared, level)
    return _mover_lift(treatment, control, value, bounds, shared, level, units)


# --- MOVER ---------------------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """Two arms, each with its interval at any level."""

    treatment: Moments
    control: Moments
    shared: SharedMoments
    treatment_at: Callable[[float], Interval]
    control_at: Callable[[float], Interval]
    bounds: tuple[float, float]
    independent: bool = False
    """Whether each row is a hit or a miss by itself."""


def _mover(pair: _Pair, level: float) -> Difference:
    first, second = pair.treatment_at(level), pair.control_at(level)
    over, under = pair.treatment.ratio, pair.control.ratio
    if over is None or under is None:
        return Difference(None, no_interval(_reasons(first, second) or NOTHING_COUNTED), None, "none")
    difference, values = float(over - under), (float(over), float(under))
    if first.low is None or second.low is None:
        return Difference(difference, no_interval(_reasons(first, second) or NOTHING_COUNTED), None, "none")
    correlation = padded_correlation(pair.treatment, pair.control, pair.shared, pair.bounds)

    def limits_at(at: float) -> tuple[float, float]:
        one, other = _with(values[0], pair.treatment_at(at)), _with(values[1], pair.control_at(at))
        return square_and_add(one, other, correlation)

    width = float(pair.bounds[1]) - float(pair.bounds[0])
    limits = around(limits_at(level)[0], difference, limits_at(level)[1], floor=-width, ceiling=width)
    method, reason = _joint_method(first, second, correlation), _reasons(first, second)
    variance = _variance(first, second, *pair[:3])
    interval = Interval(*limits, variance, method, None, reason)
    if pair.independent:
        return Difference(difference, interval, _score_p(pair.treatment, pair.control), "score/1")
    p = inverted_p(lambda p: _leaves_out(limits_at(1 - p)), difference)
    return Difference(difference, interval, p, "mover-inverted/1", None, correlation)


def _leaves_out(limits: tuple[float, float]) -> bool:
    return limits[0] > 0 or limits[1] < 0


def _variance(
    first: Interval, second: Interval, treatment: Moments, control: Moments, shared: SharedMoments, ratio: float = 1.0
) -> float | None:
    """As measured, of treatment - ratio * control."""
    one, other, covariance = first.variance or 0.0, second.variance or 0.0, 0.0
    if shared.clusters:
        # all three of one kind: that of single trials differs from the robust one by G / (G - 1)
        one, other = (float(arm.robust_variance() or 0) for arm in (treatment, control))
        covariance = shared.robust_covariance(treatment, control)
    return _joined(one, other, covariance, ratio)


def _correlated(first: Interval, second: Interval, correlation: float, ratio: float = 1.0) -> float | None:
    """As measured, of first - ratio * second."""
    one, other = first.variance or 0.0, second.variance or 0.0
    return _joined(one, other, correlation * math.sqrt(one * other), ratio)


def _joined(one: float, other: float, covariance: float, ratio: float) -> float | None:
    if bool(one) != bool(other):
        return None  # an arm that shows no variation, as a small one in which all succeed, is not known exactly
    return max(0.0, one + ratio * (ratio * other - 2 * covariance))


def _over(variance: float | None, value: float) -> float | None:
    return None if variance is None else variance / value**2


def padded_correlation(
    treatment: Moments, control: Moments, shared: SharedMoments, bounds: tuple[float, float] = (0, 1)
) -> float:
    """The correlation of two ratios within bounds, through the clusters they share, with two clusters added to both.

    Each arm is padded with a cluster of hits and one of misses, as its interval is (`padded_effective_n`), and the hits
    of one arm are the misses of the other, as in the two pairs that Bonett & Price 2012 add. So a positive correlation
    is guessed lower, by about as much as Newcombe's correction of phi (1998), though not below 0; and it stays under 1
    where all users are alike in both arms, so that no difference has a width of 0. The generalisation is ours
    (benchmarks/coverage_lift.md).
    """
    if shared.clusters == 0:
        return 0.0
    low, high = exact(bounds[0]), exact(bounds[1])
    first, second = treatment.rescaled(low, high), control.rescaled(low, high)
    products = float(shared.rescaled(low, high).products_around(first, second))
    p1, squares1 = _padded(first)
    p2, squares2 = _padded(second)
    if products > 0:
        added = (p1 * (1 - p2) + (1 - p1) * p2) / (treatment.clusters * control.clusters)
        products = max(0.0, products - added)
    return products / math.sqrt(squares1 * squares2)


def _padded(arm: Moments) -> tuple[float, float]:
    share = Fraction(arm.y) / arm.m
    p = float(padded_share(share, arm.clusters))
    return p, float(arm.squares_around(share)) + (p * p + (1 - p) * (1 - p)) / arm.clusters**2


def _third_side(a: float, b: float, correlation: float) -> float:
    return math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))


def _with(value: float, interval: Interval) -> Limits:
    # limits are there at every level where they are at one
    return (value if interval.low is None else interval.low), value, (value if interval.high is None else interval.high)


def _reasons(treatment: Interval, control: Interval) -> str | None:
    told = {"treatment": treatment.reason, "control": control.reason}
    if treatment.reason == control.reason:
        return treatment.reason
    return "; ".join(f"{name}: {reason}" for name, reason in told.items() if reason)


def _joint_method(treatment: Interval, control: Interval, correlation: float) -> str:
    names = [name.removesuffix("/1") for name in dict.fromkeys((treatment.method, control.method))]
    joint = "newcombe" if names == ["wilson"] else f"mover-{'+'.join(names)}"
    return f"{joint}-correlated/1" if correlation else f"{joint}/1"


# --- independent rows ----------------------------------------------------------------------------------------------


def _limits_of_independent(
    method: DifferenceMethod, treatment: Moments, control: Moments, level: float
) -> tuple[float, float]:
    n1, n2 = treatment.clusters, control.clusters
    k1, k2 = (int(Fraction(arm.y) / arm.m * arm.clusters) for arm in (treatment, control))
    q = normal_quantile(level)
    if method == "miettinen_nurminen":
        return miettinen_nurminen(k1, n1, k2, n2, q)
    p1, p2 = (k1 + 1) / (n1 + 2), (k2 + 1) / (n2 + 2)
    half = q * math.sqrt(p1 * (1 - p1) / (n1 + 2) + p2 * (1 - p2) / (n2 + 2))
    return p1 - p2 - half, p1 - p2 + half


def _score_p(treatment: Moments, control: Moments) -> float:
    n1, n2 = treatment.clusters, control.clusters
    p1, p2 = Fraction(treatment.y) / treatment.m, Fraction(control.y) / control.m
    pooled = (p1 * n1 + p2 * n2) / (n1 + n2)
    variance = pooled * (1 - pooled) * (Fraction(1, n1) + Fraction(1, n2)) * Fraction(n1 + n2, n1 + n2 - 1)
    return 1.0 if variance == 0 else normal_p(float(p1 - p2) / math.sqrt(variance))


# --- Welch ---------------------------------------------------------------------------------------------------------


def _welch(treatment: Moments, control: Moments, shared: SharedMoments, level: float) -> Difference:
    first, second = mean_interval(treatment, level=level), mean_interval(control, level=level)
    if treatment.ratio is None or control.ratio is None:
        return Difference(None, no_interval(_reasons(first, second) or NOTHING_COUNTED), None, "none")
    value = float(treatment.ratio - control.ratio)
    if not first.variance or not second.variance:
        return Difference(value, no_interval(_reasons(first, second) or NO_VARIATION), None, "none")
    return on_t(
        value,
        (first.variance, second.variance),
        shared.robust_covariance(treatment, control),
        (treatment.clusters, control.clusters, shared.clusters),
        level,
        "cr1-welch/1",
    )


def _log_lift(treatment: Moments, control: Moments, value: float, shared: SharedMoments, level: float) -> Difference:
    first, second = treatment.ratio or Fraction(0), control.ratio or Fraction(0)
    if first <= 0:
        return Difference(value, no_interval(TREATMENT_NOT_POSITIVE), None, "none")
    independent = treatment.singletons() and control.singletons() and not shared.clusters
    if independent:
        variances = first * (1 - first) / treatment.clusters, second * (1 - second) / control.clusters
        known = any(variances)
    else:
        variances = treatment.robust_variance() or Fraction(0), control.robust_variance() or Fraction(0)
        known = all(variances)
    if not known:
        told = _reasons(mean_interval(treatment, level=level), mean_interval(control, level=level))
        return Difference(value, no_interval(told or NO_VARIATION), None, "none")
    found = on_t(
        math.log(first / second),
        (float(variances[0] / first**2), float(variances[1] / second**2)),
        shared.robust_covariance(treatment, control)
        / float(first)
        / float(second),  # the product may be below any float
        None if independent else (treatment.clusters, control.clusters, shared.clusters),
        level,
        "katz/1" if independent else "log-cr1-welch/1",
    )
    low, high, variance = found.interval[:3]
    if low is None or high is None or variance is None:
        return found._replace(value=value)
    # beyond this exp would overflow
    limits = around(math.expm1(low), value, math.expm1(min(high, 700.0)), floor=-1.0, ceiling=math.inf)
    interval = found.interval._replace(low=limits[0], high=limits[1], variance=variance * (1 + value) ** 2)
    return found._replace(value=value, interval=interval)


def on_t(
    value: float,
    variances: tuple[float, float],
    covariance: float,
    clusters: tuple[int, int, int] | None,
    level: float,
    method: str,
) -> Difference:
    """Value ± quantile * standard error, of the variances of two arms and their covariance.

    `clusters` counts those of each arm and those in both: Student's t on Satterthwaite's degrees of freedom, at most
    the number of different clusters less one. Without: the normal quantile.
    """
    first, second = variances
    variance = first + second - 2 * covariance
    # far above what rounding leaves of two variances and a covariance that equals them
    if variance <= 1e-12 * (first + second):
        return Difference(value, no_interval(ALL_THE_SAME, variance=0.0), None, "none")
    error = math.sqrt(variance)
    if clusters is None:
        df, q, p = None, normal_quantile(level), normal_p(value / error)
    else:
        one, other, both = clusters
        part = first / (first + second)
        df = 1 / (part * part / (one - 1) + (1 - part) * (1 - part) / (other - 1))
        df = min(df, one + other - both - 1)
        q, p = t_quantile(level, df), t_p(value / error, df)
    low, high = around(value - q * error, value, value + q * error, floor=-math.inf, ceiling=math.inf)
    correlation = covariance / math.sqrt(first) / math.sqrt(second) if covariance else 0.0
    return Difference(value, Interval(low, high, variance, method, None), p, method, df, correlation)


# --- ratios and curves ---------------------------------------------------------------------------------------------


def _mover_lift(
    treatment: Moments,
    control: Moments,
    value: float,
    bounds: tuple[float, float],
    shared: SharedMoments,
    level: float,
    units: Units,
) -> Difference:
    if bounds == (0, 1):
        apart = rate_difference(treatment, control, shared=shared, level=level, units=units)
        first = rate_interval(treatment, level=level, units=units[0])
        second = rate_interval(control, level=level, units=units[1])
    else:
        apart = mean_difference(treatment, control, bounds=bounds, shared=shared, level=level)
        first, second = (mean_interval(arm, level=level, bounds=bounds) for arm in (treatment, control))
    if apart.interval.low is None:
        return apart._replace(value=value)
    over, under = float(treatment.ratio or 0), float(control.ratio or 0)
    low, high = ratio_limits(_with(over, first), _with(under, second), apart.correlation)
    low, high = around(low - 1, value, high - 1, floor=-1.0, ceiling=math.inf)
    # of over - ratio * under, divided by the square of under (the delta method)
    variance = _variance(first, second, treatment, control, shared, over / under)
    method = f"ratio-{_joint_method(first, second, apart.correlation)}"
    # the control may be 0 then, and the lift as large as can be
    highest = None if high == math.inf else high
    interval = Interval(low, highest, _over(variance, under), method, None, apart.interval.reason)
    return apart._replace(value=value, interval=interval)


def _incidence_limits(arm: Incidence, level: float) -> Limits:
    """What `incidence` gives at the level, from the effective n that it found."""
    value, n = arm.value or 0.0, arm.interval.effective_n or 1.0
    if arm.interval.method.startswith("wilson"):
        low, high = wilson(value, n, normal_quantile(level))
        return low, value, high
    clustered = arm.clusters < arm.followed + arm.censored
    q = t_quantile(level, arm.clusters - 1) if clustered else normal_quantile(level)
    low, high = log_minus_log(1 - value, value * (1 - value) / n, q)
    return 1 - high, value, 1 - low


def _near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=0, abs_tol=1e-9)
