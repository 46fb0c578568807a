"""Confidence beside correctness: proper scores, bins that say what they are, and no loss made finite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.estimates.calibration import BIN_RULES, BinRule, Closed, brier_score, log_loss, reliability
from evalr.estimates.interval import NO_VARIATION, NOTHING_COUNTED, SINGLE_CLUSTER, Interval
from evalr.estimates.rate import wilson

Rows = list[tuple[int | None, float, bool]]
rows_of_confidence = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 4)),
        st.one_of(st.integers(0, 20).map(lambda part: part / 20), st.floats(0, 1)),
        st.booleans(),
    ),
    max_size=30,
)
rules = st.sampled_from(BIN_RULES)
ends: st.SearchStrategy[Closed] = st.sampled_from(["right", "left"])


def limits(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


@given(rows_of_confidence)
def test_scores_are_their_definitions(rows: Rows) -> None:
    brier, loss = brier_score(rows), log_loss(rows)
    if not rows:
        assert brier.value is loss.value is None
        assert brier.interval.reason == loss.interval.reason == NOTHING_COUNTED
        return
    assert brier.value == pytest.approx(np.mean([(confidence - right) ** 2 for _, confidence, right in rows]))
    if brier.interval.low is not None:
        low, high = limits(brier.interval)
        assert 0 <= low <= brier.value <= high <= 1
        assert low < high
    else:
        assert brier.interval.reason == SINGLE_CLUSTER
    wrong = sum(confidence == (0 if right else 1) for _, confidence, right in rows)
    if wrong:
        assert loss.value is None
        assert str(loss.interval.reason).startswith(f"of {wrong} rows the judge was wholly certain, and wrong")
        return
    expected = [-math.log(confidence) if right else -math.log1p(-confidence) for _, confidence, right in rows]
    assert loss.value == pytest.approx(np.mean(expected))
    if loss.interval.low is not None:
        assert limits(loss.interval)[0] <= loss.value <= limits(loss.interval)[1]
        assert limits(loss.interval)[0] < limits(loss.interval)[1]
    else:
        assert loss.interval.reason in {SINGLE_CLUSTER, NO_VARIATION}


@given(rows_of_confidence, rules, ends, st.integers(1, 12))
def test_every_row_is_in_one_bin(rows: Rows, rule: BinRule, closed: Closed, bins: int) -> None:
    found = reliability(rows, bins=bins, rule=rule, closed=closed)
    assert sum(each.n for each in found.bins) == len(rows)
    assert len(found.bins) <= bins
    if not rows:
        assert found[2:] == (None,) * 6
        return
    assert found.ece is not None
    assert found.largest is not None
    assert 0 <= found.ece <= found.largest <= 1
    for each in found.bins:
        assert each.low - 1e-12 <= each.confidence <= each.high + 1e-12
        # a confidence is in the bin only if it is between its edges
        between = sum(each.low <= confidence <= each.high for _, confidence, _ in rows)
        assert between >= each.n > 0
        if each.interval.low is not None:
            low, high = limits(each.interval)
            assert 0 <= low <= each.right <= high <= 1
            assert low < high


@given(rows_of_confidence, rules, ends, st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: Rows, rule: BinRule, closed: Closed, bins: int, random: Any) -> None:
    other = [(None if cluster is None else 9 - cluster, confidence, right) for cluster, confidence, right in rows]
    random.shuffle(other)
    assert brier_score(other) == brier_score(rows)
    assert log_loss(other) == log_loss(rows)
    assert reliability(other, bins=bins, rule=rule, closed=closed) == reliability(
        rows, bins=bins, rule=rule, closed=closed
    )


@given(rows_of_confidence, rules)
def test_murphys_parts_are_the_brier_score_where_a_bin_has_one_confidence(rows: Rows, rule: BinRule) -> None:
    tenths = [(cluster, round(confidence * 10) / 10, right) for cluster, confidence, right in rows]
    found = reliability(tenths, bins=100, rule=rule)
    if found.reliability is None or found.resolution is None or found.uncertainty is None:
        return
    if any(each.low < each.high and rule == "equal_mass" for each in found.bins):
        return
    total = found.reliability - found.resolution + found.uncertainty
    assert brier_score(tenths).value == pytest.approx(total, abs=1e-9)


def test_an_edge_belongs_to_the_bin_below_or_above() -> None:
    """Edges as they are written: 0.7 is an edge of ten bins, though ten times its float is not 7."""
    rows = [(None, part / 10, True) for part in range(11)]
    below, above = reliability(rows), reliability(rows, closed="left")
    assert [each.n for each in below.bins] == [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert [each.n for each in above.bins] == [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    assert (below.rule, above.rule) == ("10 of equal width, right-closed", "10 of equal width, left-closed")


def test_bins_of_equal_mass_are_as_large_as_rows_of_one_confidence_let_them() -> None:
    rows = [(None, each, True) for each in (0.1, 0.2, 0.3, 0.3, 0.3, 0.4, 0.5, 0.6)]
    found = reliability(rows, bins=4, rule="equal_mass")
    assert [each.n for each in found.bins] == [2, 3, 1, 2]
    assert [(each.low, each.high) for each in found.bins] == [(0.1, 0.2), (0.3, 0.3), (0.4, 0.4), (0.5, 0.6)]
    assert found.rule == "4 of equal mass"
    one = reliability([(None, 0.9, True)] * 5, bins=4, rule="equal_mass")
    assert [each.n for each in one.bins] == [5]
    assert limits(one.bins[0].interval) == pytest.approx((wilson(1, 5, 1.959964)[0], 1), abs=1e-6)


def test_users_with_several_rows_widen_a_bin() -> None:
    rows = [(user, 0.8, right) for user, right in enumerate([True] * 8 + [False] * 2) for _ in range(10)]
    clustered, plain = reliability(rows), reliability([(None, confidence, right) for _, confidence, right in rows])
    wide, narrow = limits(clustered.bins[0].interval), limits(plain.bins[0].interval)
    assert clustered.bins[0].right == plain.bins[0].right == 0.8
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


@pytest.mark.parametrize("rule", BIN_RULES)
@pytest.mark.parametrize("n", [40, 400])
def test_a_calibrated_judge_has_the_error_that_is_told_and_not_0(rule: BinRule, n: int) -> None:
    random = np.random.default_rng(21)
    errors, told = [], []
    for _ in range(150):
        confidence = random.beta(4, 1.5, n)
        right = random.random(n) < confidence
        rows = [(None, float(c), bool(r)) for c, r in zip(confidence, right, strict=True)]
        found = reliability(rows, rule=rule)
        errors.append(found.ece)
        told.append(found.ece_if_calibrated)
    assert np.mean(errors) > 0.02
    assert np.mean(told) == pytest.approx(np.mean(errors), rel=0.1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
def test_a_confidence_is_a_probability(bad: float) -> None:
    for of in (brier_score, log_loss, reliability):
        with pytest.raises(InputError, match="row 1: a confidence lies between 0 and 1"):
            of([(None, 0.5, True), (None, bad, True)])


def test_settings_are_what_they_can_be() -> None:
    with pytest.raises(InputError, match="right or not"):
        brier_score([(None, 0.5, 2)])  # type: ignore[list-item]
    for settings, message in (
        ({"bins": 0}, "counted from 1"),
        ({"bins": 2.5}, "counted from 1"),
        ({"rule": "quantile"}, "rule must be one of equal_width, equal_mass"),
        ({"closed": "both"}, "closed must be"),
        ({"level": 1}, "level"),
    ):
        with pytest.raises(InputError, match=message):
            reliability([], **settings)  # type: ignore[arg-type]
    for of in (brier_score, log_loss):
        with pytest.raises(InputError, match="level"):
            of([], level=95)
