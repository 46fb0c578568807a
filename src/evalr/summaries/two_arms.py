"""How far apart two arms are, for each kind of sums that a summary may have of them."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from evalr.errors import InputError
from evalr.estimates.compare import (
    DIFFERENCE_METHODS,
    Difference,
    DifferenceMethod,
    RelativeMethod,
    Units,
    incidence_difference,
    incidence_ratio,
    mean_difference,
    rate_difference,
    relative_lift,
    restricted_mean_difference,
)
from evalr.estimates.duration import Incidence, incidence, influences, restricted_mean
from evalr.estimates.interval import no_interval
from evalr.estimates.reflexio_rules import session_difference, user_difference
from evalr.estimates.words import Unit, choice_words
from evalr.tallies.counts import Counts
from evalr.tallies.durations import Durations
from evalr.tallies.moments import Moments
from evalr.tallies.shared import SharedMoments

LiftInterval = DifferenceMethod | Literal["reflexio_sessions", "reflexio_users"]

REFLEXIO_RULES = {"reflexio_sessions": session_difference, "reflexio_users": user_difference}

BELOW_ZERO = "a mean that may be below 0 has no relative lift"
NO_QUANTILES = "typical times are not subtracted: compare shares at a time, with within="
SHARED_TIMES = "some are in both arms: mean times are compared of arms that share nobody"
NO_RELATIVE_TIME = "a mean that counts no time as longer than a limit has no relative lift"


class TwoArms(NamedTuple):
    """What a summary finds of two arms."""

    difference: Difference
    relative: Difference
    unit: Unit
    bounds: tuple[float, float]
    """Of the difference."""
    shared: int
    """Clusters in both arms."""
    sums: tuple[Counts, Counts] | None
    """Sums by cluster, where an arm's value is a ratio of such."""


def compared_rates(sums: tuple[Counts, Counts], units: Units, level: float, interval: str) -> TwoArms:
    """Two rates, each hits over total by cluster."""
    treatment, control = (each.moments() for each in sums)
    shared = sums[0].shared_with(sums[1])
    if interval in REFLEXIO_RULES:
        difference = REFLEXIO_RULES[interval](treatment, control, level)
    elif interval in DIFFERENCE_METHODS:
        difference = rate_difference(treatment, control, shared=shared, level=level, method=interval, units=units)
    else:
        raise InputError(f"interval={interval!r}: {choice_words(interval, (*DIFFERENCE_METHODS, *REFLEXIO_RULES))}")
    relative = relative_lift(treatment, control, shared=shared, level=level, units=units)
    return TwoArms(difference, relative, "points", (-1.0, 1.0), shared.clusters, sums)


def compared_means(
    sums: tuple[Counts, Counts], bounds: tuple[float, float] | None, unit: Unit, level: float, interval: str
) -> TwoArms:
    """Two means, each a weighted sum over its weights by cluster."""
    if interval != "mover":
        raise InputError(f"interval={interval!r} is for rates: means are compared by 'mover', the default")
    treatment, control = (each.moments() for each in sums)
    shared = sums[0].shared_with(sums[1])
    difference = mean_difference(treatment, control, bounds=bounds, shared=shared, level=level)
    limits = (-math.inf, math.inf) if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    return TwoArms(
        difference, _relative_mean(treatment, control, shared, bounds, level), unit, limits, shared.clusters, sums
    )


def _relative_mean(
    treatment: Moments, control: Moments, shared: SharedMoments, bounds: tuple[float, float] | None, level: float
) -> Difference:
    if bounds is not None and bounds[0] < 0:
        return Difference(None, no_interval(BELOW_ZERO), None, "none")
    method: RelativeMethod = "log" if bounds is None else "mover"
    units = (math.inf, math.inf)  # rows are no hits or misses
    return relative_lift(treatment, control, bounds=bounds, shared=shared, level=level, method=method, units=units)


def compared_times(
    durations: tuple[Durations, Durations],
    within: float | None,
    *,
    still_open: bool,
    unit: Unit,
    level: float,
    interval: str,
) -> TwoArms:
    """Two shares ended (or still open) by a time."""
    if interval != "mover":
        raise InputError(f"interval={interval!r} is for rates: shares at a time are compared by 'mover', the default")
    pairs = durations[0].shared_with(durations[1])
    if within is None:
        nothing = Difference(None, no_interval(NO_QUANTILES), None, "none")
        return TwoArms(nothing, nothing, unit, (-math.inf, math.inf), len(pairs), None)
    first, second = (incidence(*each.arrays(), at=within, level=level, unit=unit) for each in durations)
    correlation = _correlation(durations, (first, second), pairs, within)
    difference = incidence_difference(first, second, level=level, correlation=correlation)
    relative = incidence_ratio(first, second, level=level, correlation=correlation, still_open=still_open)
    difference = difference.mirrored() if still_open else difference
    return TwoArms(difference, relative, "points", (-1.0, 1.0), len(pairs), None)


def compared_mean_times(
    durations: tuple[Durations, Durations], within: float, *, unit: Unit, level: float, interval: str
) -> TwoArms:
    """Two restricted means."""
    if interval != "mover":
        raise InputError(f"interval={interval!r} is for rates: means are compared by 'mover', the default")
    shared = len(durations[0].shared_with(durations[1]))
    arms = [restricted_mean(*each.arrays(), at=within, level=level, unit=unit) for each in durations]
    difference = restricted_mean_difference(arms[0], arms[1], at=within, level=level)
    if shared:
        difference = Difference(difference.value, no_interval(SHARED_TIMES), None, "none")
    relative = Difference(None, no_interval(NO_RELATIVE_TIME), None, "none")
    return TwoArms(difference, relative, unit, (-within, within), shared, None)


def _correlation(
    durations: tuple[Durations, Durations],
    found: tuple[Incidence, Incidence],
    pairs: list[tuple[int, int]],
    within: float,
) -> float:
    """Of the two shares, through the clusters in both arms: by what each of them does to either share.

    The covariance is the sum of products of influences; the variances are those of the padded limits, so that it stays
    under 1 where all clusters are alike in both arms.
    """
    values = [each.value for each in found]
    worth = [each.interval.effective_n for each in found]
    if not pairs or None in values or None in worth:
        return 0.0
    after, there = (_influences(each, within) for each in durations)
    covariance = math.fsum(after.get(one, 0.0) * there.get(other, 0.0) for one, other in pairs)
    spread = math.prod(
        value * (1 - value) / n for value, n in zip(values, worth, strict=True) if value is not None and n
    )
    correlation = covariance / math.sqrt(spread) if spread else 0.0
    # A few clusters that are alike in both arms would leave no width at all; without it the interval is too wide.
    return correlation if -1 < correlation < 1 else 0.0


def _influences(durations: Durations, within: float) -> dict[int, float]:
    after, end, cluster = durations.arrays()
    return {} if cluster is None else influences(after, end, cluster, at=within)
