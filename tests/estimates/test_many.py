"""Several tests at once: adjusted upwards, in the order they were in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalr.errors import InputError
from evalr.estimates.many import benjamini_hochberg, benjamini_yekutieli, holm

ps = st.lists(st.one_of(st.sampled_from([0.0, 0.01, 1.0]), st.floats(0, 1)), max_size=12)


@given(ps)
def test_discovery_rates_are_those_of_another_implementation(p_values: list[float]) -> None:
    if p_values:
        for method, ours in (("bh", benjamini_hochberg), ("by", benjamini_yekutieli)):
            expected = stats.false_discovery_control(p_values, method=method).tolist()
            assert ours(p_values) == pytest.approx(expected, rel=1e-12)


@given(ps)
def test_holm_rejects_step_by_step(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for alpha in (0.01, 0.05, 0.5):
        rejected = set()
        for rank, place in enumerate(order):
            if p_values[place] * (len(p_values) - rank) > alpha:
                break
            rejected.add(place)
        assert {place for place, p in enumerate(adjusted) if p is not None and p <= alpha} == rejected


@given(ps)
def test_adjusted_values_are_larger_and_keep_their_order(p_values: list[float]) -> None:
    for adjust in (holm, benjamini_hochberg, benjamini_yekutieli):
        adjusted = adjust(p_values)
        pairs = sorted(zip(p_values, (p for p in adjusted if p is not None), strict=True))
        assert all(p <= larger <= 1 for p, larger in pairs)
        assert [larger for _, larger in pairs] == sorted(larger for _, larger in pairs)


def test_a_test_without_a_p_keeps_its_place_and_does_not_count() -> None:
    for adjust in (holm, benjamini_hochberg, benjamini_yekutieli):
        with_gap, without = adjust([0.01, None, 0.04]), adjust([0.01, 0.04])
        assert with_gap == [without[0], None, without[1]]
        assert adjust([]) == []
        assert adjust([None]) == [None]


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_a_p_is_a_probability(p: float) -> None:
    for adjust in (holm, benjamini_hochberg, benjamini_yekutieli):
        with pytest.raises(InputError, match="between 0 and 1"):
            adjust([0.5, p])
