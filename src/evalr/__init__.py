"""evalr measures what AI agents achieve for people, end to end, from the logs that applications already keep."""

from evalr.errors import (
    AmbiguousLogError,
    DuplicateError,
    EvalrError,
    FieldTypeError,
    InputError,
    LogError,
    MissingExtraError,
    MixedVersionsError,
    PluginError,
    RecordError,
    UnknownLogError,
)
from evalr.estimates.estimate import Estimate, Groups, Trend
from evalr.estimates.folds import pass_k
from evalr.evaluators import Evaluator, Fallback, FunctionEvaluator
from evalr.fields import Field, verdict_fields
from evalr.inputs import About
from evalr.summaries import Mean, Rate, Summary, TimeTo
from evalr.tallies.tally import Tally
from evalr.verdicts import Failure, HandOff, Result, Score, Skip, Verdict, one_per_subject, scores, tag

__all__ = [
    "About",
    "AmbiguousLogError",
    "DuplicateError",
    "Estimate",
    "Evaluator",
    "EvalrError",
    "Failure",
    "Fallback",
    "Field",
    "FieldTypeError",
    "FunctionEvaluator",
    "Groups",
    "HandOff",
    "InputError",
    "LogError",
    "Mean",
    "MissingExtraError",
    "MixedVersionsError",
    "PluginError",
    "Rate",
    "RecordError",
    "Result",
    "Score",
    "Skip",
    "Summary",
    "Tally",
    "TimeTo",
    "Trend",
    "UnknownLogError",
    "Verdict",
    "one_per_subject",
    "pass_k",
    "scores",
    "tag",
    "verdict_fields",
]
