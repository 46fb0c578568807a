"""How long until something happened, or until the log ended, by cluster."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from evalr.tallies.numbering import OWN, Clusters, Numbering

if TYPE_CHECKING:
    from numpy import float64, int8
    from numpy.typing import NDArray

OPEN, EVENT, COMPETING = 0, 1, 2


class Durations:
    """Durations with their ends, as plain arrays: 13 bytes a row, and one entry a cluster.

    `after` is in the summary's unit; `end` is OPEN (censored: still open when the log ended), EVENT, or COMPETING
    (ended in another way).
    """

    __slots__ = ("_numbering", "_numbers", "after", "end")

    def __init__(self) -> None:
        self.after = array("d")
        self.end = array("b")
        self._numbers = array("i")
        self._numbering = Numbering()

    def share(self, numbering: Numbering) -> None:
        """Number clusters so: for cells that have no rows yet."""
        self._numbering = numbering

    @property
    def clusters(self) -> list[Hashable]:
        """The clusters that have rows."""
        return [self._numbering.keys[number] for number in set(self._numbers) if number != OWN]

    def add(self, after: float, end: int, cluster: Hashable | None) -> None:
        """Add one row, in a cluster or (None) in one of its own."""
        self.after.append(after)
        self.end.append(end)
        self._numbers.append(self._numbering.number(cluster))

    def extend(self, after: array[float], end: array[int], clusters: Clusters) -> None:
        """Add many rows: what `add` takes of each, as columns."""
        numbers = clusters.numbers_in(self._numbering)
        self.after.extend(after)
        self.end.extend(end)
        self._numbers.extend(numbers)

    def __eq__(self, other: object) -> bool:
        """Whether they hold the same rows, in any order."""
        return isinstance(other, Durations) and self._rows() == other._rows()

    __hash__ = None  # type: ignore[assignment]

    def _rows(self) -> Counter[tuple[float, int, Hashable | None]]:
        keys = map(self._numbering.keys.__getitem__, self._numbers)
        return Counter(zip(self.after, self.end, keys, strict=True))

    def empty(self) -> Durations:
        """Cells of the same kind without rows."""
        return Durations()

    def merge(self, other: Durations) -> None:
        """Add all rows of another part."""
        self.after.extend(other.after)
        self.end.extend(other.end)
        if other._numbering is self._numbering:
            self._numbers.extend(other._numbers)
        else:
            self._numbers.extend(map(self._numbering.of(other._numbering).__getitem__, other._numbers))

    def __len__(self) -> int:
        return len(self.after)

    def arrays(self) -> tuple[NDArray[float64], NDArray[int8], NDArray[Any] | None]:
        """(after, end, cluster) without a copy where none is needed; cluster is None where every row is its own."""
        import numpy as np

        after = np.frombuffer(self.after, dtype=np.float64) if self.after else np.empty(0)
        end = np.frombuffer(self.end, dtype=np.int8) if self.end else np.empty(0, dtype=np.int8)
        index = np.frombuffer(self._numbers, dtype=np.int32) if self.after else np.empty(0, dtype=np.int32)
        if not index.any():
            return after, end, None
        own = index == OWN
        if own.any():
            index = index.copy()
            first = len(self._numbering.keys)
            index[own] = np.arange(first, first + int(own.sum()), dtype=np.int32)
        return after, end, index

    def shared_with(self, other: Durations) -> list[tuple[int, int]]:
        """The clusters that have rows here and there, by their numbers in `arrays` here and there."""
        keys, theirs = self._numbering.keys, other._numbering.numbers
        there = set(other._numbers)
        both = ((number, theirs.get(keys[number], OWN)) for number in sorted(set(self._numbers)) if number != OWN)
        return [(here, number) for here, number in both if number in there and number != OWN]

    def loose_clusters(self) -> int:
        """How many rows have a cluster of their own."""
        return self._numbers.count(OWN)


class UnitDurations:
    """Durations of one unit kept as one: the first of them to end, or the last.

    Until a unit's first (or last) end is known, it is still open: the first of several is censored where the earliest
    of them is, the last where any of them is. The first keeps censoring independent of what would have happened. The
    last does so only where a unit's rows are cut off after the same time: otherwise rows that ended decide until when
    their unit was followed, and its last end seems to come late. A unit whose rows lie in several clusters becomes a
    cluster of its own.
    """

    __slots__ = ("first", "rows")

    def __init__(self, *, first: bool = True) -> None:
        self.first = first
        self.rows: dict[Hashable, tuple[float, int, Hashable | None]] = {}

    def add(self, unit: Hashable, after: float, end: int, cluster: Hashable | None) -> None:
        """Add one duration of a unit."""
        row = self.rows.get(unit)
        if row is not None:
            after, end = self._combined((row[0], row[1]), (after, end))
            cluster = cluster if cluster == row[2] else None
        self.rows[unit] = (after, end, cluster)

    def _combined(self, one: tuple[float, int], other: tuple[float, int]) -> tuple[float, int]:
        if self.first:
            # Among equal times, one that ended decides over one that was still open.
            return min(one, other, key=lambda row: (row[0], row[1] == OPEN, row[1]))
        if OPEN in (one[1], other[1]):
            return max(_still_open(*one), _still_open(*other)), OPEN
        return max(one, other)

    def share(self, numbering: Numbering) -> None:
        """Units are kept by their keys."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnitDurations) and (self.first, self.rows) == (other.first, other.rows)

    __hash__ = None  # type: ignore[assignment]

    def empty(self) -> UnitDurations:
        """Cells of the same kind without rows."""
        return UnitDurations(first=self.first)

    def merge(self, other: UnitDurations) -> None:
        """Add all rows of another part."""
        for unit, row in other.rows.items():
            self.add(unit, *row)

    def durations(self) -> Durations:
        """One row for each unit."""
        durations = Durations()
        for row in self.rows.values():
            durations.add(*row)
        return durations


def _still_open(after: float, end: int) -> float:
    """Until when a unit was surely open, by a row of it: with another row open, its last end may be this row's own."""
    return after if end == OPEN else math.nextafter(after, 0.0)
