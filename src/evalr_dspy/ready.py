"""Judges that are ready to use: a written rubric, and what to show of the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dspy

from evalr.inputs import LearningUse, Pair, Transcript
from evalr.measures import LearningImpact, Preference, SessionOutcome, TaskCompletion
from evalr_dspy.judge import DspyJudge
from evalr_dspy.rubrics import SUCCESS_DEFINITION, learning_rubric, outcome_rubric


def completion_judge(*, lm: dspy.BaseLM, **options: Any) -> DspyJudge[Transcript, TaskCompletion]:
    """Did the session achieve what the person asked for, and how well?

    Args:
        lm: the language model.
        **options: others of `DspyJudge`.
    """
    return DspyJudge(TaskCompletion, inputs=Transcript, lm=lm, **options)


def outcome_judge(
    *,
    lm: dspy.BaseLM,
    success_definition: str = SUCCESS_DEFINITION,
    tools: Mapping[str, str] | None = None,
    **options: Any,
) -> DspyJudge[Transcript, SessionOutcome]:
    """Did the session succeed, what had the person to correct, was it handed to people, and why did it fail?

    Args:
        lm: the language model.
        success_definition: what makes a session a success, in your own words.
        tools: what your agent can call, by name, with a description of each.
        **options: others of `DspyJudge`.
    """
    rubric = outcome_rubric(success_definition, tools)
    return DspyJudge(SessionOutcome, inputs=Transcript, lm=lm, **{"instructions": rubric, **options})


def pairwise_judge(*, lm: dspy.BaseLM, **options: Any) -> DspyJudge[Pair, Preference]:
    """Which of two answers to one message is better?

    It sees the message and the answers alone: which of them was served, and what came before, it is not told. The order
    is yours to decide, and judges do prefer an answer for where it stands: ask for both orders.

    Args:
        lm: the language model.
        **options: others of `DspyJudge`.
    """
    return DspyJudge(Preference, inputs=Pair, lm=lm, **{"name": "preference", **options})


def learning_judge(
    *,
    lm: dspy.BaseLM,
    success_definition: str = SUCCESS_DEFINITION,
    tools: Mapping[str, str] | None = None,
    **options: Any,
) -> DspyJudge[LearningUse, LearningImpact]:
    """Did a learning apply to a response, did it move it toward success or away, and what was the matter?

    One call says all three. The model is shown the turns around the response, which is marked and never left out, with
    the recorded tool calls and their status; whether the agent itself cited the learning, it is not told.

    Args:
        lm: the language model.
        success_definition: what makes a session a success, in your own words.
        tools: what your agent can call, by name, with a description of each.
        **options: others of `DspyJudge`.
    """
    own = {
        "instructions": learning_rubric(success_definition, tools),
        "fields": ("message", "response", "learning_kind", "learning", "turns"),
        "target": "response_id",
    }
    return DspyJudge(LearningImpact, inputs=LearningUse, lm=lm, **{**own, **options})
