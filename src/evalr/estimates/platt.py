"""What is a classifier's score worth? Its log-odds as those of being right, by two numbers (Platt 1999).

Two numbers, since people's labels are few: with some hundred of them, isotonic steps follow the noise
(Niculescu-Mizil & Caruana 2005, who need about a thousand).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

_SMALLEST = 1e-6
"""Scores nearer to 0 and 1 are taken for as sure as this: their log-odds would outweigh all others."""

_STEPS = 100
_RIDGE = 1e-12
"""Keeps the curvature from being singular where all scores are the same; as Lin, Lin & Weng 2007 have it."""


class Platt(NamedTuple):
    """The chance of being right at a score: `1 / (1 + exp(-(intercept + slope * log-odds of the score)))`."""

    slope: float
    """At least 0: a higher score is never a lower chance."""
    intercept: float

    def chance(self, score: float) -> float:
        """The chance of being right at a score of 0..1, both excluded."""
        return _logistic(self.intercept + self.slope * log_odds(score))


def log_odds(score: float) -> float:
    """Those of a score of 0..1, finite at both ends."""
    kept = min(max(score, _SMALLEST), 1 - _SMALLEST)
    return math.log(kept) - math.log1p(-kept)


def platt(rows: Iterable[tuple[float, bool]]) -> Platt | None:
    """The scaling of (score, right) that is the likeliest, None without rows.

    Rather than 1 and 0 it aims at `(right + 1) / (right + 2)` and `1 / (wrong + 2)`, as Platt 1999 does, so that few
    labels that are all right do not make it certain. By Newton's method with halved steps (Lin, Lin & Weng 2007). Where
    higher scores were right less often, the score tells nothing, and all have the same chance.
    """
    known = [(log_odds(score), right) for score, right in rows]
    if not known:
        return None
    right = sum(each for _, each in known)
    if_right, if_wrong = (right + 1) / (right + 2), 1 / (len(known) - right + 2)
    aims = [(x, if_right if was_right else if_wrong) for x, was_right in known]
    share = math.fsum(aim for _, aim in aims) / len(aims)
    alone = Platt(0.0, math.log(share) - math.log1p(-share))
    found = _fitted(aims, alone)
    return found if found.slope > 0 else alone


def _fitted(aims: list[tuple[float, float]], start: Platt) -> Platt:
    at, loss = start, _loss(aims, start)
    for _ in range(_STEPS):
        chances = [(x, aim, _logistic(at.intercept + at.slope * x)) for x, aim in aims]
        by_slope = math.fsum(x * (chance - aim) for x, aim, chance in chances)
        by_intercept = math.fsum(chance - aim for _, aim, chance in chances)
        if max(abs(by_slope), abs(by_intercept)) < 1e-9 * len(aims):
            break
        weights = [(x, chance * (1 - chance)) for x, _, chance in chances]
        aa = math.fsum(x * x * weight for x, weight in weights) + _RIDGE
        ab = math.fsum(x * weight for x, weight in weights)
        bb = math.fsum(weight for _, weight in weights) + _RIDGE
        determinant = aa * bb - ab * ab
        if determinant <= 0:  # all scores are the same, but for rounding
            break
        slope = (bb * by_slope - ab * by_intercept) / determinant
        intercept = (aa * by_intercept - ab * by_slope) / determinant
        steps = (Platt(at.slope - slope / 2**halved, at.intercept - intercept / 2**halved) for halved in range(34))
        better = next((tried for tried in steps if _loss(aims, tried) < loss), None)
        if better is None:  # as low as floating point can tell
            break
        at, loss = better, _loss(aims, better)
    return at


def _loss(aims: list[tuple[float, float]], at: Platt) -> float:
    """The mean of -log(chance of the aim), up to what all have alike."""
    return math.fsum(_softplus(z) - aim * z for z, aim in ((at.intercept + at.slope * x, aim) for x, aim in aims))


def _softplus(z: float) -> float:
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def _logistic(z: float) -> float:
    small = math.exp(-abs(z))
    return 1 / (1 + small) if z >= 0 else small / (1 + small)
