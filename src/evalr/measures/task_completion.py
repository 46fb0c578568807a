"""Task completion: did the session achieve what the person asked for?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from evalr.estimates.folds import pass_k
from evalr.inputs import Transcript
from evalr.measures.measure import Measure
from evalr.summaries import Mean, Per, Rate, Summary


class TaskCompletion(BaseModel):
    """Whether a session achieved what the person asked for, as a judge or people see it."""

    completed: bool = Field(description="The request was achieved")
    quality: int = Field(ge=1, le=5, description="How well, from 1 (not at all) to 5 (could not be better)")
    reason: str | None = Field(default=None, description="Why, in a sentence or two")


completion_rate = Rate(
    "completion", of=TaskCompletion, hits=lambda v: v.completed, title="task completion", noun="session"
)
"""The share of sessions completed."""

completion_quality = Mean(
    "completion_quality",
    of=TaskCompletion,
    value=lambda v: v.quality,
    bounds=(1, 5),
    title="quality, from 1 to 5",
    noun="session",
)
"""The mean quality, from 1 to 5."""


def completion_pass_k(k: int, *, per: Per = "task") -> Rate[TaskCompletion]:
    """The chance that k trials of a task are all completed, over tasks that were tried at least k times.

    `per` says which attribute names the task.
    """
    return replace(completion_rate, name=f"completion_pass_{k}", title=f"pass^{k}", per=per, fold=pass_k(k))


def _summaries() -> Sequence[Summary[Any]]:
    return (completion_rate, completion_quality)


measure = Measure(
    name="completion",
    question="did the session achieve what the person asked for?",
    input=Transcript,
    verdict=TaskCompletion,
    summaries=_summaries,
)
