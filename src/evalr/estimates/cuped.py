"""How far apart are two arms, once what the users did before is taken off? One row a user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from evalr.errors import InputError
from evalr.estimates.compare import Difference, on_t
from evalr.estimates.interval import NO_VARIATION, NOTHING_COUNTED, Interval, around, no_interval, t_quantile, tail
from evalr.estimates.p_values import t_p

TOO_FEW = "an arm has too few users for its variance to be known"
ALIKE_BEFORE = "all users were alike before, so there was nothing to take off"

_ROUNDING = 1e-24
"""Of a squared value: far below what one row does to a variance, far above what rounding leaves of none."""

Row = tuple[float, float]
"""What a user's value was before the assignment, and what it is since."""


class Adjusted(NamedTuple):
    """The difference after the adjustment, and what was adjusted by."""

    difference: Difference
    raw: float | None
    """The difference of the plain means."""
    theta: float | None
    """What one unit before is worth since; None where all were alike before."""


def cuped_difference(treatment: Sequence[Row], control: Sequence[Row], *, level: float = 0.95) -> Adjusted:
    """Treatment minus control of `after - theta (before - mean before)`, theta over both arms; Welch's interval.

    Deng, Xu, Kohavi & Walker 2013. A row is (before, after) of one user, `before` from strictly before the assignment:
    what the treatment can have moved must not be taken off. A user without a past gets the mean of the others.

    Raises InputError for numbers that are not finite, or a level outside 0..1.
    """
    _check(treatment, control, level)
    raw = _raw(treatment, control)
    if min(len(treatment), len(control)) < 2:
        return Adjusted(
            Difference(raw, no_interval(NOTHING_COUNTED if raw is None else TOO_FEW), None, "none"), raw, None
        )
    rows = [*treatment, *control]
    before = _mean([x for x, _ in rows])
    spread = math.fsum((x - before) ** 2 for x, _ in rows)
    after = _mean([y for _, y in rows])
    theta = math.fsum((x - before) * (y - after) for x, y in rows) / spread if spread else None
    arms = [[y - (theta or 0.0) * (x - before) for x, y in arm] for arm in (treatment, control)]
    means = [_mean(arm) for arm in arms]
    first, second = (
        math.fsum((y - mean) ** 2 for y in arm) / (len(arm) - 1) / len(arm)
        for arm, mean in zip(arms, means, strict=True)
    )
    value = means[0] - means[1]
    taken = abs(theta or 0.0)
    if min(first, second) <= _ROUNDING * max(abs(y) + taken * abs(x - before) for x, y in rows) ** 2:
        return Adjusted(Difference(value, no_interval(NO_VARIATION), None, "none"), raw, theta)
    found = on_t(value, (first, second), 0.0, (len(treatment), len(control), 0), level, "cuped-welch/1")
    if theta is None:
        found = found._replace(interval=found.interval._replace(reason=ALIKE_BEFORE))
    return Adjusted(found, raw, theta)


def lin_difference(treatment: Sequence[Row], control: Sequence[Row], *, level: float = 0.95) -> Adjusted:
    """The same with a slope in each arm: the difference of the arms' regressions at the mean before (Lin 2013).

    In large samples it does no worse than the plain difference, however unequal the arms; with few users in one of them
    its interval is too narrow (benchmarks/coverage_lift.md). Variance: HC1, with Student's t on n - 4 degrees of
    freedom. `theta` is None: there are two. Raises InputError as `cuped_difference`.
    """
    _check(treatment, control, level)
    raw, size = _raw(treatment, control), len(treatment) + len(control)
    if min(len(treatment), len(control)) < 3:
        return Adjusted(
            Difference(raw, no_interval(NOTHING_COUNTED if raw is None else TOO_FEW), None, "none"), raw, None
        )
    before = _mean([x for x, _ in (*treatment, *control)])
    lines = [_at(arm, before) for arm in (treatment, control)]
    if lines[0] is None or lines[1] is None:
        return _without(raw, ALIKE_BEFORE)
    (one, first), (other, second) = lines[0], lines[1]
    value, variance = one - other, (first + second) * size / (size - 4)
    if variance <= _ROUNDING * max(abs(y) for _, y in (*treatment, *control)) ** 2:
        return Adjusted(Difference(value, no_interval(NO_VARIATION), None, "none"), raw, None)
    df, error = size - 4, math.sqrt(variance)
    half = t_quantile(level, df) * error
    limits = around(value - half, value, value + half, floor=-math.inf, ceiling=math.inf)
    interval = Interval(*limits, variance, "lin-hc1-t/1", None)
    return Adjusted(Difference(value, interval, t_p(value / error, df), interval.method, df), raw, None)


def _without(raw: float | None, reason: str) -> Adjusted:
    return Adjusted(Difference(raw, no_interval(reason), None, "none"), raw, None)


def _at(arm: Sequence[Row], before: float) -> tuple[float, float] | None:
    """The arm's regression at `before`, and its sandwich variance (HC0); None where all were alike before."""
    x_mean, y_mean = _mean([x for x, _ in arm]), _mean([y for _, y in arm])
    spread = math.fsum((x - x_mean) ** 2 for x, _ in arm)
    if spread == 0:
        return None
    slope = math.fsum((x - x_mean) * (y - y_mean) for x, y in arm) / spread
    shift = before - x_mean
    variance = math.fsum(
        ((1 / len(arm) + shift * (x - x_mean) / spread) * (y - y_mean - slope * (x - x_mean))) ** 2 for x, y in arm
    )
    return y_mean + slope * shift, variance


def _check(treatment: Sequence[Row], control: Sequence[Row], level: float) -> None:
    tail(level)
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in (*treatment, *control)):
        raise InputError("a user's values, before and after, are finite numbers")


def _raw(treatment: Sequence[Row], control: Sequence[Row]) -> float | None:
    if not treatment or not control:
        return None
    return _mean([y for _, y in treatment]) - _mean([y for _, y in control])


def _mean(values: Sequence[float]) -> float:
    # exact sums, so that no order of the users changes an answer
    return math.fsum(values) / len(values)
