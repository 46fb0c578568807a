"""Wins, ties and losses by the position shown and by cluster: what contests are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import compress, repeat
from typing import NamedTuple

from evalr.tallies.contests import ContestMoments
from evalr.tallies.counts import Counts
from evalr.tallies.moments import Exact, Moments
from evalr.tallies.numbering import OWN, Numbering
from evalr.tallies.shared import SharedMoments

WIN, TIE, LOSS = range(3)
"""How a comparison ended for the treatment."""

FIRST, SECOND, UNKNOWN_POSITION = range(3)
"""Where the treatment was shown."""

KINDS = 9
"""Three endings at three positions; kind 3 * position + ending."""


Parts = Callable[[Exact, Exact, Exact], tuple[Exact, Exact]]
"""From wins, ties and losses to a part and its whole."""


class Sides(NamedTuple):
    """Which kinds of comparisons are taken as wins, as ties and as losses; the others do not count."""

    wins: tuple[int, ...]
    ties: tuple[int, ...]
    losses: tuple[int, ...]

    def kinds(self) -> tuple[int, ...]:
        """All that count."""
        return self.wins + self.ties + self.losses

    def decided(self) -> Sides:
        """The same without ties."""
        return self._replace(ties=())


ALL = Sides((0, 3, 6), (1, 4, 7), (2, 5, 8))
SHOWN_FIRST = Sides((0,), (1,), (2,))
SHOWN_SECOND = Sides((3,), (4,), (5,))
POSITION_KNOWN = Sides((0, 3), (1, 4), (2, 5))
POSITION_UNKNOWN = Sides((6,), (7,), (8,))
FIRST_SLOT = Sides((0, 5), (1, 4), (2, 3))
"""The answer shown first for the treatment, whichever it was."""


class Outcomes:
    """Comparisons summed by cluster and kind. Those without a cluster are clusters of their own, and stay sums."""

    __slots__ = ("_loose", "_numbering", "_sums", "rows")

    def __init__(self) -> None:
        self._sums: list[list[Exact]] = [[] for _ in range(KINDS)]  # by kind, then by the number of the cluster
        self._loose: list[tuple[int, Exact, Exact]] = [(0, 0, 0)] * KINDS  # how many, their weights, and these squared
        self._numbering = Numbering()
        self.rows = [0] * KINDS
        """How many comparisons of each kind, whatever they weigh."""

    @classmethod
    def of_columns(cls, columns: Mapping[tuple[int, int], Sequence[int]], numbering: Numbering) -> Outcomes:
        """Comparisons counted already, by (ending, position): those of each cluster at its number, none at 0."""
        outcomes = cls()
        size = max((len(column) for column in columns.values()), default=0)
        outcomes._sums = [[0] * size for _ in range(KINDS)]
        for (ending, position), column in columns.items():
            kind = 3 * position + ending
            outcomes._sums[kind][: len(column)] = column
            outcomes.rows[kind] = sum(column)
        outcomes._numbering = numbering
        return outcomes

    def share(self, numbering: Numbering) -> None:
        """Number clusters so: for cells that have no rows yet."""
        self._numbering = numbering

    def add(self, ending: int, position: int, weight: Exact, cluster: Hashable | None, *, times: int = 1) -> None:
        """Add one comparison, or several alike, in a cluster or (None) each in one of its own."""
        kind = 3 * position + ending
        self.rows[kind] += times
        number = self._numbering.number(cluster)
        if number == OWN:
            rows, weights, squares = self._loose[kind]
            self._loose[kind] = (rows + times, weights + times * weight, squares + times * weight * weight)
        else:
            self._reach(number)
            self._sums[kind][number] += times * weight

    def _reach(self, number: int) -> None:
        """Have a place for a number, and for some that come after it: clusters come one by one."""
        size = len(self._sums[0])
        if number >= size:
            for sums in self._sums:
                sums.extend(repeat(0, number + 1 - size + (size >> 3)))

    @property
    def clusters(self) -> dict[Hashable, tuple[Exact, ...]]:
        """The sums of each cluster that has any, by its key: one for each kind."""
        rows = zip(*self._sums, strict=True)
        return {key: sums for key, sums in zip(self._numbering.keys, rows, strict=False) if any(sums)}

    def counted(self, sides: Sides) -> Iterator[Hashable]:
        """The clusters of which something counts, but for those of one comparison."""
        columns = [self._sums[kind] for kind in sides.kinds() if self.rows[kind]]
        if len(columns) == 1:
            return compress(self._numbering.keys, columns[0])
        return compress(self._numbering.keys, map(any, zip(*columns, strict=True)))

    def loose_clusters(self, sides: Sides) -> int:
        """How many comparisons that count have no cluster but their own."""
        return sum(self._loose[kind][0] for kind in sides.kinds())

    def counts(self, sides: Sides) -> int:
        """How many comparisons count, whatever they weigh."""
        return sum(self.rows[kind] for kind in sides.kinds())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcomes) and self._counted() == other._counted()

    __hash__ = None  # type: ignore[assignment]

    def _counted(self) -> tuple[object, ...]:
        return self.rows, self._loose, self.clusters

    def empty(self) -> Outcomes:
        """Cells of the same kind without rows."""
        return Outcomes()

    def merge(self, other: Outcomes) -> None:
        """Add all rows of another part."""
        self.rows = [mine + theirs for mine, theirs in zip(self.rows, other.rows, strict=True)]
        self._loose = [
            (rows + more, weights + heavier, squares + larger)
            for (rows, weights, squares), (more, heavier, larger) in zip(self._loose, other._loose, strict=True)
        ]
        numbers = self._numbering.of(other._numbering)
        self._reach(max(numbers))
        for mine, theirs in zip(self._sums, other._sums, strict=True):
            for number, value in zip(numbers, theirs, strict=False):
                mine[number] += value

    def weight(self, kinds: Iterable[int]) -> Exact:
        """What the comparisons of some kinds weigh."""
        return sum(sum(self._sums[kind]) + self._loose[kind][1] for kind in kinds if self.rows[kind])

    def scale(self) -> Exact:
        """What makes the weights one on average, so that those of a plain count are the comparisons themselves."""
        rows, weight = sum(self.rows), self.weight(ALL.kinds())
        return 1 if rows == weight else Fraction(rows) / weight

    def moments(self, sides: Sides = ALL, *, scale: Exact = 1) -> ContestMoments:
        """The sums over clusters that estimates need, of weights times `scale`."""
        columns = map(self._column, sides)
        return ContestMoments.of_columns(*columns).merge(self._loose_moments(sides)).scaled(scale)

    def _column(self, side: Sequence[int]) -> Sequence[Exact]:
        """The sums of some kinds together, by cluster."""
        columns = [self._sums[kind] for kind in side if self.rows[kind]]
        if len(columns) == 1:
            return columns[0]
        return list(map(sum, zip(*columns, strict=True))) if columns else [0] * len(self._sums[0])

    def _columns(self, side: Sequence[int]) -> Iterator[tuple[Exact, ...]]:
        return zip(*(self._sums[kind] for kind in side), strict=True)

    def _loose_moments(self, sides: Sides) -> ContestMoments:
        sums = [[sum(column) for column in zip(*(self._loose[kind] for kind in side), strict=True)] for side in sides]
        (won, wins, ww), (tied, ties, tt), (lost, losses, ll) = sums
        return ContestMoments(int(won + tied + lost), int(won + lost), wins, ties, losses, ww, tt, ll)

    def ratio(self, parts: Parts) -> Counts:
        """A part and its whole by cluster, where both are sums of wins, ties and losses; weights are one on average."""
        scale = self.scale()
        columns = [self._columns(side) for side in ALL]
        rows = zip(self._numbering.keys, *columns, strict=False)
        clusters = ((key, *parts(*(sum(kinds) * scale for kinds in ended))) for key, *ended in rows)
        loose = Moments()
        for side, one in zip(ALL, ((1, 0, 0), (0, 1, 0), (0, 0, 1)), strict=True):
            y, m = parts(*one)
            for rows_of_kind, weights, squares in (self._loose[kind] for kind in side):
                total, square = weights * scale, squares * scale * scale
                counted = rows_of_kind if m else 0
                sums = (y * total, m * total, y * y * square, y * m * square, m * m * square)
                loose = loose.merge(Moments(counted, rows_of_kind, *sums))
        return Counts.of_sums((each for each in clusters if each[2]), loose)

    def shared(self, *, scale: Exact = 1) -> SharedMoments:
        """What the net wins have in common of where the treatment was shown first and where second."""
        first = zip(*(self._sums[kind] for kind in SHOWN_FIRST.kinds()), strict=True)
        second = zip(*(self._sums[kind] for kind in SHOWN_SECOND.kinds()), strict=True)
        return SharedMoments.of_clusters(
            (_net(one, scale), _net(other, scale)) for one, other in zip(first, second, strict=True)
        )


def _net(sums: Sequence[Exact], scale: Exact) -> tuple[Exact, Exact]:
    wins, ties, losses = sums
    return (wins - losses) * scale, (wins + ties + losses) * scale


class UnitRow(NamedTuple):
    """The comparisons of one unit: how many of each kind, how many are missing, and its cluster."""

    kinds: tuple[int, ...] = (0,) * KINDS
    missing: int = 0
    cluster: Hashable | None = None

    def ended(self, sides: Sides = ALL) -> tuple[int, int, int]:
        """(wins, ties, losses)."""
        return _ended(self.kinds, sides)

    def counted(self) -> bool:
        """Whether any of its comparisons has a verdict."""
        return any(self.kinds)


# Units are many, and alike.
@lru_cache(maxsize=4096)
def _ended(kinds: tuple[int, ...], sides: Sides) -> tuple[int, int, int]:
    of_kind = kinds.__getitem__
    wins, ties, losses = sides
    return sum(map(of_kind, wins)), sum(map(of_kind, ties)), sum(map(of_kind, losses))


class UnitOutcomes:
    """Comparisons of one unit (both orders of one pair, a response's learnings) kept together until they are folded.

    A unit whose comparisons lie in several clusters becomes a cluster of its own.

    Attributes:
        units: by their keys.
        alike: units of which all is known already, without their keys: how many there are of each row.
    """

    __slots__ = ("alike", "units")

    def __init__(self) -> None:
        self.units: dict[Hashable, UnitRow] = {}
        self.alike: Counter[UnitRow] = Counter()

    def each(self) -> Iterator[tuple[UnitRow, int]]:
        """The rows of all units, each with how many units it stands for."""
        yield from zip(self.units.values(), repeat(1))
        yield from self.alike.items()

    def __len__(self) -> int:
        return len(self.units) + self.alike.total()

    def share(self, numbering: Numbering) -> None:
        """Units are kept by their keys."""

    def add(self, unit: Hashable, ending: int, position: int, cluster: Hashable | None) -> None:
        """Add one comparison of a unit."""
        kind = 3 * position + ending
        self._add(unit, UnitRow(tuple([int(each == kind) for each in range(KINDS)]), 0, cluster))

    def add_missing(self, unit: Hashable, cluster: Hashable | None) -> None:
        """Account for a comparison of a unit that has no verdict."""
        self._add(unit, UnitRow(missing=1, cluster=cluster))

    def _add(self, unit: Hashable, more: UnitRow) -> None:
        row = self.units.get(unit)
        if row is not None:
            more = UnitRow(
                tuple(mine + theirs for mine, theirs in zip(row.kinds, more.kinds, strict=True)),
                row.missing + more.missing,
                row.cluster if row.cluster == more.cluster else None,
            )
        self.units[unit] = more

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnitOutcomes) and (self.units, self.alike) == (other.units, other.alike)

    __hash__ = None  # type: ignore[assignment]

    def empty(self) -> UnitOutcomes:
        """Cells of the same kind without rows."""
        return UnitOutcomes()

    def merge(self, other: UnitOutcomes) -> None:
        """Add all rows of another part."""
        for unit, row in other.units.items():
            self._add(unit, row)
        self.alike.update(other.alike)
