"""Intervals of a rate: inside 0..1, around the rate, never of no width, whatever the counts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.estimates.interval import normal_quantile, t_quantile
from evalr.estimates.rate import METHODS, RateMethod, rate_interval, wilson
from evalr.tallies.moments import Moments

methods = st.sampled_from(METHODS)
levels = st.one_of(st.sampled_from([0.8, 0.95, 0.999]), st.floats(1e-6, 1 - 1e-9))
cluster = st.integers(0, 60).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total), st.just(1)))
clusters = st.lists(cluster, max_size=12)
Z = normal_quantile(0.95)


def trials(hits: int, n: int) -> Moments:
    return Moments(clusters=n, rows=n, y=hits, m=n, yy=hits, ym=hits, mm=n)


def check(moments: Moments, level: float, method: RateMethod, most: float = math.inf) -> None:
    interval = rate_interval(moments, level=level, method=method)
    if moments.ratio is None or (moments.clusters == 1 and not moments.singletons()):
        assert (interval.low, interval.high, interval.method) == (None, None, "none")
        assert interval.reason
        return
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low <= float(moments.ratio) <= interval.high <= 1
    assert interval.low < interval.high
    assert interval.variance is not None
    assert 0 <= interval.variance < math.inf
    assert interval.effective_n is not None
    assert 0 < interval.effective_n <= most


@given(clusters, levels, methods)
def test_limits_hold_the_rate(sums: list[tuple[int, int, int]], level: float, method: RateMethod) -> None:
    moments = Moments.of_clusters(sums)
    check(moments, level, method, most=float(moments.m))


@given(st.integers(1, 10**18).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), levels, methods)
def test_limits_hold_a_rate_of_very_many(counts: tuple[int, int], level: float, method: RateMethod) -> None:
    check(trials(*counts), level, method, most=float(counts[1]))


@given(st.lists(st.tuples(st.fractions(0, 1), st.fractions(0.01, 1000)), min_size=2, max_size=8), levels, methods)
def test_limits_hold_a_weighted_rate(rows: list[tuple[Fraction, Fraction]], level: float, method: RateMethod) -> None:
    check(Moments.of_clusters((share * weight, weight, 1) for share, weight in rows), level, method)


@pytest.mark.parametrize("n", range(1, 31))
def test_wilson_solves_its_equation_for_every_count(n: int) -> None:
    for hits in range(n + 1):
        interval = rate_interval(trials(hits, n))
        assert interval.method == "wilson/1"
        assert interval.low is not None
        assert interval.high is not None
        for limit in (interval.low, interval.high):
            assert n * (hits / n - limit) ** 2 == pytest.approx(Z * Z * limit * (1 - limit), abs=1e-12)
        mirrored = rate_interval(trials(n - hits, n))
        assert (mirrored.low, mirrored.high) == pytest.approx((1 - interval.high, 1 - interval.low), abs=1e-15)


@pytest.mark.parametrize(("hits", "n"), [(1, 10**9), (3, 10**15), (1, 3), (10**6, 10**9)])
def test_wilson_keeps_its_digits_near_zero(hits: int, n: int) -> None:
    """The limits are the roots of n (p - x)² = z² x (1 - x), whose sign changes within a relative 1e-13."""
    p, square = Fraction(hits, n), Fraction(Z) ** 2

    def off(x: Fraction) -> Fraction:
        return n * (p - x) ** 2 - square * x * (1 - x)

    for limit in wilson(hits / n, n, Z):
        below, above = (off(Fraction(limit) * (1 + Fraction(sign, 10**13))) for sign in (-1, 1))
        assert (below > 0) != (above > 0)


@given(st.floats(0.01, 1e15), st.floats(0.01, 40))
def test_wilson_ends_at_the_ends(n: float, q: float) -> None:
    assert wilson(0, n, q)[0] == 0
    assert wilson(1, n, q)[1] == 1


@given(clusters, clusters, methods)
def test_a_merge_gives_the_same_interval(
    some: list[tuple[int, int, int]], others: list[tuple[int, int, int]], method: RateMethod
) -> None:
    merged = Moments.of_clusters(some).merge(Moments.of_clusters(others))
    assert rate_interval(merged, method=method) == rate_interval(Moments.of_clusters(others + some), method=method)


@given(st.lists(st.integers(0, 1), min_size=2, max_size=30), methods)
def test_clusters_of_one_trial_are_trials(hits: list[int], method: RateMethod) -> None:
    moments = Moments.of_clusters((hit, 1, 1) for hit in hits)
    assert rate_interval(moments, method=method) == rate_interval(trials(sum(hits), len(hits)), method=method)
    assert rate_interval(moments, method=method).effective_n == len(hits)


def test_one_success_more_than_twice_in_a_cluster_is_clustered() -> None:
    assert rate_interval(Moments.of_clusters([(1, 1, 1), (0, 1, 1), (2, 2, 2)])).method == "wilson-padded-effective-n/1"


@pytest.mark.parametrize("method", METHODS)
def test_users_who_repeat_themselves_count_once(method: RateMethod) -> None:
    """Ten users, each with 50 sessions that end alike, tell no more than ten sessions do."""
    hits = [50] * 7 + [0] * 3
    repeated = rate_interval(Moments.of_clusters((hit, 50, 50) for hit in hits), method=method)
    alone = rate_interval(trials(7, 10), method=method)
    assert repeated.low is not None
    assert repeated.high is not None
    assert alone.low is not None
    assert alone.high is not None
    assert repeated.low < alone.low
    assert repeated.high > alone.high


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("hits", "rate"), [(0, 0.0), (2, 0.5), (4, 1.0)])
def test_clusters_that_are_all_alike_have_a_width_and_say_why(method: RateMethod, hits: int, rate: float) -> None:
    interval = rate_interval(Moments.of_clusters([(hits, 4, 4)] * 5), method=method)
    assert interval.variance == 0
    assert interval.effective_n == 5
    assert interval.method.endswith("-kish/1")
    assert interval.reason
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low <= rate <= interval.high
    assert interval.high - interval.low > 0.3


def test_the_default_measures_the_design_effect_with_two_clusters_more() -> None:
    sums = [(3, 4, 4), (0, 1, 1), (2, 2, 2), (1, 3, 3), (1, 2, 2)]
    size = Fraction(12, 5)
    padded = Moments.of_clusters([*sums, (size, size, 1), (0, size, 1)])
    assert padded.ratio is not None
    variance = padded.robust_variance()
    assert variance is not None
    design_effect = variance * padded.m / (padded.ratio * (1 - padded.ratio))
    interval = rate_interval(Moments.of_clusters(sums), units=math.inf)
    assert interval.effective_n == pytest.approx(float(12 / design_effect))


def test_korn_graubard_is_clopper_pearson_at_the_effective_n_with_t() -> None:
    moments = Moments.of_clusters([(3, 4, 4), (0, 1, 1), (2, 2, 2), (1, 3, 3), (1, 1, 1)])
    default, exact = rate_interval(moments), rate_interval(moments, method="clopper_pearson")
    assert default.effective_n is not None
    assert exact.method == "korn-graubard/1"
    assert exact.effective_n == pytest.approx(default.effective_n * (Z / t_quantile(0.95, 4)) ** 2)


def test_weights_do_not_raise_the_effective_n() -> None:
    rows = [(1, 1)] * 6 + [(0, 1)] * 6
    once = rate_interval(Moments.of_clusters((y, m, 1) for y, m in rows * 2), units=24)
    tenfold = rate_interval(Moments.of_clusters((10 * y, 10 * m, 1) for y, m in rows * 2), units=24)
    assert tenfold.effective_n is not None
    assert once.effective_n is not None
    assert tenfold.effective_n <= once.effective_n


@pytest.mark.parametrize("weight", [10, Fraction(1, 3)])
@pytest.mark.parametrize("method", METHODS)
def test_a_sample_in_which_all_weigh_the_same_is_as_sure_as_without_weights(
    weight: int | Fraction, method: RateMethod
) -> None:
    weighted = Moments.of_clusters([(weight, weight, 1)] * 7 + [(0, weight, 1)] * 13)
    assert rate_interval(weighted, method=method, units=20) == rate_interval(trials(7, 20), method=method)


def test_clusters_of_one_size_that_each_agree_are_no_single_trials() -> None:
    users = Moments.of_clusters([(3, 3, 3)] * 7 + [(0, 3, 3)] * 13)
    assert rate_interval(users).method == rate_interval(users, units=60).method == "wilson-padded-effective-n/1"


def test_a_share_that_only_rounding_takes_for_one_has_an_interval() -> None:
    nearly = Moments.of_clusters([(1, 1, 1), (1 - Fraction(1, 2**60), 1, 1)])
    for method in METHODS:
        interval = rate_interval(nearly, method=method)
        assert interval.low is not None
        assert interval.high is not None
        assert 0 < interval.low < interval.high <= 1


def test_what_is_not_a_rate_is_refused() -> None:
    with pytest.raises(InputError, match="5 of 3"):
        rate_interval(Moments.of_clusters([(5, 3, 1)]))
    with pytest.raises(InputError, match="-1 of 3"):
        rate_interval(Moments.of_clusters([(-1, 3, 1)]))
    with pytest.raises(InputError, match="wald"):
        rate_interval(trials(1, 2), method="wald")  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan, 1e-17])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(InputError, match="level"):
        rate_interval(trials(1, 2), level=level)
    with pytest.raises(InputError, match="level"):
        rate_interval(Moments(), level=level)
