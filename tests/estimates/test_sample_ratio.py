"""Sample-ratio checks: quiet for what chance makes, loud for what it does not, and never wrong about arms of none."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalr.errors import InputError
from evalr.estimates.p_values import binomial_p, chi_square_p, hypergeometric_p, normal_p, t_p
from evalr.estimates.sample_ratio import (
    NO_DIFFERENCE,
    NO_SPLIT,
    NOBODY,
    coverage_by_arm,
    sample_ratio,
    sequential_sample_ratio,
)
from evalr.estimates.sequential import running_p


def test_many_users_are_held_to_the_chi_square() -> None:
    found = sample_ratio([880, 60, 60], [8, 1, 1])
    expected = stats.chisquare([880, 60, 60], [800, 100, 100])
    assert (found.statistic, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert (found.df, found.method, found.alarm) == (2, "chi-square/1", True)


def test_weights_need_not_add_up_to_1() -> None:
    assert sample_ratio([880, 120], [90, 10]) == sample_ratio([880, 120], [0.9, 0.1])


@pytest.mark.parametrize("share", [0.5, 0.9, 0.01])
def test_few_users_are_counted_exactly(share: float) -> None:
    for first, second in itertools.product(range(7), repeat=2):
        if first + second > 0 and min(share, 1 - share) * (first + second) < 5:
            found = sample_ratio([first, second], [share, 1 - share])
            assert found.method == "binomial/1"
            assert found.p == pytest.approx(stats.binomtest(first, first + second, share).pvalue)


def test_few_users_of_three_arms_are_each_held_to_the_others() -> None:
    found = sample_ratio([3, 1, 0], [1, 1, 2])
    each = [stats.binomtest(k, 4, share).pvalue for k, share in ((3, 0.25), (1, 0.25), (0, 0.5))]
    assert found.p == pytest.approx(3 * min(each))
    assert (found.df, found.method) == (2, "binomial/1")


def test_an_arm_of_weight_0_takes_no_part_and_any_user_in_it_is_an_alarm() -> None:
    empty, stray = sample_ratio([500, 500, 0], [1, 1, 0]), sample_ratio([500, 500, 1], [1, 1, 0])
    assert (empty.df, empty.p, empty.alarm, empty.reason) == (1, 1, False, None)
    assert (stray.df, stray.p, stray.alarm) == (1, 1, True)
    assert "1 assigned to an arm" in str(stray.reason)
    alone = sample_ratio([500, 3], [1, 0])
    assert (alone.p, alone.alarm) == (None, True)
    assert sequential_sample_ratio([500, 500, 1], [1, 1, 0]).alarm


def test_nobody_and_one_arm_have_no_ratio() -> None:
    for check in (sample_ratio, sequential_sample_ratio):
        assert check([0, 0], [1, 1]).reason == NOBODY
        assert check([7], [1]).reason == NO_SPLIT
        for found in (check([0, 0], [1, 1]), check([7], [1])):
            assert (found.p, found.statistic, found.alarm, found.method) == (None, None, False, "none")


def test_what_is_no_split_is_refused() -> None:
    for counts, weights in (
        ([1], [1, 1]),
        ([1, -1], [1, 1]),
        ([1, 1], [1, -1]),
        ([1, 1], [0, 0]),
        ([1, 1], [1, math.nan]),
        ([1, 1], ["1", 1]),
        ([1, 1], [10**400, 1]),
        ([1, 1], [1e-300, 1]),
    ):
        for check in (sample_ratio, sequential_sample_ratio):
            with pytest.raises(InputError):
                check(counts, weights)
    with pytest.raises(InputError, match="prior"):
        sequential_sample_ratio([1, 1], [1, 1], prior=0)


@given(st.lists(st.tuples(st.integers(0, 400), st.floats(0.01, 9)), min_size=2, max_size=5), st.randoms())
def test_the_order_of_arms_does_not_matter(arms: list[tuple[int, float]], random: object) -> None:
    shuffled = list(arms)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for check in (sample_ratio, sequential_sample_ratio):
        one, other = (check([k for k, _ in each], [w for _, w in each]) for each in (arms, shuffled))
        if sum(k for k, _ in arms) == 0:
            assert one == other
            continue
        assert one.p == pytest.approx(other.p, rel=1e-6)
        assert one.p is not None
        assert 0 <= one.p <= 1


def test_a_split_that_is_looked_at_daily_rarely_alarms_and_a_broken_one_does() -> None:
    random = np.random.default_rng(7)
    alarms = []
    for share in (0.9, 0.8):
        found = 0
        for _ in range(300):
            treated = np.cumsum(random.binomial(100, share, 30)).tolist()
            looks = (sequential_sample_ratio([k, 100 * day - k], [9, 1]).p for day, k in enumerate(treated, start=1))
            found += running_p(looks)[-1] < 0.05
        alarms.append(found / 300)
    assert alarms[0] <= 0.06
    assert alarms[1] == 1


# --- coverage ------------------------------------------------------------------------------------------------------


def test_arms_that_lose_unequal_shares_are_told() -> None:
    found = coverage_by_arm([700, 95], [900, 100])
    expected = stats.chi2_contingency([[700, 200], [95, 5]], correction=False)
    assert (found.p, found.statistic) == (pytest.approx(expected.pvalue), pytest.approx(expected.statistic))
    assert (found.alarm, found.df) == (True, 1)
    assert not coverage_by_arm([810, 90], [900, 100]).alarm


@pytest.mark.parametrize(("n1", "n2"), [(9, 3), (5, 5), (30, 2)])
def test_few_losses_are_counted_exactly(n1: int, n2: int) -> None:
    for k1, k2 in itertools.product(range(n1 + 1), range(n2 + 1)):
        found = coverage_by_arm([k1, k2], [n1, n2])
        if k1 + k2 in {0, n1 + n2}:
            assert (found.p, found.reason) == (None, NO_DIFFERENCE)
        else:
            assert found.p == pytest.approx(stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]])[1])
            assert found.method == "fisher/1"


def test_coverage_of_one_arm_or_none() -> None:
    assert coverage_by_arm([3, 0], [5, 0]).reason == NO_SPLIT
    assert coverage_by_arm([0], [0]).reason == NOBODY
    assert coverage_by_arm([1, 2, 3], [4, 4, 4]).df == 2
    for evaluated, assigned in (([1], [1, 1]), ([2, 1], [1, 1]), ([-1, 1], [1, 1])):
        with pytest.raises(InputError):
            coverage_by_arm(evaluated, assigned)


# --- p -------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.001, 0.999))
def test_the_exact_binomial(counts: tuple[int, int], share: float) -> None:
    k, n = counts
    expected = 1.0 if n == 0 else stats.binomtest(k, n, share).pvalue
    assert binomial_p(k, n, share) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_binomials_that_are_certain() -> None:
    assert [binomial_p(k, 3, 0.0) for k in (0, 1)] == [1, 0]
    assert [binomial_p(k, 3, 1.0) for k in (3, 2)] == [1, 0]


@given(st.floats(-30, 30), st.floats(0.5, 200), st.integers(1, 40))
def test_tails(z: float, df: float, whole: int) -> None:
    assert normal_p(z) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-9, abs=1e-300)
    assert t_p(z, df) == pytest.approx(2 * stats.t.sf(abs(z), df), rel=1e-7, abs=1e-300)
    assert chi_square_p(abs(z), whole) == pytest.approx(stats.chi2.sf(abs(z), whole), rel=1e-9)


def test_fisher_of_a_large_table() -> None:
    assert hypergeometric_p(3, 1_000, 10, 1_000_000) == pytest.approx(
        stats.fisher_exact([[3, 997], [7, 998_993]])[1], rel=1e-5
    )
