"""What people say: labelled examples, feedback, how far a judge agrees, and evaluators that learn from it."""

from evalr.labels.agreeing import agreement
from evalr.labels.calibrating import Calibration, calibration
from evalr.labels.classifiers import Classifier, transcript_text
from evalr.labels.correcting import corrected
from evalr.labels.correction import Corrected
from evalr.labels.datasets import Dataset, append
from evalr.labels.decision_fit import DecisionFit, Threshold
from evalr.labels.decisions import DecisionEvaluator
from evalr.labels.examples import Example
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
