"""The door to judges by language models; it needs the extra `dspy`."""

from evalr.errors import MissingExtraError

try:
    from evalr_dspy import (
        SUCCESS_DEFINITION,
        DspyJudge,
        Gepa,
        StoredOutcome,
        Training,
        UnclearAnswerError,
        completion_judge,
        learning_judge,
        outcome_judge,
        pairwise_judge,
        stored_outcomes,
        tagging_judge,
        tags_of,
    )
except ModuleNotFoundError as error:
    if error.name != "dspy":
        raise
    raise MissingExtraError("judges by language models need dspy: pip install 'evalr[dspy]'", name="dspy") from error

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
