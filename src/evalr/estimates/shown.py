"""What a notebook shows of results that have no table of their own: what they print, or their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any, ClassVar

from evalr.estimates import display
from evalr.estimates.estimate import Estimate, Groups
from evalr.estimates.lift import Lift
from evalr.estimates.trends import Trends
from evalr.estimates.words import count_words, number_words
from evalr.quoting import safe_text

MOST_LINES = 40
LONGEST = 200
LONGEST_ROW = 1_000
DEEPEST = 3
_OTHERS = "to_dict() has all"


class Printed:
    """A result that shows in a notebook what it prints."""

    # Annotated, so that the docs of a model that has it do not take it for a field.
    __slots__: ClassVar[tuple[str, ...]] = ()

    def _repr_html_(self) -> str:
        return display.printed(str(self))


class Fielded:
    """A dataclass of results that shows its fields, printed or in a notebook: estimates with their intervals, too.

    Its repr has every digit.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return display.shown(display.table("", _level(lines_of(self)), self._rows(), caption=type(self).__name__))

    def __str__(self) -> str:
        """A line for each field."""
        rows = [f"  {row}" if isinstance(row, str) else _text(row) for row in self._rows()]
        return "\n".join([type(self).__name__, *rows])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _rows(self) -> list[display.Line | str]:
        lines = list(_lines(self, 0))
        hidden = len(lines) - MOST_LINES
        return [*lines[:MOST_LINES], *([f"and {hidden:,} more lines; {_OTHERS}"] if hidden > 0 else [])]


def _text(row: display.Line) -> str:
    number = " ".join(part for part in (row.value, row.interval) if part)
    words = " · ".join(part for part in (number, row.counted, *row.asides) if part)
    return safe_text(f"{'    ' if row.within else '  '}{row.title}  {words}".rstrip(), longest=LONGEST_ROW)


def lines_of(result: Any) -> Iterator[Estimate]:
    """The estimates that a result has, at any depth."""
    for value in _values(result):
        if isinstance(value, Estimate):
            yield value
        elif isinstance(value, Lift):
            yield value.difference
        elif isinstance(value, Mapping) or is_dataclass(value):
            yield from lines_of(value)


def _level(estimates: Iterator[Estimate]) -> float:
    return next((each.level for each in estimates), 0.95)


def _values(result: Any) -> list[Any]:
    if isinstance(result, Mapping):
        return list(result.values())
    return [getattr(result, each.name) for each in fields(result)] if is_dataclass(result) else []


def _lines(result: Any, depth: int) -> Iterator[display.Line]:
    if isinstance(result, Mapping):
        named = dict(result)
    else:
        named = {each.name: getattr(result, each.name) for each in fields(result)}
    for name, value in named.items():
        yield from _line("without an arm" if name is None else str(name).replace("_", " "), value, depth)


def _line(name: str, value: Any, depth: int) -> Iterator[display.Line]:
    within = depth > 0
    if value is None or (isinstance(value, list | tuple | Mapping | str) and not len(value)):
        return
    if isinstance(value, Estimate):
        yield display.line(name, value, within=within)
    elif isinstance(value, Lift):
        shown = display.line(name, value.difference, within=within)
        yield shown._replace(counted="", asides=tuple(value.beside()))
    elif isinstance(value, Groups | Trends):
        yield display.Line(name, counted=count_words(len(value), "group"), within=within)
    elif (isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, type))) and depth < DEEPEST:
        inside = list(_lines(value, depth + 1))
        if inside:
            yield display.Line(name, within=within)
            yield from inside
    elif isinstance(value, list | tuple | frozenset | set):
        yield display.Line(name, counted=_listed(list(value)), within=within)
    else:
        yield display.Line(name, counted=_words(value), within=within)


def _listed(values: list[Any]) -> str:
    plain = all(isinstance(each, str | int | float) for each in values)
    return ", ".join(map(_words, values)) if plain and len(values) <= 5 else f"{len(values):,}"


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number_words(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    text = str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
