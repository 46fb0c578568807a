"""Differences after the past was taken off."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalr.errors import InputError
from evalr.estimates.cuped import ALIKE_BEFORE, TOO_FEW, cuped_difference, lin_difference
from evalr.estimates.interval import NO_VARIATION, NOTHING_COUNTED

row = st.tuples(st.integers(-20, 20).map(float), st.integers(-20, 20).map(float))
arm = st.lists(row, max_size=8)


@given(arm, arm, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_adjusted_difference_is_within_its_limits(
    treatment: list[tuple[float, float]], control: list[tuple[float, float]], level: float
) -> None:
    for adjust in (cuped_difference, lin_difference):
        found, swapped = adjust(treatment, control, level=level), adjust(control, treatment, level=level)
        apart = found.difference
        if not treatment or not control:
            assert (apart.value, apart.interval.reason, found.raw) == (None, NOTHING_COUNTED, None)
            continue
        assert found.raw == pytest.approx(np.mean([y for _, y in treatment]) - np.mean([y for _, y in control]))
        assert apart.value is not None
        assert (apart.interval.low is None) == (apart.p is None)
        if apart.interval.low is None or apart.interval.high is None:
            assert apart.interval.reason in {TOO_FEW, NO_VARIATION, ALIKE_BEFORE}
            continue
        assert apart.interval.low < apart.value < apart.interval.high
        mirrored = swapped.difference.mirrored()
        assert mirrored.value == pytest.approx(apart.value, abs=1e-9)
        assert mirrored.interval.low == pytest.approx(apart.interval.low, rel=1e-6, abs=1e-9)


def test_where_all_were_alike_before_it_is_welch_and_says_so() -> None:
    first, second = [1.0, 4, 2, 8], [0.0, 3, 5]
    found = cuped_difference([(1, y) for y in first], [(1, y) for y in second])
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert found.theta is None
    assert found.difference.p == pytest.approx(expected.pvalue)
    assert found.difference.interval.reason == ALIKE_BEFORE
    assert lin_difference([(1, y) for y in first], [(1, y) for y in second]).difference.interval.reason == ALIKE_BEFORE


def test_what_the_past_explains_wholly_has_no_interval() -> None:
    found = cuped_difference([(x, x) for x in (0.1, 0.2, 0.7)], [(x, x) for x in (0.3, 0.4, 0.9)])
    assert found.theta == pytest.approx(1)
    assert found.difference.value == pytest.approx(0)
    assert found.difference.interval.reason == NO_VARIATION
    same = lin_difference([(x, x) for x in (0.1, 0.2, 0.7)], [(x, x) for x in (0.3, 0.4, 0.9)])
    assert same.difference.interval.reason == NO_VARIATION


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_the_unit_of_the_values_changes_nothing(unit: float) -> None:
    random = np.random.default_rng(9)
    rows = random.normal(size=(40, 2)).tolist()
    for adjust in (cuped_difference, lin_difference):
        plain = adjust([(x, y) for x, y in rows[:25]], [(x, y) for x, y in rows[25:]])
        moved = adjust([(unit * x, unit * y) for x, y in rows[:25]], [(unit * x, unit * y) for x, y in rows[25:]])
        assert moved.difference.p == pytest.approx(plain.difference.p)
        assert moved.difference.value == pytest.approx(unit * (plain.difference.value or 0))


def test_the_order_of_users_changes_nothing() -> None:
    random = np.random.default_rng(2)
    rows = [tuple(each) for each in random.lognormal(size=(50, 2)).tolist()]
    first, second = rows[:35], rows[35:]
    assert cuped_difference(first, second) == cuped_difference(first[::-1], second[::-1])
    assert lin_difference(first, second) == lin_difference(first[::-1], second[::-1])


def test_lin_is_a_regression_with_slopes_for_each_arm() -> None:
    random = np.random.default_rng(4)
    rows = random.normal(size=(30, 2))
    rows[:, 1] += rows[:, 0]
    treated = np.arange(30) < 18
    before = rows[:, 0] - rows[:, 0].mean()
    design = np.column_stack([np.ones(30), treated, before, treated * before])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ rows[:, 1]
    residuals = rows[:, 1] - design @ beta
    robust = inverse @ (design.T * residuals**2) @ design @ inverse * 30 / 26
    sides = [[(x, y) for x, y in rows[side].tolist()] for side in (treated, ~treated)]
    found = lin_difference(*sides).difference
    assert found.value == pytest.approx(beta[1])
    assert found.interval.variance == pytest.approx(robust[1, 1])
    assert found.df == 26


def test_taking_off_the_past_narrows_the_interval() -> None:
    random = np.random.default_rng(6)
    both = random.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 400)
    rows = [(x, y) for x, y in both.tolist()]
    flat = [(0.0, y) for _, y in rows]
    wide, narrow = (cuped_difference(each[:200], each[200:]).difference.interval for each in (flat, rows))
    assert wide.variance is not None
    assert narrow.variance is not None
    assert narrow.variance == pytest.approx(wide.variance * (1 - 0.9**2), rel=0.2)


@pytest.mark.parametrize("bad", [(math.nan, 1.0), (1.0, math.inf)])
def test_values_are_finite(bad: tuple[float, float]) -> None:
    for adjust in (cuped_difference, lin_difference):
        with pytest.raises(InputError, match="finite"):
            adjust([bad, (1, 1)], [(1, 2), (2, 2)])
        with pytest.raises(InputError, match="level"):
            adjust([], [], level=3)
