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
from evalr.estimates.contest_results import Consistency, PositionEffect, WinTest
from evalr.estimates.estimate import Estimate, Groups, Trend
from evalr.estimates.folds import Fold, pass_k
from evalr.evaluators import Evaluator, Fallback, FunctionEvaluator
from evalr.fields import Field, verdict_fields
from evalr.inputs import About, Assignment
from evalr.summaries import Contest, Key, Mean, Per, Rate, Summary, TimeTo
from evalr.tallies.tally import Tally
from evalr.verdicts import Duplicates, Failure, HandOff, Result, Score, Skip, Verdict, one_per_subject, scores, tag

if TYPE_CHECKING:
    from evalr.estimates.lift import Allocation, Lift
    from evalr.reports.report import Report, report

__all__ = [
    "About",
    "Allocation",
    "AmbiguousLogError",
    "Assignment",
    "Bucket",
    "Consistency",
    "Contest",
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
    "Lift",
    "LogError",
    "Mean",
    "MissingExtraError",
    "MixedVersionsError",
    "Per",
    "PluginError",
    "PositionEffect",
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
    "WinTest",
    "one_per_subject",
    "pass_k",
    "report",
    "run_sync",
    "scores",
    "tag",
    "verdict_fields",
]


_LATER = {
    "Allocation": "evalr.estimates.lift",
    "Lift": "evalr.estimates.lift",
    "Report": "evalr.reports.report",
    "report": "evalr.reports.report",
}
"""What stands on much else is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
