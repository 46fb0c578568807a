"""Running experiments: a task over a dataset, every output judged, what fails kept as a result, nothing done twice."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from evalr.background import run_sync
from evalr.errors import InputError, error_words
from evalr.evaluators import Evaluator
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import About, Input
from evalr.labels import Dataset, Example
from evalr.labels.lines import example_hash
from evalr.quoting import quoted, safe_text
from evalr.runs.account import RunSummary
from evalr.runs.budget import Budget, Ledger
from evalr.runs.experiments import EvaluatorVersion, Experiment
from evalr.runs.journal import Journal
from evalr.runs.limiter import AT_ONCE, Limiter
from evalr.runs.progress import Watch
from evalr.runs.retries import Retry
from evalr.runs.running import check_evaluators, check_terms, evaluate_all
from evalr.runs.tasks import Task, TaskRunner
from evalr.runs.trials import Trial
from evalr.verdicts import Failure, Result, Skip, Verdict, about_of, describe

JudgeInput = Callable[[Example[Any], Any], Input]
"""What evaluators are given of an example and the task's output for it."""

Terms = dict[str, Any]


class _Made(NamedTuple):
    """What a task made of an example: an output, or the result that stands in for one."""

    example: Example[Any]
    repeat: int | None
    output: Any = None
    instead: Result[Any] | None = None


class _Cell(NamedTuple):
    """One result of an experiment: whose, of what, which time."""

    judge: EvaluatorVersion
    example: str
    repeat: int | None


async def experiment(
    dataset: Dataset[Any],
    task: Task | None,
    evaluators: Evaluator[Any, Any] | Sequence[Evaluator[Any, Any]],
    *,
    name: str | None = None,
    judge_input: JudgeInput | None = None,
    task_name: str | None = None,
    task_version: str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,  # noqa: ASYNC109  of one call, and not of the whole
    repeats: int = 1,
    failures: Literal["again", "keep"] = "again",
    progress: Watch | bool | None = None,
) -> Experiment:
    """Try a task on every example of a dataset, and have every output judged.

    There is one result for each example, evaluator and repeat, whatever happens: where the task raised, a failure that
    says so; where the budget was used up before, a skip. So nothing leaves a denominator.

        found = await experiment(dataset, answer, judge, journal="answers.db")
        print(completion_rate.estimate(found.results))

    Args:
        dataset: the examples.
        task: a function, sync or async, from an example's input to an output; None to judge the inputs as they are.
        evaluators: one or several. One with `input_type=Trial` is given the example, its label and the output; any
            other what `judge_input` makes of them.
        name: of the experiment; by default the task's, or the dataset's.
        judge_input: from an example and the task's output to what evaluators read; by default the output itself, which
            must then be an input, such as a Transcript.
        task_name: of the task; by default the function's own.
        task_version: changes whenever the task's outputs may; by default a hash of its code, of the functions of its
            module that it calls, and of the texts and numbers that they use. A model behind an API is not seen.
        journal: as in `evaluate_all`. It holds the task's outputs, too: an experiment that goes on calls neither the
            task nor an evaluator for what is done.
        limit: as in `evaluate_all`, for calls of the task and of evaluators together.
        budget: as in `evaluate_all`, for calls of the task and of evaluators together, whichever comes first. What it
            does not reach is done by the next run over the journal.
        retry: as in `evaluate_all`.
        timeout: seconds for one call of the task, and as many for one evaluator of one output.
        repeats: how often the task is tried on each example, and its output judged; `about.repeat` says which time it
            was.
        failures: as in `evaluate_all`.
        progress: as in `evaluate_all`; it counts the judged outputs.

    Returns:
        The experiment, with a result in each place. Its `about.id` is the example's id.

    Raises:
        InputError: an argument cannot be used, an evaluator does not read what it is given, or a task's output is no
            input and there is no `judge_input`.
        JournalError: the journal cannot be used.
    """
    if not isinstance(dataset, Dataset):
        raise InputError(f"dataset is a {safe_text(type(dataset).__name__)}: pass a Dataset of Examples")
    several = list(evaluators) if isinstance(evaluators, Sequence) else [evaluators]
    check_terms(budget, retry, timeout)
    check_evaluators(several)  # all together: a run of an experiment may know a part of them alone
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise InputError(f"repeats={repeats!r} must be a whole number from 1")
    runner = None if task is None else TaskRunner(task, task_name, task_version)
    ledger = Ledger(budget)
    book = journal if journal is None or isinstance(journal, Journal) else Journal(journal)
    terms: Terms = {
        "journal": book,
        "limit": limit if isinstance(limit, Limiter) else Limiter(limit),
        "budget": ledger,
        "retry": retry,
        "timeout": timeout,
        "failures": failures,
    }
    try:
        found = _Experimenting(dataset, runner, several, judge_input, repeats, terms)
        await found.run(progress)
    finally:
        if book is not journal and book is not None:
            book.close()
    return Experiment(
        name=name or (dataset.name if runner is None else runner.task_name),
        dataset=dataset.name,
        dataset_hash=dataset.hash,
        examples=_looked_at(dataset, label=any(_reads_trials(each) for each in several)),
        task=None if runner is None else runner.task_name,
        task_version=None if runner is None else runner.version,
        evaluators={EvaluatorVersion(each.name, each.version): each.verdict_type for each in several},
        repeats=repeats,
        results=found.results(),
        outputs=found.outputs,
        runs=found.runs,
    )


def experiment_sync(
    dataset: Dataset[Any],
    task: Task | None,
    evaluators: Evaluator[Any, Any] | Sequence[Evaluator[Any, Any]],
    *,
    name: str | None = None,
    judge_input: JudgeInput | None = None,
    task_name: str | None = None,
    task_version: str | None = None,
    journal: Journal | str | os.PathLike[str] | None = None,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    repeats: int = 1,
    failures: Literal["again", "keep"] = "again",
    progress: Watch | bool | None = None,
) -> Experiment:
    """As `experiment`, from code that cannot await, in a notebook too; see `run_sync`."""
    work = experiment(
        dataset,
        task,
        evaluators,
        name=name,
        judge_input=judge_input,
        task_name=task_name,
        task_version=task_version,
        journal=journal,
        limit=limit,
        budget=budget,
        retry=retry,
        timeout=timeout,
        repeats=repeats,
        failures=failures,
        progress=progress,
    )
    return run_sync(work)


def _looked_at(dataset: Dataset[Any], *, label: bool) -> dict[str, str]:
    return {example.id: example_hash(example, label=label).hex()[:16] for example in dataset}


class _Experimenting:
    """One experiment while it runs: results come in any order, and each has its place."""

    def __init__(
        self,
        dataset: Dataset[Any],
        runner: TaskRunner | None,
        evaluators: list[Evaluator[Any, Any]],
        judge_input: JudgeInput | None,
        repeats: int,
        terms: Terms,
    ) -> None:
        self._dataset = dataset
        self._runner = runner
        self._evaluators = evaluators
        self._judges = {EvaluatorVersion(each.name, each.version) for each in evaluators}
        self._judge_input = judge_input
        self._repeats = repeats
        self._terms = terms
        self._cells: dict[_Cell, Result[Any]] = {}
        self._made: list[_Made] = []
        self.outputs: dict[tuple[str, int | None], Any] = {}
        self.runs: dict[str, RunSummary] = {}

    async def run(self, progress: Watch | bool | None) -> None:
        readers = [each for each in self._evaluators if _reads_trials(each)]
        others = [each for each in self._evaluators if not _reads_trials(each)]
        made = self._tried() if self._runner is not None else self._untried()
        if others or not readers:
            await self._judge(others, made, self._given, "judging", progress)
            made = _each(self._made)
        if readers:
            label = "comparing" if others else "judging"
            await self._judge(readers, made, _trial, label, progress)

    def results(self) -> list[Result[Any]]:
        """One for each evaluator, example and repeat, in that order; a skip for what was not done."""
        reasons = " or ".join(dict.fromkeys(reason for run in self.runs.values() for reason in run.not_done))
        found = []
        for each in self._evaluators:
            judge = EvaluatorVersion(each.name, each.version)
            for example in self._dataset:
                for repeat in self._numbers():
                    result = self._cells.get(_Cell(judge, example.id, repeat))
                    if result is None:
                        about = example.about()._replace(repeat=repeat)
                        result = Skip(f"not done: {reasons or 'the run was ended'}", *judge, about)
                    found.append(result)
        return found

    def _numbers(self) -> list[int | None]:
        return [None] if self._repeats == 1 else list(range(1, self._repeats + 1))

    # -- the task -----------------------------------------------------------------------------------------------------

    async def _tried(self) -> AsyncGenerator[_Made, None]:
        """What the task makes of each example, as it comes."""
        assert self._runner is not None
        run = evaluate_all(self._runner, list(self._dataset.inputs()), repeats=self._repeats, **self._terms)
        try:
            async with run:
                async for result in run:
                    about: Any = result.about
                    example = self._dataset[about.id]
                    if isinstance(result, Verdict):
                        output = result.value.value()
                        self.outputs[example.id, about.repeat] = output
                        made = _Made(example, about.repeat, output)
                    else:
                        made = _Made(example, about.repeat, instead=self._named(result))
                    self._made.append(made)
                    yield made
        finally:
            self.runs["task"] = run.summary

    def _named(self, result: Result[Any]) -> Result[Any]:
        """A failure of the task that says so, such as one whose time was up."""
        assert self._runner is not None
        begin = f"task {self._runner.task_name}"
        if isinstance(result, Failure) and not result.error.startswith(begin):
            words = without_lone_surrogates(f"{begin} failed: {result.error}")
            return Failure(words, exception=result.exception)
        return result

    async def _untried(self) -> AsyncGenerator[_Made, None]:
        for example in self._dataset:
            for repeat in self._numbers():
                made = _Made(example, repeat)
                self._made.append(made)
                yield made

    # -- judging ------------------------------------------------------------------------------------------------------

    async def _judge(
        self,
        evaluators: list[Evaluator[Any, Any]],
        made: AsyncGenerator[_Made, None],
        given_of: Callable[[_Made], Input | Result[Any]],
        run_name: str,
        progress: Watch | bool | None,
    ) -> None:
        asked: dict[str, _Made] = {}

        async def inputs() -> AsyncGenerator[Input, None]:
            async with aclosing(made) as stream:
                async for each in stream:
                    given = each.instead if each.instead is not None else given_of(each)
                    if not isinstance(given, Input):
                        self._stand_in(evaluators, each, given)
                        continue
                    key = each.example.id if each.repeat in (None, 1) else json.dumps([each.example.id, each.repeat])
                    if key in asked:
                        raise InputError(f"the id {quoted(key)} is needed for a repeat: give that example another one")
                    asked[key] = each
                    yield given.model_copy(update={"id": key})

        total = len(self._dataset) * self._repeats
        run = evaluate_all(evaluators, inputs(), progress=progress, total=total, **self._terms)
        try:
            async with run:
                async for result in run:
                    about = about_of(result)
                    named = None if about is None else asked.get(str(about.id))
                    if named is None or about is None:
                        raise InputError(
                            f"evaluator {quoted(str(result.evaluator))} gave a result about {describe(result)}, which "
                            "it was not asked about"
                        )
                    self._put(replace(result, about=_about(about, named)), named)
        finally:
            self.runs[run_name] = run.summary

    def _given(self, made: _Made) -> Input | Result[Any]:
        """What evaluators read of what was made, or the result in its place where that cannot be told."""
        if self._runner is None and self._judge_input is None:
            return made.example.given()
        given = made.output
        if self._judge_input is not None:
            try:
                given = self._judge_input(made.example, made.output)
            except Exception as error:  # noqa: BLE001  whatever a person's function raises is this example's failure
                return Failure(without_lone_surrogates(f"judge_input failed: {error_words(error)}"), exception=error)
        if isinstance(given, Input):
            return given
        whose = "judge_input" if self._judge_input is not None else "the task"
        raise InputError(
            f"{whose} returned a {safe_text(type(given).__name__)} for example {quoted(made.example.id)}, and "
            "evaluators read inputs, such as a Transcript: pass judge_input= to make one of it, or evaluators with "
            "input_type=Trial"
        )

    def _stand_in(self, evaluators: list[Evaluator[Any, Any]], made: _Made, result: Result[Any]) -> None:
        """One result for each evaluator of what there is nothing to judge of."""
        for each in evaluators:
            about = made.example.about()._replace(repeat=made.repeat)
            cell = _Cell(EvaluatorVersion(each.name, each.version), made.example.id, made.repeat)
            # The task's time is not the evaluator's.
            self._cells[cell] = replace(result, evaluator=each.name, version=each.version, about=about, latency=None)

    def _put(self, result: Result[Any], made: _Made) -> None:
        judge = EvaluatorVersion(str(result.evaluator), str(result.version))
        if judge not in self._judges:
            raise InputError(
                f"an evaluator gave a result by {quoted(judge.name)}, version {quoted(judge.version)}, which none is: "
                "its results must name it as it names itself"
            )
        self._cells[_Cell(judge, made.example.id, made.repeat)] = result


def _trial(made: _Made) -> Input:
    example = made.example
    shared = {field: getattr(example.input, field) for field in Input.model_fields}
    return Trial(**shared, example=example, output=made.output)


async def _each(made: list[_Made]) -> AsyncGenerator[_Made, None]:
    for each in made:
        yield each


def _about(about: About, made: _Made) -> About:
    """What a result is about: the example, with what the judged input says of itself."""
    of = made.example.about()
    filled: dict[str, Any] = {field: getattr(of, field) for field in _SHARED if getattr(about, field) is None}
    attributes = {**(about.attributes or {}), **(of.attributes or {})}
    return about._replace(id=of.id, attributes=attributes, repeat=made.repeat, **filled)


_SHARED = ("user", "at", "read_at", "arm", "weight")


def _reads_trials(evaluator: Any) -> bool:
    return any(issubclass(kind, Trial) for kind in _input_types(evaluator))


def _input_types(evaluator: Any) -> Iterator[type]:
    found = getattr(evaluator, "input_type", None)
    if found is not None:
        yield from found if isinstance(found, tuple) else (found,)
    for inner in getattr(evaluator, "evaluators", ()):  # those of a Fallback
        yield from _input_types(inner)
