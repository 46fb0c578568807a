"""A judge as a reflex: any evaluator whose verdict has a choice, such as a language model with a question."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, create_model

from evalr.errors import InputError
from evalr.evaluators import Evaluator
from evalr.fields import verdict_fields
from evalr.inputs import Transcript
from evalr.labels.classifiers import label_of, values_by_label
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict
from evalr_tracepass.records import ErrorInfo, LabelScore, Prediction

if TYPE_CHECKING:
    from evalr.runs import Retry

AT_ONCE = 8


@dataclass(frozen=True)
class JudgeReflex:
    """An evaluator of transcripts as a classifier of texts: it is shown each text as a request.

    Its score is its confidence where it gives one. Otherwise the label that it says has 1 and the others 0, which says
    what it chose, and not how sure it is: no threshold tells its answers apart.

    Attributes:
        name: its alias.
        evaluator: what is asked.
        field: the field of its verdicts that holds the label: a choice, or true and false.
        limit: how many calls there may be at once.
        retry: how often failures that may pass are tried again.
    """

    kind: ClassVar[str] = "judge"

    name: str
    evaluator: Evaluator[Any, Any] = field(repr=False)
    field: str = "label"
    limit: int = AT_ONCE
    retry: Retry | None = None

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise InputError(
                f"{self.evaluator.verdict_type.__name__}.{self.field} is no choice, and not true or false: a reflex "
                "needs a field with at least two values"
            )

    @property
    def version(self) -> str:
        """The evaluator's own."""
        return self.evaluator.version

    @property
    def labels(self) -> Sequence[str]:
        """The values of its field, as texts."""
        found = next((each for each in verdict_fields(self.evaluator.verdict_type) if each.name == self.field), None)
        return () if found is None else tuple(values_by_label(found) or ())

    async def predict(self, texts: Sequence[str], /) -> list[Prediction]:
        """One prediction for each text. Whatever goes wrong with one is an error of that one alone."""
        from evalr.runs import evaluate_all

        inputs = [Transcript(id=str(place), request=text) for place, text in enumerate(texts)]
        found: dict[str, Result[Any]] = {}
        async for result in evaluate_all(self.evaluator, inputs, limit=self.limit, retry=self.retry):
            if result.about is not None and result.about.id is not None:
                found[result.about.id] = result
        return [self._prediction(found.get(str(place))) for place in range(len(inputs))]

    def _prediction(self, result: Result[Any] | None) -> Prediction:
        if isinstance(result, Verdict):
            value = getattr(result.value, self.field)
            if value is not None:
                said = label_of(value.value if isinstance(value, Enum) else value)
                sure = (result.confidence or {}).get(self.field, 1.0)
                rest = (1 - sure) / (len(self.labels) - 1)
                classes = tuple(
                    LabelScore(label, sure if label == said else rest, label == said) for label in self.labels
                )
                return Prediction(self.name, "single_label", classes, version=self.version)
        return Prediction(self.name, error=_error(result), version=self.version)


def _error(result: Result[Any] | None) -> ErrorInfo:
    """Why there is no prediction, by the name of what went wrong alone.

    Its message may hold the model's answer, which may repeat the text, and errors are kept in stores, where no text is.
    """
    if isinstance(result, Failure):
        failed = result.error.partition(":")[0] if result.exception is None else type(result.exception).__name__
        return ErrorInfo("inference_error", failed if failed.isidentifier() else "the judge failed")
    if isinstance(result, Skip | HandOff):
        return ErrorInfo(result.status, "the judge gave no verdict")
    return ErrorInfo("no_answer", "the judge gave no verdict")


def judge_reflex(
    name: str,
    labels: Sequence[str],
    question: str,
    lm: Any,
    *,
    limit: int = AT_ONCE,
    retry: Retry | None = None,
    **options: Any,
) -> JudgeReflex:
    """A language model as a reflex: which of the labels is true of a text?

    What it is shown is data: it is told not to follow what the text says.

    Args:
        name: its alias.
        labels: two or more, the answers among which it chooses.
        question: what to decide, and what each label means.
        lm: the language model, such as `dspy.LM("openai/gpt-5-mini")`.
        limit: how many calls there may be at once.
        retry: how often failures that may pass are tried again.
        options: those of `evalr.dspy.DspyJudge`, such as `demos` and `budget`.

    Raises:
        InputError: there are not two labels, or an option cannot be used.
        MissingExtraError: dspy is not installed: `pip install 'evalr[dspy]'`.
    """
    if len(set(labels)) < 2:
        raise InputError("a judge needs two labels or more, all different, to choose among")
    # By name: this package stands beside the one of judges, and neither needs the other to be imported.
    judge = importlib.import_module("evalr.dspy").DspyJudge
    choice: Any = Literal[tuple(labels)]
    verdict_type: type[BaseModel] = create_model("Label", label=(choice, ...))
    return JudgeReflex(
        name,
        judge(verdict_type, inputs=Transcript, lm=lm, name=name, instructions=question, fields=("request",), **options),
        limit=limit,
        retry=retry,
    )
