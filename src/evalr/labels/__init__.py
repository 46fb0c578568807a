"""What people say: datasets of labelled examples, feedback, and how far a judge says what people say."""

from evalr.labels.agreeing import agreement
from evalr.labels.calibrating import Calibration, calibration
from evalr.labels.correcting import corrected
from evalr.labels.correction import Corrected
from evalr.labels.datasets import Dataset, append
from evalr.labels.examples import Example
from evalr.labels.field_agreement import Agreement, FieldAgreement
from evalr.labels.people import feedback, labels_of
from evalr.labels.splits import By, Splits, Stratify, split

__all__ = [
    "Agreement",
    "By",
    "Calibration",
    "Corrected",
    "Dataset",
    "Example",
    "FieldAgreement",
    "Splits",
    "Stratify",
    "agreement",
    "append",
    "calibration",
    "corrected",
    "feedback",
    "labels_of",
    "split",
]
