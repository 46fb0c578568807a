"""Session outcome: did the session succeed, what had people to correct, and where did it fail?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field, model_validator

from evalr.inputs import Transcript
from evalr.measures.measure import Measure
from evalr.summaries import Mean, Rate, Summary, TimeTo


class SessionOutcome(BaseModel):
    """How a session ended for the person, as a judge or people see it."""

    success: bool = Field(description="The person's task was resolved")
    corrections: int | None = Field(
        default=None, ge=0, description="Turns in which the person corrected or redirected an earlier response"
    )
    escalated: bool | None = Field(default=None, description="The session was handed to a person")
    user_turns: int | None = Field(default=None, ge=0, description="The person's turns until it was resolved, or ended")
    failure_type: str | None = Field(default=None, description="What kind of failure it was, where it failed")
    failure_reason: str | None = Field(default=None, description="Why it failed, where it failed")

    @model_validator(mode="after")
    def _failures_fail(self) -> SessionOutcome:
        if self.success and (self.failure_type is not None or self.failure_reason is not None):
            raise ValueError("a success has no failure_type and no failure_reason")
        return self


success_rate = Rate("outcome", of=SessionOutcome, hits=lambda v: v.success, title="success", noun="session")
"""The share of sessions that succeeded."""

escalation_rate = Rate(
    "outcome_escalation", of=SessionOutcome, hits=lambda v: v.escalated, title="escalated", noun="session"
)
"""The share of sessions that were handed to a person."""

correction_rate = Rate(
    "outcome_corrected",
    of=SessionOutcome,
    hits=lambda v: None if v.corrections is None else v.corrections > 0,
    title="corrected",
    noun="session",
)
"""The share of sessions in which the person corrected the agent at least once."""

corrections = Mean(
    "outcome_corrections",
    of=SessionOutcome,
    value=lambda v: v.corrections,
    title="corrections a session",
    noun="session",
)
"""The mean number of corrections in a session."""

turns_to_resolution = TimeTo(
    "outcome_turns",
    of=SessionOutcome,
    # A session that failed is over: it can no longer be resolved. When it failed changes nothing, as none is cut off:
    # left out where that is not known, failures would make the others look quick.
    after=lambda v: 0 if v.user_turns is None and not v.success else v.user_turns,
    end=lambda v: "resolved" if v.success else "failed",
    event="resolved",
    unit="turns",
    title="turns to resolution",
    noun="session",
)
"""The number of the person's turns by which half of all sessions were resolved."""


def _summaries() -> Sequence[Summary[Any]]:
    return (success_rate, escalation_rate, correction_rate, corrections, turns_to_resolution)


measure = Measure(
    name="outcome",
    question="did the session succeed, and at what cost to the person?",
    input=Transcript,
    verdict=SessionOutcome,
    summaries=_summaries,
)
