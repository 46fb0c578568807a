"""Sums of a number over a weight, by cluster: what rates and means are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import compress, repeat

from evalr.tallies.moments import Exact, Moments
from evalr.tallies.numbering import OWN, Clusters, Numbering
from evalr.tallies.shared import SharedMoments


class Counts:
    """Rows (y, m) summed by cluster. Those without one are clusters of their own, kept as moments, which stay small."""

    __slots__ = ("_loose", "_m", "_numbering", "_rows", "_y")

    def __init__(self) -> None:
        # By the number of the cluster. Lists of small numbers hold no objects of their own, and three of them take a
        # quarter of what a table of tuples takes.
        self._y: list[Exact] = []
        self._m: list[Exact] = []
        self._rows: list[int] = []
        self._numbering = Numbering()
        self._loose = Moments()

    @classmethod
    def of_sums(cls, clusters: Iterable[tuple[Hashable, Exact, Exact]], loose: Moments) -> Counts:
        """Counts of clusters, each given as (key, sum of y, sum of m), and of rows that are clusters of their own."""
        counts = cls()
        given = list(clusters)
        numbering = Numbering.of_keys([key for key, _, _ in given])
        if numbering is not None:
            counts._y = [0, *(y for _, y, _ in given)]
            counts._m = [0, *(m for _, _, m in given)]
            counts._rows = [0, *repeat(1, len(given))]
            counts._numbering = numbering
        else:
            for key, y, m in given:
                counts.add(y, m, key)
        counts._loose = loose
        return counts

    @classmethod
    def of_columns(
        cls, y: Sequence[Exact], m: Sequence[Exact], rows: Sequence[int], numbering: Numbering, loose: Moments
    ) -> Counts:
        """Counts of sums that are there already, those of each cluster at its number; what is at 0 is `loose`."""
        counts = cls()
        counts._y, counts._m, counts._rows = [0, *y[1:]], [0, *m[1:]], [0, *rows[1:]]
        counts._numbering, counts._loose = numbering, loose
        return counts

    def share(self, numbering: Numbering) -> None:
        """Number clusters so: for cells that have no rows yet."""
        self._numbering = numbering

    @property
    def clusters(self) -> dict[Hashable, tuple[Exact, Exact, int]]:
        """(sum of y, sum of m, rows) of each cluster that has rows, by its key."""
        sums = zip(self._numbering.keys, self._y, self._m, self._rows, strict=False)
        return {key: (y, m, rows) for key, y, m, rows in sums if rows}

    def keys(self) -> Iterator[Hashable]:
        """The clusters that have rows, but for those of one row."""
        return compress(self._numbering.keys, self._rows)

    def counted(self) -> Iterator[Hashable]:
        """The clusters of which something counts: those with m > 0, but for those of one row."""
        return compress(self._numbering.keys, self._m)

    def add(self, y: Exact, m: Exact, cluster: Hashable | None) -> None:
        """Add one row: `y` of `m` (0 or more), in a cluster or (None) in one of its own."""
        number = self._numbering.number(cluster)
        if number == OWN:
            clusters, rows, ys, ms, yy, ym, mm = self._loose
            self._loose = Moments(clusters + (m > 0), rows + 1, ys + y, ms + m, yy + y * y, ym + y * m, mm + m * m)
        else:
            self._reach(number)
            self._y[number] += y
            self._m[number] += m
            self._rows[number] += 1

    def add_alike(self, y: Exact, m: Exact, cluster: Hashable | None, times: int) -> None:
        """Add the same row several times."""
        if cluster is None:
            counted = times if m > 0 else 0
            sums = (y, m, y * y, y * m, m * m)
            self._loose = self._loose.merge(Moments(counted, times, *(times * each for each in sums)))
            return
        number = self._numbering.number(cluster)
        self._reach(number)
        self._y[number] += times * y
        self._m[number] += times * m
        self._rows[number] += times

    def _reach(self, number: int) -> None:
        """Have a place for a number."""
        missing = number + 1 - len(self._rows)
        if missing > 0:
            for sums in (self._y, self._m, self._rows):
                sums.extend(repeat(0, missing))

    def extend(self, rows: Sequence[tuple[Exact, Exact]], clusters: Clusters) -> None:
        """Add many rows (y, m)."""
        numbers = clusters.numbers_in(self._numbering)
        self._reach(max(numbers, default=0))
        y_sums, m_sums, row_counts = self._y, self._m, self._rows
        for (y, m), number in zip(rows, numbers, strict=True):
            if number:
                y_sums[number] += y
                m_sums[number] += m
                row_counts[number] += 1
            else:
                self.add(y, m, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and (self.clusters, self._loose) == (other.clusters, other._loose)

    __hash__ = None  # type: ignore[assignment]

    def empty(self) -> Counts:
        """Cells of the same kind without rows."""
        return Counts()

    def merge(self, other: Counts) -> None:
        """Add all rows of another part."""
        self._loose = self._loose.merge(other._loose)
        numbers = self._numbering.of(other._numbering)
        self._reach(max(numbers))
        y_sums, m_sums, row_counts = self._y, self._m, self._rows
        for number, y, m, rows in zip(numbers, other._y, other._m, other._rows, strict=False):
            y_sums[number] += y
            m_sums[number] += m
            row_counts[number] += rows

    def loose_clusters(self) -> int:
        """How many rows without a cluster count as one of their own."""
        return self._loose.clusters

    def moments(self) -> Moments:
        """The sums over clusters that estimates need."""
        return self._loose.merge(Moments.of_columns(self._y, self._m, self._rows))

    def shared_with(self, other: Counts) -> SharedMoments:
        """The sums over the clusters that have rows here and there."""
        if other._numbering is self._numbering:
            here, there = zip(self._y, self._m, strict=True), zip(other._y, other._m, strict=True)
            return SharedMoments.of_clusters(
                pair for pair in zip(here, there, strict=False) if pair[0][1] and pair[1][1]
            )
        theirs = other.clusters
        both = ((sums, theirs[key]) for key, sums in self.clusters.items() if key in theirs)
        return SharedMoments.of_clusters((one[:2], another[:2]) for one, another in both)


UnitSums = tuple[Exact, Exact, int, Hashable | None]
"""(hits, total, missing, cluster) of one unit."""


class Units:
    """Rows of one unit (a task's trials, a response's learnings) kept together until they are folded into one.

    A unit's row is (hits, total, missing, cluster): `missing` counts results without a verdict. A unit whose results
    lie in several clusters becomes a cluster of its own.

    Attributes:
        rows: by the keys of the units.
        alike: units of which all is known already, without their keys: how many there are of each row.
    """

    __slots__ = ("alike", "rows")

    def __init__(self) -> None:
        self.rows: dict[Hashable, UnitSums] = {}
        self.alike: Counter[UnitSums] = Counter()

    def each(self) -> Iterator[tuple[UnitSums, int]]:
        """The rows of all units, each with how many units it stands for."""
        yield from zip(self.rows.values(), repeat(1))
        yield from self.alike.items()

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
        return isinstance(other, Units) and (self.rows, self.alike) == (other.rows, other.alike)

    __hash__ = None  # type: ignore[assignment]

    def empty(self) -> Units:
        """Cells of the same kind without rows."""
        return Units()

    def merge(self, other: Units) -> None:
        """Add all rows of another part."""
        for unit, row in other.rows.items():
            self.add(unit, *row)
        self.alike.update(other.alike)
