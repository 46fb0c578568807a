"""Judges whose version has the prompt version that a team has pinned: another pin begins another epoch of verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from evalr.evaluators import Evaluator, calls_of
from evalr.inputs import Input
from evalr.verdicts import Result


@dataclass(frozen=True)
class PinnedEvaluator:
    """See `pinned_to`."""

    evaluator: Evaluator[Any, Any]
    pin: str

    @property
    def name(self) -> str:
        """The judge's."""
        return self.evaluator.name

    @property
    def version(self) -> str:
        """The judge's, and the pin."""
        return f"{self.evaluator.version}:pin={self.pin}"

    @property
    def verdict_type(self) -> type[Any]:
        """The judge's."""
        return self.evaluator.verdict_type

    @property
    def input_type(self) -> Any:
        """The judge's."""
        return getattr(self.evaluator, "input_type", None)

    def pinned(self) -> PinnedEvaluator:
        """The same with the judge's clock, where it has one, read once."""
        pin = getattr(self.evaluator, "pinned", None)
        return self if pin is None else replace(self, evaluator=pin())

    def as_of(self, given: Input, /) -> Any:
        """The reading time that the judge's answer depends on."""
        return _said(self.evaluator, "as_of", given)

    def expected_tokens(self, given: Input, /) -> Any:
        """What the judge expects."""
        return _said(self.evaluator, "expected_tokens", given) or 0

    def expected_cost(self, given: Input, /) -> Any:
        """What the judge expects."""
        return _said(self.evaluator, "expected_cost", given)

    def expected_calls(self, given: Input, /) -> int:
        """How many calls the judge makes at most."""
        return calls_of(self.evaluator, given)

    async def evaluate(self, given: Input, /) -> Result[Any]:
        """The judge's result, under the version that has the pin."""
        return replace(await self.evaluator.evaluate(given), version=self.version)


def pinned_to(evaluator: Evaluator[Any, Any], pin: str) -> PinnedEvaluator:
    """The evaluator with a pin in its version."""
    return PinnedEvaluator(evaluator, pin)


def _said(evaluator: Evaluator[Any, Any], name: str, given: Input) -> Any:
    read = getattr(evaluator, name, None)
    return None if read is None else read(given)
