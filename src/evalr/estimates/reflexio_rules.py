"""The two lift rules of Reflexio, digit for digit, to set beside our own; neither holds its level.

Its evaluation page takes sessions for independent (Wald); its retrieval experiments cluster by user. Both multiply the
standard error by 1.96, so a small holdout is believed too much (benchmarks/coverage_lift.md), and both give a width of
0 where all outcomes of each arm are the same. So they return their own types, and only who asks for them by name gets
them as a difference: without limits where their width is 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from evalr.errors import InputError
from evalr.estimates.compare import Difference
from evalr.estimates.interval import NOTHING_COUNTED, Interval, no_interval
from evalr.tallies.moments import Moments

Z = 1.96
LEVEL = 0.95
CAP = 0.5

CAPPED = "the half width is more than 50 points, and is shown as that: not enough data"
NO_WIDTH = "the rule gives a width of 0, since the outcomes of each arm are all the same: no interval"
TOO_FEW = "the rule gives limits from two users in each arm"


class SessionRule(NamedTuple):
    """A lift and the half of its 95% Wald interval, in shares (not percentage points)."""

    lift: float | None
    half_width: float | None
    """At most 0.5."""
    unclamped: float | None
    low_confidence: bool | None
    """Whether the half width was above 0.5. It is not where an arm's outcomes are all the same, of one session even."""


class UserRule(NamedTuple):
    """A lift with its 95% limits, in shares (not percentage points)."""

    lift: float | None
    low: float | None
    high: float | None
    relative: float | None


def session_rule(treatment: Moments, control: Moments) -> SessionRule:
    """The tile of the evaluation page: `1.96 sqrt(p (1 - p) / n + ...)` over sessions, clamped at 50 points.

    `m` counts sessions. None where an arm is empty.
    """
    first, second = treatment.ratio, control.ratio
    if first is None or second is None:
        return SessionRule(None, None, None, None)
    half = Z * math.sqrt(first * (1 - first) / Fraction(treatment.m) + second * (1 - second) / Fraction(control.m))
    return SessionRule(float(first) - float(second), min(half, CAP), half, half > CAP)


def user_rule(treatment: Moments, control: Moments) -> UserRule:
    """The result of a retrieval experiment: 1.96 times the root of the arms' CR1 variances, each end within -1..1.

    No limits with fewer than two users in an arm; no relative lift where the control is 0.
    """
    first, second = treatment.ratio, control.ratio
    if first is None or second is None:
        return UserRule(None, None, None, None)
    lift = float(first) - float(second)
    relative = None if second == 0 else lift / float(second)
    one, other = treatment.robust_variance(), control.robust_variance()
    if one is None or other is None:
        return UserRule(lift, None, None, relative)
    half = Z * math.sqrt(one + other)
    return UserRule(lift, max(-1.0, lift - half), min(1.0, lift + half), relative)


def session_difference(treatment: Moments, control: Moments, level: float) -> Difference:
    """`session_rule` as a difference, saying where it was clamped. Raises InputError for a level that is not 0.95."""
    _check(level)
    found = session_rule(treatment, control)
    if found.lift is None or found.half_width is None:
        return Difference(None, no_interval(NOTHING_COUNTED), None, "none")
    reason = CAPPED if found.low_confidence else None
    return _difference(
        found.lift, found.lift - found.half_width, found.lift + found.half_width, "reflexio-wald/1", reason
    )


def user_difference(treatment: Moments, control: Moments, level: float) -> Difference:
    """`user_rule` as a difference. Raises InputError for a level that is not 0.95."""
    _check(level)
    found = user_rule(treatment, control)
    if found.lift is None:
        return Difference(None, no_interval(NOTHING_COUNTED), None, "none")
    if found.low is None or found.high is None:
        return Difference(found.lift, no_interval(TOO_FEW), None, "none")
    return _difference(found.lift, found.low, found.high, "reflexio-users/1", None)


def _check(level: float) -> None:
    if level != LEVEL:
        raise InputError(f"the rules of Reflexio are at the level 0.95, not {level}")


def _difference(lift: float, low: float, high: float, method: str, reason: str | None) -> Difference:
    if low == high:
        return Difference(lift, no_interval(NO_WIDTH), None, "none")
    return Difference(lift, Interval(low, high, None, method, None, reason), None, "none")
