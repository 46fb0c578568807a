"""What a further section of a report is made of: plain data, which pages, screens and JSON lay out in their own way.

A reader adds sections where a log says more than measures do. A block holds words and numbers that are ready
to be read, and no markup: whatever stands in it may come from a log, and is escaped and cut where it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift

Tone = Literal["note", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence that is to be read before what stands below it.

    Attributes:
        text: the sentence.
        tone: "warning" where what follows is easily taken for more than it is.
    """

    text: str
    tone: Tone = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One headline number.

    Attributes:
        title: what it is.
        value: the number, in words: "+3.1pp", "no estimate".
        interval: its interval, in words; empty where there is none.
        lines: what it rests on, a line each, such as the n of both arms.
        warning: what is to be known before it is believed, such as "low confidence".
        spark: the same number over time, oldest first; None where it is not known.
        footnote: its method and its denominator.
    """

    title: str
    value: str
    interval: str = ""
    lines: tuple[str, ...] = ()
    warning: str | None = None
    spark: tuple[float | None, ...] = ()
    footnote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Headline numbers side by side."""

    tiles: tuple[Tile, ...]
    title: str | None = None


class Cell(NamedTuple):
    """A text in a table with what is to be known of it.

    Attributes:
        text: the text.
        tip: what is said where somebody points at it, such as what a number is of.
        method: how it was computed; a page says so once, and refers to it.
    """

    text: str
    tip: str | None = None
    method: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts.

    Attributes:
        columns: what stands above them.
        rows: one text for each column, or a cell where there is more to say of it. A phone shows each row by itself.
        title: what the table is.
        numbers: the columns that hold numbers, which are aligned to the right.
        filtered_by: a column by whose texts people choose the rows that they see.
        total: how many rows there are, where not all are given.
        footnote: what holds for all rows: methods, denominators, what is not shown.
        grouped_by: a column: a rule stands between rows with different texts in it.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    title: str | None = None
    numbers: tuple[str, ...] = ()
    filtered_by: str | None = None
    total: int | None = None
    footnote: str | None = None
    grouped_by: str | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(f"a row of {len(row)} texts does not fit the {len(self.columns)} columns of a table")
        for name in (*self.numbers, *filter(None, (self.filtered_by, self.grouped_by))):
            if name not in self.columns:
                raise InputError(f"{name!r} is no column of the table: {', '.join(self.columns)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Estimates and differences below each other: each with its interval, what it is of, and how it was computed.

    Attributes:
        rows: each with what it is called.
        title: what they are.
        footnote: what holds for all of them.
    """

    rows: tuple[tuple[str, Estimate | Lift], ...]
    title: str | None = None
    footnote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot.

    Attributes:
        spec: a Vega-Lite specification whose data are in it, as `Plot.spec` is.
        says: what it shows, in words, for those who cannot see it.
        title: what it is.
        footnote: its method and its denominator.
    """

    spec: Mapping[str, Any]
    says: str
    title: str | None = None
    footnote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One thing to look at: a comparison with both answers, a response with its learnings.

    Attributes:
        title: what it is.
        chips: what is said of it in a word or two each.
        texts: longer texts, by what each is; a page shows those beside each other that `beside` names.
        beside: see `texts`.
        inside: what it opens to.
    """

    title: str
    chips: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    beside: tuple[str, ...] = ()
    inside: tuple[Card, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Things to look at, one below the other; a page shows their titles and opens the one that is asked for.

    Attributes:
        cards: the things.
        title: what they are.
        total: how many there are, where not all are given.
        footnote: what holds for all of them.
    """

    cards: tuple[Card, ...]
    title: str | None = None
    total: int | None = None
    footnote: str | None = None


Block: TypeAlias = Notice | Tiles | Table | Numbers | Figure | Cards
