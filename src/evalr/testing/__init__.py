"""What every reader, evaluator and measure must hold to, as tests that other packages run on their own.

Importing it needs nothing beyond evalr. Running the tests takes pytest, which is what finds them in a subclass.
"""

from importlib import import_module
from typing import Any

from evalr.testing.evaluators import EvaluatorContract
from evalr.testing.measures import MeasureContract
from evalr.testing.readers import ReaderContract

__all__ = ["EvaluatorContract", "MeasureContract", "PassStoreContract", "ReaderContract", "ResultStoreContract"]

# They are of an extra's package, a floor above, which is looked into when they are asked for.
_ELSEWHERE = {
    "PassStoreContract": "evalr_tracepass.store_contract",
    "ResultStoreContract": "evalr_tracepass.store_contract",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(import_module(_ELSEWHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
