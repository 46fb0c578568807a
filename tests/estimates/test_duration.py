"""Shares ended by a time and typical times: against definitions, a bootstrap, and the single pass."""

from __future__ import annotations

import math
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.estimates.along import total
from evalr.estimates.duration import COMPETING, EVENT, OPEN, Incidence, Quantile, curve, incidence, quantile
from evalr.estimates.rate import rate_interval
from evalr.tallies.moments import Moments


class Rows(NamedTuple):
    after: list[float]
    end: list[int]
    cluster: list[int] | None = None


row = st.tuples(st.integers(0, 12).map(float), st.sampled_from([OPEN, EVENT, COMPETING]), st.integers(0, 5))
row_lists = st.lists(row, min_size=1, max_size=25)
times = st.integers(0, 14).map(float)
levels = st.floats(0.5, 0.999)


def rows_of(given_rows: list[tuple[float, int, int]], clustered: bool = True) -> Rows:
    after, end, cluster = (list(column) for column in zip(*given_rows, strict=True))
    return Rows(after, end, cluster if clustered else None)


def weighted_incidence(after: np.ndarray, end: np.ndarray, weight: np.ndarray, at: float) -> float:
    """The cumulative incidence by its definition, with a weight for each row."""
    share, still_open = 0.0, 1.0
    for time in sorted(set(after[(end != OPEN) & (after <= at)].tolist())):
        at_risk = weight[after >= time].sum()
        share += still_open * weight[(after == time) & (end == EVENT)].sum() / at_risk
        still_open *= 1 - weight[(after == time) & (end != OPEN)].sum() / at_risk
    return share


def numeric_influences(data: Rows, at: float) -> np.ndarray:
    """How the share moves with the weight of each row, by a small step each way."""
    after, end = np.array(data.after), np.array(data.end)
    step = 1e-5
    found = np.empty(len(after))
    for i in range(len(after)):
        moved = []
        for sign in (-1, 1):
            weight = np.ones(len(after))
            weight[i] += sign * step
            moved.append(weighted_incidence(after, end, weight, at))
        found[i] = (moved[1] - moved[0]) / (2 * step)
    return found


def waits(users: int, seed: int, *, closing: float = 0.2) -> Rows:
    """Waits of users who differ in pace, some closed instead, cut off at different times."""
    random = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(users), random.geometric(0.25, users))
    pace = np.exp(random.normal(0, 0.7, users))[cluster]
    natural = random.exponential(1, len(cluster)) * pace
    room = random.uniform(0.2, 3, len(cluster))
    kind = np.where(random.random(len(cluster)) < closing, COMPETING, EVENT)
    end = np.where(natural <= room, kind, OPEN)
    return Rows(np.minimum(natural, room).tolist(), end.tolist(), cluster.tolist())


# --- the share ended by a time


@given(row_lists, times, levels, st.booleans())
def test_a_share_lies_within_its_limits(
    given_rows: list[tuple[float, int, int]], at: float, level: float, clustered: bool
) -> None:
    data = rows_of(given_rows, clustered)
    result = incidence(*data, at=at, level=level)
    assert result.ended + result.competed + result.censored <= len(data.after)
    assert result.followed + result.censored == len(data.after)
    if result.value is None:
        assert result.status == "not_reached"
        assert result.reason
        assert max(data.after) < at
        return
    for either in (result, result.complement()):
        assert either.value is not None
        assert 0 <= either.value <= 1
        if either.interval.low is None:
            assert either.clusters == 1
            assert either.interval.reason
            continue
        assert either.interval.high is not None
        assert 0 <= either.interval.low <= either.value <= either.interval.high <= 1
        assert either.interval.low < either.interval.high
        assert either.interval.variance is not None
        assert 0 <= either.interval.variance < math.inf


@given(row_lists, times)
def test_the_share_is_the_cumulative_incidence(given_rows: list[tuple[float, int, int]], at: float) -> None:
    data = rows_of(given_rows)
    result = incidence(*data, at=at)
    if result.value is not None:
        after, end = np.array(data.after), np.array(data.end)
        assert result.value == pytest.approx(weighted_incidence(after, end, np.ones(len(after)), at), abs=1e-12)


@pytest.mark.parametrize("closing", [0.0, 0.3])
@pytest.mark.parametrize("at", [0.3, 1.0, 2.5])
def test_the_variance_is_that_of_influences(closing: float, at: float) -> None:
    data = waits(12, 3, closing=closing)
    influences = numeric_influences(data, at)
    alone = incidence(data.after, data.end, at=at).interval.variance
    assert alone == pytest.approx(float((influences**2).sum()), rel=1e-6)
    clustered = incidence(*data, at=at).interval.variance
    sums = np.bincount(np.array(data.cluster), weights=influences)
    assert clustered == pytest.approx(float((sums**2).sum()) * 12 / 11, rel=1e-6)


def test_without_competing_ends_it_is_greenwoods_variance() -> None:
    data = waits(40, 4, closing=0.0)
    after, end = np.array(data.after), np.array(data.end)
    survival, total = 1.0, 0.0
    for time in sorted(after[(end == EVENT) & (after <= 1)].tolist()):
        at_risk, ended = int((after >= time).sum()), int(((after == time) & (end == EVENT)).sum())
        survival *= 1 - ended / at_risk
        total += ended / (at_risk * (at_risk - ended))
    result = incidence(data.after, data.end, at=1)
    assert result.interval.method == "log-log-greenwood/1"
    assert result.value == pytest.approx(1 - survival, abs=1e-12)
    assert result.interval.variance == pytest.approx(survival**2 * total, rel=1e-12)


@pytest.mark.parametrize("closing", [0.0, 0.3])
def test_the_clustered_variance_is_what_a_bootstrap_over_clusters_finds(closing: float) -> None:
    data = waits(150, 5, closing=closing)
    after, end, cluster = (np.array(column) for column in data)
    result = incidence(*data, at=1)
    alone = incidence(data.after, data.end, at=1)
    assert result.interval.variance is not None
    assert alone.interval.variance is not None
    random = np.random.default_rng(6)
    drawn = []
    for _ in range(600):
        weight = np.bincount(random.integers(0, 150, 150), minlength=150)[cluster]
        drawn.append(incidence(np.repeat(after, weight), np.repeat(end, weight), at=1).value)
    spread = float(np.std(np.array(drawn, dtype=float)))
    assert math.sqrt(result.interval.variance) == pytest.approx(spread, rel=0.1)
    assert math.sqrt(alone.interval.variance) < 0.8 * spread


@given(row_lists, times)
def test_rows_of_their_own_are_no_clusters(given_rows: list[tuple[float, int, int]], at: float) -> None:
    data = rows_of(given_rows, clustered=False)
    own = [7 * i + 3 for i in range(len(data.after))]
    assert incidence(*data, at=at) == incidence(data.after, data.end, own, at=at)
    assert quantile(*data) == quantile(data.after, data.end, own)


@given(row_lists, st.randoms(use_true_random=False), times)
def test_no_order_of_rows_or_clusters_changes_an_answer(
    given_rows: list[tuple[float, int, int]], random: object, at: float
) -> None:
    """Bit for bit: partial tallies that are merged must give what one pass gives."""
    names = list(range(6))
    random.shuffle(names)  # type: ignore[attr-defined]
    shuffled = [(after, end, names[cluster]) for after, end, cluster in given_rows]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert incidence(*rows_of(shuffled), at=at) == incidence(*rows_of(given_rows), at=at)
    assert quantile(*rows_of(shuffled)) == quantile(*rows_of(given_rows))


@pytest.mark.parametrize("digits", [1, 15])
@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_many_rows_changes_an_answer(seed: int, digits: int) -> None:
    data = waits(700, seed)
    random = np.random.default_rng(seed)
    order = random.permutation(len(data.after))
    names = random.permutation(10_000)[:700]
    after, end, cluster = np.round(data.after, digits), np.array(data.end), np.array(data.cluster)
    shuffled = after[order], end[order], names[cluster[order]]
    assert incidence(*shuffled, at=1) == incidence(after, end, cluster, at=1)
    assert quantile(*shuffled) == quantile(after, end, cluster)


def test_when_nobody_is_pending_a_clustered_share_has_the_effective_n_of_a_rate() -> None:
    hits, sizes = [3, 0, 2, 1, 4, 2], [4, 1, 3, 2, 4, 5]
    cluster = [user for user, size in enumerate(sizes) for _ in range(size)]
    end = [EVENT if place < hit else OPEN for hit, size in zip(hits, sizes, strict=True) for place in range(size)]
    after = [1.0 if each == EVENT else 5.0 for each in end]
    result = incidence(after, end, cluster, at=4)
    moments = Moments.of_clusters((y, m, m) for y, m in zip(hits, sizes, strict=True))
    assert moments.ratio is not None
    assert result.value == float(moments.ratio)
    as_rate = rate_interval(moments, units=math.inf)
    assert result.interval.variance == pytest.approx(as_rate.variance, rel=1e-12)
    assert result.interval.effective_n == pytest.approx(as_rate.effective_n, rel=1e-12)


def test_an_event_at_the_time_is_in_time_and_a_cut_at_the_time_is_followed() -> None:
    result = incidence([2.0, 2.0, 1.0, 3.0], [EVENT, OPEN, OPEN, OPEN], at=2)
    assert (result.at_risk, result.followed, result.ended, result.censored) == (3, 3, 1, 1)
    assert result.value == 1 / 3


def test_where_nothing_was_cut_off_the_complement_is_the_share_of_the_others() -> None:
    for n in range(1, 40):
        for ended in range(n + 1):
            found = incidence([1.0] * ended + [3.0] * (n - ended), [EVENT] * ended + [OPEN] * (n - ended), at=2)
            assert found.complement().value == (n - ended) / n


def test_a_competing_end_is_not_the_event_and_not_a_cut() -> None:
    result = incidence([1.0, 2.0, 3.0, 4.0], [COMPETING, EVENT, OPEN, OPEN], at=3)
    assert (result.value, result.ended, result.competed, result.censored) == (0.25, 1, 1, 0)
    assert result.interval.method == "log-log-aalen-johansen/1"


def test_not_reached_where_nobody_was_followed_so_long() -> None:
    result = incidence([1.0, 2.0, 2.5, 2.5], [EVENT, OPEN, EVENT, OPEN], at=3)
    assert (result.value, result.status, result.longest) == (None, "not_reached", 2.5)
    assert (result.interval.low, result.interval.high) == (None, None)
    assert result.reason
    assert "2.5" in result.reason
    assert result.complement() == result
    assert incidence([1.0, 2.0, 2.5, 2.5], [EVENT, OPEN, OPEN, EVENT], at=3).status == "not_reached"
    assert incidence([1.0, 2.0, 2.5, 2.5], [EVENT, OPEN, EVENT, OPEN], at=2.5).status == "ok"


def test_reached_where_the_last_of_all_ended_before() -> None:
    result = incidence([1.0, 2.0, 2.5, 2.5], [EVENT, OPEN, EVENT, EVENT], at=3)
    assert (result.value, result.status, result.followed) == (1.0, "ok", 3)
    closed = incidence([1.0, 2.0], [EVENT, COMPETING], at=3)
    assert (closed.value, closed.status) == (0.5, "ok")


@pytest.mark.parametrize(("end", "value"), [(EVENT, 1.0), (OPEN, 0.0), (COMPETING, 0.0)])
def test_all_alike_gives_wilson_on_those_followed(end: int, value: float) -> None:
    after = [5.0] * 9 + [1.0, 1.0]
    ends = [end] * 9 + [OPEN, OPEN]
    alone = incidence(after, ends, at=5)
    as_rate = rate_interval(Moments.of_clusters([(int(value), 1, 1)] * 9))
    assert alone.value == value
    assert (alone.interval.low, alone.interval.high) == (as_rate.low, as_rate.high)
    assert alone.interval.method == "wilson-followed/1"
    clustered = incidence(after, ends, [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3], at=5)
    assert clustered.interval.method == "wilson-followed-kish/1"
    assert clustered.interval.effective_n == 81 / (16 + 9 + 4)
    assert clustered.interval.reason


def test_clusters_that_are_all_alike_have_a_width() -> None:
    """Every user came back once in two sessions: the clusters show no variance, which proves nothing."""
    result = incidence([1.0, 4.0] * 5, [EVENT, OPEN] * 5, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], at=3)
    as_rate = rate_interval(Moments.of_clusters([(1, 2, 2)] * 5))
    assert result.value == 0.5
    assert result.interval.method == "wilson-followed-kish/1"
    assert (result.interval.low, result.interval.high) == (as_rate.low, as_rate.high)


def test_one_event_among_very_many_of_two_clusters_has_finite_limits() -> None:
    rows = 200_000
    result = incidence(np.arange(1.0, rows + 1), np.arange(rows) == 0, np.arange(rows) % 2, at=9)
    assert result.interval.low is not None
    assert result.interval.high is not None
    assert 0 <= result.interval.low < 1 / rows < result.interval.high <= 1


def test_a_single_cluster_has_a_value_and_no_interval() -> None:
    result = incidence([1.0, 2.0, 3.0], [EVENT, EVENT, OPEN], [4, 4, 4], at=2)
    assert result.value == 2 / 3
    assert result.clusters == 1
    assert (result.interval.low, result.interval.high) == (None, None)
    assert result.interval.reason
    typical = quantile([1.0, 2.0, 3.0], [EVENT, EVENT, OPEN], [4, 4, 4])
    assert typical.value == 2
    assert (typical.interval.low, typical.interval.high) == (None, None)
    assert typical.interval.reason


def test_nothing_counted_is_undefined() -> None:
    for result in (incidence([], [], at=1), incidence([], [], [], at=1), quantile([], [])):
        assert (result.value, result.status) == (None, "undefined")
        assert (result.interval.low, result.interval.high) == (None, None)
        assert result.reason
    assert curve([], []).times == []


# --- typical times


@given(row_lists, st.floats(0.05, 0.95), levels, st.booleans())
def test_a_typical_time_lies_within_its_limits(
    given_rows: list[tuple[float, int, int]], q: float, level: float, clustered: bool
) -> None:
    data = rows_of(given_rows, clustered)
    result = quantile(*data, q=q, level=level)
    if result.value is None:
        assert result.status == "not_reached"
        assert result.reason
        return
    reached = incidence(*data, at=result.value).value
    assert reached is not None
    assert reached >= q - 1e-9
    low, high = result.interval.low, result.interval.high
    if low is None:
        assert high is None
        assert result.interval.reason
        return
    assert 0 <= low <= result.value
    assert high is None or (result.value <= high < math.inf and low < high)


@pytest.mark.parametrize("clustered", [False, True])
def test_limits_are_the_times_where_the_limits_of_the_share_cross(clustered: bool) -> None:
    after, end, cluster = waits(60, 8)
    data = Rows(after, end, cluster if clustered else None)
    drawn = curve(*data, points=10_000)
    assert len(drawn.times) > 130
    crossed_high = next(t for t, high in zip(drawn.times, drawn.highs, strict=True) if high is not None and high >= 0.4)
    crossed_low = next(t for t, low in zip(drawn.times, drawn.lows, strict=True) if low is not None and low >= 0.4)
    result = quantile(*data, q=0.4)
    assert (result.interval.low, result.interval.high) == (crossed_high, crossed_low)


def test_a_median_holds_with_and_without_a_cut_between() -> None:
    """Four fifths stay, then after a cut five eighths of those at risk: one half, exactly."""
    after = [1.0] * 4 + [1.5] * 8 + [2.0] * 3 + [3.0] * 5
    assert quantile(after, [EVENT] * 4 + [OPEN] * 8 + [EVENT] * 8).value == 2
    for at_first, cut, then in ((9, 2, 4), (30, 5, 15), (7, 0, 7)):
        lost = at_first - cut - then
        after = [1.0] * lost + [2.0] * cut + [3.0 + i for i in range(then)]
        end = [EVENT] * lost + [OPEN] * cut + [EVENT] * then
        place = next(i for i in range(then + 1) if 2 * (then - i) * (at_first - lost) <= at_first * then)
        assert quantile(after, end).value == 2.0 + place
    for n in range(2, 60, 2):
        exact = quantile([float(i) for i in range(n)], [EVENT] * n)
        assert exact.value == n // 2 - 1


def test_one_half_that_rounds_to_less_is_one_half() -> None:
    end = [0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 1]
    after = [float(i) for i in range(19)]
    assert 0.4999 < curve(after, end).shares[5] < 0.5
    assert quantile(after, end).value == 13


def test_not_reached_where_the_curve_stays_under_the_share() -> None:
    result = quantile([1.0, 2.0, 3.0, 4.0], [EVENT, OPEN, OPEN, OPEN])
    assert (result.value, result.status) == (None, "not_reached")
    assert result.reason
    closed = quantile([1.0, 2.0, 3.0, 4.0, 5.0], [EVENT, COMPETING, COMPETING, EVENT, COMPETING])
    assert (closed.value, closed.status) == (None, "not_reached")
    assert quantile([1.0, 2.0], [OPEN, OPEN]).status == "not_reached"


def test_an_upper_limit_that_no_data_can_give_is_none() -> None:
    result = quantile([1.0, 2.0, 3.0, 4.0, 5.0], [EVENT, EVENT, EVENT, OPEN, OPEN])
    assert result.value == 3
    assert result.interval.low == 1
    assert result.interval.high is None


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("q", [0.1, 0.5])
def test_the_lower_limit_is_0_where_the_share_could_be_reached_before_the_first_time(q: float, clustered: bool) -> None:
    """The first of n times comes after the q-quantile in (1 - q)^n of all logs: with n small, it is no lower limit."""
    for n in range(2, 60):
        cluster = [i // 2 for i in range(n)] if clustered else None
        data = Rows([float(i) for i in range(3, n + 3)], [EVENT] * n, cluster)
        before = incidence(*data, at=2).interval.high
        low = quantile(*data, q=q).interval.low
        if n == 2 and clustered:
            assert before is low is None
        else:
            assert before is not None
            assert (low == 0) == (before >= q)
    assert quantile([3.0], [EVENT]).interval[:2] == (0, None)
    assert quantile([0.0, 0.0, 0.0, 1.0], [EVENT] * 4, q=0.1).interval[:2] == (0, 1)


def test_limits_that_fall_on_one_time_move_to_the_times_beside_it() -> None:
    turns = [1.0] * 10 + [2.0] * 980 + [3.0] * 10
    result = quantile(turns, [EVENT] * 1000)
    assert result.value == 2
    assert (result.interval.low, result.interval.high) == (1, 3)
    first = quantile([1.0] * 990 + [2.0] * 10, [EVENT] * 1000)
    assert (first.interval.low, first.value, first.interval.high) == (1, 1, 2)


def test_a_zero_has_no_sign_that_depends_on_the_order_of_rows() -> None:
    for after in ([-0.0, 0.0, 1.0], [0.0, -0.0, 1.0]):
        assert math.copysign(1, curve(after, [EVENT] * 3).times[0]) == 1
        assert str(quantile(after, [EVENT] * 3).value) == "0.0"


def test_identical_times_have_no_interval() -> None:
    result = quantile([3.0] * 50, [EVENT] * 50)
    assert result.value == 3
    assert (result.interval.low, result.interval.high) == (None, None)
    assert result.interval.reason


# --- curves and refusals


@pytest.mark.parametrize("clusters", [2, 5, 30])
def test_limits_along_a_curve_are_those_at_each_of_its_times(clusters: int) -> None:
    random = np.random.default_rng(clusters)
    after = np.round(random.exponential(5, 200), 1)
    end = random.choice([OPEN, EVENT, COMPETING], 200, p=[0.3, 0.5, 0.2]).astype(np.int8)
    cluster = random.integers(0, clusters, 200).astype(np.int32)
    drawn = curve(after, end, cluster, points=40)
    assert len(drawn.times) == 40
    for time, share, low, high in zip(drawn.times, drawn.shares, drawn.lows, drawn.highs, strict=True):
        found = incidence(after, end, cluster, at=time)
        assert (share, low, high) == pytest.approx((found.value, *found.interval[:2]), rel=1e-9)
    order = random.permutation(200)
    renumbered = random.permutation(clusters).astype(np.int32)[cluster]
    assert curve(after[order], end[order], renumbered[order], points=40) == drawn


@given(st.lists(st.floats(-1e6, 1e6), max_size=50), st.randoms())
def test_a_total_is_the_exact_sum_in_any_order(values: list[float], chosen: Random) -> None:
    shuffled = chosen.sample(values, len(values))
    assert total(np.array(values)) == total(np.array(shuffled))
    assert total(np.array(values)) == pytest.approx(math.fsum(values), rel=1e-12, abs=1e-12)


@given(row_lists, st.booleans())
def test_a_curve_rises_within_its_limits(given_rows: list[tuple[float, int, int]], clustered: bool) -> None:
    drawn = curve(*rows_of(given_rows, clustered), points=7)
    assert len(drawn.times) <= 7
    assert drawn.times == sorted(set(drawn.times))
    assert drawn.shares == sorted(drawn.shares)
    for share, low, high in zip(drawn.shares, drawn.lows, drawn.highs, strict=True):
        assert low is None or high is None or 0 <= low <= share <= high <= 1


@pytest.mark.parametrize(
    ("after", "end", "cluster", "message"),
    [
        ([-1.0], [1], None, "duration"),
        ([math.nan], [1], None, "duration"),
        ([math.inf], [0], None, "duration"),
        ([1.0], [3], None, "end"),
        ([1.0], [-1], None, "end"),
        ([1.0], [1.5], None, "end"),
        ([1.0], [math.nan], None, "end"),
        ([1.0], [1, 1], None, "one entry"),
        ([1.0], [1], [1, 2], "one entry"),
    ],
)
def test_rows_that_cannot_be_are_refused(
    after: list[float], end: list[int], cluster: list[int] | None, message: str
) -> None:
    for ask in (lambda: incidence(after, end, cluster, at=1), lambda: quantile(after, end, cluster)):
        with pytest.raises(InputError, match=message):
            ask()


@pytest.mark.parametrize("at", [-1, math.nan, math.inf])
def test_a_time_that_cannot_be_is_refused(at: float) -> None:
    with pytest.raises(InputError, match="at is"):
        incidence([1.0], [1], at=at)


@pytest.mark.parametrize("q", [0, 1, -0.1, math.nan])
def test_a_share_that_cannot_be_is_refused(q: float) -> None:
    with pytest.raises(InputError, match="q is"):
        quantile([1.0], [1], q=q)


@pytest.mark.parametrize("level", [0, 1, math.nan])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(InputError, match="level"):
        incidence([1.0], [1], at=1, level=level)
    with pytest.raises(InputError, match="level"):
        quantile([], [], level=level)


def test_results_hold_plain_numbers() -> None:
    data = waits(10, 9)
    results: list[Incidence | Quantile] = [incidence(*data, at=1), quantile(*data)]
    for result in results:
        for value in (*result, *result.interval):
            assert value is None or type(value) in {float, int, str, type(result.interval)}
