"""Verdicts into tallies without a verdict object each: what a summary would count of it, put where it would put it.

For a million sessions, making the objects takes longer than reading the log. Tests hold both ways equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

from evalr.summaries import Summary
from evalr.summaries.summary import UNKNOWN
from evalr.tallies.counts import Counts
from evalr.tallies.durations import Durations
from evalr.tallies.numbering import Numbering
from evalr.tallies.outcomes import Outcomes
from evalr.tallies.tally import Cells, Entry, Tally

Cluster: TypeAlias = Hashable | None
CountEntry: TypeAlias = Entry[Counts]
TimeEntry: TypeAlias = Entry[Durations]
ContestEntry: TypeAlias = Entry[Outcomes]

BY_ARM = "arm"


def entry_of(cells: type[Any], numbering: Numbering) -> Entry[Any]:
    """An empty entry whose clusters are numbered so."""
    made: Cells = cells()
    made.share(numbering)
    return Entry(made)


def add_hit(entry: CountEntry, hit: bool | None, cluster: Cluster) -> None:
    """What a Rate counts of one verdict."""
    entry.results += 1
    if hit is None:
        entry.left_out[UNKNOWN] += 1
        entry.unknown += 1
        entry.cells.add(0, 0, cluster)
    else:
        entry.counted += 1
        entry.cells.add(1 if hit else 0, 1, cluster)


def add_number(entry: CountEntry, number: int | None, cluster: Cluster) -> None:
    """What a Mean counts of one verdict."""
    entry.results += 1
    if number is None:
        entry.left_out[UNKNOWN] += 1
        entry.unknown += 1
    else:
        entry.cells.add(number, 1, cluster)


def add_time(entry: TimeEntry, after: float | None, end: int, cluster: Cluster) -> None:
    """What a TimeTo counts of one verdict; `end` is OPEN, EVENT or COMPETING."""
    entry.results += 1
    if after is None:
        entry.left_out[UNKNOWN] += 1
        entry.unknown += 1
    else:
        entry.cells.add(after, end, cluster)


def add_ending(entry: ContestEntry, ending: int | None, position: int, cluster: Cluster) -> None:
    """What a Contest counts of one verdict; `ending` is WIN, TIE or LOSS."""
    entry.results += 1
    if ending is None:
        entry.left_out[UNKNOWN] += 1
        entry.unknown += 1
    else:
        entry.counted += 1
        entry.cells.add(ending, position, 1, cluster)


def tally_of(
    summary: Summary[Any],
    entries: Mapping[str | None, Entry[Any]],
    *,
    by: Hashable = BY_ARM,
    given_by: tuple[str, str] | None = None,
    flags: Mapping[str | None, Counter[str]] | None = None,
) -> Tally[Any]:
    """The tally of a summary over entries by group, as if it had read their verdicts.

    Args:
        summary: what reads it.
        entries: by group; they are changed.
        by: the grouping.
        given_by: the evaluator and version of all verdicts.
        flags: of verdicts, by group.
    """
    tally: Tally[Any] = Tally(summary.reads(), by=by)
    for group, entry in entries.items():
        if given_by is not None and entry.results:
            entry.versions = Counter({given_by: entry.results})
        if flags is not None:
            entry.flags = Counter(flags[group])
        tally.entries[group] = entry
    return tally


def pooled(summary: Summary[Any], tally: Tally[Any]) -> Tally[Any]:
    """The tally of all groups together."""
    whole: Tally[Any] = Tally(summary.reads())
    for entry in tally.entries.values():
        whole.entry(None, entry.cells.empty).merge(entry)
    return whole
