"""Differences and ratios of two arms: around their value, never of no width, the same whichever arm comes first."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalr.errors import InputError
from evalr.estimates.compare import (
    ALL_THE_SAME,
    CONTROL_NOT_POSITIVE,
    DIFFERENCE_METHODS,
    NOT_INDEPENDENT,
    Difference,
    DifferenceMethod,
    incidence_difference,
    mean_difference,
    padded_correlation,
    rate_difference,
    ratio_limits,
    relative_lift,
    square_and_add,
)
from evalr.estimates.duration import EVENT, OPEN, Incidence, incidence
from evalr.estimates.interval import NO_VARIATION, NOTHING_COUNTED, SINGLE_CLUSTER, normal_quantile, t_quantile
from evalr.estimates.p_values import LEAST_P
from evalr.estimates.rate import wilson
from evalr.estimates.reflexio_rules import session_rule, user_rule
from evalr.tallies.moments import Moments, exact
from evalr.tallies.shared import SharedMoments

Z = normal_quantile(0.95)
Sums = tuple[int, int]

cluster = st.integers(1, 30).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
clusters = st.lists(cluster, min_size=1, max_size=10)
both_arms = st.lists(st.tuples(cluster, cluster), max_size=8)
levels = st.one_of(st.sampled_from([0.8, 0.95, 0.999]), st.floats(1e-4, 1 - 1e-9))
methods = st.sampled_from(DIFFERENCE_METHODS)


def trials(hits: int, n: int) -> Moments:
    return Moments(n, n, hits, n, hits, hits, n)


def moments_of(sums: list[Sums]) -> Moments:
    return Moments.of_clusters((y, m, m) for y, m in sums)


def two_arms(
    first: list[Sums], second: list[Sums], shared: list[tuple[Sums, Sums]]
) -> tuple[Moments, Moments, SharedMoments]:
    """Arms with clusters of their own and some that they share."""
    return (
        moments_of([*first, *(one for one, _ in shared)]),
        moments_of([*second, *(other for _, other in shared)]),
        SharedMoments.of_clusters(shared),
    )


def limits(found: Difference) -> tuple[float, float]:
    assert found.interval.low is not None
    assert found.interval.high is not None
    return found.interval.low, found.interval.high


# --- MOVER ---------------------------------------------------------------------------------------------------------


@given(clusters, clusters, both_arms, levels, methods)
def test_limits_hold_the_difference_and_keep_to_what_is_possible(
    first: list[Sums], second: list[Sums], shared: list[tuple[Sums, Sums]], level: float, method: DifferenceMethod
) -> None:
    treatment, control, both = two_arms(first, second, shared)
    found = rate_difference(treatment, control, shared=both, level=level, method=method)
    assert treatment.ratio is not None
    assert control.ratio is not None
    assert found.value == float(treatment.ratio - control.ratio)
    if found.interval.low is None:
        alone = [arm for arm in (treatment, control) if arm.clusters == 1 and not arm.singletons()]
        assert alone or found.interval.reason == NOT_INDEPENDENT
        assert found.interval.reason
        assert (found.p, found.test, found.interval.method) == (None, "none", "none")
        return
    low, high = limits(found)
    assert -1 <= low <= found.value <= high <= 1
    assert low < high
    assert found.interval.variance is None or 0 <= found.interval.variance < math.inf
    assert -1 < found.correlation < 1
    assert found.p is not None
    assert 0 <= found.p <= 1


@pytest.mark.parametrize(("hits", "variance"), [(29, 0.8 * 0.2 / 100 + 29 / 30 / 30 / 30), (30, None)])
def test_an_arm_without_variation_is_not_taken_for_known(hits: int, variance: float | None) -> None:
    treatment = Moments.of_clusters((int(n < 80), 1, 1) for n in range(100))
    control = Moments.of_clusters((int(n < hits), 1, 1) for n in range(30))
    found = rate_difference(treatment, control)
    assert found.interval.low is not None
    assert found.interval.variance == pytest.approx(variance)
    lifted = relative_lift(treatment, control)
    assert lifted.interval.low is not None
    assert (lifted.interval.variance is None) == (variance is None)


@given(clusters, clusters, both_arms, levels, methods)
def test_swapping_the_arms_mirrors_the_interval(
    first: list[Sums], second: list[Sums], shared: list[tuple[Sums, Sums]], level: float, method: DifferenceMethod
) -> None:
    treatment, control, both = two_arms(first, second, shared)
    one = rate_difference(treatment, control, shared=both, level=level, method=method)
    other = rate_difference(control, treatment, shared=both.swapped(), level=level, method=method).mirrored()
    assert one.value == other.value
    assert one.interval[:3] == pytest.approx(other.interval[:3], abs=1e-9)
    assert one.p == pytest.approx(other.p, abs=1e-6)
    assert one.correlation == pytest.approx(other.correlation, abs=1e-12)


@given(clusters, clusters, st.tuples(levels, levels).map(sorted), methods)
def test_a_higher_level_is_wider(
    first: list[Sums], second: list[Sums], two_levels: list[float], method: DifferenceMethod
) -> None:
    narrow, wide = (
        rate_difference(moments_of(first), moments_of(second), level=level, method=method) for level in two_levels
    )
    if narrow.interval.low is None:
        assert wide.interval.low is None
        return
    assert limits(wide)[0] <= limits(narrow)[0] + 1e-9
    assert limits(wide)[1] >= limits(narrow)[1] - 1e-9
    assert narrow.p == wide.p


@given(clusters, clusters, clusters, clusters, both_arms, both_arms)
def test_adding_tallies_is_the_difference_of_the_whole(
    first: list[Sums],
    second: list[Sums],
    more: list[Sums],
    others: list[Sums],
    shared: list[tuple[Sums, Sums]],
    more_shared: list[tuple[Sums, Sums]],
) -> None:
    parts = two_arms(first, second, shared), two_arms(more, others, more_shared)
    whole = two_arms(more + first, others + second, more_shared + shared)
    merged = [part.merge(other) for part, other in zip(*parts, strict=True)]  # type: ignore[attr-defined]
    assert rate_difference(merged[0], merged[1], shared=merged[2]) == rate_difference(
        whole[0], whole[1], shared=whole[2]
    )


@given(clusters, clusters, both_arms, st.floats(1e-6, 0.3))
def test_p_is_under_alpha_just_where_the_interval_leaves_out_0(
    first: list[Sums], second: list[Sums], shared: list[tuple[Sums, Sums]], alpha: float
) -> None:
    treatment, control, both = two_arms(first, second, shared)
    found = rate_difference(treatment, control, shared=both, level=1 - alpha)
    if found.test != "mover-inverted/1" or found.p is None or abs(found.p / alpha - 1) < 1e-3 or both.clusters:
        return
    low, high = limits(found)
    assert (found.p < alpha) == (low > 0 or high < 0)


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (2, 3), (5, 5), (12, 4)])
def test_newcombe_in_every_table(n1: int, n2: int) -> None:
    """Against the formula written out with the roots of Wilson's equation."""
    for k1, k2 in itertools.product(range(n1 + 1), range(n2 + 1)):
        found = rate_difference(trials(k1, n1), trials(k2, n2))
        assert found.interval.method == "newcombe/1"
        roots = [
            sorted(np.roots([n + Z * Z, -(2 * k + Z * Z), k * k / n]).real.tolist()) for k, n in ((k1, n1), (k2, n2))
        ]
        p1, p2 = k1 / n1, k2 / n2
        low = p1 - p2 - math.hypot(p1 - roots[0][0], roots[1][1] - p2)
        high = p1 - p2 + math.hypot(roots[0][1] - p1, p2 - roots[1][0])
        assert limits(found) == pytest.approx((max(-1.0, low), min(1.0, high)), abs=1e-7)


@pytest.mark.parametrize(("n1", "n2"), [(3, 3), (8, 5), (20, 4)])
def test_miettinen_nurminen_inverts_its_test_in_every_table(n1: int, n2: int) -> None:
    """At a limit inside -1..1 the statistic is z, with the likeliest rates found by trying many."""
    grid = np.linspace(0, 1, 200_001)
    for k1, k2 in itertools.product(range(n1 + 1), range(n2 + 1)):
        found = rate_difference(trials(k1, n1), trials(k2, n2), method="miettinen_nurminen")
        for limit in limits(found):
            if abs(limit) == 1:
                continue
            p2 = grid[(grid + limit >= 0) & (grid + limit <= 1)]
            p1 = np.clip(p2 + limit, 0, 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                likelihood = sum(
                    np.where(k == 0, 0, k * np.log(p)) + np.where(k == n, 0, (n - k) * np.log1p(-p))
                    for k, n, p in ((k1, n1, p1), (k2, n2, p2))
                )
            best = int(np.argmax(np.nan_to_num(likelihood, nan=-np.inf)))
            variance = p1[best] * (1 - p1[best]) / n1 + p2[best] * (1 - p2[best]) / n2
            variance *= (n1 + n2) / (n1 + n2 - 1)
            assert (k1 / n1 - k2 / n2 - limit) ** 2 == pytest.approx(Z * Z * variance, rel=2e-3, abs=1e-4)


def test_the_score_p_is_that_of_the_chi_square_with_n_minus_1() -> None:
    for k1, k2 in itertools.product(range(1, 9), range(1, 6)):
        table = [[k1, 9 - k1], [k2, 6 - k2]]
        statistic = stats.chi2_contingency(table, correction=False).statistic * 14 / 15
        assert rate_difference(trials(k1, 9), trials(k2, 6)).p == pytest.approx(stats.chi2.sf(statistic, 1), rel=1e-9)


@pytest.mark.parametrize("hits", [0, 1])
def test_arms_without_any_variation_have_a_width_and_no_small_p(hits: int) -> None:
    for treatment, control in (
        (moments_of([(3 * hits, 3)] * 4), moments_of([(2 * hits, 2)] * 7)),
        (trials(4 * hits, 4), trials(7 * hits, 7)),
    ):
        found = rate_difference(treatment, control)
        low, high = limits(found)
        assert high - low > 0.5
        assert (found.value, found.p) == (0, 1)


def test_one_lucky_session_in_each_arm_says_nothing() -> None:
    low, high = limits(rate_difference(trials(1, 1), trials(0, 1)))
    assert low == pytest.approx(-0.122, abs=1e-3)
    assert high == 1
    assert session_rule(trials(1, 1), trials(0, 1)).half_width == 0


def test_one_user_with_several_sessions_is_no_arm() -> None:
    found = rate_difference(moments_of([(3, 4)]), moments_of([(1, 2), (1, 3)]))
    assert found.value == pytest.approx(0.35)
    assert found.interval.low is None
    assert found.interval.reason == f"treatment: {SINGLE_CLUSTER}"
    assert user_rule(moments_of([(3, 4)]), moments_of([(1, 2), (1, 3)])).low is None


def test_an_empty_arm_has_no_difference() -> None:
    for found in (
        rate_difference(Moments(), trials(1, 2)),
        mean_difference(Moments(), trials(1, 2)),
        mean_difference(trials(1, 2), Moments(), bounds=(0, 1)),
        relative_lift(Moments(), trials(1, 2)),
    ):
        assert found.value is None
        assert found.p is None
        assert NOTHING_COUNTED in str(found.interval.reason)


def test_a_p_of_very_many_is_no_smaller_than_what_was_tried() -> None:
    found = rate_difference(moments_of([(9, 10), (10, 10)] * 500), moments_of([(1, 10), (0, 10)] * 500))
    assert found.p == LEAST_P


def test_what_is_not_offered_is_refused() -> None:
    with pytest.raises(InputError, match="wald"):
        rate_difference(trials(1, 2), trials(1, 2), method="wald")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="5 of 3"):
        rate_difference(moments_of([(5, 3)]), trials(1, 2))
    for found in (rate_difference, mean_difference, relative_lift):
        with pytest.raises(InputError, match="level"):
            found(trials(1, 2), trials(1, 2), level=95)


# --- users in both arms --------------------------------------------------------------------------------------------


def test_users_who_are_alike_in_both_arms_tell_them_apart_better() -> None:
    users = [(9, 10), (2, 10), (7, 10), (10, 10), (1, 10), (5, 10), (8, 10), (3, 10)] * 4
    treatment, control, both = two_arms([], [], [(user, user) for user in users])
    counted, ignored = rate_difference(treatment, control, shared=both), rate_difference(treatment, control)
    assert 0.5 < counted.correlation < 1
    assert limits(counted)[1] - limits(counted)[0] < 0.8 * (limits(ignored)[1] - limits(ignored)[0])
    assert counted.interval.method == "mover-wilson-padded-effective-n-correlated/1"
    assert counted.interval.variance == pytest.approx(0)


def test_users_who_are_unlike_in_the_two_arms_tell_them_apart_worse() -> None:
    users = [((9, 10), (1, 10)), ((1, 10), (9, 10)), ((8, 10), (2, 10)), ((2, 10), (8, 10))]
    treatment, control, both = two_arms([], [], users)
    counted, ignored = rate_difference(treatment, control, shared=both), rate_difference(treatment, control)
    assert counted.correlation < -0.4
    assert limits(counted)[0] < limits(ignored)[0]


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=3, max_size=9))
def test_a_mean_of_users_who_are_all_in_both_arms_is_a_paired_t(pairs: list[tuple[float, float]]) -> None:
    """Without bounds the variance and the degrees of freedom are those of the differences within users."""
    rows = [(Fraction(a), Fraction(b)) for a, b in pairs]
    treatment, control = (Moments.of_clusters((row[i], 1, 1) for row in rows) for i in (0, 1))
    both = SharedMoments.of_clusters(((a, 1), (b, 1)) for a, b in rows)
    differences = Moments.of_clusters((a - b, 1, 1) for a, b in rows)
    expected = differences.robust_variance()
    assert expected is not None
    found = mean_difference(treatment, control, shared=both)
    spread = float(treatment.robust_variance() or 0) + float(control.robust_variance() or 0)
    if found.interval.low is None or expected < 1e-9 * spread:
        return
    assert found.interval.variance == pytest.approx(float(expected), rel=1e-5)
    assert found.df is not None
    assert found.df <= len(pairs) - 1
    df = min(found.df, len(pairs) - 1)
    half = t_quantile(0.95, df) * math.sqrt(expected)
    low, high = limits(found)
    assert (high - low) / 2 == pytest.approx(half, rel=1e-5)


def test_a_difference_that_is_the_same_in_every_user_has_no_interval_without_bounds() -> None:
    values = [1, 4, 6, 9]
    treatment, control = (Moments.of_clusters((value + more, 1, 1) for value in values) for more in (2, 0))
    both = SharedMoments.of_clusters(((value + 2, 1), (value, 1)) for value in values)
    found = mean_difference(treatment, control, shared=both)
    assert (found.value, found.interval.low, found.interval.reason) == (2, None, ALL_THE_SAME)
    bounded = mean_difference(treatment, control, shared=both, bounds=(0, 20))
    assert limits(bounded)[0] < 2 < limits(bounded)[1]


@given(both_arms, clusters, clusters)
def test_sums_of_shared_users_are_those_of_their_residuals(
    shared: list[tuple[Sums, Sums]], first: list[Sums], second: list[Sums]
) -> None:
    treatment, control, both = two_arms(first, second, shared)
    assert treatment.ratio is not None
    assert control.ratio is not None
    expected = sum((y1 - treatment.ratio * m1) * (y2 - control.ratio * m2) for (y1, m1), (y2, m2) in shared) / (
        Fraction(treatment.m) * control.m
    )
    assert both.products_around(treatment, control) == expected
    assert both.mirrored().yy == -both.yy
    assert both.clusters == len(shared)
    # moving all values moves nothing
    scaled = [arm.rescaled(-3, 5) for arm in (treatment, control)]
    assert both.rescaled(-3, 5).products_around(*scaled) == expected / 64
    assert padded_correlation(treatment, control, SharedMoments()) == 0


def test_a_cluster_that_weighs_nothing_in_one_arm_is_not_shared() -> None:
    assert SharedMoments.of_clusters([((0, 0), (1, 1)), ((1, 2), (0, 0))]) == SharedMoments()
    assert SharedMoments().robust_covariance(trials(1, 2), trials(1, 2)) == 0


# --- means ---------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=9),
    st.lists(st.integers(1, 5), min_size=2, max_size=9),
    levels,
)
def test_ratings_differ_within_their_bounds(first: list[int], second: list[int], level: float) -> None:
    treatment, control = (Moments.of_clusters((value, 1, 1) for value in values) for values in (first, second))
    found = mean_difference(treatment, control, bounds=(1, 5), level=level)
    low, high = limits(found)
    assert found.value is not None
    assert -4 <= low <= found.value <= high <= 4
    assert low < high
    assert found.value == pytest.approx(np.mean(first) - np.mean(second))
    mirrored = mean_difference(control, treatment, bounds=(1, 5), level=level).mirrored()
    assert limits(mirrored) == pytest.approx((low, high), abs=1e-9)


def test_a_mean_of_hits_and_misses_differs_as_a_rate_does() -> None:
    first, second = moments_of([(3, 4), (1, 1), (2, 5)]), moments_of([(0, 2), (2, 3), (1, 4)])
    assert mean_difference(first, second, bounds=(0, 1)) == rate_difference(first, second, units=(math.inf, math.inf))


@given(
    st.lists(st.integers(-9, 9), min_size=2, max_size=8),
    st.lists(st.integers(-9, 9), min_size=2, max_size=8),
)
def test_one_row_a_cluster_is_welch(first: list[int], second: list[int]) -> None:
    treatment, control = (Moments.of_clusters((value, 1, 1) for value in values) for values in (first, second))
    found = mean_difference(treatment, control)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert (found.interval.low, found.p) == (None, None)
        assert NO_VARIATION in str(found.interval.reason)
        return
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.df == pytest.approx(expected.df)
    assert limits(found) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-9)


# --- ratios --------------------------------------------------------------------------------------------------------


@given(clusters, clusters, both_arms, levels)
def test_a_relative_lift_leaves_out_0_just_where_the_difference_does(
    first: list[Sums], second: list[Sums], shared: list[tuple[Sums, Sums]], level: float
) -> None:
    treatment, control, both = two_arms(first, second, shared)
    found = relative_lift(treatment, control, shared=both, level=level)
    apart = rate_difference(treatment, control, shared=both, level=level)
    if control.y == 0:
        assert (found.value, found.interval.reason) == (None, CONTROL_NOT_POSITIVE)
        return
    assert found.value is not None
    assert (found.interval.low is None) == (apart.interval.low is None)
    if found.interval.low is None:
        return
    low = found.interval.low
    high = 1e300 if found.interval.high is None else found.interval.high
    assert -1 <= low <= found.value <= high
    assert low < high
    assert found.p == apart.p
    for sign, limit, other in ((1, low, limits(apart)[0]), (-1, -high, -limits(apart)[1])):
        assert sign in {1, -1}
        if abs(other) > 1e-6 and abs(limit) > 1e-6:
            assert (limit > 0) == (other > 0)


@given(
    st.tuples(st.floats(0, 1), st.floats(0.001, 1), st.floats(0, 1)).map(sorted),
    st.tuples(st.floats(0.001, 1), st.floats(0.002, 1), st.floats(0.001, 1)).map(sorted),
    st.floats(-0.95, 0.95),
)
def test_ratio_limits_are_where_the_difference_of_multiples_touches_0(
    first: list[float], second: list[float], correlation: float
) -> None:
    one: Any = tuple(first)
    other: Any = tuple(second)
    low, high = ratio_limits(one, other, correlation)
    assert low <= one[1] / other[1] * (1 + 1e-9)
    assert high >= one[1] / other[1] * (1 - 1e-9)
    for place, ratio in ((0, low), (1, high)):
        if 0 < ratio < 1e6:
            scaled: Any = tuple(ratio * each for each in other)
            touched = square_and_add(one, scaled, correlation)[place]
            assert touched == pytest.approx(0, abs=1e-6 * max(1.0, ratio))


def test_a_treatment_of_0_and_two_rates_of_1_have_a_relative_lift_with_a_width() -> None:
    nothing = relative_lift(trials(0, 10), trials(3, 10))
    assert nothing.value == -1
    assert limits(nothing) == (-1, pytest.approx(0.204891, abs=1e-6))
    everything = relative_lift(trials(10, 10), trials(10, 10))
    assert everything.value == 0
    assert limits(everything)[0] < -0.2
    assert relative_lift(trials(0, 10), trials(3, 10), method="log").interval.reason
    assert relative_lift(trials(10, 10), trials(10, 10), method="log").interval.reason == NO_VARIATION


def test_a_relative_lift_has_no_upper_limit_where_the_control_may_be_0() -> None:
    treatment, control = (
        Moments.of_clusters((value, 1, 1) for value in values) for values in ((4, 5, 5, 4, 5) * 4, (0, 0, 1, 1))
    )
    assert ratio_limits((0.5, 0.6, 0.7), (0.0, 0.2, 0.4)) == (pytest.approx(1.2, abs=0.5), math.inf)
    far = relative_lift(treatment, control, bounds=(0, 5), level=1 - 1e-15)
    assert far.interval.low is not None
    assert far.value is not None
    assert far.interval.low < far.value
    assert far.interval.high is None or far.interval.high > 1e6


def test_a_relative_lift_is_no_difference_divided_by_the_control() -> None:
    apart, lift = rate_difference(trials(9, 10), trials(3, 10)), relative_lift(trials(9, 10), trials(3, 10))
    assert limits(lift) != pytest.approx(tuple(limit / 0.3 for limit in limits(apart)), rel=0.1)


def test_a_relative_lift_of_tokens_is_on_logarithms() -> None:
    treatment, control = (
        Moments.of_clusters((value, 1, 1) for value in values) for values in ((200, 310, 150, 280), (120, 90, 160, 140))
    )
    found = relative_lift(treatment, control, bounds=None, method="log")
    assert found.value == pytest.approx(235 / 127.5 - 1)
    apart = found.interval
    assert apart.low is not None
    assert apart.high is not None
    assert math.log1p(apart.low) + math.log1p(apart.high) == pytest.approx(2 * math.log(235 / 127.5))
    with pytest.raises(InputError, match="log"):
        relative_lift(treatment, control, bounds=None)
    with pytest.raises(InputError, match="0 or more"):
        relative_lift(treatment, control, bounds=(-1, 400))
    with pytest.raises(InputError, match="katz"):
        relative_lift(treatment, control, method="katz")  # type: ignore[arg-type]


def test_a_relative_lift_of_few_and_skewed_does_not_overflow() -> None:
    treatment, control = (
        Moments.of_clusters((exact(value), 1, 1) for value in values) for values in ((1e-9, 4.0), (1e-12, 1e-9))
    )
    for method, bounds in (("log", None), ("mover", (0, 5))):
        found = relative_lift(treatment, control, bounds=bounds, method=method, level=0.9999)  # type: ignore[arg-type]
        assert found.interval.low is not None
        assert found.value is not None
        assert -1 <= found.interval.low < found.value
        assert found.interval.high is None or math.isfinite(found.interval.high)


def test_a_relative_lift_of_chances_is_that_of_a_mean() -> None:
    treatment, control = (
        Moments.of_clusters((Fraction(value, 10), 1, 1) for value in values) for values in ((7, 8, 6, 9), (4, 5, 6, 5))
    )
    means = mean_difference(treatment, control, bounds=(0, 1))
    lift = relative_lift(treatment, control, units=(math.inf, math.inf))
    assert lift.p == means.p
    assert limits(relative_lift(treatment, control))[0] < limits(lift)[0]


def test_a_relative_lift_of_ratings_uses_their_bounds() -> None:
    treatment, control = (
        Moments.of_clusters((value, 1, 1) for value in values) for values in ((4, 5, 5, 4, 5) * 4, (2, 3, 3, 2, 3) * 4)
    )
    found = relative_lift(treatment, control, bounds=(1, 5))
    assert found.value == pytest.approx(4.6 / 2.6 - 1)
    low, high = limits(found)
    assert 0 < low < 4.6 / 2.6 - 1 < high < 4


# --- shares ended by a time ----------------------------------------------------------------------------------------


def ended(times: list[float], ends: list[int], cluster: list[int] | None = None, level: float = 0.95) -> Incidence:
    numbers = None if cluster is None else np.array(cluster)
    return incidence(np.array(times, dtype=float), np.array(ends, dtype=np.int8), numbers, at=5, level=level)


rows = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([OPEN, EVENT])), min_size=3, max_size=12)


@given(rows, rows, st.floats(-0.9, 0.9), st.sampled_from([0.8, 0.95, 0.99]), st.booleans())
def test_shares_of_two_curves_differ_within_their_limits(
    first: list[tuple[int, int]], second: list[tuple[int, int]], correlation: float, level: float, clustered: bool
) -> None:
    arms = [
        ended(
            [float(after) for after, _ in arm],
            [end for _, end in arm],
            [i // 2 for i in range(len(arm))] if clustered else None,
            level,
        )
        for arm in (first, second)
    ]
    found = incidence_difference(*arms, level=level, correlation=correlation)
    if any(arm.interval.low is None for arm in arms):
        assert found.interval.low is None
        assert found.interval.reason
        return
    low, high = limits(found)
    assert found.value is not None
    assert -1 <= low <= found.value <= high <= 1
    assert low < high
    assert found.p is not None
    if correlation == 0:
        assert limits(found) == pytest.approx(
            square_and_add(*((arm.interval.low or 0, arm.value or 0, arm.interval.high or 0) for arm in arms))
        )
    mirrored = incidence_difference(arms[1], arms[0], level=level, correlation=correlation).mirrored()
    assert limits(mirrored) == pytest.approx((low, high), abs=1e-12)


def test_shares_without_anything_pending_differ_as_rates_nearly() -> None:
    first, second = ended([1.0] * 30 + [9.0] * 20, [EVENT] * 50), ended([1.0] * 15 + [9.0] * 35, [EVENT] * 50)
    found, rates = incidence_difference(first, second), rate_difference(trials(30, 50), trials(15, 50))
    assert found.value == pytest.approx(rates.value)
    assert limits(found) == pytest.approx(limits(rates), abs=0.02)
    assert found.interval.method == "mover-log-log-greenwood/1"


def test_complements_and_other_levels_are_refused() -> None:
    first, second = ended([1, 2, 3, 7, 8], [EVENT] * 5), ended([1, 6, 7, 8, 9], [EVENT] * 5)
    with pytest.raises(InputError, match="complements"):
        incidence_difference(first.complement(), second.complement())
    with pytest.raises(InputError, match=r"level 0\.9"):
        incidence_difference(first, second, level=0.9)
    with pytest.raises(InputError, match="correlation"):
        incidence_difference(first, second, correlation=1)


def test_a_share_not_reached_has_no_difference() -> None:
    found = incidence_difference(ended([1, 2], [OPEN, OPEN]), ended([1, 6], [EVENT, EVENT]))
    assert found.value is None
    assert "nothing was followed" in str(found.interval.reason)


# --- coverage, counted out -----------------------------------------------------------------------------------------


def corrected_phi(a: int, b: int, c: int, d: int) -> float:
    """Newcombe's (1998): 0 rather than positive where it is within half a pair of it."""
    cross, margins = a * d - b * c, (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    return (max(cross - (a + b + c + d) / 2, 0) if cross > 0 else cross) / math.sqrt(margins)


@pytest.mark.parametrize(
    ("p1", "p2", "phi"), [(0.7, 0.7, 0.3), (0.9, 0.9, 0.5), (0.7, 0.5, 0.3), (0.5, 0.5, 0.0), (0.5, 0.5, 0.6)]
)
def test_pairs_are_held_as_by_newcombes_own_correlation(p1: float, p2: float, phi: float) -> None:
    """All 4-cell tables of 14 users with one session in each arm, each with its chance."""
    n, both = 14, p1 * p2 + phi * math.sqrt(p1 * (1 - p1) * p2 * (1 - p2))
    cells = (both, p1 - both, p2 - both, 1 - p1 - p2 + both)
    held, ours_wide, theirs_wide = 0.0, 0.0, 0.0
    for a, b, c in itertools.product(range(n + 1), repeat=3):
        d = n - a - b - c
        if d < 0:
            continue
        counts = (a, b, c, d)
        ways = math.factorial(n) / math.prod(math.factorial(count) for count in counts)
        chance = ways * math.prod(share**count for share, count in zip(cells, counts, strict=True))
        arms = trials(a + b, n), trials(a + c, n)
        shared = SharedMoments(n, a, a + b, a + c, n)
        correlation = padded_correlation(*arms, shared)
        (low1, high1), (low2, high2) = (wilson(float(arm.y) / n, n, Z) for arm in arms)
        sides = (low1, (a + b) / n, high1), (low2, (a + c) / n, high2)
        low, high = square_and_add(*sides, correlation)
        held += chance * (low - 1e-12 <= p1 - p2 <= high + 1e-12)
        ours_wide += chance * (high - low)
        low, high = square_and_add(*sides, corrected_phi(*counts))
        theirs_wide += chance * (high - low)
    assert held > 0.94
    assert 0.98 < ours_wide / theirs_wide < 1.08


def test_a_small_holdout_is_held() -> None:
    """90 sessions against 10, both at 0.9: the default holds the truth, Reflexio's rule in two of three logs."""
    held = {"ours": 0.0, "theirs": 0.0}
    chances = [[math.comb(n, k) * 0.9**k * 0.1 ** (n - k) for k in range(n + 1)] for n in (90, 10)]
    for (k1, chance1), (k2, chance2) in itertools.product(*(enumerate(each) for each in chances)):
        (low1, high1), (low2, high2) = wilson(k1 / 90, 90, Z), wilson(k2 / 10, 10, Z)
        low, high = square_and_add((low1, k1 / 90, high1), (low2, k2 / 10, high2))
        held["ours"] += chance1 * chance2 * (low <= 0 <= high)
        rule = session_rule(trials(k1, 90), trials(k2, 10))
        assert rule.lift is not None
        assert rule.half_width is not None
        held["theirs"] += chance1 * chance2 * (abs(rule.lift) <= rule.half_width)
    assert held["ours"] == pytest.approx(0.959, abs=1e-3)
    assert held["theirs"] == pytest.approx(0.651, abs=1e-3)
