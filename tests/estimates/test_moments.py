"""Exact sums: no order of adding or merging changes an answer."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.tallies.counts import Counts
from evalr.tallies.moments import Exact, Moments, exact

numbers = st.one_of(st.integers(-100, 100), st.fractions(-100, 100, max_denominator=50))
weights = st.one_of(st.integers(0, 100), st.fractions(0, 100, max_denominator=50))
clusters = st.lists(st.tuples(numbers, weights, st.integers(1, 9)).map(lambda c: c if c[1] else (0, 0, c[2])))


@given(clusters, clusters)
def test_merging_equals_one_pass(some: list[tuple[Exact, Exact, int]], others: list[tuple[Exact, Exact, int]]) -> None:
    parts = Moments.of_clusters(some).merge(Moments.of_clusters(others))
    assert parts == Moments.of_clusters(others + some)
    assert parts.robust_variance() == Moments.of_clusters(some + others).robust_variance()


@given(clusters)
def test_rows_without_a_cluster_are_clusters_of_one(sums: list[tuple[Exact, Exact, int]]) -> None:
    counts = Counts()
    for y, m, _ in sums:
        counts.add(y, m, None)
    assert counts.moments() == Moments.of_clusters((y, m, 1) for y, m, _ in sums)


def test_sums_of_two_clusters() -> None:
    moments = Moments.of_clusters([(1, 2, 3), (2, 5, 4)])
    assert moments == Moments(clusters=2, rows=7, y=3, m=7, yy=5, ym=12, mm=29)
    assert moments.ratio == Fraction(3, 7)


def test_a_cluster_without_weight_is_a_row_and_no_cluster() -> None:
    assert Moments.of_clusters([(0, 0, 9), (1, 2, 3)]) == Moments.of_clusters([(1, 2, 3)])._replace(rows=12)


@pytest.mark.parametrize(("y", "m"), [(1, 0), (1, -1), (0, -1)])
def test_a_value_needs_a_weight(y: int, m: int) -> None:
    with pytest.raises(InputError, match="must be positive"):
        Moments.of_clusters([(y, m, 1)])


def test_no_ratio_and_no_variance_without_enough() -> None:
    assert Moments().ratio is None
    assert Moments().robust_variance() is None
    assert Moments.of_clusters([(1, 1, 1)]).robust_variance() is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_kept_exactly(number: float) -> None:
    kept = exact(number)
    assert kept == number
    assert isinstance(kept, int) == number.is_integer()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_no_sum_takes_a_nan(number: float) -> None:
    with pytest.raises(InputError):
        exact(number)


def test_a_bool_is_a_whole_number() -> None:
    assert type(exact(True)) is int


@given(clusters.filter(lambda sums: any(m for _, m, _ in sums)), st.integers(-9, 9), st.integers(1, 9))
def test_rescaling_moves_the_ratio_and_scales_the_variance(
    sums: list[tuple[Exact, Exact, int]], low: int, width: int
) -> None:
    moments = Moments.of_clusters(sums)
    moved = moments.rescaled(low, low + width)
    assert moments.ratio is not None
    assert moved.ratio == (moments.ratio - low) / width
    variance = moments.robust_variance()
    assert moved.robust_variance() == (None if variance is None else variance / width**2)
