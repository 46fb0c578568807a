"""evalr measures what AI agents achieve for people, end to end, from the logs that applications already keep."""

from typing import TYPE_CHECKING, Any

from evalr.background import run_sync
from evalr.errors import (
    AmbiguousLogError,
    DuplicateError,
    EvalrError,
    FieldTypeError,
    InputError,
    JournalError,
    LogError,
    MissingExtraError,
    MixedVersionsError,
    PluginError,
    RecordError,
    UnknownLogError,
)
from evalr.estimates.buckets import Bucket, TimeBucket
from evalr.estimates.estimate import Estimate, Groups, Trend
from evalr.estimates.folds import Fold, pass_k
from evalr.evaluators import Evaluator, Fallback, FunctionEvaluator
from evalr.fields import Field, verdict_fields
from evalr.inputs import About
from evalr.summaries import Key, Mean, Per, Rate, Summary, TimeTo
from evalr.tallies.tally import Tally
from evalr.verdicts import Duplicates, Failure, HandOff, Result, Score, Skip, Verdict, one_per_subject, scores, tag

if TYPE_CHECKING:
    from evalr.reports.report import Report, report

__all__ = [
    "About",
    "AmbiguousLogError",
    "Bucket",
    "DuplicateError",
    "Duplicates",
    "Estimate",
    "Evaluator",
    "EvalrError",
    "Failure",
    "Fallback",
    "Field",
    "FieldTypeError",
    "Fold",
    "FunctionEvaluator",
    "Groups",
    "HandOff",
    "InputError",
    "JournalError",
    "Key",
    "LogError",
    "Mean",
    "MissingExtraError",
    "MixedVersionsError",
    "Per",
    "PluginError",
    "Rate",
    "RecordError",
    "Report",
    "Result",
    "Score",
    "Skip",
    "Summary",
    "Tally",
    "TimeBucket",
    "TimeTo",
    "Trend",
    "UnknownLogError",
    "Verdict",
    "one_per_subject",
    "pass_k",
    "report",
    "run_sync",
    "scores",
    "tag",
    "verdict_fields",
]


def __getattr__(name: str) -> Any:
    """The report stands on everything else, so it is imported when it is asked for."""
    if name in ("Report", "report"):
        from evalr.reports import report as room

        return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
