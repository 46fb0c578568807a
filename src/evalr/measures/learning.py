"""Learning impact: did what the agent was given to know bear on its response, and make it better or worse?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from evalr.evaluators import Evaluator, Fallback, FunctionEvaluator
from evalr.inputs import About, LearningUse
from evalr.measures.measure import Measure
from evalr.summaries import Contest, Rate, Summary
from evalr.summaries.keys import UnitOf
from evalr.verdicts import HandOff, Skip

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


# ---------------------------------------------------------------------------------------------------------------------
# The evaluator
# ---------------------------------------------------------------------------------------------------------------------


def _unless_gone(given: LearningUse) -> Any:
    gone = given.unjudgeable()
    return HandOff("it can be judged", cost=0.0) if gone is None else Skip(gone, cost=0.0)


def learning_evaluator(judge: Evaluator[LearningUse, LearningImpact]) -> Fallback[LearningUse, LearningImpact]:
    """An evaluator made of any judge of learnings, which it does not ask where the text of the learning is gone.

    That is a skip, which says so. Judges by language models (`evalr.dspy.learning_judge`) skip it by themselves.

    Args:
        judge: reads a `LearningUse`, and gives a `LearningImpact`.
    """
    first = FunctionEvaluator("learning", "1", _unless_gone, LearningUse, LearningImpact, inline=True)
    return Fallback(first, judge)


# ---------------------------------------------------------------------------------------------------------------------
# Of each verdict
# ---------------------------------------------------------------------------------------------------------------------

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

_HELPED = {"positive": "win", "neutral": "tie", "negative": "loss"}
_HURT = {"positive": "loss", "neutral": "tie", "negative": "win"}


def _ending(endings: dict[str, str]) -> Callable[[LearningImpact], str | None]:
    return lambda verdict: None if verdict.impact is None else endings[verdict.impact]


net_impact = Contest(
    "learning",
    of=LearningImpact,
    outcome=_ending(_HELPED),
    title="net learning impact",
    noun="learning",
)
"""The share of learnings that helped less the share of those that hurt."""


# ---------------------------------------------------------------------------------------------------------------------
# Of each response
# ---------------------------------------------------------------------------------------------------------------------


def _response(about: About) -> Hashable:
    response = (about.attributes or {}).get("response")
    # Responses are numbered anew in each session of many a log.
    return None if response is None else (about.user, about.session, response)


def _learning(about: About) -> Hashable:
    attributes = about.attributes or {}
    learning = attributes.get("learning")
    return None if learning is None else (attributes.get("learning_kind"), learning)


per_response = UnitOf("response", _response)
"""One response of an agent, for `per=`: by user, session and `response_id`."""

per_learning = UnitOf("learning", _learning)
"""One learning, for `per=`, whoever's responses it was given for: by `learning_kind` and `learning_id`."""

_once: dict[str, Any] = {"per": per_response, "fold": "unopposed"}

response_relevance_rate = replace(
    relevance_rate,
    name="learning_response_relevant",
    title="responses with a relevant learning",
    per=per_response,
    fold="any",
)
"""The share of responses for which any learning applied, of those of which it is known for any."""

response_net_impact = replace(net_impact, name="learning_response", title="net learning impact on responses", **_once)
"""The share of responses that learnings helped less the share that they hurt: see `response_positive_rate`."""

response_positive_rate = replace(
    response_net_impact, name="learning_response_positive", title="responses that learnings helped", view="wins"
)
"""The share of responses with a positive impact: any learning helped, and none hurt.

Where some helped and some hurt, the impact is mixed; where none did either, it is neutral; where none was judged, it
is unknown, and the response is left out.
"""

response_negative_rate = replace(
    response_positive_rate,
    name="learning_response_negative",
    title="responses that learnings hurt",
    outcome=_ending(_HURT),
)
"""The share of responses with a negative impact: any learning hurt, and none helped."""


response_mixed_rate = replace(
    response_net_impact, name="learning_response_mixed", title="responses helped and hurt", view="mixed"
)
"""The share of responses with a mixed impact: any learning helped, and any other hurt."""

learning_coverage = Rate(
    "learning_coverage",
    of=LearningImpact,
    hits=lambda v: v.impact is not None,
    without_verdict="miss",
    title="learnings judged",
    noun="learning",
)
"""The share of learnings whose impact is known. What failed, was skipped or is unknown is not."""


def _summaries() -> Sequence[Summary[Any]]:
    return (
        net_impact,
        relevance_rate,
        positive_rate,
        negative_rate,
        response_net_impact,
        response_relevance_rate,
        response_positive_rate,
        response_negative_rate,
        response_mixed_rate,
        learning_coverage,
    )


measure = Measure(
    name="learning",
    question="did what the agent was given to know make its responses better?",
    input=LearningUse,
    verdict=LearningImpact,
    summaries=_summaries,
)
