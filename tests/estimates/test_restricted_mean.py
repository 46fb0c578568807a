"""Restricted means: against what R's survival package prints, the area under SciPy's curve, and numeric influences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr import About, InputError, TimeTo, Verdict
from evalr.estimates.duration import COMPETING, EVENT, OPEN, RestrictedMean, restricted_mean
from evalr.estimates.lift import Lift

# Miller's data on acute myelogenous leukemia, `aml` of R's survival package: weeks in remission, 0 where censored.
MAINTAINED = ([9, 13, 13, 18, 23, 28, 31, 34, 45, 48, 161], [1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0])
NONMAINTAINED = ([5, 5, 8, 8, 12, 16, 23, 27, 30, 33, 43, 45], [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1])

rows = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([OPEN, EVENT, COMPETING])), min_size=1, max_size=25)


def mean_of(after: object, end: object, cluster: object = None, *, at: float, level: float = 0.95) -> RestrictedMean:
    groups = None if cluster is None else np.asarray(cluster)
    return restricted_mean(np.asarray(after, dtype=float), np.asarray(end, dtype=np.int8), groups, at=at, level=level)


@pytest.mark.parametrize(
    ("data", "mean", "error"), [(MAINTAINED, 52.6, 19.83), (NONMAINTAINED, 22.7, 4.18)], ids=["maintained", "not"]
)
def test_means_and_standard_errors_are_those_that_r_prints(
    data: tuple[list[int], list[int]], mean: float, error: float
) -> None:
    """`print(survfit(Surv(time, status) ~ x, data = aml), print.rmean = TRUE)`, restricted to 161 weeks."""
    found = mean_of(*data, at=161)
    assert found.value == pytest.approx(mean, abs=0.05)
    assert found.interval.variance is not None
    assert found.interval.variance**0.5 == pytest.approx(error, abs=0.005)


def test_it_is_the_area_under_scipys_curve() -> None:
    from scipy.stats import CensoredData, ecdf

    after, end = (np.array(column, dtype=float) for column in MAINTAINED)
    curve = ecdf(CensoredData(uncensored=after[end == 1], right=after[end == 0])).sf
    times = np.concatenate(([0.0], curve.quantiles[curve.quantiles < 40], [40.0]))
    heights = np.concatenate(([1.0], curve.probabilities[curve.quantiles < 40]))
    assert mean_of(after, end, at=40).value == pytest.approx(float((heights * np.diff(times)).sum()))


def test_without_censoring_it_is_the_mean_of_what_was_cut() -> None:
    after = [1.0, 2.0, 2.0, 7.0]
    found = mean_of(after, [EVENT] * 4, at=5)
    assert found.value == pytest.approx(np.mean([1, 2, 2, 5]))
    assert found.interval.variance == pytest.approx(np.var([1, 2, 2, 5]) / 4)


def weighted_mean(after: np.ndarray, end: np.ndarray, weight: np.ndarray, at: float) -> float:
    """By its definition, with a weight for each row."""
    share, still_open, area, before = 0.0, 1.0, 0.0, 0.0
    for time in sorted(set(after[(end != OPEN) & (after <= at)].tolist())):
        area += (1 - share) * (time - before)
        at_risk = weight[after >= time].sum()
        share += still_open * weight[(after == time) & (end == EVENT)].sum() / at_risk
        still_open *= 1 - weight[(after == time) & (end != OPEN)].sum() / at_risk
        before = time
    return area + (1 - share) * (at - before)


def numeric_influences(after: np.ndarray, end: np.ndarray, at: float) -> np.ndarray:
    found = np.empty(len(after))
    for i in range(len(after)):
        moved = []
        for step in (-1e-5, 1e-5):
            weight = np.ones(len(after))
            weight[i] += step
            moved.append(weighted_mean(after, end, weight, at))
        found[i] = (moved[1] - moved[0]) / 2e-5
    return found


@given(rows, st.integers(1, 14))
def test_the_variance_is_the_sum_of_squared_influences(data: list[tuple[int, int]], at: int) -> None:
    after, end = (np.array(column, dtype=float) for column in zip(*data, strict=True))
    found = mean_of(after, end, at=at)
    if found.value is None:
        assert found.status == "not_reached"
        return
    assert found.value == pytest.approx(weighted_mean(after, end, np.ones(len(after)), at), abs=1e-9)
    expected = float((numeric_influences(after, end, at) ** 2).sum())
    assert found.interval.variance == pytest.approx(expected, abs=1e-6)


@given(rows, st.integers(1, 14), st.data())
def test_clusters_sum_their_influences(data: list[tuple[int, int]], at: int, draw: st.DataObject) -> None:
    after, end = (np.array(column, dtype=float) for column in zip(*data, strict=True))
    cluster = np.array(draw.draw(st.lists(st.integers(0, 3), min_size=len(after), max_size=len(after))))
    found = mean_of(after, end, cluster, at=at)
    groups = len(set(cluster.tolist()))
    if found.value is None or groups == len(after):
        return
    if groups == 1:
        assert found.interval.low is None
        assert "single cluster" in (found.interval.reason or "")
        return
    influences = numeric_influences(after, end, at)
    sums = np.array([influences[cluster == each].sum() for each in set(cluster.tolist())])
    expected = float((sums**2).sum()) * groups / (groups - 1)
    assert found.interval.variance == pytest.approx(expected, abs=1e-6)


@given(rows, st.integers(1, 14), st.floats(0.5, 0.999))
def test_limits_hold_the_value_and_stay_in_range(data: list[tuple[int, int]], at: int, level: float) -> None:
    found = mean_of(*zip(*data, strict=True), at=at, level=level)
    if found.interval.low is not None and found.interval.high is not None:
        assert found.value is not None
        assert 0 <= found.interval.low <= found.value <= found.interval.high <= at
        assert found.interval.low < found.interval.high
    else:
        assert found.interval.reason or found.reason


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(data: list[tuple[int, int]], random: object) -> None:
    shuffled = list(data)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert mean_of(*zip(*data, strict=True), at=6) == mean_of(*zip(*shuffled, strict=True), at=6)


@pytest.mark.parametrize("n", [10, 20])
def test_few_rows_are_covered(n: int) -> None:
    """Normal limits on Greenwood's variance hold the truth for 90% of ten rows, and 93% of twenty."""
    random = np.random.default_rng(7)
    held = []
    while len(held) < 600:
        time, cut = random.exponential(1, n), random.uniform(1.5, 6, n)
        found = mean_of(np.minimum(time, cut), time <= cut, at=2)
        if found.interval.low is not None and found.interval.high is not None:
            held.append(found.interval.low <= 1 - np.exp(-2) <= found.interval.high)
    assert np.mean(held) > 0.925


def test_beyond_what_was_followed_it_is_not_reached() -> None:
    found = mean_of([1, 2, 3], [EVENT, EVENT, OPEN], at=4)
    assert (found.value, found.status) == (None, "not_reached")
    assert found.interval.low is None


def test_where_nothing_ended_there_is_a_value_and_no_interval() -> None:
    found = mean_of([5, 6], [OPEN, OPEN], at=4)
    assert (found.value, found.interval.low, found.interval.reason) == (4, None, "none had ended by then")


@pytest.mark.parametrize("at", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(at: float) -> None:
    with pytest.raises(InputError, match="at is a time above 0"):
        mean_of([1], [EVENT], at=at)


class Took(BaseModel):
    seconds: float
    done: bool


def test_a_summary_can_be_of_the_mean() -> None:
    mean = TimeTo(
        "mean",
        of=Took,
        after=lambda v: v.seconds,
        end=lambda v: "x" if v.done else None,
        event="x",
        within=4,
        mean=True,
    )
    found = mean.estimate([Took(seconds=s, done=s < 5) for s in (1, 2, 5, 6)])
    assert (found.value, found.unit, found.counts["ended"]) == (2.75, "seconds", 2)
    assert found.low is not None
    assert found.high is not None
    assert mean.estimate([]).status == "undefined"


@pytest.mark.parametrize("settings", [{"within": None}, {"within": 0}, {"within": 4, "open": True}])
def test_a_mean_needs_a_time_to_restrict_it_to(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match="mean=True needs a within"):
        TimeTo("m", of=Took, after=lambda v: v.seconds, end=lambda v: None, event="x", mean=True, **settings)  # type: ignore[arg-type]


def lift_of(*arms: list[float], within: float, users: bool = False) -> Lift:
    mean = TimeTo(
        "mean",
        of=Took,
        after=lambda v: min(v.seconds, 1e6),
        end=lambda v: "x" if v.done else None,
        event="x",
        within=within,
        mean=True,
    )
    results = [
        Verdict(
            Took(seconds=abs(seconds), done=seconds > 0),
            "e",
            about=About("chain", f"{arm}{n}", user=str(n // 2) if users else None, arm=arm),
        )
        for arm, times in zip(("treatment", "control"), arms, strict=True)
        for n, seconds in enumerate(times)
    ]
    return mean.lift(results)


def test_means_of_times_that_all_ended_are_compared_by_welchs_test() -> None:
    from scipy.stats import ttest_ind

    treatment, control = [1.0, 4, 2, 8, 5, 7], [3.0, 9, 12, 6, 14]
    test = ttest_ind(treatment, control, equal_var=False)
    low, high = test.confidence_interval(0.95)
    lift = lift_of(treatment, control, within=20)
    found = lift.difference
    assert (found.value, found.low, found.high) == pytest.approx((-4.3, low, high))
    assert lift.p == pytest.approx(test.pvalue)
    assert found.unit == "seconds"


def test_pending_times_count_in_the_difference_of_means() -> None:
    """By hand: the areas under the two curves are 1 + 2 * 2/3 and 3 + 1 * 1/3."""
    found = lift_of([1, -2, 3], [3, 3, -5], within=4).difference
    assert found.value == pytest.approx(-1)


def test_means_without_limits_keep_their_difference_and_say_why() -> None:
    found = lift_of([1, 2, 3], [9, 9, 9], within=4).difference
    assert (found.value, found.low) == (-2, None)
    assert "none had ended" in (found.reason or "")


def test_means_of_users_who_are_in_both_arms_are_not_compared_with_limits() -> None:
    found = lift_of([1, 2, 3, 4], [2, 3, 4, 1], within=9, users=True).difference
    assert (found.value, found.low) == (0, None)
    assert "some are in both arms" in (found.reason or "")
