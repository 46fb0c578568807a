"""The contract of measures, as a class of tests.

A package that adds a measure subclasses it, gives what a log would yield, and lets pytest run what it inherits:

    class TestInterruptions(MeasureContract):
        measure = my_package.measure
        inputs = [Session(id="s1", activities=[...]), Session(id="s2", activities=[...])]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from evalr.evaluators import FunctionEvaluator
from evalr.inputs import Input
from evalr.logs import Stored
from evalr.measures import Measure
from evalr.reports.report import report
from evalr.summaries import Summary
from evalr.testing.checks import expect, expect_readable, is_one_line
from evalr.verdicts import Result, Verdict, scores


class MeasureContract:
    """Subclass it, name the measure, and give what a log would yield for it: at least two results, one a verdict.

    What its evaluator must hold to is another contract's, `EvaluatorContract`.
    """

    measure: ClassVar[Measure]
    """The measure that is tested."""

    inputs: ClassVar[Sequence[Input]] = ()
    """What it is tested on: of the type that it reads from a log (`measure.reads`), with ids."""

    results: ClassVar[Sequence[Result[Any]]] = ()
    """In place of inputs, for a measure without an evaluator: results of one judge."""

    now: ClassVar[datetime] = datetime(2100, 1, 1, tzinfo=UTC)
    """The reading time; after everything that the inputs tell of."""

    other_settings: ClassVar[Mapping[str, Any]] = {}
    """For each of its settings, another value than the default: one that changes answers, if any does."""

    # -- what every measure must do -----------------------------------------------------------------------------------

    def test_it_says_what_it_is(self) -> None:
        """Its name and its question fit in a line."""
        measure = self.measure
        expect(isinstance(measure, Measure), f"{measure!r} is no evalr.measures.Measure")
        expect(is_one_line(measure.name), f"its name must be a text of one line, not {measure.name!r}")
        expect(is_one_line(measure.question), f"its question must be a text of one line, not {measure.question!r}")

    def test_its_verdicts_can_be_read(self) -> None:
        """Scores, judges and reports can read each field, and each verdict is of the type."""
        expect_readable(self.measure.verdict)
        for result in self._results():
            if isinstance(result, Verdict):
                wanted, value = self.measure.verdict, result.value
                expect(isinstance(value, wanted), f"{value!r} is no {wanted.__name__}")
                expect(bool(scores(result)), f"{value!r} has no scores")

    def test_its_evaluator_and_first_summary_have_its_name(self) -> None:
        """People ask for all three by one name."""
        summaries = self._summaries()
        expect(bool(summaries), "it has no summary")
        name = self.measure.name
        expect(summaries[0].name == name, f"the measure is {name!r}, and its first summary {summaries[0].name!r}")
        if (evaluator := self._evaluator()) is not None:
            expect(evaluator.name == name, f"the measure is {name!r}, and its evaluator {evaluator.name!r}")

    def test_its_summaries_have_names_of_their_own(self) -> None:
        """Gates and reports ask for them by name."""
        names = [summary.name for summary in self._summaries()]
        expect(all(map(is_one_line, names)), f"the names of summaries must be texts of one line: {names}")
        expect(len(set(names)) == len(names), f"two of its summaries have one name: {names}")

    def test_a_summary_of_nothing_is_undefined_and_says_why(self) -> None:
        """It is no 0, and it raises nothing."""
        for summary in self._summaries():
            estimate = summary.estimate([])
            expect(
                estimate.value is None and estimate.status == "undefined" and bool(estimate.reason),
                f"the summary {summary.name!r} of nothing is {estimate!r}",
            )

    def test_parts_add_up_to_the_whole(self) -> None:
        """However results are divided, and in whatever order the parts come: days and processes can be added up."""
        results = self._results()
        for summary in self._summaries():
            whole = summary.estimate(results)
            for cut in range(1, len(results)):
                first, second = summary.tally(results[:cut]), summary.tally(results[cut:])
                for added in (first + second, second + first):
                    found = summary.estimate(added)
                    expect(
                        found == whole, f"{summary.name!r} of {cut} results and the others is {found!r}, not {whole!r}"
                    )

    def test_a_setting_that_changes_answers_changes_the_version(self) -> None:
        """So that verdicts of two settings are never pooled unnoticed; equal settings make equal versions."""
        if self.measure.evaluator is None:
            return
        settings, others = self.measure.settings, self.other_settings
        expect(
            settings.keys() == others.keys(),
            f"other_settings must give another value for each of {sorted(settings)}, and has {sorted(others)}",
        )
        version, answers = self._version(), self._answers()
        expect(self._version() == version, "its evaluator has another version each time that it is made")
        for name, value in others.items():
            expect(value != settings[name], f"other_settings has the default of {name!r}: give another value")
            if self._version(**{name: value}) == version:
                expect(
                    self._answers(**{name: value}) == answers,
                    f"{name}={value!r} changes answers, and the version is {version!r} either way",
                )

    def test_a_report_says_what_its_summaries_say(self) -> None:
        """`evalr.report` computes it, or reads its results, and can be printed and stored."""
        stored = [Stored(self.measure.name, result) for result in self.results]
        given = stored if self.measure.evaluator is None else self.inputs
        found = report(given, measures=[self.measure], now=self.now)
        results = self._results()
        for summary in self._summaries():
            shown, alone = found[summary.name], summary.estimate(results)
            expect(shown == alone, f"a report has {shown!r} for {summary.name!r}, and the summary itself {alone!r}")
        expect(bool(str(found)), "the report prints nothing")
        json.dumps(found.to_dict(), allow_nan=False)

    # -- the parts of the checks --------------------------------------------------------------------------------------

    def _summaries(self) -> Sequence[Summary[Any]]:
        return self.measure.summaries(**self.measure.settings)

    def _evaluator(self, **settings: Any) -> FunctionEvaluator[Any, Any] | None:
        make = self.measure.evaluator
        return None if make is None else make(now=self.now, **self.measure.settled(settings))

    def _version(self, **settings: Any) -> str | None:
        evaluator = self._evaluator(**settings)
        return None if evaluator is None else evaluator.version

    def _results(self, **settings: Any) -> list[Result[Any]]:
        evaluator = self._evaluator(**settings)
        results = (
            list(self.results)
            if evaluator is None
            else [evaluator.evaluate_inline(part) for given in self.inputs for part in self._parts(given)]
        )
        missing = "inputs" if evaluator is not None else "results"
        expect(len(results) > 1, f"give {missing} with at least two results, not {len(results)}")
        expect(any(isinstance(result, Verdict) for result in results), f"none of the {missing} has a verdict: add one")
        return results

    def _answers(self, **settings: Any) -> list[tuple[str, object]]:
        return [
            (result.status, result.value if isinstance(result, Verdict) else None)
            for result in self._results(**settings)
        ]

    def _parts(self, given: Input) -> Sequence[Input]:
        measure = self.measure
        expect(isinstance(given, measure.reads), f"it reads {measure.reads.__name__}, not {type(given).__name__}")
        parts = [given] if measure.split is None else list(measure.split(given, self.now))
        for part in parts:
            expect(isinstance(part, measure.input), f"a part is {type(part).__name__}, not {measure.input.__name__}")
        return parts
