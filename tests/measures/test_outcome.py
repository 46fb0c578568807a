"""Session outcome: success, corrections, escalation, and in how many turns it was resolved."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evalr import Failure
from evalr.measures import (
    SessionOutcome,
    Transcript,
    correction_rate,
    corrections,
    escalation_rate,
    success_rate,
    turns_to_resolution,
)
from evalr.measures.session_outcome import measure

OUTCOMES = [
    SessionOutcome(success=True, user_turns=1, corrections=0, escalated=False),
    SessionOutcome(success=True, user_turns=3, corrections=1, escalated=False),
    SessionOutcome(
        success=False, user_turns=2, corrections=3, escalated=True, failure_type="tool", failure_reason="It broke"
    ),
    SessionOutcome(success=True, user_turns=4, corrections=0, escalated=False),
]


def test_shares_of_sessions() -> None:
    assert success_rate(OUTCOMES) == 0.75
    assert escalation_rate(OUTCOMES) == 0.25
    assert correction_rate(OUTCOMES) == 0.5
    assert corrections(OUTCOMES) == 1


def test_what_nobody_recorded_is_unknown_and_not_none_at_all() -> None:
    for summary in (escalation_rate, correction_rate, corrections):
        estimate = summary.estimate([SessionOutcome(success=True), *OUTCOMES])
        assert estimate.left_out == {"unknown": 1}
        assert estimate.value == summary(OUTCOMES)


def test_a_session_that_failed_can_no_longer_be_resolved() -> None:
    estimate = turns_to_resolution.estimate(OUTCOMES)
    assert (estimate.value, estimate.unit) == (3, "turns")
    assert estimate.counts == {"ended": 3, "ended_otherwise": 1, "censored": 0}
    hopeless = turns_to_resolution.estimate([*OUTCOMES[:1], *OUTCOMES[2:3] * 2])
    assert (hopeless.value, hopeless.status) == (None, "not_reached")


def test_unknown_turns_are_left_out_by_name() -> None:
    estimate = turns_to_resolution.estimate([*OUTCOMES, SessionOutcome(success=True), Failure("broke")])
    assert (estimate.n, estimate.left_out) == (4, {"failed": 1, "unknown": 1})


@pytest.mark.parametrize(
    "fields",
    [
        {"success": True, "failure_type": "tool"},
        {"success": True, "failure_reason": "It broke"},
        {"success": True, "corrections": -1},
        {"success": True, "user_turns": -1},
        {},
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SessionOutcome(**fields)


def test_a_transfer_is_no_failure() -> None:
    assert SessionOutcome(success=True, escalated=True).success


def test_the_measure_needs_a_judge_or_people() -> None:
    assert measure.evaluator is None
    assert measure.reads is Transcript
    assert [summary.name for summary in measure.summaries()] == [
        "outcome",
        "outcome_escalation",
        "outcome_corrected",
        "outcome_corrections",
        "outcome_turns",
    ]
