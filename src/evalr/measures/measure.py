"""The measure object: everything that reports, gates and engines need to know of a measure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from evalr.errors import InputError, error_words
from evalr.evaluators import FunctionEvaluator
from evalr.fields import verdict_fields
from evalr.inputs import Input
from evalr.measures.rows import RowReader
from evalr.plugins import Plugins, load_plugins
from evalr.summaries import Key, Summary

REPORT_OPTIONS = frozenset(
    [
        "log",
        "now",
        "since",
        "until",
        "by",
        "lift",
        "randomised",
        "cluster",
        "level",
        "measures",
        "kind",
        "strict",
        "details",
        "progress",
    ]
)
"""What a report is asked for, beside `window`: no setting of a measure may have such a name."""


@dataclass(frozen=True, kw_only=True)
class Marker:
    """Something that only some logs record, and without which a measure means less.

    Args:
        seen: whether one input has it. One input that does is enough for the whole log.
        without: what a report says where none does; the measure then stands after those that need no marker.
        seen_in_row: the same as `seen`, of a row; see `Measure.rows`.
    """

    seen: Callable[[Any], bool]
    without: str
    seen_in_row: Callable[[Any], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Groups that stand out, the one with the largest part first, such as the files of which people took out most.

    Args:
        title: what stands out, such as "most rewritten files".
        what: what the shares are of, such as "taken out of what agents wrote".
        by: what to group by. A result without it is in no group.
        part: what is summed in each group, from a verdict's value.
        whole: what the part is of: part ≤ whole in every verdict.
        unit: what the sums are in, such as "character".
        noun: what one verdict is called.
    """

    title: str
    what: str
    by: Key
    part: Callable[[Any], int]
    whole: Callable[[Any], int]
    unit: str
    noun: str = "result"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One measure, whole: what it reads, what it says, how it is reached and summed up.

    A package adds one under the entry point group `evalr.measures`; the report, the gate, `--by` and the notebook then
    know it like any other.

    Args:
        name: its one name: the evaluator's, its scores' prefix, and its first summary's.
        question: what it answers, in a few words.
        input: the type of input its evaluator reads.
        verdict: the verdict type.
        summaries: given the settings as keywords, its summaries; the first is the headline and has the measure's name.
        settings: what can be set, with the defaults, such as `{"window": timedelta(hours=1)}`.
        evaluator: given `now` (a datetime or a clock) and the settings as keywords, its evaluator; None where it takes
            a judge or people, whose verdicts the log must then hold.
        whole: the type of input that a log yields, where `split` makes the evaluator's inputs of it.
        split: from a whole and the reading time, the inputs that are parts of it.
        marker: see `Marker`.
        rankings: see `Ranking`.
        by: what a report groups it by where nobody asks for another grouping, such as the rule of each run.
        rows: the fast way, for `evalr.bulk`: given columns for each tally of the summaries (those that read alike share
            one) and the settings as keywords, what adds to them, row by row, what the summaries count of what the
            evaluator says. Where it raises, the evaluator is asked. With `split` it may be given `began` as well: a
            list, to which it adds when the part of each verdict began, between the row's first event and its last. See
            `evalr.measures.rows`.
        part_attributes: with `split` and `rows`: the attributes that parts have beside those of the whole. Parts have
            the whole's user, arm, `read_at` and weight.
    """

    name: str
    question: str
    input: type[Input]
    verdict: type[BaseModel]
    summaries: Callable[..., Sequence[Summary[Any]]]
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    evaluator: Callable[..., FunctionEvaluator[Any, Any]] | None = None
    whole: type[Input] | None = None
    split: Callable[[Any, datetime], Iterable[Input]] | None = None
    marker: Marker | None = None
    rankings: Sequence[Ranking] = ()
    by: Key | None = None
    rows: Callable[..., RowReader] | None = None
    part_attributes: Sequence[str] = ()

    def __post_init__(self) -> None:
        verdict_fields(self.verdict)
        if (self.whole is None) != (self.split is None):
            raise InputError(f"measure {self.name!r}: whole= and split= belong together")
        taken = sorted(REPORT_OPTIONS & set(self.settings))
        if taken:
            raise InputError(f"measure {self.name!r}: a report has options of its own named {', '.join(taken)}")

    @property
    def reads(self) -> type[Input]:
        """The type of input that a log must yield for it."""
        return self.whole or self.input

    def settled(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Its settings: those given that are its own, else the defaults."""
        return {name: given.get(name, default) for name, default in self.settings.items()}


ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""A reading time for evaluators that are made to be looked at, and measure nothing."""


def default_name(verdict_type: type[BaseModel]) -> str:
    """The name of the installed measure of a verdict type or of one that it extends, else the type's own."""
    measures = {measure.verdict: measure.name for measure in installed_measures().loaded.values()}
    found = next((measures[kind] for kind in verdict_type.__mro__ if kind in measures), None)
    return found or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", verdict_type.__name__).lower()


def installed_measures() -> Plugins[Measure]:
    """Every installed measure that works with its own defaults, by name, and why the others do not.

    One that cannot be loaded, or is not as it says of itself, is listed and stops no other, whatever another package's
    code raises. What is installed is looked up at each call: it may change while a notebook runs.
    """
    found, broken = load_plugins("evalr.measures", Measure)
    usable: dict[str, Measure] = {}
    owners: dict[str, str] = {}
    for name, measure in found.items():
        try:
            names = _summary_names(measure)
        except Exception as error:  # noqa: BLE001  another package's code may raise anything; it is listed with its cause
            broken[name] = error_words(error)
            continue
        taken = [f"{each!r} is one of {owners[each]!r}" for each in names if each in owners]
        if not names or names[0] != measure.name:
            broken[name] = f"its first summary must be named {measure.name!r}"
        elif taken or len(set(names)) < len(names):
            broken[name] = f"its summaries need names of their own: {', '.join(taken or names)}"
        else:
            usable[name] = measure
            owners |= dict.fromkeys(names, name)
    return Plugins(usable, broken)


def _summary_names(measure: Measure) -> list[str]:
    if measure.evaluator is not None:
        measure.evaluator(now=ANY_TIME, **measure.settings)
    summaries = measure.summaries(**measure.settings)
    for summary in summaries:
        if not isinstance(summary, Summary):
            raise TypeError(f"{summary!r} is not a summary")
    return [summary.name for summary in summaries]
