"""Intervals for all looks at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from evalr.errors import InputError
from evalr.estimates.interval import NOTHING_COUNTED, normal_quantile
from evalr.estimates.sequential import (
    NO_VARIANCE,
    TOO_EARLY,
    always_valid,
    mixture_p,
    mixture_radius,
    planned_tau2,
    rate_sequence,
    running_p,
)

positive = st.floats(1e-9, 1e3)
levels = st.one_of(st.sampled_from([0.8, 0.95, 0.999]), st.floats(1e-4, 1 - 1e-9))


@given(st.floats(-100, 100), positive, positive, levels)
def test_p_is_alpha_where_the_interval_touches_0(value: float, variance: float, tau2: float, level: float) -> None:
    found = always_valid(value, variance, tau2=tau2, level=level)
    assert found.interval.low is not None
    assert found.interval.high is not None
    assert found.interval.low < found.interval.high
    assert found.interval.low <= value <= found.interval.high
    radius = mixture_radius(variance, tau2, level)
    assert mixture_p(radius, variance, tau2) == pytest.approx(1 - level, rel=1e-6)
    assert found.p is not None
    if abs(abs(value) / radius - 1) > 1e-9:
        assert (found.p < 1 - level) == (abs(value) > radius)


@given(positive, positive, levels)
def test_it_is_wider_than_an_interval_for_one_look(variance: float, tau2: float, level: float) -> None:
    assert mixture_radius(variance, tau2, level) > normal_quantile(level) * math.sqrt(variance)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_planned_tau2_is_narrowest_where_it_was_planned_for(level: float) -> None:
    planned = mixture_radius(0.01, planned_tau2(0.01, level), level)
    best = min(mixture_radius(0.01, 0.01 * factor, level) for factor in np.linspace(0.1, 40, 4000))
    assert planned < 1.001 * best


def test_the_mixture_is_a_mean_of_likelihood_ratios() -> None:
    """Over effects with a variance of tau2, by summing up a grid of them."""
    value, variance, tau2 = 0.3, 0.02, 0.05
    effects = np.linspace(-4, 4, 400_001)
    prior = np.exp(-(effects**2) / (2 * tau2)) / math.sqrt(2 * math.pi * tau2)
    ratios = np.exp((value * effects - effects**2 / 2) / variance)
    mixture = float((prior * ratios).sum() * (effects[1] - effects[0]))
    assert mixture_p(value, variance, tau2) == pytest.approx(1 / mixture, rel=1e-6)


def test_looks_too_early_or_without_a_variance_say_nothing() -> None:
    assert always_valid(0.1, None, tau2=0.01) == always_valid(0.1, 0.0, tau2=0.01)
    nothing = always_valid(0.1, 0.0, tau2=0.01)
    assert (nothing.interval.low, nothing.interval.reason, nothing.p) == (None, NO_VARIANCE, None)
    early = always_valid(0.1, 0.01, tau2=0.01, clusters=29)
    assert (early.interval.low, early.interval.reason, early.p) == (None, TOO_EARLY, None)
    assert always_valid(0.1, 0.01, tau2=0.01, clusters=30).interval.low is not None


def test_limits_keep_to_bounds() -> None:
    interval = always_valid(0.9, 1.0, tau2=1.0, bounds=(-1, 1)).interval
    assert (interval.low, interval.high) == (-1, 1)


def test_the_running_p_only_falls() -> None:
    assert running_p([None, 0.4, 0.6, None, 0.01, 0.2]) == [1.0, 0.4, 0.4, 0.4, 0.01, 0.01]
    assert running_p([]) == []


@pytest.mark.parametrize(("tau2", "variance"), [(0, 1), (-1, 1), (math.nan, 1), (math.inf, 1), (1, -1), (1, math.nan)])
def test_variances_are_not_negative(tau2: float, variance: float) -> None:
    with pytest.raises(InputError, match="tau2"):
        always_valid(0.0, variance, tau2=tau2)


def test_a_planned_variance_is_positive() -> None:
    with pytest.raises(InputError, match="positive"):
        planned_tau2(0.0)


@pytest.mark.parametrize("n", [1, 2, 10, 31])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_exact_sequence_of_a_rate_solves_its_equation(n: int, level: float) -> None:
    for k in range(n + 1):
        interval = rate_sequence(k, n, level=level)
        assert interval.low is not None
        assert interval.high is not None
        assert 0 <= interval.low <= k / n <= interval.high <= 1
        assert interval.low < interval.high
        mixed = special.betaln(k + 0.5, n - k + 0.5) - special.betaln(0.5, 0.5)
        for limit in (interval.low, interval.high):
            if 0 < limit < 1:
                likelihood = k * math.log(limit) + (n - k) * math.log1p(-limit)
                assert mixed - likelihood == pytest.approx(-math.log(1 - level), abs=1e-6)
        mirrored = rate_sequence(n - k, n, level=level)
        assert (mirrored.low, mirrored.high) == pytest.approx((1 - interval.high, 1 - interval.low))


def test_one_row_says_little_and_none_nothing() -> None:
    once = rate_sequence(1, 1)
    assert once.low is not None
    assert once.low < 0.05
    assert rate_sequence(0, 0).reason == NOTHING_COUNTED
    with pytest.raises(InputError, match="3 of 2"):
        rate_sequence(3, 2)


def test_a_rate_looked_at_after_each_row_is_held_by_the_exact_sequence() -> None:
    """The share of a thousand runs in which any of 60 looks leaves the truth out is at most 5%, nearly."""
    random, missed = np.random.default_rng(5), 0
    table = {(k, n): rate_sequence(k, n)[:2] for n in range(1, 61) for k in range(n + 1)}
    for _ in range(1000):
        hits = np.cumsum(random.uniform(size=60) < 0.7).tolist()
        looks = (table[k, n] for n, k in enumerate(hits, start=1))
        missed += any(not (low or 0) <= 0.7 <= (high or 0) for low, high in looks)
    assert missed <= 60
