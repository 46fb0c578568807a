"""What people say: examples with their labels, the datasets that keep them, and their splits."""

from evalr.labels.datasets import Dataset, append
from evalr.labels.examples import Example
from evalr.labels.splits import By, Splits, Stratify, split

__all__ = ["By", "Dataset", "Example", "Splits", "Stratify", "append", "split"]
