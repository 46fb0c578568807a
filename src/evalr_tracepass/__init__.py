"""Passes over traces: which signals to look for, what each reads of a trace, and what it said."""

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
from evalr_tracepass.signals import Reading, Signal, reading
from evalr_tracepass.sources import Source, frame_traces, log_traces
from evalr_tracepass.spans import span_traces
from evalr_tracepass.transforms import CATALOGUE, Transform, transform

__all__ = [
    "CATALOGUE",
    "Account",
    "ErrorInfo",
    "Filters",
    "Group",
    "Item",
    "LabelScore",
    "Pass",
    "Plan",
    "PlanEstimate",
    "Prediction",
    "Reading",
    "Reflex",
    "Result",
    "Row",
    "Rows",
    "Scope",
    "Signal",
    "Source",
    "Transform",
    "TransformEstimate",
    "everything",
    "filters_of",
    "frame_traces",
    "log_traces",
    "matching",
    "plan",
    "random_sample",
    "reading",
    "selected",
    "since_last_run",
    "span_traces",
    "transform",
]
