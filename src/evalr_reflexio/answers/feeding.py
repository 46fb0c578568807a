"""Sums into tallies without a verdict object each: what a summary would have counted of verdicts, put where it puts it.

For a million sessions, making the objects takes longer than reading the log. Tests hold both ways equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import repeat
from operator import add
from typing import Any

from evalr.summaries import Summary
from evalr.summaries.summary import UNKNOWN
from evalr.tallies.counts import Counts
from evalr.tallies.durations import Durations
from evalr.tallies.moments import Moments
from evalr.tallies.numbering import Clusters, Numbering
from evalr.tallies.outcomes import Outcomes
from evalr.tallies.tally import Entry, Tally

BY_ARM = "arm"


class ByUser:
    """Columns of whole numbers, each with a place for every number of a user."""

    __slots__ = ("columns", "size")

    def __init__(self, columns: int) -> None:
        self.size = 1
        self.columns: list[list[int]] = [[0] for _ in range(columns)]

    def reach(self, number: int) -> None:
        """Have a place for a number, and for some that come after it."""
        missing = number + 1 - self.size
        if missing > 0:
            missing += self.size >> 4
            for column in self.columns:
                column.extend(repeat(0, missing))
            self.size += missing

    def merge(self, other: ByUser, numbers: Sequence[int]) -> None:
        """Add another's, whose numbers are those here: `Numbering.of`."""
        if isinstance(numbers, range):  # each is its own
            self.reach(other.size - 1)
            for mine, theirs in zip(self.columns, other.columns, strict=True):
                mine[: other.size] = map(add, mine, theirs)
            return
        self.reach(max(numbers, default=0))
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            for number, value in zip(numbers, theirs, strict=False):
                mine[number] += value


def rate_entry(hits: Sequence[int], known: Sequence[int], rows: Sequence[int], numbering: Numbering) -> Entry[Counts]:
    """What a Rate has counted: by user, verdicts that are hits, those that are known, and all of them."""
    cells = Counts.of_columns(hits, known, rows, numbering, of_singles(hits[0], known[0], rows[0]))
    return _entry(cells, results=sum(rows), known=sum(known), counted=sum(known))


def mean_entry(
    total: Sequence[int], known: Sequence[int], squares: int, results: int, numbering: Numbering
) -> Entry[Counts]:
    """What a Mean has counted: by user, the sum and how many are known; of those without a user the sum of squares."""
    loose = Moments(known[0], known[0], total[0], known[0], squares, total[0], known[0])
    return _entry(Counts.of_columns(total, known, known, numbering, loose), results=results, known=sum(known))


def time_entry(after: Any, end: Any, users: Any, results: int, numbering: Numbering) -> Entry[Durations]:
    """What a TimeTo has counted: arrays of how long, how it ended, and the number of the user."""
    cells = Durations()
    cells.share(numbering)
    cells.extend(after, end, Clusters(users, numbering))
    return _entry(cells, results=results, known=len(after))


def contest_entry(
    columns: Mapping[tuple[int, int], Sequence[int]], results: int, numbering: Numbering
) -> Entry[Outcomes]:
    """What a Contest has counted: by (ending, position), comparisons by user."""
    known = sum(sum(column) for column in columns.values())
    return _entry(Outcomes.of_columns(columns, numbering), results=results, known=known, counted=known)


def of_singles(hits: int, known: int, rows: int) -> Moments:
    """Sums over hits and misses that are clusters of their own."""
    return Moments(known, rows, hits, known, hits, hits, known)


def _entry(cells: Any, *, results: int, known: int, counted: int = 0) -> Entry[Any]:
    entry = Entry(cells)
    entry.results, entry.counted = results, counted
    if results > known:
        entry.left_out[UNKNOWN] = entry.unknown = results - known
    return entry


def tally_of(
    summary: Summary[Any],
    entries: Mapping[str | None, Entry[Any]],
    *,
    by: Hashable = None,
    given_by: tuple[str, str] | None = None,
) -> Tally[Any]:
    """The tally of a summary over entries by group, as if it had read their verdicts, all `given_by` one evaluator."""
    tally: Tally[Any] = Tally(summary.reads(), by=by)
    for group, entry in entries.items():
        if given_by is not None and entry.results:
            entry.versions = Counter({given_by: entry.results})
        tally.entries[group] = entry
    return tally


def alone(summary: Summary[Any], entry: Entry[Any], given_by: tuple[str, str] | None = None) -> Tally[Any]:
    """The tally of one entry without groups."""
    return tally_of(summary, {None: entry}, given_by=given_by)


def pooled(summary: Summary[Any], entries: Mapping[str | None, Entry[Any]]) -> Tally[Any]:
    """The tally of all groups together."""
    whole: Tally[Any] = Tally(summary.reads())
    for entry in entries.values():
        whole.entry(None, entry.cells.empty).merge(entry)
    return whole
