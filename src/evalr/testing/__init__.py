"""What every reader, evaluator and measure must hold to, as tests that other packages run on their own.

Importing it needs nothing beyond evalr. Running the tests takes pytest, which is what finds them in a subclass.
"""

from evalr.testing.evaluators import EvaluatorContract
from evalr.testing.measures import MeasureContract
from evalr.testing.readers import ReaderContract

__all__ = ["EvaluatorContract", "MeasureContract", "ReaderContract"]
