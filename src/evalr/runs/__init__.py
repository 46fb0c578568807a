"""Running evaluators: over many inputs at once, and over what an application hands in; with nothing lost."""

from evalr.runs.account import RunSummary
from evalr.runs.budget import Budget
from evalr.runs.code_versions import code_version
from evalr.runs.comparing import compare
from evalr.runs.comparison import Comparison, Correction, Gate, PairedDifference
from evalr.runs.experimenting import JudgeInput, experiment, experiment_sync
from evalr.runs.experiments import EvaluatorVersion, Experiment
from evalr.runs.families import Evaluators, Family, Judges
from evalr.runs.graded_logs import GradedLog
from evalr.runs.grading import Grade, Grades, grade, grade_sync
from evalr.runs.journal import Journal, Totals
from evalr.runs.judging import Unready
from evalr.runs.keys import input_hash
from evalr.runs.limiter import Limiter
from evalr.runs.online import Online, Submitted
from evalr.runs.online_summary import OnlineSummary
from evalr.runs.progress import Progress, ProgressLine, Watch
from evalr.runs.readiness import Readiness
from evalr.runs.regeneration import Regeneration, SyncRegeneration, regenerate, regenerate_sync
from evalr.runs.regeneration_progress import RegenerationStatus, regeneration_status
from evalr.runs.results_table import ResultsTable
from evalr.runs.retries import Classify, Fault, Retry, classify
from evalr.runs.running import Inputs, Run, SyncRun, evaluate_all, evaluate_all_sync
from evalr.runs.sampling import Sample, Strata, Stratum, sample, sampled, stratified_sample
from evalr.runs.sinks import JsonlSink, MemorySink, OtelSink, Sink
from evalr.runs.tasks import Task
from evalr.runs.trials import Trial

__all__ = [
    "Budget",
    "Classify",
    "Comparison",
    "Correction",
    "EvaluatorVersion",
    "Evaluators",
    "Experiment",
    "Family",
    "Fault",
    "Gate",
    "Grade",
    "GradedLog",
    "Grades",
    "Inputs",
    "Journal",
    "JsonlSink",
    "JudgeInput",
    "Judges",
    "Limiter",
    "MemorySink",
    "Online",
    "OnlineSummary",
    "OtelSink",
    "PairedDifference",
    "Progress",
    "ProgressLine",
    "Readiness",
    "Regeneration",
    "RegenerationStatus",
    "ResultsTable",
    "Retry",
    "Run",
    "RunSummary",
    "Sample",
    "Sink",
    "Strata",
    "Stratum",
    "Submitted",
    "SyncRegeneration",
    "SyncRun",
    "Task",
    "Totals",
    "Trial",
    "Unready",
    "Watch",
    "classify",
    "code_version",
    "compare",
    "evaluate_all",
    "evaluate_all_sync",
    "experiment",
    "experiment_sync",
    "grade",
    "grade_sync",
    "input_hash",
    "regenerate",
    "regenerate_sync",
    "regeneration_status",
    "sample",
    "sampled",
    "stratified_sample",
]
