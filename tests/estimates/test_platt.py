"""Platt scaling: pinned to scikit-learn's logistic regression, and sane where there is little to go by."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalr.estimates.platt import Platt, log_odds, platt

ROWS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


def drawn(count: int, chance: Platt, seed: int = 1) -> list[tuple[float, bool]]:
    choose = random.Random(seed)
    return [(score, choose.random() < chance.chance(score)) for score in (choose.random() for _ in range(count))]


@pytest.mark.parametrize("count", [8, 60, 2000])
def test_it_is_the_logistic_regression_on_platts_targets(count: int) -> None:
    from sklearn.linear_model import LogisticRegression

    rows = drawn(count, Platt(1.5, 0.4))
    right = sum(each for _, each in rows)
    if_right, if_wrong = (right + 1) / (right + 2), 1 / (count - right + 2)
    aims = [if_right if each else if_wrong for _, each in rows]
    odds = [[log_odds(score)] for score, _ in rows]
    model = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000)
    model.fit(odds * 2, [1] * count + [0] * count, sample_weight=[*aims, *(1 - aim for aim in aims)])
    found = platt(rows)
    assert found is not None
    assert found.slope == pytest.approx(model.coef_[0][0], rel=1e-4)
    assert found.intercept == pytest.approx(model.intercept_[0], rel=1e-3, abs=1e-4)


def test_many_rows_give_back_what_they_were_drawn_by() -> None:
    found = platt(drawn(20_000, Platt(0.7, -0.3)))
    assert found is not None
    assert (found.slope, found.intercept) == pytest.approx((0.7, -0.3), abs=0.05)


def test_without_rows_there_is_none() -> None:
    assert platt([]) is None


def test_few_labels_that_are_all_right_do_not_make_it_certain() -> None:
    found = platt([(0.9, True)] * 3)
    assert found is not None
    assert found.chance(0.9) == pytest.approx(4 / 5, abs=1e-6)
    assert found.chance(1.0) < 1


def test_scores_that_were_right_less_often_the_higher_tell_nothing() -> None:
    found = platt([(0.9, False)] * 10 + [(0.1, True)] * 10)
    assert found is not None
    assert found.slope == 0
    assert found.chance(0.9) == found.chance(0.1) == pytest.approx(0.5)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_it_is_always_a_chance_that_no_higher_score_lowers(rows: list[tuple[float, bool]]) -> None:
    found = platt(rows)
    assert found is not None
    assert found.slope >= 0
    assert math.isfinite(found.slope)
    assert math.isfinite(found.intercept)
    chances = [found.chance(step / 20) for step in range(21)]
    assert chances == sorted(chances)
    assert all(0 <= chance <= 1 for chance in chances)
