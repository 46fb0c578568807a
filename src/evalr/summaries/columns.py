"""Columns: what summaries count of many verdicts, for those who make no verdict of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias


class Times(NamedTuple):
    """What a `TimeTo` counts, a verdict at each index."""

    after: list[float]
    """How long, in the summary's unit."""
    end: list[str | None]
    """How it ended, None where it had not."""


class Hits(NamedTuple):
    """What a `Rate` counts, a verdict at each index."""

    of: list[tuple[int, int] | str]
    """(hits, total), or why the verdict is left out."""


Columns: TypeAlias = Times | Hits


def chosen(columns: Columns, places: Iterable[int]) -> Columns:
    """The verdicts at some places of columns."""
    at = list(places)
    make: Callable[..., Columns] = type(columns)
    return make(*([column[place] for place in at] for column in columns))


def cut(columns: Columns, size: int) -> None:
    """Take out what comes after the first `size` verdicts."""
    for column in columns:
        del column[size:]
