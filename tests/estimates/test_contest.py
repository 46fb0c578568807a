"""Wins, ties and losses: ties are seen, nothing is certain for want of variation, and the position is told apart."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalr.errors import InputError
from evalr.estimates.contest import (
    NET_METHODS,
    ONE_POSITION,
    NetMethod,
    bonett_price,
    both_orders,
    clustered_effective_n,
    half_tie_interval,
    net_win,
    paired_difference,
    position_adjusted,
    sign_test,
)
from evalr.estimates.interval import ALL_ALIKE, NO_VARIATION, NOTHING_COUNTED, SINGLE_CLUSTER, Interval, normal_quantile
from evalr.estimates.rate import rate_interval
from evalr.tallies.contests import ContestMoments
from evalr.tallies.moments import Moments
from evalr.tallies.shared import SharedMoments

counts = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
users = st.lists(counts, max_size=10)
levels = st.one_of(st.sampled_from([0.8, 0.95, 0.999]), st.floats(1e-4, 1 - 1e-9))
methods = st.sampled_from(NET_METHODS)
Z = normal_quantile(0.95)


def limits(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


# --- tallies -------------------------------------------------------------------------------------------------------


@given(users, users)
def test_moments_are_those_of_the_views(some: list[tuple[int, int, int]], others: list[tuple[int, int, int]]) -> None:
    contest = ContestMoments.of_clusters(some).merge(ContestMoments.of_clusters(others))
    everybody = some + others
    assert contest == ContestMoments.of_clusters(others + some)
    for view, expected in (
        (contest.net(), [(w - lost, w + t + lost) for w, t, lost in everybody]),
        (contest.won(), [(w, w + t + lost) for w, t, lost in everybody]),
        (contest.decided(), [(w, w + lost) for w, t, lost in everybody]),
        (contest.swapped().net(), [(lost - w, w + t + lost) for w, t, lost in everybody]),
        (contest.swapped().decided(), [(lost, w + lost) for w, t, lost in everybody]),
    ):
        plain = Moments.of_clusters((y, m, 1) for y, m in expected if m)
        assert view == plain._replace(rows=view.rows)
        assert view.rows == view.m


@given(counts)
def test_comparisons_by_themselves_are_clusters_of_one(given_counts: tuple[int, int, int]) -> None:
    wins, ties, losses = given_counts
    singles = [(1, 0, 0)] * wins + [(0, 1, 0)] * ties + [(0, 0, 1)] * losses
    contest = ContestMoments.of_counts(*given_counts)
    assert contest == ContestMoments.of_clusters(singles)
    assert contest.singles()


def test_two_comparisons_of_one_user_and_none_of_another_are_not_singles() -> None:
    assert not ContestMoments.of_clusters([(2, 0, 0), (1, 0, 0)]).singles()
    assert ContestMoments.of_clusters([(0, 0, 0), (1, 0, 0)]) == ContestMoments.of_counts(1, 0, 0)


def test_counts_are_not_negative() -> None:
    for made in (ContestMoments.of_counts, ContestMoments.of_cluster, both_orders):
        with pytest.raises(InputError, match="-1"):
            made(*([2] * 2), -1, *([1] * 3 if made is both_orders else []))  # type: ignore[operator]
    with pytest.raises(InputError, match="-1"):
        sign_test(-1, 2)


# --- net -----------------------------------------------------------------------------------------------------------


@given(users, levels, methods)
def test_limits_hold_the_net_win(some: list[tuple[int, int, int]], level: float, method: NetMethod) -> None:
    contest = ContestMoments.of_clusters(some)
    found = net_win(contest, level=level, method=method)
    if contest.n == 0:
        assert (found.value, found.interval.reason) == (None, NOTHING_COUNTED)
        return
    assert found.value == pytest.approx(float((contest.wins - contest.losses) / contest.n))
    if found.interval.low is None:
        assert contest.clusters == 1
        assert found.interval.reason == SINGLE_CLUSTER
        assert found.p is None
        return
    low, high = limits(found.interval)
    assert -1 <= low <= found.value <= high <= 1
    assert low < high
    assert found.p is not None
    assert 0 <= found.p <= 1
    mirrored = net_win(contest.swapped(), level=level, method=method).mirrored()
    assert limits(mirrored.interval) == pytest.approx((low, high), abs=1e-9)
    assert mirrored.p == pytest.approx(found.p, abs=1e-6)
    halves = half_tie_interval(contest, level=level, method=method)
    assert limits(halves) == pytest.approx(((1 + low) / 2, (1 + high) / 2))
    assert contest.half_tie == pytest.approx((1 + found.value) / 2)


@given(users, st.tuples(levels, levels).map(sorted), methods)
def test_a_higher_level_is_wider(some: list[tuple[int, int, int]], two: list[float], method: NetMethod) -> None:
    contest = ContestMoments.of_clusters(some)
    narrow, wide = (net_win(contest, level=level, method=method).interval for level in two)
    if narrow.low is not None:
        assert limits(wide)[0] <= limits(narrow)[0] + 1e-9
        assert limits(wide)[1] >= limits(narrow)[1] - 1e-9


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_tango_inverts_its_test_for_every_count(n: int) -> None:
    """At a limit inside -1..1 the statistic is z, with the likeliest share of losses by the root of its equation."""
    for wins, losses in itertools.product(range(n + 1), repeat=2):
        if wins + losses > n:
            continue
        contest = ContestMoments.of_counts(wins, n - wins - losses, losses)
        for limit in limits(net_win(contest, method="tango").interval):
            if abs(limit) == 1:
                continue
            # the likelihood of (share lost + limit, share lost) has its maximum where its derivative changes sign
            low, high = max(0.0, -limit), (1 - limit) / 2

            def slope(lost: float, limit: float = limit, wins: int = wins, losses: int = losses) -> float:
                return (
                    (wins / (lost + limit) if wins else 0)
                    + (losses / lost if losses else 0)
                    - 2 * (n - wins - losses) / max(1e-300, 1 - 2 * lost - limit)
                )

            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if slope(middle) > 0 else (low, middle)
            variance = n * (2 * low + limit * (1 - limit))
            assert (wins - losses - n * limit) ** 2 == pytest.approx(Z * Z * variance, rel=1e-4, abs=1e-4)


def test_all_ties_are_not_certain() -> None:
    few, many = (limits(net_win(ContestMoments.of_counts(0, n, 0)).interval) for n in (5, 500))
    assert few[1] - few[0] > 0.5
    assert 0 < many[1] - many[0] < 0.02
    clustered = net_win(ContestMoments.of_clusters([(0, 4, 0)] * 20))
    assert (clustered.interval.reason, clustered.interval.method, clustered.p) == (ALL_ALIKE, "bonett-price-kish/1", 1)
    singly = net_win(ContestMoments.of_counts(0, 20, 0)).interval
    assert limits(clustered.interval) == pytest.approx(limits(singly))


@given(users, levels)
def test_p_of_clusters_agrees_with_the_interval(some: list[tuple[int, int, int]], level: float) -> None:
    contest = ContestMoments.of_clusters(some)
    found = net_win(contest, level=level)
    if found.p is None or contest.singles() or abs(found.p - (1 - level)) < 1e-9:
        return
    low, high = limits(found.interval)
    assert (found.p < 1 - level) == (low > 0 or high < 0)


@given(users)
def test_clusters_are_worth_no_more_than_their_comparisons(some: list[tuple[int, int, int]]) -> None:
    contest = ContestMoments.of_clusters(some)
    if contest.clusters < 2:
        return
    n, kish = clustered_effective_n(contest), contest.net().kish
    assert kish is not None
    assert 0 < n <= contest.n
    if contest.net().robust_variance() == 0:
        assert n == pytest.approx(kish)


def test_clusters_by_the_formula() -> None:
    """Five users of four: 3 won, 1 lost; the design effect by hand."""
    contest = ContestMoments.of_clusters([(2, 2, 0), (1, 3, 0), (0, 4, 0), (0, 4, 0), (0, 3, 1)])
    squares = ((2 - 0.4) ** 2 + (1 - 0.4) ** 2 + 2 * 0.4**2 + 1.4**2) * 5 / 4
    effect = (squares + 4) / (4 - 20 * 0.1**2 + 1)
    found = net_win(contest)
    n = 20 / effect
    assert found.interval.effective_n == clustered_effective_n(contest) == pytest.approx(n)
    quantile = float(stats.t.ppf(0.975, 4))
    assert limits(found.interval) == pytest.approx(bonett_price(3 / effect, 1 / effect, n, quantile))
    assert found.df == pytest.approx(4)


def test_many_changes_are_no_wider_than_the_t_and_few_are_no_twice_as_wide() -> None:
    def both(clusters: list[tuple[int, int, int]]) -> list[float]:
        contest = ContestMoments.of_clusters(clusters)
        found = net_win(contest).interval, paired_difference(contest.net()).interval
        return [high - low for low, high in map(limits, found)]

    ours, t = both([(2, 1, 1), (1, 1, 2), (4, 0, 0), (0, 0, 4), (1, 2, 1)] * 10)
    assert ours == pytest.approx(t, rel=0.03)
    ours, t = both([(1, 2, 0)] * 3 + [(0, 2, 1)] * 3 + [(0, 3, 0)] * 14)
    assert t < ours < 1.5 * t


def test_users_who_repeat_themselves_count_once() -> None:
    repeated = net_win(ContestMoments.of_clusters([(30, 0, 0)] * 7 + [(0, 0, 30)] * 3))
    alone = net_win(ContestMoments.of_counts(7, 0, 3))
    assert limits(repeated.interval)[0] < limits(alone.interval)[0]
    assert limits(repeated.interval)[1] > limits(alone.interval)[1] - 0.05


def test_the_four_views_of_one_contest() -> None:
    contest = ContestMoments.of_counts(134, 52, 14)
    assert contest.won().ratio == pytest.approx(0.67)
    assert float(contest.decided().ratio or 0) == pytest.approx(0.905, abs=1e-3)
    assert contest.half_tie == pytest.approx(0.8)
    assert net_win(contest).value == pytest.approx(0.6)
    assert rate_interval(contest.won()).method == rate_interval(contest.decided()).method == "wilson/1"
    assert ContestMoments().half_tie is None


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="wald"):
        net_win(ContestMoments.of_counts(1, 1, 1), method="wald")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="level"):
        net_win(ContestMoments(), level=2)


# --- signs and pairs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 9, 30])
def test_the_sign_test_for_every_count(n: int) -> None:
    for wins in range(n + 1):
        found = sign_test(wins, n - wins)
        assert found == sign_test(n - wins, wins)
        assert found.exact == pytest.approx(stats.binomtest(wins, n).pvalue, rel=1e-9)
        tail = sum(math.comb(n, k) for k in range(min(wins, n - wins) + 1)) / 2**n
        mid = 2 * tail - math.comb(n, wins) / 2**n
        assert found.mid_p == pytest.approx(min(1.0, mid), rel=1e-9)
        assert 0 < found.mid_p <= found.exact <= 1


def test_the_sign_test_of_very_many() -> None:
    assert sign_test(10**6, 10**6 + 10).exact == pytest.approx(0.9949, abs=1e-3)
    assert 0 <= sign_test(10**6, 10**5).exact < 1e-300


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=9))
def test_a_paired_difference_is_a_paired_t(differences: list[int]) -> None:
    found = paired_difference(Moments.of_clusters((each, 1, 1) for each in differences))
    if len(set(differences)) == 1:
        assert (found.interval.low, found.p, found.interval.reason) == (None, None, NO_VARIATION)
        return
    expected = stats.ttest_1samp(differences, 0)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert limits(found.interval) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-9)


def test_a_paired_difference_within_bounds_has_a_width_where_all_pairs_agree() -> None:
    found = paired_difference(Moments.of_clusters([(1, 1, 1)] * 12), bounds=(-4, 4))
    low, high = limits(found.interval)
    assert -4 < low < 1 < high < 4
    assert found.p is not None
    assert (found.p < 0.05) == (low > 0)
    assert paired_difference(Moments(), bounds=(-4, 4)).value is None


# --- positions -----------------------------------------------------------------------------------------------------


@given(users, users, levels)
def test_position_is_taken_off(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]], level: float
) -> None:
    arms = ContestMoments.of_clusters(first), ContestMoments.of_clusters(second)
    shared = SharedMoments.of_clusters(
        ((w1 - l1, w1 + t1 + l1), (w2 - l2, w2 + t2 + l2))
        for (w1, t1, l1), (w2, t2, l2) in zip(first, second, strict=False)
    )
    found = position_adjusted(*arms, shared=shared, level=level)
    if arms[0].n == 0 or arms[1].n == 0:
        assert (found.adjusted, found.bias) == (None, None)
        assert found.interval.reason == found.bias_interval.reason == ONE_POSITION
        return
    assert found.adjusted == pytest.approx(((arms[0].half_tie or 0) + (arms[1].half_tie or 0)) / 2)
    if found.interval.low is None:
        assert found.interval.reason
        return
    assert found.bias is not None
    for value, interval, floor in ((found.adjusted, found.interval, 0.0), (found.bias, found.bias_interval, -0.5)):
        low, high = limits(interval)
        assert floor <= low <= value <= high <= floor + 1
        assert low < high
        assert interval.variance is not None
        assert interval.variance >= 0
    # the other answer's view of the same comparisons
    negated = shared.swapped()._replace(ym=-shared.my, my=-shared.ym)
    other = position_adjusted(arms[1].swapped(), arms[0].swapped(), shared=negated, level=level)
    assert found.adjusted is not None
    assert other.adjusted == pytest.approx(1 - found.adjusted)
    assert other.bias == pytest.approx(found.bias)
    low, high = limits(found.interval)
    assert limits(other.interval) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert limits(other.bias_interval) == pytest.approx(limits(found.bias_interval), abs=1e-9)
    assert other.first_slot == found.first_slot


def test_the_first_slot_is_told_from_the_better_answer() -> None:
    always_first = position_adjusted(ContestMoments.of_counts(30, 0, 0), ContestMoments.of_counts(0, 0, 30))
    assert (always_first.adjusted, always_first.bias, always_first.first_slot) == (0.5, 0.5, 1)
    assert always_first.p is not None
    assert always_first.p < 1e-9
    always_better = position_adjusted(ContestMoments.of_counts(30, 0, 0), ContestMoments.of_counts(30, 0, 0))
    assert (always_better.adjusted, always_better.bias, always_better.first_slot) == (1, 0, 0.5)
    assert always_better.p == 1
    tied = position_adjusted(ContestMoments.of_counts(0, 9, 0), ContestMoments.of_counts(0, 9, 0))
    assert (tied.adjusted, tied.first_slot, tied.p) == (0.5, None, None)


def test_slots_can_be_counted_by_cluster() -> None:
    """Four users, in both positions, who always take the first."""
    first, second = ContestMoments.of_clusters([(5, 0, 0)] * 4), ContestMoments.of_clusters([(0, 0, 5)] * 4)
    as_eight = position_adjusted(first, second)
    as_four = position_adjusted(first, second, slots=ContestMoments.of_clusters([(10, 0, 0)] * 4))
    assert as_eight.first_slot == as_four.first_slot == 1
    assert as_four.p is not None
    assert as_eight.p is not None
    assert as_four.p > as_eight.p


def test_both_orders_of_nothing() -> None:
    found = both_orders(0, 0, 0, 0, 0, 0)
    assert (found.net.value, found.consistency, found.position) == (None, None, (1, 1))
    assert found.consistency_interval.reason == NOTHING_COUNTED


def test_pairs_that_all_agree_are_not_surely_consistent() -> None:
    found = both_orders(3, 1, 1, 0, 0, 0)
    assert found.consistency == 1
    low, high = limits(found.consistency_interval)
    assert low < 0.7
    assert high == 1
