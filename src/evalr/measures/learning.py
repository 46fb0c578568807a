"""Learning impact: did what the agent was given to know bear on its response, and make it better or worse?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from evalr.inputs import LearningUse
from evalr.measures.measure import Measure
from evalr.summaries import Contest, Rate, Summary

Impact = Literal["positive", "neutral", "negative"]
Diagnosis = Literal["content_defect", "application_failure", "external_failure", "no_issue", "unknown"]


class LearningImpact(BaseModel):
    """What one learning did for one response, as a judge or people see it. None is unknown."""

    relevant: bool | None = Field(default=None, description="The learning applied to the message and the response")
    relevance_reason: str | None = Field(default=None, description="Why it did or did not apply")
    impact: Impact | None = Field(default=None, description="Where it moved the response: toward success or away")
    impact_reason: str | None = Field(default=None, description="Why it had that impact")
    diagnosis: Diagnosis | None = Field(default=None, description="What was wrong, where anything was")
    diagnosis_reason: str | None = Field(default=None, description="What the diagnosis rests on")

    @model_validator(mode="after")
    def _something_is_said(self) -> LearningImpact:
        if self.diagnosis_reason is not None and self.diagnosis is None:
            raise ValueError("a diagnosis_reason needs a diagnosis")
        return self


relevance_rate = Rate(
    "learning_relevant", of=LearningImpact, hits=lambda v: v.relevant, title="learnings relevant", noun="learning"
)
"""The share of learnings that applied, of those of which it is known."""

positive_rate = Rate(
    "learning_positive",
    of=LearningImpact,
    hits=lambda v: None if v.impact is None else v.impact == "positive",
    title="learnings that helped",
    noun="learning",
)
"""The share of learnings that moved their response toward success."""

negative_rate = Rate(
    "learning_negative",
    of=LearningImpact,
    hits=lambda v: None if v.impact is None else v.impact == "negative",
    title="learnings that hurt",
    noun="learning",
)
"""The share of learnings that moved their response away from success."""

_ENDINGS = {"positive": "win", "neutral": "tie", "negative": "loss"}

net_impact = Contest(
    "learning",
    of=LearningImpact,
    outcome=lambda v: None if v.impact is None else _ENDINGS[v.impact],
    title="net learning impact",
    noun="learning",
)
"""The share of learnings that helped less the share of those that hurt."""


def _summaries() -> Sequence[Summary[Any]]:
    return (net_impact, relevance_rate, positive_rate, negative_rate)


measure = Measure(
    name="learning",
    question="did what the agent was given to know make its responses better?",
    input=LearningUse,
    verdict=LearningImpact,
    summaries=_summaries,
)
