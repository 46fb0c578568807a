"""A judge's rubric as the text that GEPA rewrites: how a rubric is scored, and what there is to reflect on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from anyio import from_thread
from gepa.api import optimize
from gepa.core.adapter import EvaluationBatch, ProposalFn
from gepa.core.result import GEPAResult

from evalr.labels import Example
from evalr.verdicts import Failure, Result, Verdict
from evalr_dspy.agreement import agrees, feedback
from evalr_dspy.judge import DspyJudge
from evalr_dspy.parsing import UnclearAnswerError
from evalr_dspy.prompt import UnreadAnswerError
from evalr_dspy.proposals import Proposals

RUBRIC = "rubric"
"""The one text of a candidate."""

_log = logging.getLogger(__name__)


class Trial(NamedTuple):
    """What a judge said of an example."""

    example: Example[Any]
    result: Result[Any]


class RubricSearch:
    """What GEPA asks: to score a rubric on examples, to say what went wrong there, and to propose another.

    A rubric is scored by the judge itself, as a run asks it: tried again where a server says so, and never by an answer
    that is cut off or cannot be read. It runs in a worker thread of the loop that the judge is asked in.

    Attributes:
        judge: with the rubric that is to be bettered.
        errors: why the judge gave no verdict, by how often.
    """

    def __init__(self, judge: DspyJudge[Any, Any], on: str, proposals: Proposals, *, limit: int) -> None:
        self.errors: Counter[str] = Counter()
        self.propose_new_texts: ProposalFn | None = proposals
        self.judge = judge
        self._on = on
        self._limit = limit

    def log(self, message: str) -> None:
        """What GEPA says of its course; it quotes rubrics, and is for those who look for it."""
        _log.debug("%s", message)

    def evaluate(
        self, batch: list[Example[Any]], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Trial, Result[Any]]:
        """How often the judge with a rubric agrees with people; no verdict is no agreement."""
        judge = replace(self.judge, instructions=candidate[RUBRIC])
        found = from_thread.run(_judged, judge, batch, self._limit)
        self.errors.update(each.result.error for each in found if isinstance(each.result, Failure))
        scores = [float(agrees(each.example, each.result, self._on)) for each in found]
        return EvaluationBatch([each.result for each in found], scores, found if capture_traces else None)

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Trial, Result[Any]],
        components_to_update: list[str],
    ) -> dict[str, list[dict[str, Any]]]:
        """What the judge was shown and said, and what people say of it.

        Raises:
            LookupError: it gave no answer to any of the examples.
        """
        records = [record for each in eval_batch.trajectories or () if (record := self._record(each)) is not None]
        if not records:
            raise LookupError("the judge gave no answer to reflect on")
        return dict.fromkeys(components_to_update, records)

    def _record(self, trial: Trial) -> dict[str, Any] | None:
        example, result = trial
        record: dict[str, Any] = {"Inputs": self.judge.shown(example.given()).texts}
        if isinstance(result, Verdict):
            said = {name: getattr(result.value, name) for name, _ in example.expected or ()}
            return record | {"Generated Outputs": said, "Feedback": feedback(example, said, self._on)}
        # What the client could not do is nothing that another rubric would change.
        if not isinstance(result, Failure) or not isinstance(result.exception, UnreadAnswerError | UnclearAnswerError):
            return None
        wrong = f"Your answer was no verdict: {result.error}. Answer with one JSON object as you are told."
        return record | {"Generated Outputs": {}, "Feedback": wrong}


async def _judged(judge: DspyJudge[Any, Any], batch: Sequence[Example[Any]], limit: int) -> list[Trial]:
    from evalr.runs import evaluate_all

    # The same example may be in a batch twice.
    asked = {example.about().subject: example.given() for example in batch}
    results = {
        result.about.subject: result
        async for result in evaluate_all(judge, list(asked.values()), limit=limit)
        if result.about is not None
    }
    return [Trial(example, results[example.about().subject]) for example in batch]


def best_rubric(
    search: RubricSearch,
    *,
    training: Sequence[Example[Any]],
    validation: Sequence[Example[Any]],
    calls: int,
    examples: int,
    seed: int,
    progress: bool,
) -> str:
    """The rubric that agrees with people most often on the validation examples; the judge's own where none does better.

    To be called in a worker thread of the loop that the judge is asked in. The options are those of `Gepa`.
    """
    found: GEPAResult[Result[Any], Any] = optimize(
        seed_candidate={RUBRIC: search.judge.instructions},
        trainset=list(training),
        valset=list(validation),
        adapter=search,
        logger=search,
        max_metric_calls=calls,
        reflection_minibatch_size=examples,
        display_progress_bar=progress,
        seed=seed,
    )
    best: Any = found.best_candidate
    return str(best[RUBRIC])
