"""How many users does it take to see a difference, and what can these see?

Formulas of the normal approximation, before any data: rates of 0..1, two-sided tests at `level`. Counts are of
independent rows; where users have several, multiply by `design_effect`. Results are fractions of users: round up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import Any, NamedTuple

from evalr.errors import InputError
from evalr.estimates import display
from evalr.estimates.interval import normal_quantile
from evalr.estimates.words import value_words


class Needed(NamedTuple):
    """Rows needed in each arm."""

    treatment: float
    control: float

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        return f"{math.ceil(self.treatment):,} in treatment, {math.ceil(self.control):,} in control"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What a notebook shows; the repr has every digit.
        printer.text(str(self))


class Detectable(NamedTuple):
    """The smallest differences that are seen with the power asked for; None where there is no room for one."""

    increase: float | None
    decrease: float | None

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        increase = "no increase" if self.increase is None else value_words(self.increase, "points")
        return f"{increase}, {'no decrease' if self.decrease is None else value_words(-self.decrease, 'points')}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What a notebook shows; the repr has every digit.
        printer.text(str(self))


def users_needed(
    treatment: float,
    control: float,
    *,
    ratio: float = 1.0,
    power: float = 0.8,
    level: float = 0.95,
    pooled: bool = True,
) -> Needed:
    """Rows needed to see that two rates differ; `ratio` is treatment rows for each control row (9 for a 10% holdout).

    `(z_a s_0 + z_b s_1)² / (p1 - p2)²` control rows, where s_1² = p1 q1 / ratio + p2 q2, and s_0² is the variance under
    no difference (Fleiss, Levin & Paik 2003), as in the score test by which a lift is judged; without `pooled` it is
    s_1², too. At 90:10 that plans for a power of 80% and gets 67% to 93%. Raises InputError for rates that are equal or
    outside 0..1, a power at or under (1 - level) / 2, or a ratio that is not positive.
    """
    _check_rates(treatment, control)
    if treatment == control:
        raise InputError("no number of users shows a difference between equal rates")
    q, beta = normal_quantile(level), _power_quantile(power, level)
    one, other = treatment * (1 - treatment), control * (1 - control)
    _check_ratio(ratio)
    size = (q * _root(treatment, control, ratio, pooled) + beta * math.sqrt(one / ratio + other)) / (
        treatment - control
    )
    return Needed(ratio * size * size, size * size)


def power_of(
    treatment: float,
    control: float,
    *,
    treatment_users: float,
    control_users: float,
    level: float = 0.95,
    pooled: bool = True,
) -> float:
    """The chance to see (p < 1 - level) that two rates differ, in either direction, with so many rows in each arm.

    1 - level where they do not. Raises InputError for rates outside 0..1 or no users.
    """
    _check_rates(treatment, control)
    if not (treatment_users > 0 and control_users > 0):
        raise InputError("both arms need users")
    ratio = treatment_users / control_users
    under = _root(treatment, control, ratio, pooled)
    over = math.sqrt(treatment * (1 - treatment) / ratio + control * (1 - control))
    away, q = (treatment - control) * math.sqrt(control_users), normal_quantile(level)
    if over == 0:
        return float(abs(away) > q * under)
    normal = NormalDist()
    return normal.cdf((away - q * under) / over) + normal.cdf((-away - q * under) / over)


def detectable(
    control: float,
    *,
    treatment_users: float,
    control_users: float,
    power: float = 0.8,
    level: float = 0.95,
    pooled: bool = True,
) -> Detectable:
    """The smallest increase and decrease of the control's rate that so many rows in each arm show with that power.

    Raises InputError as `power_of` and `users_needed`.
    """
    _power_quantile(power, level)

    def seen(shift: float) -> bool:
        rate = min(1.0, max(0.0, control + shift))
        return (
            power_of(
                rate, control, treatment_users=treatment_users, control_users=control_users, level=level, pooled=pooled
            )
            >= power
        )

    return Detectable(_smallest(seen, 1 - control), _smallest(lambda shift: seen(-shift), control))


def design_effect(mean_size: float, icc: float, *, cv: float = 0.0) -> float:
    """By how much more rows it takes when they come in clusters: `1 + ((cv² + 1) m - 1) icc`, at least 1.

    `mean_size` rows a cluster on average, `cv` their standard deviation over that (0: all alike). Donner & Klar 2000;
    Eldridge, Ashby & Kerry 2006. A negative correlation counts as 0. Raises InputError for a size under 1, a negative
    cv or an icc outside -1..1.
    """
    if not (1 <= mean_size < math.inf and 0 <= cv < math.inf and -1 <= icc <= 1):
        raise InputError(f"a cluster has 1 row or more, cv is 0 or more, icc in -1..1: not {mean_size}, {cv}, {icc}")
    return 1 + ((cv * cv + 1) * mean_size - 1) * max(0.0, icc)


def intraclass_correlation(clusters: Iterable[tuple[float, float, float]]) -> float | None:
    """How alike the rows of one cluster are, by analysis of variance (Donner 1986); may be negative.

    A cluster is (number of its rows, sum of their values, sum of the squares); for hits and misses the last two are
    equal. None where there are fewer than two clusters, no cluster with two rows, or no variation at all.
    """
    rows = [(size, total, squares) for size, total, squares in clusters if size > 0]
    n, groups = math.fsum(size for size, _, _ in rows), len(rows)
    if groups < 2 or n <= groups:
        return None
    mean = math.fsum(total for _, total, _ in rows) / n
    between = math.fsum(size * (total / size - mean) ** 2 for size, total, _ in rows) / (groups - 1)
    within = math.fsum(max(0.0, squares - total * total / size) for size, total, squares in rows) / (n - groups)
    typical = (n - math.fsum(size * size for size, _, _ in rows) / n) / (groups - 1)
    spread = between + (typical - 1) * within
    return (between - within) / spread if spread > 0 else None


def _root(treatment: float, control: float, ratio: float, pooled: bool) -> float:
    """Root of the difference's variance times control rows, as the test sees it."""
    if pooled:
        mean = (ratio * treatment + control) / (ratio + 1)
        return math.sqrt(mean * (1 - mean) * (1 / ratio + 1))
    return math.sqrt(treatment * (1 - treatment) / ratio + control * (1 - control))


def _smallest(seen: Callable[[float], bool], room: float) -> float | None:
    if room <= 0 or not seen(room):
        return None
    low, high = 0.0, room
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


def _check_rates(*rates: float) -> None:
    if not all(0 <= rate <= 1 for rate in rates):
        raise InputError(f"rates lie between 0 and 1, not {', '.join(map(str, rates))}")


def _check_ratio(ratio: float) -> None:
    if not 0 < ratio < math.inf:
        raise InputError(f"a ratio of users is positive, not {ratio}")


def _power_quantile(power: float, level: float) -> float:
    if not (1 - level) / 2 < power < 1:
        raise InputError(f"power lies between that of chance, {(1 - level) / 2:.3g}, and 1, not {power}")
    return NormalDist().inv_cdf(power)
