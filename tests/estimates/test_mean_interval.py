"""Intervals of a mean: inside its bounds where there are some, and none where nothing is known."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.estimates.mean import mean_interval
from evalr.estimates.rate import rate_interval
from evalr.tallies.moments import Exact, Moments, exact

values = st.one_of(st.integers(1, 5), st.fractions(1, 5, max_denominator=40), st.floats(1, 5).map(exact))
weights = st.one_of(st.integers(1, 30), st.fractions(Fraction(1, 50), 30, max_denominator=50))
rows = st.lists(st.tuples(values, weights), min_size=1, max_size=12)


def moments_of(given_rows: list[tuple[Exact, Exact]]) -> Moments:
    return Moments.of_clusters((value * weight, weight, 1) for value, weight in given_rows)


@given(rows, st.floats(0.5, 0.999))
def test_a_bounded_mean_lies_within_its_limits_and_they_within_its_bounds(
    given_rows: list[tuple[Exact, Exact]], level: float
) -> None:
    moments = moments_of(given_rows)
    interval = mean_interval(moments, level=level, bounds=(1, 5))
    if moments.clusters == 1 and interval.low is None:
        assert interval.reason
        return
    assert interval.low is not None
    assert interval.high is not None
    assert moments.ratio is not None
    assert 1 <= interval.low <= float(moments.ratio) <= interval.high <= 5
    assert interval.low < interval.high


@given(rows)
def test_an_unbounded_mean_is_in_the_middle_or_has_no_limits(given_rows: list[tuple[Exact, Exact]]) -> None:
    moments = moments_of(given_rows)
    interval = mean_interval(moments)
    if moments.robust_variance() in {None, 0}:
        assert (interval.low, interval.high) == (None, None)
        assert interval.reason
        return
    assert interval.low is not None
    assert interval.high is not None
    assert moments.ratio is not None
    assert -math.inf < interval.low < interval.high < math.inf
    assert (interval.low + interval.high) / 2 == pytest.approx(float(moments.ratio))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)).map(sorted), min_size=2, max_size=9))
def test_a_mean_of_shares_is_a_rate(pairs: list[list[int]]) -> None:
    moments = Moments.of_clusters((low, high, 1) for low, high in pairs if high)
    as_mean, as_rate = mean_interval(moments, bounds=(0, 1)), rate_interval(moments, units=math.inf)
    assert as_mean == as_rate


def test_ratings_that_agree_are_known_better_than_hits_and_misses() -> None:
    """Four users who say 4 and four who say 5: between them lies far less than from 1 to 5."""
    moments = moments_of([(4, 1)] * 40 + [(5, 1)] * 40)
    interval = mean_interval(moments, bounds=(1, 5))
    assert interval.effective_n is not None
    assert interval.effective_n > moments.rows
    coarse = rate_interval(moments.rescaled(1, 5))
    assert coarse.low is not None
    assert interval.low is not None
    assert interval.low > 1 + 4 * coarse.low


def test_the_same_rating_from_all_has_a_width_with_bounds_and_no_interval_without() -> None:
    moments = moments_of([(4, 1)] * 10)
    bounded = mean_interval(moments, bounds=(1, 5))
    assert (bounded.method, bounded.effective_n, bounded.variance) == ("wilson-kish/1", 10, 0)
    assert bounded.low is not None
    assert bounded.high is not None
    assert bounded.low < 4 < bounded.high
    unbounded = mean_interval(moments)
    assert (unbounded.low, unbounded.high, unbounded.variance) == (None, None, 0)
    assert unbounded.reason


def test_a_mean_that_only_rounding_puts_at_a_bound_has_an_interval() -> None:
    interval = mean_interval(moments_of([(5, 3), (exact(4.999999999999999), 1)]), bounds=(1, 5))
    assert interval.low is not None
    assert interval.high is not None
    assert 1 < interval.low < interval.high <= 5


def test_limits_at_a_bound_stay_there() -> None:
    interval = mean_interval(moments_of([(5, 1)] * 10), bounds=(1, 5))
    assert interval.high == 5
    assert interval.low is not None
    assert interval.low < 5


def test_the_variance_is_in_the_values_own_unit() -> None:
    moments = moments_of([(2, 1), (4, 1), (5, 2)])
    with_bounds, without = mean_interval(moments, bounds=(1, 5)), mean_interval(moments)
    assert with_bounds.variance == pytest.approx(without.variance)


@pytest.mark.parametrize("bounds", [None, (1, 5)])
def test_nothing_and_a_single_cluster_have_no_interval(bounds: tuple[float, float] | None) -> None:
    for moments in (Moments(), Moments.of_clusters([(10, 3, 1)])):
        interval = mean_interval(moments, bounds=bounds)
        assert (interval.low, interval.high, interval.method) == (None, None, "none")
        assert interval.reason


@pytest.mark.parametrize("bounds", [(5, 1), (1, 1), (math.nan, 5)])
def test_bounds_are_low_and_high(bounds: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="bounds"):
        mean_interval(moments_of([(3, 1), (4, 1)]), bounds=bounds)


def test_a_mean_outside_its_bounds_is_refused() -> None:
    with pytest.raises(InputError, match="outside its bounds"):
        mean_interval(moments_of([(3, 1), (4, 1)]), bounds=(0, 1))


@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_a_level_is_a_probability(bounds: tuple[float, float] | None) -> None:
    with pytest.raises(InputError, match="level"):
        mean_interval(Moments(), level=1.5, bounds=bounds)
