"""What the screen and the page call the same things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evalr.estimates.lift import Lift
from evalr.estimates.words import count_words, value_words, window_words
from evalr_reflexio.answers.health import Health
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.answers.measured import CORRECTIONS, DROP_OFF, ESCALATION, SUCCESS, TOKENS, TURNS
from evalr_reflexio.noticed import PREFIXES

SAID_ONCE: Final = ("observational", "sample_ratio_mismatch", "uneven_coverage")
"""Flags of all differences of a pair of arms, which are said above them."""

AGREEMENT: Final[Mapping[str, str]] = {
    "accuracy": "judge agrees",
    "kappa": "kappa",
    "tpr": "judged successes, of those reported",
    "tnr": "judged failures, of those reported",
}


def titled(name: str, impact: Impact) -> str:
    """What arms are compared in."""
    return {
        SUCCESS: "success",
        CORRECTIONS: "corrections a session",
        TURNS: f"resolved within {count_words(impact.turns, 'turn')}",
        ESCALATION: "escalated",
        TOKENS: "output tokens a session",
        DROP_OFF: f"drop-off after {window_words(impact.window)}",
    }[name]


def power_words(lift: Lift) -> str | None:
    """`80% power to see 54.6pp`, the smallest true difference that so many users show; None where nothing tells it."""
    smallest, unit = lift.detectable(), lift.difference.unit
    if smallest is None:
        return None
    if unit == "points" and smallest > 1:  # more than shares can differ by
        return "less than 80% power to see even 100pp"
    return f"80% power to see {value_words(smallest, unit).removeprefix('+')}"


def health_counts(health: Health) -> dict[str, int]:
    """What is counted of the evaluation, those of which there are some."""
    counted = {
        "verdicts that requests came after": health.prefix,
        "verdicts on sessions that are gone": health.gone,
        "earlier verdicts, judged again": health.judged_again,
        "sessions without an interaction": health.without_turns,
        "sessions outside the period": health.outside_the_period,
        "failed parts of gradings": health.failed_chunks,
    }
    return {title: count for title, count in counted.items() if count}


def health_kinds(health: Health) -> dict[str, Mapping[str, int]]:
    """What is counted of it by kind, those of which there are some."""
    counted: dict[str, Mapping[str, int]] = {
        "verdicts by other judges, not counted": health.other_judges,
        "sessions whose requests disagree": {what: n for what, n in health.disagreeing.items() if what != PREFIXES},
        "gradings of learnings": health.gradings,
        "rows skipped": health.skipped,
    }
    return {title: counts for title, counts in counted.items() if counts}


def sampling_words(sampling: Mapping[str, float]) -> str:
    """`sessions 5.0%, evaluation only 100.0%, learnings 5.0%`: the shares that the configuration has judged."""
    return ", ".join(f"{name.replace('_', ' ')} {value_words(rate, 'share')}" for name, rate in sampling.items())
