"""Rows are worked on in parts, so that millions of them need little room: where the parts end changes no digit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from evalr.estimates import duration
from evalr.estimates.duration import curve, incidence, quantile


def rows(size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    after = np.round(random.exponential(5, size), 1)
    end = random.choice([0, 1, 2], size, p=[0.3, 0.5, 0.2]).astype(np.int8)
    return after, end, random.integers(0, max(2, size // 5), size).astype(np.int32)


@pytest.mark.parametrize("seed", range(20))
def test_where_parts_end_changes_no_digit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = rows(40 + seed, seed)

    def answers() -> str:
        return repr((incidence(*given, at=3.0), incidence(*given, at=1e9), quantile(*given), curve(*given)))

    whole = answers()
    for part in (1, 2, 7, 40):
        monkeypatch.setattr(duration, "_PART", part)
        assert answers() == whole


def test_an_estimate_takes_few_bytes_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 200_000
    monkeypatch.setattr(duration, "_PART", size // 50)
    after, end, cluster = rows(size, 1)
    incidence(after[:100], end[:100], cluster[:100], at=3.0)  # imports are no part of it
    tracemalloc.start()
    try:
        incidence(after, end, cluster, at=3.0)
        quantile(after, end, cluster)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / size < 20
