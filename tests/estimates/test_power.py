"""Planning: what is needed is enough, and what is detectable is detected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.estimates.power import design_effect, detectable, intraclass_correlation, power_of, users_needed

rates = st.floats(0.01, 0.99)


@given(rates, rates, st.floats(0.05, 20), st.floats(0.3, 0.99), st.booleans())
def test_the_users_needed_have_the_power(one: float, other: float, ratio: float, power: float, pooled: bool) -> None:
    if abs(one - other) < 0.01:
        return
    needed = users_needed(one, other, ratio=ratio, power=power, pooled=pooled)
    assert needed.treatment == pytest.approx(ratio * needed.control)
    found = power_of(one, other, treatment_users=needed.treatment, control_users=needed.control, pooled=pooled)
    assert found >= power - 1e-9
    if not pooled:
        # the chance to see the opposite comes on top
        assert found <= power + 0.025


@given(rates, st.integers(5, 5000), st.integers(5, 5000), st.booleans())
def test_the_smallest_detectable_difference_is_detected(control: float, n1: int, n2: int, pooled: bool) -> None:
    found = detectable(control, treatment_users=n1, control_users=n2, pooled=pooled)
    for shift, end, sign in ((found.increase, 1.0, 1), (found.decrease, 0.0, -1)):
        if shift is None:
            assert power_of(end, control, treatment_users=n1, control_users=n2, pooled=pooled) < 0.8
            continue
        assert 0 < shift <= abs(end - control) + 1e-12
        for share, seen in ((1.0, True), (0.999, False)):
            rate = min(1.0, max(0.0, control + sign * share * shift))
            power = power_of(rate, control, treatment_users=n1, control_users=n2, pooled=pooled)
            assert (power >= 0.8 - 1e-6) is seen


def test_a_small_holdout_limits_what_can_be_seen() -> None:
    thousand = detectable(0.7, treatment_users=900, control_users=100)
    endless = detectable(0.7, treatment_users=10**9, control_users=100)
    even = detectable(0.7, treatment_users=500, control_users=500)
    assert thousand.increase is not None
    assert endless.increase is not None
    assert even.increase is not None
    assert even.increase < 0.7 * endless.increase < thousand.increase


def test_power_without_a_difference_is_the_level() -> None:
    assert power_of(0.3, 0.3, treatment_users=90, control_users=10, level=0.9) == pytest.approx(0.1)
    assert power_of(1.0, 0.0, treatment_users=5, control_users=5) == 1
    assert power_of(1.0, 1.0, treatment_users=5, control_users=5) == 0


def test_power_is_what_a_simulation_finds() -> None:
    random, n1, n2, p1, p2 = np.random.default_rng(3), 400, 200, 0.7, 0.6
    k1, k2 = random.binomial(n1, p1, 40_000) / n1, random.binomial(n2, p2, 40_000) / n2
    z = (k1 - k2) / np.sqrt(k1 * (1 - k1) / n1 + k2 * (1 - k2) / n2)
    expected = power_of(p1, p2, treatment_users=n1, control_users=n2, pooled=False)
    assert float((np.abs(z) > 1.959964).mean()) == pytest.approx(expected, abs=0.01)


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(InputError, match="equal"):
        users_needed(0.5, 0.5)
    with pytest.raises(InputError, match=r"1\.5"):
        users_needed(1.5, 0.5)
    for power in (0.01, 1.0, math.nan):
        with pytest.raises(InputError, match="power"):
            users_needed(0.6, 0.5, power=power)
        with pytest.raises(InputError, match="power"):
            detectable(0.6, treatment_users=5, control_users=5, power=power)
    with pytest.raises(InputError, match="ratio"):
        users_needed(0.6, 0.5, ratio=0)
    with pytest.raises(InputError, match="users"):
        power_of(0.6, 0.5, treatment_users=0, control_users=3)
    with pytest.raises(InputError, match="level"):
        users_needed(0.6, 0.5, level=95)
    for size, icc, cv in ((0.5, 0.1, 0), (2, 1.5, 0), (2, 0.1, -1)):
        with pytest.raises(InputError):
            design_effect(size, icc, cv=cv)


def test_one_row_a_user_or_none_alike_costs_nothing() -> None:
    assert design_effect(1, 0.9) == 1
    assert design_effect(7, 0.0, cv=2) == 1
    assert design_effect(7, -0.1) == 1
    assert design_effect(7, 1.0) == 7


def test_rows_that_are_alike_within_users() -> None:
    assert intraclass_correlation([(3, 3, 3), (2, 0, 0)]) == pytest.approx(1)
    opposed = intraclass_correlation([(2, 1, 1)] * 6)
    assert opposed is not None
    assert opposed < 0
    for rows in ([], [(4, 2, 2)], [(1, 1, 1), (1, 0, 0)], [(2, 2, 2), (3, 3, 3)], [(0, 0, 0), (2, 1, 1)]):
        assert intraclass_correlation(rows) is None


def test_the_correlation_that_was_put_in_comes_out() -> None:
    random = np.random.default_rng(11)
    sizes = random.geometric(0.25, 20_000)
    hits = random.binomial(sizes, random.beta(0.7 * 7 / 3, 0.3 * 7 / 3, 20_000)).tolist()
    found = intraclass_correlation(zip(sizes.tolist(), hits, hits, strict=True))
    assert found == pytest.approx(0.3, abs=0.01)
