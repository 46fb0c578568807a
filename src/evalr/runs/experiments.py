"""What an experiment found: one result for each example, evaluator and repeat, to look at, keep and compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from evalr.errors import DatasetError, InputError, JournalError
from evalr.estimates import display
from evalr.estimates.words import choice_words, count_words
from evalr.labels.datasets import HASH_SHOWN
from evalr.labels.files import Place, locked, read_bytes, real_path, replace_lines
from evalr.labels.lines import check_header, measured_types, numbered_lines
from evalr.logs.forms import EXPERIMENT
from evalr.plain import ascii_text, from_json_text, readable_text
from evalr.quoting import quoted, safe_text
from evalr.runs.account import RunSummary, cost_words
from evalr.runs.lines import from_text, to_text
from evalr.runs.reasons import reason_lines
from evalr.runs.results_table import ResultsTable
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict

if TYPE_CHECKING:
    from pandas import DataFrame

    from evalr.summaries import Summary

FORMAT = 1

_STATUS_WORDS = {
    Verdict.status: "verdict",
    Failure.status: "failed/failed",
    Skip.status: "skipped/skipped",
    HandOff.status: "handed off/handed off",
}


class EvaluatorVersion(NamedTuple):
    """An evaluator by its name and version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{safe_text(self.name)}@{safe_text(self.version)}"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What an experiment found.

    Attributes:
        name: of the experiment.
        dataset: the name of its dataset.
        dataset_hash: the hash of its dataset, which a comparison goes by.
        examples: of each example, by its id and in order, a hash of what was looked at: its input, and where evaluators
            read trials, all of it.
        task: the name of its task, None where the inputs were judged as they are.
        task_version: the version of its task.
        evaluators: the evaluators, with their verdict types.
        repeats: how often each example was tried.
        results: one for each evaluator, example and repeat, in that order.
        outputs: what the task returned, by example id and repeat; not kept in a file.
        runs: what the runs of the task and of the evaluators did, cost among it; not kept in a file.
    """

    name: str
    dataset: str
    dataset_hash: str
    examples: Mapping[str, str]
    task: str | None
    task_version: str | None
    evaluators: Mapping[EvaluatorVersion, type[BaseModel]]
    repeats: int
    results: list[Result[Any]]
    outputs: Mapping[tuple[str, int | None], Any] = field(default_factory=dict, repr=False, compare=False)
    runs: Mapping[str, RunSummary] = field(default_factory=dict, repr=False, compare=False)

    # -- results ------------------------------------------------------------------------------------------------------

    def results_of(self, evaluator: str, version: str | None = None) -> list[Result[Any]]:
        """The results of one evaluator, of all its versions unless one is named.

        Raises:
            InputError: there is no such evaluator.
        """
        known = [judge for judge in self.evaluators if judge.name == evaluator and version in (None, judge.version)]
        if not known:
            names = dict.fromkeys(judge.name for judge in self.evaluators)
            raise InputError(f"no evaluator {quoted(evaluator)} judged; {choice_words(evaluator, names)}")
        return [
            result for result in self.results if EvaluatorVersion(str(result.evaluator), str(result.version)) in known
        ]

    def results_for(self, summary: Summary[Any]) -> list[Result[Any]]:
        """The results that a summary reads, failures among them: those of the evaluator with its verdict type.

        Raises:
            InputError: no evaluator has that type, or several have.
        """
        fitting = [each for each, verdict_type in self.evaluators.items() if issubclass(verdict_type, summary.of)]
        if len(fitting) != 1:
            which = f"{' and '.join(map(str, fitting))} give it" if fitting else "no evaluator gives it"
            raise InputError(
                f"summary {summary.name!r} reads {summary.of.__name__}, and {which}: pass results_of(name, version)"
            )
        return self.results_of(*fitting[0])

    # -- looking ------------------------------------------------------------------------------------------------------

    def table(self) -> ResultsTable:
        """One row for each example: what each evaluator said, field by field."""
        several = Counter(judge.name for judge in self.evaluators)
        labels = {judge: judge.name if several[judge.name] == 1 else str(judge) for judge in self.evaluators}
        columns = {label: (judge, self.evaluators[judge]) for judge, label in labels.items()}
        return ResultsTable(list(self.examples), columns, self.results, self.repeats)

    def __repr__(self) -> str:
        return f"<Experiment {' · '.join(self._parts())}>"

    def __str__(self) -> str:
        return "\n".join([" · ".join(self._parts()), *reason_lines(self.results), str(self.table())])

    def _parts(self) -> list[str]:
        statuses = Counter(result.status for result in self.results)
        counts = [count_words(statuses[status], noun) for status, noun in _STATUS_WORDS.items() if statuses[status]]
        examples = count_words(len(self.examples), "example")
        parts = [
            safe_text(self.name),
            f"{examples} of {safe_text(self.dataset)} ({self.dataset_hash[:HASH_SHOWN]})",
            *([] if self.task is None else [f"task {safe_text(self.task)}@{safe_text(str(self.task_version))}"]),
            f"judged by {', '.join(map(str, self.evaluators))}",
            *([f"{self.repeats} times"] if self.repeats > 1 else []),
            ", ".join(counts) or "no results",
        ]
        return parts + ([self._cost_words()] if self.runs else [])

    def _cost_words(self) -> str:
        runs = self.runs.values()
        return cost_words(
            sum(run.cost for run in runs), sum(run.unknown_costs for run in runs), sum(run.calls for run in runs)
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        lines = [" · ".join(self._parts()), *reason_lines(self.results)]
        return display.shown(*map(display.paragraph, lines), self.table().html())

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for each example and repeat, with every field of every verdict."""
        return self.table().to_dicts()

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each example and repeat. Needs pandas."""
        return self.table().to_frame()

    # -- files --------------------------------------------------------------------------------------------------------

    def save(self, path: Place) -> None:
        """Write it to a file, whole or not at all: a header, and one line of JSON for each result.

        The lines are results as evalr's own log has them. Outputs and inputs are not among them.

        Raises:
            DatasetError: the file cannot be written.
            InputError: a result would not be read back as it is.
        """
        real = real_path(path)
        lines = [readable_text(self._header()), *(self._line(result) for result in self.results)]
        with locked(real):
            replace_lines(real, lines)

    def _header(self) -> dict[str, Any]:
        return {
            "type": EXPERIMENT,
            "format": FORMAT,
            "name": self.name,
            "dataset": self.dataset,
            "dataset_hash": self.dataset_hash,
            "task": self.task,
            "task_version": self.task_version,
            "evaluators": [[*judge, verdict_type.__name__] for judge, verdict_type in self.evaluators.items()],
            "repeats": self.repeats,
            "results": len(self.results),
            "examples": dict(self.examples),
        }

    def _line(self, result: Result[Any]) -> str:
        verdict_type = self.evaluators[EvaluatorVersion(str(result.evaluator), str(result.version))]
        try:
            fields = from_json_text(to_text(result, verdict_type))
        except JournalError as error:
            raise InputError(str(error)) from error
        if result.about is not None and result.about.repeat is not None:
            fields["about"]["repeat"] = result.about.repeat
        return readable_text(fields)

    @classmethod
    def load(cls, path: Place, *, verdict_types: Iterable[type[BaseModel]] = ()) -> Experiment:
        """Read an experiment from a file that `save` wrote.

        Args:
            path: of the file.
            verdict_types: of its evaluators; those of installed measures are known by their names.

        Raises:
            DatasetError: the file is missing, damaged, cut off or something else; the message names the line.
        """
        real = real_path(path)
        lines = numbered_lines(real, read_bytes(real))
        header = next(lines, (1, {}))[1]
        check_header(real, header, EXPERIMENT, FORMAT)
        known = measured_types() | {each.__name__: each for each in verdict_types}
        try:
            evaluators = {
                EvaluatorVersion(str(name), str(version)): known[type_name]
                for name, version, type_name in header["evaluators"]
            }
            examples = {str(name): str(content) for name, content in header["examples"].items()}
            made = {name: header[name] for name in _KEPT}
            stated = header["results"]
        except KeyError as error:
            what = error.args[0]
            hint = "missing" if what in _HEADER_FIELDS else _NOT_INSTALLED
            raise DatasetError(f"{real}, line 1: {safe_text(str(what))!r} is {hint}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise DatasetError(f"{real}, line 1: a header that cannot be read ({safe_text(str(error))})") from None
        results = [_result(real, number, fields, evaluators) for number, fields in lines]
        if stated != len(results):
            raise DatasetError(
                f"{real}: {count_words(len(results), 'result')}, and its first line says {safe_text(repr(stated))}: "
                "lines are missing from it, or were written into it"
            )
        return cls(**made, evaluators=evaluators, examples=examples, results=results)


_NOT_INSTALLED = (
    "of no installed measure: in Python, pass Experiment.load(path, verdict_types=[...]) and compare with summaries of "
    "your own; the command knows the verdict types of installed measures alone, see `evalr measures`"
)
_KEPT = ("name", "dataset", "dataset_hash", "task", "task_version", "repeats")
_HEADER_FIELDS = (*_KEPT, "evaluators", "results", "examples")


def _result(
    path: Any, number: int, fields: dict[str, Any], evaluators: Mapping[EvaluatorVersion, type[BaseModel]]
) -> Result[Any]:
    judge = EvaluatorVersion(str(fields.get("evaluator")), str(fields.get("version")))
    if judge not in evaluators:
        raise DatasetError(f"{path}, line {number}: a result by {judge}, whom the first line does not name")
    about = fields.get("about")
    repeat = about.pop("repeat", None) if isinstance(about, dict) else None
    try:
        return from_text(ascii_text(fields), evaluators[judge], repeat)
    except (JournalError, InputError) as error:
        raise DatasetError(f"{path}, line {number}: {error}") from None
