"""evalr measures what AI agents achieve for people, end to end, from the logs that applications already keep."""

from typing import TYPE_CHECKING, Any

from evalr.background import run_sync
from evalr.errors import (
    AmbiguousLogError,
    DatasetError,
    DuplicateError,
    EvalrError,
    ExperimentConflictError,
    FieldTypeError,
    InputError,
    JournalError,
    LogError,
    MissingExtraError,
    MixedVersionsError,
    PluginError,
    RecordError,
    RegistryError,
    SinkError,
    SpoolError,
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
    from evalr.estimates.many import benjamini_hochberg, benjamini_yekutieli, holm
    from evalr.estimates.plot import Plot
    from evalr.estimates.power import (
        Detectable,
        Needed,
        design_effect,
        detectable,
        intraclass_correlation,
        power_of,
        users_needed,
    )
    from evalr.estimates.sample_ratio import SampleRatio, coverage_by_arm, sample_ratio, sequential_sample_ratio
    from evalr.estimates.sequential import running_p
    from evalr.estimates.survival import SurvivalCurve
    from evalr.estimates.trends import Trends
    from evalr.reports.report import Report, report

__all__ = [
    "About",
    "Allocation",
    "AmbiguousLogError",
    "Assignment",
    "Bucket",
    "Consistency",
    "Contest",
    "Detectable",
    "DatasetError",
    "DuplicateError",
    "Duplicates",
    "Estimate",
    "Evaluator",
    "EvalrError",
    "ExperimentConflictError",
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
    "Needed",
    "Per",
    "Plot",
    "PluginError",
    "PositionEffect",
    "Rate",
    "RecordError",
    "RegistryError",
    "Report",
    "Result",
    "SampleRatio",
    "Score",
    "SinkError",
    "Skip",
    "SpoolError",
    "Summary",
    "SurvivalCurve",
    "Tally",
    "TimeBucket",
    "TimeTo",
    "Trend",
    "Trends",
    "UnknownLogError",
    "Verdict",
    "WinTest",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "coverage_by_arm",
    "design_effect",
    "detectable",
    "holm",
    "intraclass_correlation",
    "one_per_subject",
    "pass_k",
    "power_of",
    "report",
    "run_sync",
    "running_p",
    "sample_ratio",
    "scores",
    "sequential_sample_ratio",
    "tag",
    "users_needed",
    "verdict_fields",
]


_LATER = {
    "Allocation": "evalr.estimates.lift",
    "Detectable": "evalr.estimates.power",
    "Lift": "evalr.estimates.lift",
    "Needed": "evalr.estimates.power",
    "Plot": "evalr.estimates.plot",
    "Report": "evalr.reports.report",
    "SampleRatio": "evalr.estimates.sample_ratio",
    "SurvivalCurve": "evalr.estimates.survival",
    "Trends": "evalr.estimates.trends",
    "benjamini_hochberg": "evalr.estimates.many",
    "benjamini_yekutieli": "evalr.estimates.many",
    "coverage_by_arm": "evalr.estimates.sample_ratio",
    "design_effect": "evalr.estimates.power",
    "detectable": "evalr.estimates.power",
    "holm": "evalr.estimates.many",
    "intraclass_correlation": "evalr.estimates.power",
    "power_of": "evalr.estimates.power",
    "report": "evalr.reports.report",
    "running_p": "evalr.estimates.sequential",
    "sample_ratio": "evalr.estimates.sample_ratio",
    "sequential_sample_ratio": "evalr.estimates.sample_ratio",
    "users_needed": "evalr.estimates.power",
}
"""What stands on much else is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
