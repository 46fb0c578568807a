"""Judges by language models, through dspy."""

from evalr_dspy.gepa import Gepa, Training
from evalr_dspy.judge import DspyJudge
from evalr_dspy.parsing import UnclearAnswerError
from evalr_dspy.ready import completion_judge, learning_judge, outcome_judge, pairwise_judge
from evalr_dspy.rubrics import SUCCESS_DEFINITION
from evalr_dspy.tagging import StoredOutcome, stored_outcomes, tagging_judge, tags_of

__all__ = [
    "SUCCESS_DEFINITION",
    "DspyJudge",
    "Gepa",
    "StoredOutcome",
    "Training",
    "UnclearAnswerError",
    "completion_judge",
    "learning_judge",
    "outcome_judge",
    "pairwise_judge",
    "stored_outcomes",
    "tagging_judge",
    "tags_of",
]
