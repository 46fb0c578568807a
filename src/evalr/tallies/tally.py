"""A tally: what was counted, by group, and what was left out. Partial tallies add up to exactly the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

from evalr.errors import InputError
from evalr.tallies.durations import Durations
from evalr.tallies.moments import Exact
from evalr.tallies.numbering import Numbering


class Cells(Protocol):
    """The sums of one group; they merge into exactly what one pass would have given."""

    def empty(self) -> Any:
        """Cells of the same kind without rows."""

    def share(self, numbering: Numbering, /) -> None:
        """Number clusters so: for cells that have no rows yet."""

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

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
        numbering: of its clusters where it is not grouped, or has rows of durations; several tallies may share one.
    """

    __slots__ = ("by", "cluster", "entries", "numbering", "overlap", "reads")

    def __init__(self, reads: Hashable, *, by: Hashable = None, cluster: Hashable = None) -> None:
        self.reads = reads
        self.by = by
        self.cluster = cluster
        self.entries: dict[str | None, Entry[C]] = {}
        self.overlap = False
        self.numbering = Numbering()

    def entry(self, group: str | None, cells: Callable[[], C]) -> Entry[C]:
        """The entry of a group, which is made with new cells where there is none."""
        found = self.entries.get(group)
        if found is None:
            found = self.entries[group] = Entry(cells())
            # Of sums by cluster, many groups would each have room for all clusters; rows with their clusters have none.
            if self.by is None or isinstance(found.cells, Durations):
                found.cells.share(self.numbering)
        return found

    def named_groups(self) -> list[str]:
        """The groups that have a name, in no order."""
        return [group for group in self.entries if group is not None]

    def __eq__(self, other: object) -> bool:
        """Whether both have counted the same, in whatever order."""
        return isinstance(other, Tally) and self._counted() == other._counted()

    __hash__ = None  # type: ignore[assignment]

    def _counted(self) -> tuple[object, ...]:
        return self.reads, self.by, self.cluster, self.entries, self.overlap

    def __add__(self, other: Tally[C]) -> Tally[C]:
        merged: Tally[C] = Tally(self.reads, by=self.by, cluster=self.cluster)
        merged.merge(self)
        merged.merge(other)
        return merged

    def merge(self, other: Tally[C]) -> None:
        """Add another part to this one, in place.

        Raises:
            InputError: it counts something else.
        """
        if (self.reads, self.by, self.cluster) != (other.reads, other.by, other.cluster):
            raise InputError(
                "these tallies count different things: add only tallies of one summary, one grouping and one cluster"
            )
        self.overlap |= other.overlap
        for group, entry in other.entries.items():
            self.entry(group, entry.cells.empty).merge(entry)

    def __radd__(self, other: int) -> Tally[C]:
        """So that `sum(tallies)`, which begins at 0, adds them."""
        return self if other == 0 else NotImplemented
