"""Passes over traces: which signals to look for, what each reads of a trace, and what it said."""

from evalr_tracepass.calibrating import Calibrated, Labelled, calibrate, calibrate_sync
from evalr_tracepass.catalogue import (
    DEFAULT_SIGNALS,
    HEURISTIC_SIGNALS,
    SIGNALS,
    Available,
    availability,
    heuristics,
    signal,
    signals_like,
)
from evalr_tracepass.judged import JudgeReflex, judge_reflex
from evalr_tracepass.planning import Group, Plan, Rows, plan
from evalr_tracepass.records import (
    Account,
    ErrorInfo,
    Filters,
    Item,
    LabelScore,
    Pass,
    PlanEstimate,
    Prediction,
    Reflex,
    Result,
    Row,
    Scope,
    TransformEstimate,
)
from evalr_tracepass.scopes import everything, filters_of, matching, random_sample, selected, since_last_run
from evalr_tracepass.signal_files import Preset, SignalFile, load_signals, save_signals
from evalr_tracepass.signals import Precision, Reading, Signal, reading
from evalr_tracepass.sources import Source, frame_traces, log_sources, log_traces
from evalr_tracepass.spans import span_traces
from evalr_tracepass.trained import ClassifierReflex, train_reflex
from evalr_tracepass.transforms import CATALOGUE, Transform, transform

__all__ = [
    "CATALOGUE",
    "DEFAULT_SIGNALS",
    "HEURISTIC_SIGNALS",
    "SIGNALS",
    "Account",
    "Available",
    "Calibrated",
    "ClassifierReflex",
    "ErrorInfo",
    "Filters",
    "Group",
    "Item",
    "JudgeReflex",
    "LabelScore",
    "Labelled",
    "Pass",
    "Plan",
    "PlanEstimate",
    "Precision",
    "Prediction",
    "Preset",
    "Reading",
    "Reflex",
    "Result",
    "Row",
    "Rows",
    "Scope",
    "Signal",
    "SignalFile",
    "Source",
    "Transform",
    "TransformEstimate",
    "availability",
    "calibrate",
    "calibrate_sync",
    "everything",
    "filters_of",
    "frame_traces",
    "heuristics",
    "judge_reflex",
    "load_signals",
    "log_sources",
    "log_traces",
    "matching",
    "plan",
    "random_sample",
    "reading",
    "save_signals",
    "selected",
    "signal",
    "signals_like",
    "since_last_run",
    "span_traces",
    "train_reflex",
    "transform",
]
