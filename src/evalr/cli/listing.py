"""What is installed, listed: measures, what they need, the names that gates use, and readers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from evalr.estimates.words import plural, window_words
from evalr.logs import installed_readers
from evalr.measures.measure import Measure
from evalr.quoting import safe_text
from evalr.reports.fitting import cells, padded
from evalr.reports.lane import title_of
from evalr.reports.usable import usable_measures
from evalr.summaries import Summary

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


class Named(NamedTuple):
    """A summary, with the name of the measure that it is of."""

    measure: str
    summary: Summary[Any]


def summaries_by_name() -> dict[str, Named]:
    """Every summary of every installed measure, by the name that gates use."""
    return {
        summary.name: Named(measure.name, summary)
        for measure in usable_measures().loaded.values()
        for summary in measure.summaries(**measure.settled({}))
    }


def listing() -> str:
    """Everything that is installed, as lines of text."""
    measures, readers = usable_measures(), installed_readers()
    lines = ["measures"]
    for measure in measures.loaded.values():
        lines += _measure_lines(measure)
    lines += [
        f"  {safe_text(name)}  cannot be used: {safe_text(why, longest=500)}" for name, why in measures.broken.items()
    ]
    lines += ["", "readers"]
    width = max((cells(name) for name in readers.loaded), default=0)
    lines += [f"  {padded(name, width)}  {safe_text(reader.describes)}" for name, reader in readers.loaded.items()]
    lines += [
        f"  {safe_text(name)}  cannot be used: {safe_text(why, longest=500)}" for name, why in readers.broken.items()
    ]
    return "\n".join(lines)


def _measure_lines(measure: Measure) -> Iterator[str]:
    yield f"  {measure.name}  {safe_text(measure.question)}"
    yield f"    needs     {_needs(measure)}"
    for place, summary in enumerate(measure.summaries(**measure.settled({}))):
        begin = "names" if place == 0 else ""
        yield f"    {begin:<9} {padded(summary.name, 20)}  {safe_text(title_of(summary))}"
    if measure.settings:
        yield f"    settings  {', '.join(f'{name}={_plain(value)}' for name, value in measure.settings.items())}"
    if measure.evaluator is not None:
        evaluator = measure.evaluator(now=_ANY_TIME, **measure.settled({}))
        yield f"    evaluator {evaluator.name}@{evaluator.version}"


def _needs(measure: Measure) -> str:
    needed = plural(measure.reads.kind)
    if measure.evaluator is None:
        return f"verdicts in the log, by a judge or by people, of {needed}"
    return needed if measure.split is None else f"{needed}, for the {plural(measure.input.kind)} in them"


def _plain(value: Any) -> str:
    return window_words(value) if isinstance(value, timedelta) else str(value)
