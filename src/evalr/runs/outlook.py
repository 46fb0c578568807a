"""What a run would come to, before it is begun: how much is left to ask, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evalr.evaluators import Evaluator, calls_of
from evalr.inputs import Input
from evalr.runs.jobs import Job, Planner
from evalr.runs.journal import Journal

TOGETHER = 500
"""Questions that the journal is asked of at once."""

ALL_OF_THE_FIRST, ONE_IN = 500, 20
"""Inputs that are priced: what they cost varies less than what reading them all would take is worth."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a run over some inputs would come to.

    Attributes:
        inputs: how many there are, those of one subject once.
        done: those that the journal has an answer to which is not asked for again.
        tokens: about how many tokens the others take; None where the evaluator does not say.
        cost: about how many US dollars; None where the evaluator does not say, or does not know.
        dearest: about what a call for the dearest of them costs; None likewise.
    """

    inputs: int
    done: int
    tokens: int | None
    cost: float | None
    dearest: float | None

    @property
    def left(self) -> int:
        """How many are left to ask."""
        return self.inputs - self.done


def outlook(evaluator: Evaluator[Any, Any], inputs: Iterable[Input], *, journal: Journal | None) -> Outlook:
    """What asking an evaluator of these inputs would come to; nobody is asked.

    Tokens and costs are the mean of the first five hundred inputs that are left and of each twentieth after them.

    Args:
        evaluator: who would be asked.
        inputs: read once.
        journal: what is known already; None where nothing is.

    Raises:
        InputError: an input that the evaluator does not read.
        JournalError: the journal cannot be read.
    """
    found = done = left = 0
    tokens, costs, each = _Mean(), _Mean(), _Mean()
    for batch in _batches(_jobs(evaluator, inputs)):
        known = {} if journal is None else journal.look_up([job.digest for job in batch])
        found += len(batch)
        for job in batch:
            answer = known.get(job.digest)
            if answer is not None and answer.settled == 2:
                done += 1
                continue
            if left < ALL_OF_THE_FIRST or left % ONE_IN == 0:
                tokens.add(_said(evaluator, "expected_tokens", job.given))
                costs.add(cost := _said(evaluator, "expected_cost", job.given))
                each.add(None if cost is None else cost / max(1, calls_of(evaluator, job.given)))
            left += 1
    whole = tokens.times(left)
    return Outlook(found, done, None if whole is None else round(whole), costs.times(left), each.largest)


def _jobs(evaluator: Evaluator[Any, Any], inputs: Iterable[Input]) -> Iterator[Job]:
    planner = Planner([evaluator], 1, "first")
    for position, given in enumerate(inputs):
        yield from planner.jobs(position, given) or ()


def _batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    for job in jobs:
        batch.append(job)
        if len(batch) == TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


def _said(evaluator: Evaluator[Any, Any], name: str, given: Input) -> float | None:
    """What an evaluator expects of an input; None where it does not say."""
    ask = getattr(evaluator, name, None)
    if ask is None:
        return None
    try:
        found: float | None = ask(given)
    except Exception:  # noqa: BLE001  an input that cannot be shown to a model is a failure of the run, when it comes
        return None
    return found


class _Mean:
    """The mean of those that are known, and the largest."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0
        self.largest: float | None = None

    def add(self, value: float | None) -> None:
        if value is not None:
            self._sum += value
            self._count += 1
            self.largest = value if self.largest is None else max(self.largest, value)

    def times(self, count: int) -> float | None:
        if count == 0:
            return 0.0
        return self._sum / self._count * count if self._count else None
