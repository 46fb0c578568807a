"""Training a judge on people's verdicts, by GEPA: its rubric is rewritten, and measured on what it has not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal

import dspy

from evalr.background import run_sync
from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.plot import Plotted
from evalr.estimates.shown import Printed
from evalr.estimates.words import count_words
from evalr.evaluators import I
from evalr.labels import Dataset, Example, split
from evalr.labels.datasets import checked_dataset
from evalr.labels.subjects import subject_of
from evalr.verdicts import V
from evalr_dspy import client
from evalr_dspy.agreement import agreed_field, agreements
from evalr_dspy.judge import DspyJudge

if TYPE_CHECKING:
    from evalr_dspy.proposals import Proposals

PARTS = {"training": 0.4, "validation": 0.3, "measurement": 0.3}
"""The shares of the labels: to reflect on, to choose a rubric by, and to measure it on."""

Status = Literal["trained", "no better candidate", "no candidate"]


@dataclass(frozen=True, kw_only=True)
class Training(Printed, Plotted, Generic[I, V]):
    """What came of training a judge.

    Attributes:
        judge: the judge with the best rubric found, which knows what it was trained on (`DspyJudge.trained_on`: the
            training and the validation part); the judge as it was where none was better.
        status: "trained" (a rubric did better on the validation part), "no better candidate" (none did), or "no
            candidate" (none could be proposed: see `errors`).
        before: how often the judge as it was agreed with people, on the measurement part.
        after: how often `judge` does.
        proposed: how many rubrics the reflection model proposed.
        failed: how often it was asked for one and gave none.
        errors: why, by how often.
        judge_errors: why the judge gave no verdict in training, by how often; such an answer counts as a disagreement.
        counts: examples in each part.
        left_out: examples that are not measured on, by why.
        on: the field of the verdict that agreement is about.
    """

    judge: DspyJudge[I, V]
    status: Status
    before: Estimate
    after: Estimate
    proposed: int
    failed: int
    errors: Mapping[str, int]
    judge_errors: Mapping[str, int]
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    on: str

    @property
    def reason(self) -> str | None:
        """Why the judge is the one that it was; None where it is another."""
        if self.status == "trained":
            return None
        if self.status == "no better candidate":
            return "no proposed rubric agreed with people more often on the validation part"
        if self.failed:
            return "the reflection model was asked for a rubric, and never gave one"
        if self.judge_errors:
            return "the judge gave no verdicts to reflect on"
        return "there was nothing to reflect on: the judge agreed with people wherever it was asked"

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        return [("before", self.before), ("after", self.after)]

    def __str__(self) -> str:
        proposed, failed = count_words(self.proposed, "rubric"), count_words(self.failed, "proposal")
        lines = [f"{self.status} · {proposed} proposed · {failed} failed"]
        lines += [] if self.reason is None else [self.reason]
        lines += [f"before  {self.before}", f"after   {self.after}"]
        lines += [f"no proposal: {why} ({count:,})" for why, count in self.errors.items()]
        lines += [f"no verdict: {why} ({count:,})" for why, count in self.judge_errors.items()]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Gepa:
    """Training by GEPA: a model reflects on where judge and people disagree, and why, and rewrites the rubric.

    Rubrics are rewritten on one part of the labels and chosen on a second. On the third, which neither has seen, the
    judge is measured before and after: examples of one group (a user, by default) are in one part, and what is shown to
    the judge in training, under whatever id, is not measured on.

    Args:
        reflection_lm: the language model that reflects; a strong one.
        calls: about how many times the judge is asked in training.
        parts: the shares of "training", "validation" and "measurement".
        on: the field of the verdict to agree on; by default the first that is no text.
        limit: the most calls at once.
        examples: how many examples each reflection sees.
        seed: another split, and another course of training.
        progress: whether to show a bar.

    Source: Agrawal et al. 2025, "GEPA: reflective prompt evolution can outperform reinforcement learning".
    """

    reflection_lm: dspy.BaseLM
    calls: int = 200
    parts: Mapping[str, float] = field(default_factory=lambda: dict(PARTS))
    on: str | None = None
    limit: int = 8
    examples: int = 3
    seed: int = 0
    progress: bool = False

    def __post_init__(self) -> None:
        client.checked(self.reflection_lm)
        if set(self.parts) != set(PARTS):
            raise InputError(f"parts={dict(self.parts)} must have a share each for {', '.join(PARTS)}")
        for name in ("calls", "limit", "examples"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name}={value!r} must be a whole number from 1")

    async def train(self, judge: DspyJudge[I, V], labels: Dataset[V]) -> Training[I, V]:
        """Train a judge, and measure what came of it.

        Raises:
            InputError: the labels are none of the judge's, or too few for three parts.
        """
        from anyio import to_thread

        from evalr_dspy.proposals import Proposals
        from evalr_dspy.rubric_search import RubricSearch, best_rubric

        on = agreed_field(judge.verdict_type, self.on)
        parts = self._parts(judge, labels)
        measured, left_out = _unseen(judge, parts)
        proposals = Proposals(self.reflection_lm)
        search = RubricSearch(judge, on, proposals, limit=self.limit)
        searched = partial(
            best_rubric,
            search,
            training=parts["training"],
            validation=parts["validation"],
            calls=self.calls,
            examples=self.examples,
            seed=self.seed,
            progress=self.progress,
        )
        rubric = await to_thread.run_sync(searched)
        trained = judge
        if rubric != judge.instructions:
            made_with = (*judge.trained_on, *parts["training"], *parts["validation"])
            trained = replace(judge, instructions=rubric, trained_on=made_with)
        before = await self._agreement(judge, measured, on)
        after = before if trained is judge else await self._agreement(trained, measured, on)
        return Training(
            judge=trained,
            status=_status(trained is not judge, proposals),
            before=before,
            after=after,
            proposed=proposals.made,
            failed=proposals.failed,
            errors=dict(proposals.errors),
            judge_errors=dict(search.errors),
            counts={name: len(part) for name, part in parts.items()} | {"measurement": len(measured)},
            left_out=left_out,
            on=on,
        )

    def train_sync(self, judge: DspyJudge[I, V], labels: Dataset[V]) -> Training[I, V]:
        """As `train`, from code that cannot await, in a notebook too; see `run_sync`."""
        return run_sync(self.train(judge, labels))

    def _parts(self, judge: DspyJudge[I, V], labels: Dataset[V]) -> dict[str, list[Example[V]]]:
        labelled = checked_dataset(labels).keep(lambda example: example.labelled)
        for example in labelled:
            judge.check_label(example)
        made = split(labelled, self.parts, seed=self.seed)
        if made.empty:
            empty = ", ".join(made.empty)
            raise InputError(f"{len(labelled)} labelled examples leave a part empty ({empty}): label more")
        return {name: list(part) for name, part in made.items()}

    async def _agreement(self, judge: DspyJudge[I, V], measured: Sequence[Example[V]], on: str) -> Estimate:
        from evalr.runs import evaluate_all

        run = evaluate_all(judge, [example.given() for example in measured], limit=self.limit)
        return agreements(measured, [result async for result in run], on)


def _unseen(
    judge: DspyJudge[Any, V], parts: Mapping[str, Sequence[Example[V]]]
) -> tuple[list[Example[V]], dict[str, int]]:
    """The examples to measure on: those whose texts no part of training holds, nor a demonstration."""

    def texts(examples: Iterable[Example[V]]) -> set[tuple[str, ...]]:
        # A copy with other spaces or capitals is no other example.
        shown = (judge.shown(example.given()).texts.values() for example in examples)
        return {tuple(" ".join(text.casefold().split()) for text in each) for each in shown}

    demos, trained = texts(judge.demos), texts([*parts["training"], *parts["validation"]])
    left_out: Counter[str] = Counter()
    measured = []
    for example in parts["measurement"]:
        (shown,) = texts([example])
        before = subject_of(example) in judge.made_with  # by an earlier training, say
        if shown in trained or shown in demos or before:
            left_out["also a demonstration" if shown in demos - trained else "also in training"] += 1
        else:
            measured.append(example)
    if not measured:
        raise InputError("every example to measure on is also in training: label more")
    return measured, dict(left_out)


def _status(trained: bool, proposals: Proposals) -> Status:
    if trained:
        return "trained"
    return "no better candidate" if proposals.made else "no candidate"
