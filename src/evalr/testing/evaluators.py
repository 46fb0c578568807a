"""The contract of evaluators, as a class of tests.

A package that adds an evaluator subclasses it, gives inputs to evaluate, and lets pytest run what it inherits:

    class TestMyJudge(EvaluatorContract):
        evaluator = my_package.judge(model=a_stand_in)
        inputs = [Transcript(id="t1", request="...", turns=[...])]
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from evalr.errors import InputError
from evalr.evaluators import Evaluator
from evalr.inputs import About, Input
from evalr.testing.checks import expect, expect_readable, is_one_line
from evalr.verdicts import NO_VERDICT, Failure, Result, Verdict, describe, scores


class Foreign(Input):
    """An input that no evaluator was made for."""

    kind: ClassVar[str] = "foreign"


class EvaluatorContract:
    """Subclass it, name the evaluator, and give it inputs of which at least one has a verdict.

    Several of the tests evaluate them all: to an evaluator that asks a model, give one that stands in for it.
    """

    evaluator: ClassVar[Evaluator[Any, Any]]
    """The evaluator that is tested."""

    inputs: ClassVar[Sequence[Input]]
    """What it is tested on: of the type that it reads, with ids, and with as many kinds of results as it has."""

    foreign: ClassVar[Input] = Foreign(id="foreign")
    """An input of a type that it does not read."""

    # -- what every evaluator must do ---------------------------------------------------------------------------------

    def test_it_is_an_evaluator(self) -> None:
        """It has every part of one, and its verdict type has fields that scores and reports can read."""
        expect(isinstance(self.evaluator, Evaluator), f"{self.evaluator!r} lacks a part of evalr.Evaluator")
        expect_readable(self.evaluator.verdict_type)

    def test_its_name_and_version_are_texts_that_stay(self) -> None:
        """Both fit in a line, and evaluating changes neither."""
        before = (self.evaluator.name, self.evaluator.version)
        expect(all(map(is_one_line, before)), f"name and version must be texts of one line, not {before}")
        self._results()
        after = (self.evaluator.name, self.evaluator.version)
        expect(before == after, f"evaluating changed its name or version from {before} to {after}")

    def test_each_input_has_one_result(self) -> None:
        """A verdict, failure, skip or hand-off; a verdict for at least one of the inputs."""
        results = self._results()
        expect(any(isinstance(result, Verdict) for result in results), "none of the inputs has a verdict: add one")

    def test_a_verdict_is_of_the_promised_type(self) -> None:
        """Its value is one of the verdict type, and makes scores."""
        for result in self._results():
            if isinstance(result, Verdict):
                promised, value = self.evaluator.verdict_type, result.value
                expect(
                    isinstance(value, promised),
                    f"promised {promised.__name__} and gave {type(value).__name__}: {value!r}",
                )
                expect(bool(scores(result)), f"the verdict of {describe(result)} has no scores")

    def test_every_result_says_what_it_is_about_and_who_gave_it(self) -> None:
        """The input's own `about()`, and the evaluator's name and version, on failures and skips too."""
        for given, result in zip(self.inputs, self._results(), strict=True):
            self._is_stamped(result, given.about())

    def test_what_goes_wrong_inside_is_a_result(self) -> None:
        """Where a field of an input cannot be read, it neither raises nor gives a verdict all the same."""
        for given in self.inputs:
            broken, touched = unreadable(given)
            result = self._result(broken)
            self._is_stamped(result, given.about())
            if touched:
                expect(
                    not isinstance(result, Verdict),
                    f"the fields {sorted(touched)} could not be read, and it gave a verdict: {result!r}",
                )
            if isinstance(result, Failure):
                expect(bool(result.error.strip()), "a failure must say why")

    def test_another_type_of_input_is_an_error(self) -> None:
        """It is a mistake of whoever calls, so it is raised: a failure would be counted as one of the evaluator's."""
        try:
            result = asyncio.run(self.evaluator.evaluate(self.foreign))
        except InputError:
            return
        raise AssertionError(f"it takes an input of type {type(self.foreign).__name__}: {result!r}")

    def test_what_it_tells_runs_is_true(self) -> None:
        """Its optional parts: `pinned` changes no name, `as_of` is that of its results, `pending` says yes or no.

        A journal keeps results under these, and asks again, or does not, by them.
        """
        pinned = getattr(self.evaluator, "pinned", lambda: self.evaluator)()
        given_by, own = (pinned.name, pinned.version), (self.evaluator.name, self.evaluator.version)
        expect(given_by == own, f"pinned, it is {given_by}, and otherwise {own}")
        for given in self.inputs:
            told: object = getattr(pinned, "as_of", lambda _: None)(given)
            result: Result[BaseModel] = asyncio.run(pinned.evaluate(given))
            if hasattr(pinned, "as_of"):
                expect(
                    result.as_of == told,
                    f"the result of {describe(result)} is as of {result.as_of}, and as_of says {told}",
                )
            pending = getattr(pinned, "pending", None)
            if pending is not None and isinstance(result, Verdict):
                said = pending(result.value)
                expect(isinstance(said, bool), f"pending gave {said!r} for {result.value!r}, which is no bool")

    def test_its_results_pickle(self) -> None:
        """They go to other processes, and come back equal."""
        for result in self._results():
            try:
                again = pickle.loads(pickle.dumps(result))
            except Exception as error:
                raise AssertionError(f"the result of {describe(result)} does not pickle: {error}") from error
            expect(again == result, f"{result!r} comes back as {again!r}")

    # -- the parts of the checks --------------------------------------------------------------------------------------

    def _results(self) -> list[Result[BaseModel]]:
        return [self._result(given) for given in self.inputs]

    def _result(self, given: Input) -> Result[BaseModel]:
        try:
            result: object = asyncio.run(self.evaluator.evaluate(given))
        except Exception as error:
            raise AssertionError(f"it raised {error!r}, which should be a Failure") from error
        if not isinstance(result, (Verdict, *NO_VERDICT)):
            raise AssertionError(f"it gave {result!r}, which is no verdict, failure, skip or hand-off")
        return result

    def _is_stamped(self, result: Result[BaseModel], about: About) -> None:
        expect(result.about == about, f"a result about {about} says that it is about {result.about}")
        given_by, own = (result.evaluator, result.version), (self.evaluator.name, self.evaluator.version)
        expect(given_by == own, f"the result of {describe(result)} is by {given_by}, and the evaluator is {own}")


def unreadable(given: Input) -> tuple[Input, set[str]]:
    """The same input, where reading any field of its type's own raises, and a set that fills with those touched."""
    touched: set[str] = set()
    own = type(given).model_fields.keys() - Input.model_fields.keys()
    about = given.about()

    def read(self: Input, name: str) -> Any:
        if name in own:
            touched.add(name)
            raise ValueError(f"{name} cannot be read")
        return object.__getattribute__(self, name)

    parts = {"__module__": __name__, "__getattribute__": read, "about": lambda self: about}
    broken: type[Input] = type("Unreadable", (type(given),), parts)
    values = {name: getattr(given, name) for name in type(given).model_fields}
    return broken.model_construct(**values), touched
