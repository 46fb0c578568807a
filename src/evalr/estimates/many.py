"""Which of many tests still say something? p-values adjusted for how many were looked at.

An adjusted p is compared with the usual 0.05. A test without a p (None) keeps None and does not count as one.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalr.errors import InputError


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted so that any false finding at all is unlikely, however the tests depend on each other: for gates.

    Holm 1979. Raises InputError for a p outside 0..1.
    """
    order = _ascending(p_values)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p))
        adjusted[place] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted so that false findings are a small part of all findings: for screens of many rules or signals.

    Benjamini & Hochberg 1995, for tests that are independent or depend positively. Raises InputError for a p outside
    0..1.
    """
    return _stepped_up(p_values, 1.0)


def benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """The same for tests that depend on each other in any way (Benjamini & Yekutieli 2001)."""
    return _stepped_up(p_values, sum(1 / rank for rank in range(1, len(_ascending(p_values)) + 1)))


def _stepped_up(p_values: Sequence[float | None], factor: float) -> list[float | None]:
    order = _ascending(p_values)
    adjusted: list[float | None] = [None] * len(p_values)
    lowest = 1.0
    for rank, (p, place) in reversed(list(enumerate(order, start=1))):
        lowest = min(lowest, factor * (len(order) / rank) * p)
        adjusted[place] = lowest
    return adjusted


def _ascending(p_values: Sequence[float | None]) -> list[tuple[float, int]]:
    known = [(p, place) for place, p in enumerate(p_values) if p is not None]
    if not all(0 <= p <= 1 for p, _ in known):
        raise InputError("a p lies between 0 and 1")
    return sorted(known)
