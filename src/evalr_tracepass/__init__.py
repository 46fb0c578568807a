"""Passes over traces: which signals to look for, what each reads of a trace, and what it said."""

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
from evalr_tracepass.signals import Reading, Signal, reading
from evalr_tracepass.transforms import CATALOGUE, Transform, transform

__all__ = [
    "CATALOGUE",
    "Account",
    "ErrorInfo",
    "Filters",
    "Item",
    "LabelScore",
    "Pass",
    "PlanEstimate",
    "Prediction",
    "Reading",
    "Reflex",
    "Result",
    "Row",
    "Scope",
    "Signal",
    "Transform",
    "TransformEstimate",
    "reading",
    "transform",
]
