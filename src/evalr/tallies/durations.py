"""How long until something happened, or until the log ended, by cluster."""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float64, int8
    from numpy.typing import NDArray

OPEN, EVENT, COMPETING = 0, 1, 2
LOOSE = -1


class Durations:
    """Durations with their ends, as plain arrays: 13 bytes a row, and one entry a cluster.

    `after` is in the summary's unit; `end` is OPEN (censored: still open when the log ended), EVENT, or COMPETING
    (ended in another way).
    """

    __slots__ = ("_index", "after", "clusters", "end")

    def __init__(self) -> None:
        self.after = array("d")
        self.end = array("b")
        self._index = array("i")
        self.clusters: dict[Hashable, int] = {}

    def add(self, after: float, end: int, cluster: Hashable | None) -> None:
        """Add one row, in a cluster or (None) in one of its own."""
        self.after.append(after)
        self.end.append(end)
        self._index.append(LOOSE if cluster is None else self.clusters.setdefault(cluster, len(self.clusters)))

    def empty(self) -> Durations:
        """Cells of the same kind without rows."""
        return Durations()

    def merge(self, other: Durations) -> None:
        """Add all rows of another part."""
        place = [self.clusters.setdefault(cluster, len(self.clusters)) for cluster in other.clusters]
        self.after.extend(other.after)
        self.end.extend(other.end)
        self._index.extend(LOOSE if index == LOOSE else place[index] for index in other._index)

    def __len__(self) -> int:
        return len(self.after)

    def arrays(self) -> tuple[NDArray[float64], NDArray[int8], NDArray[Any] | None]:
        """(after, end, cluster) without a copy where none is needed; cluster is None where every row is its own."""
        import numpy as np

        after = np.frombuffer(self.after, dtype=np.float64) if self.after else np.empty(0)
        end = np.frombuffer(self.end, dtype=np.int8) if self.end else np.empty(0, dtype=np.int8)
        if not self.clusters:
            return after, end, None
        index = np.frombuffer(self._index, dtype=np.int32)
        loose = index == LOOSE
        if loose.any():
            index = index.copy()
            index[loose] = np.arange(len(self.clusters), len(self.clusters) + int(loose.sum()), dtype=np.int32)
        return after, end, index

    def loose_clusters(self) -> int:
        """How many rows have a cluster of their own."""
        return self._index.count(LOOSE)


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
