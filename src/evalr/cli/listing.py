"""What is installed, listed: measures, what they need, the names that gates use, and readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from evalr.estimates.words import number_words, plural, window_words
from evalr.fields import Field, verdict_fields
from evalr.logs import installed_readers
from evalr.logs.log import reader_settings
from evalr.logs.schemas import DRAFT
from evalr.measures.measure import ANY_TIME, Measure, installed_measures
from evalr.measures.ready_judges import judged_measures
from evalr.quoting import safe_text
from evalr.reports.fitting import cells, padded, wrapped
from evalr.reports.lane import title_of
from evalr.summaries import Summary


class Named(NamedTuple):
    """A summary, with the name of the measure that it is of."""

    measure: str
    summary: Summary[Any]


def summaries_by_name() -> dict[str, Named]:
    """Every summary of every installed measure, by the name that gates use."""
    return {
        summary.name: Named(measure.name, summary)
        for measure in installed_measures().loaded.values()
        for summary in measure.summaries(**measure.settings)
    }


def value_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of what a result's `value` holds, by the measure that the result belongs to."""
    return {
        name: {"$schema": DRAFT, **measure.verdict.model_json_schema()}
        for name, measure in installed_measures().loaded.items()
    }


def listing() -> str:
    """Everything that is installed, as lines of text."""
    measures, readers = installed_measures(), installed_readers()
    lines = ["measures"]
    for measure in measures.loaded.values():
        lines += _measure_lines(measure)
    lines += [
        f"  {safe_text(name)}  cannot be used: {safe_text(why, longest=500)}" for name, why in measures.broken.items()
    ]
    lines += ["", "readers"]
    width = max((cells(name) for name in readers.loaded), default=0)
    for name, reader in readers.loaded.items():
        lines.append(f"  {padded(name, width)}  {safe_text(reader.describes)}")
        settings = reader_settings(reader)
        if settings:
            before = f"  {padded('', width)}  settings  "
            lines += wrapped(_settings_words(settings), 100, first=before, rest=" " * len(before))
    lines += [
        f"  {safe_text(name)}  cannot be used: {safe_text(why, longest=500)}" for name, why in readers.broken.items()
    ]
    return "\n".join(lines)


def _measure_lines(measure: Measure) -> Iterator[str]:
    yield f"  {measure.name}  {safe_text(measure.question)}"
    yield f"    needs     {_needs(measure)}"
    computed = measure.verdict.model_computed_fields
    parts = [_field_words(each) for each in verdict_fields(measure.verdict) if each.name not in computed]
    yield from wrapped("; ".join(parts), 100, first="    verdict   ", rest=" " * 14)
    for place, summary in enumerate(measure.summaries(**measure.settings)):
        begin = "names" if place == 0 else ""
        yield f"    {begin:<9} {padded(summary.name, 20)}  {safe_text(title_of(summary))}"
    if measure.settings:
        yield f"    settings  {_settings_words(measure.settings)}"
    if measure.evaluator is not None:
        evaluator = measure.evaluator(now=ANY_TIME, **measure.settings)
        yield f"    evaluator {evaluator.name}@{evaluator.version}"
    elif measure.name in judged_measures():
        yield f"    judge     evalr judge LOG --measure {measure.name} --lm MODEL"


def _field_words(field: Field) -> str:
    """`quality: integer, 1 to 5`: what a result's value holds under this name."""
    limits = {"at least": field.low, "at most": field.high}
    numbers = [f"{words} {number_words(limit)}" for words, limit in limits.items() if limit is not None]
    if field.choices:
        kind = " | ".join(str(getattr(choice, "value", choice)) for choice in field.choices)
        kind = f"several of {kind}" if field.kind == "choices" else kind
    elif field.low is not None and field.high is not None:
        kind = f"{field.kind} from {number_words(field.low)} to {number_words(field.high)}"
    else:
        kind = " ".join([field.kind, *numbers])
    return safe_text(f"{field.name}: {kind}{'' if field.required else ', optional'}", longest=300)


def _needs(measure: Measure) -> str:
    needed = plural(measure.reads.kind)
    if measure.evaluator is None:
        return f"verdicts in the log, by a judge or by people, of {needed}"
    return needed if measure.split is None else f"{needed}, for the {plural(measure.input.kind)} in them"


def _settings_words(settings: Mapping[str, Any]) -> str:
    """`window=1h, agents=`: each with its default; nothing stands for none."""
    return ", ".join(f"{name}={_plain(value)}" for name, value in settings.items())


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return "|".join(map(str, value))
    return window_words(value) if isinstance(value, timedelta) else str(value)
