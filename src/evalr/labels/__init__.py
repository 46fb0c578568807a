"""What people say: labelled examples, feedback, how far a judge agrees, and evaluators that learn from it."""

from typing import TYPE_CHECKING, Any

from evalr.labels.datasets import Dataset, append
from evalr.labels.examples import Example

if TYPE_CHECKING:
    from evalr.labels.agreeing import agreement
    from evalr.labels.calibrating import Calibration, calibration
    from evalr.labels.classifiers import Classifier, transcript_text
    from evalr.labels.correcting import corrected
    from evalr.labels.correction import Corrected
    from evalr.labels.decision_fit import DecisionFit, Threshold
    from evalr.labels.decisions import DecisionEvaluator
    from evalr.labels.field_agreement import Agreement, FieldAgreement
    from evalr.labels.fitting import (
        DecisionQuality,
        fit_thresholds,
        fit_thresholds_sync,
        measure_decisions,
        measure_decisions_sync,
    )
    from evalr.labels.local import LocalClassifier, train_decision
    from evalr.labels.people import feedback, labels_of
    from evalr.labels.splits import By, Splits, Stratify, split

__all__ = [
    "Agreement",
    "By",
    "Calibration",
    "Classifier",
    "Corrected",
    "Dataset",
    "DecisionEvaluator",
    "DecisionFit",
    "DecisionQuality",
    "Example",
    "FieldAgreement",
    "LocalClassifier",
    "Splits",
    "Stratify",
    "Threshold",
    "agreement",
    "append",
    "calibration",
    "corrected",
    "feedback",
    "fit_thresholds",
    "fit_thresholds_sync",
    "labels_of",
    "measure_decisions",
    "measure_decisions_sync",
    "split",
    "train_decision",
    "transcript_text",
]


_LATER = {
    "Agreement": "evalr.labels.field_agreement",
    "By": "evalr.labels.splits",
    "Calibration": "evalr.labels.calibrating",
    "Classifier": "evalr.labels.classifiers",
    "Corrected": "evalr.labels.correction",
    "DecisionEvaluator": "evalr.labels.decisions",
    "DecisionFit": "evalr.labels.decision_fit",
    "DecisionQuality": "evalr.labels.fitting",
    "FieldAgreement": "evalr.labels.field_agreement",
    "LocalClassifier": "evalr.labels.local",
    "Splits": "evalr.labels.splits",
    "Stratify": "evalr.labels.splits",
    "Threshold": "evalr.labels.decision_fit",
    "agreement": "evalr.labels.agreeing",
    "calibration": "evalr.labels.calibrating",
    "corrected": "evalr.labels.correcting",
    "feedback": "evalr.labels.people",
    "fit_thresholds": "evalr.labels.fitting",
    "fit_thresholds_sync": "evalr.labels.fitting",
    "labels_of": "evalr.labels.people",
    "measure_decisions": "evalr.labels.fitting",
    "measure_decisions_sync": "evalr.labels.fitting",
    "split": "evalr.labels.splits",
    "train_decision": "evalr.labels.local",
    "transcript_text": "evalr.labels.classifiers",
}
"""A judge or a run needs examples alone: what stands on much else is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
