"""Sums of a number over a weight, by cluster: what rates and means are made of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from evalr.tallies.moments import Exact, Moments
from evalr.tallies.numbering import Clusters, Numbering


class Counts:
    """Rows (y, m) summed by cluster. Those without one are clusters of their own, kept as moments, which stay small."""

    __slots__ = ("_loose", "_numbering", "_sums")

    def __init__(self) -> None:
        self._sums: dict[int, tuple[Exact, Exact, int]] = {}
        self._numbering = Numbering()
        self._loose = Moments()

    def share(self, numbering: Numbering) -> None:
        """Number clusters so: for cells that have no rows yet."""
        self._numbering = numbering

    @property
    def clusters(self) -> dict[Hashable, tuple[Exact, Exact, int]]:
        """(sum of y, sum of m, rows) of each cluster that has rows, by its key."""
        keys = self._numbering.keys
        return {keys[number]: sums for number, sums in self._sums.items()}

    def add(self, y: Exact, m: Exact, cluster: Hashable | None) -> None:
        """Add one row: `y` of `m` (0 or more), in a cluster or (None) in one of its own."""
        if cluster is None:
            clusters, rows, ys, ms, yy, ym, mm = self._loose
            self._loose = Moments(clusters + (m > 0), rows + 1, ys + y, ms + m, yy + y * y, ym + y * m, mm + m * m)
            return
        number = self._numbering.number(cluster)
        row = self._sums.get(number)
        self._sums[number] = (y, m, 1) if row is None else (row[0] + y, row[1] + m, row[2] + 1)

    def extend(self, rows: Sequence[tuple[Exact, Exact]], clusters: Clusters) -> None:
        """Add many rows (y, m)."""
        numbers, sums = self._own(clusters), self._sums
        for (y, m), number in zip(rows, numbers, strict=True):
            if number:
                row = sums.get(number)
                sums[number] = (y, m, 1) if row is None else (row[0] + y, row[1] + m, row[2] + 1)
            else:
                self.add(y, m, None)

    def _own(self, clusters: Clusters) -> Sequence[int]:
        if clusters.numbering is self._numbering:
            return clusters.numbers
        return list(map(self._numbering.of(clusters.numbering).__getitem__, clusters.numbers))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and (self.clusters, self._loose) == (other.clusters, other._loose)

    __hash__ = None  # type: ignore[assignment]

    def empty(self) -> Counts:
        """Cells of the same kind without rows."""
        return Counts()

    def merge(self, other: Counts) -> None:
        """Add all rows of another part."""
        self._loose = self._loose.merge(other._loose)
        for number, (y, m, count) in zip(
            self._own(Clusters(list(other._sums), other._numbering)), other._sums.values(), strict=True
        ):
            row = self._sums.get(number)
            self._sums[number] = (y, m, count) if row is None else (row[0] + y, row[1] + m, row[2] + count)

    def loose_clusters(self) -> int:
        """How many rows without a cluster count as one of their own."""
        return self._loose.clusters

    def moments(self) -> Moments:
        """The sums over clusters that estimates need."""
        return self._loose.merge(Moments.of_clusters(self._sums.values()))


class Units:
    """Rows of one unit (a task's trials, a response's learnings) kept together until they are folded into one.

    A unit's row is (hits, total, missing, cluster): `missing` counts results without a verdict. A unit whose results
    lie in several clusters becomes a cluster of its own.
    """

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[Hashable, tuple[Exact, Exact, int, Hashable | None]] = {}

    def add(self, unit: Hashable, hits: Exact, total: Exact, missing: int, cluster: Hashable | None) -> None:
        """Add what one result says of a unit."""
        row = self.rows.get(unit)
        if row is not None:
            hits, total, missing = row[0] + hits, row[1] + total, row[2] + missing
            cluster = cluster if cluster == row[3] else None
        self.rows[unit] = (hits, total, missing, cluster)

    def share(self, numbering: Numbering) -> None:
        """Units are kept by their keys."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    def empty(self) -> Units:
        """Cells of the same kind without rows."""
        return Units()

    def merge(self, other: Units) -> None:
        """Add all rows of another part."""
        for unit, row in other.rows.items():
            self.add(unit, *row)
