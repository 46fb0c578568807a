"""What a judge judges by, where nobody says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from pydantic import BaseModel

from evalr.measures import LearningImpact, Preference, SessionOutcome, TaskCompletion
from evalr_dspy.rubrics import completion_rubric, learning_rubric, outcome_rubric, pairwise_rubric

_RUBRICS: dict[type, Callable[[], str]] = {
    TaskCompletion: completion_rubric,
    SessionOutcome: outcome_rubric,
    LearningImpact: learning_rubric,
    Preference: pairwise_rubric,
}


def default_rubric(verdict_type: type[BaseModel]) -> str:
    """The written rubric of that verdict type or of one that it extends, else what the type says of itself."""
    found = next((_RUBRICS[kind] for kind in verdict_type.__mro__ if kind in _RUBRICS), None)
    if found is not None:
        return found()
    said = inspect.cleandoc(verdict_type.__doc__ or "")
    return f"You are a careful judge. Judge what you are given, by what is in it alone.\n\n{said}".rstrip()
