"""Trials: an example, what the task made of it, and what was expected, for evaluators that compare them."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import ConfigDict, SkipValidation

from evalr.inputs import Input
from evalr.labels import Example


class Trial(Input):
    """One example and what a task made of it, for evaluators that compare the two with each other or with the label.

    An evaluator with `input_type=Trial` is given these. Any other is given what the task put out, or, where there is no
    task, the example's input; it never sees the label.

    Attributes:
        example: the example, with its `input`, and its label as `expected`.
        output: what the task returned; None where there is no task.
        input: the example's input.
        expected: its label: the verdict that a person expects, or None.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    kind: ClassVar[str] = "trial"

    example: SkipValidation[Example[Any]]
    output: SkipValidation[Any] = None

    @property
    def input(self) -> Any:
        """The example's input."""
        return self.example.input

    @property
    def expected(self) -> Any:
        """The label: the verdict that a person expects, or None."""
        return self.example.expected
