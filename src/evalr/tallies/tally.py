"""A tally: what was counted, by group, and what was left out. Partial tallies add up to exactly the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, Generic, Protocol, TypeVar

from evalr.errors import InputError
from evalr.tallies.moments import Exact


class Cells(Protocol):
    """The sums of one group; they merge into exactly what one pass would have given."""

    def empty(self) -> Any:
        """Cells of the same kind without rows."""

    def merge(self, other: Any, /) -> None:
        """Add all rows of another part."""


C = TypeVar("C", bound=Cells)


class Entry(Generic[C]):
    """One group's sums, and the account of every result that was read for it.

    Attributes:
        cells: the sums.
        results: how many results were read, left out or not.
        counted: how many units were counted, whatever they weigh.
        left_out: how many were left out, by reason.
        unknown: how many of the units left out could have counted either way; they widen an estimate's bounds.
        unknown_weight: whether some of those have an unknown weight, so that nothing bounds what they could change.
        versions: verdicts by (evaluator, version).
        flags: verdicts by flag.
    """

    __slots__ = ("cells", "counted", "flags", "left_out", "results", "unknown", "unknown_weight", "versions")

    def __init__(self, cells: C) -> None:
        self.cells = cells
        self.results = 0
        self.counted = 0
        self.left_out: Counter[str] = Counter()
        self.unknown: Exact = 0
        self.unknown_weight = False
        self.versions: Counter[tuple[str, str]] = Counter()
        self.flags: Counter[str] = Counter()

    def merge(self, other: Entry[C]) -> None:
        """Add another part's account of the same group."""
        self.cells.merge(other.cells)
        self.results += other.results
        self.counted += other.counted
        self.left_out.update(other.left_out)
        self.unknown += other.unknown
        self.unknown_weight |= other.unknown_weight
        self.versions.update(other.versions)
        self.flags.update(other.flags)


class Tally(Generic[C]):
    """Entries by group; a tally without grouping has the one group None.

    Tallies of the same summary add (`a + b`): parts of a log, days or processes merge into exactly the single pass, as
    long as each subject is in one part.

    Attributes:
        reads: what is counted (`Summary.reads`); `by` and `cluster` how, as keys or, for functions, their fingerprints.
        entries: by group.
        overlap: whether a result was in several groups.
    """

    __slots__ = ("by", "cluster", "entries", "overlap", "reads")

    def __init__(self, reads: Hashable, *, by: Hashable = None, cluster: Hashable = None) -> None:
        self.reads = reads
        self.by = by
        self.cluster = cluster
        self.entries: dict[str | None, Entry[C]] = {}
        self.overlap = False

    def named_groups(self) -> list[str]:
        """The groups that have a name, in no order."""
        return [group for group in self.entries if group is not None]

    def __add__(self, other: Tally[C]) -> Tally[C]:
        if (self.reads, self.by, self.cluster) != (other.reads, other.by, other.cluster):
            raise InputError(
                "these tallies count different things: add only tallies of one summary, one grouping and one cluster"
            )
        merged: Tally[C] = Tally(self.reads, by=self.by, cluster=self.cluster)
        for part in (self, other):
            merged.overlap |= part.overlap
            for group, entry in part.entries.items():
                if group not in merged.entries:
                    merged.entries[group] = Entry(entry.cells.empty())
                merged.entries[group].merge(entry)
        return merged

    def __radd__(self, other: int) -> Tally[C]:
        """So that `sum(tallies)`, which begins at 0, adds them."""
        return self if other == 0 else NotImplemented
