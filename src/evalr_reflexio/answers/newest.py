"""The newest of many, without the others being kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """So many items with the latest (time, id), latest first; `seen` says how many there were."""

    __slots__ = ("_most", "_oldest", "_rows", "seen")

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: list[tuple[datetime, int, int, T]] = []
        self._oldest: datetime | None = None
        self.seen = 0

    def add(self, at: datetime, number: int, item: T) -> None:
        """Take one in. `number` decides between those of one time."""
        self.seen += 1
        if self._oldest is not None and at < self._oldest:
            return
        rows = self._rows
        rows.append((at, number, -self.seen, item))  # of two that are alike in both, the first one seen is the newer
        if len(rows) >= _ROOM + 2 * self._most:
            # A log comes by time, and then each is the newest: to look which are left takes less for many at once.
            self._leave_newest()

    def merge(self, other: Newest[T]) -> None:
        """Take in what another has kept, and what it has seen."""
        before = self.seen
        for at, number, _, item in other._newest():
            self.add(at, number, item)
        self.seen = before + other.seen

    def _newest(self) -> list[tuple[datetime, int, int, T]]:
        return sorted(self._rows, key=_order, reverse=True)[: self._most]

    def _leave_newest(self) -> None:
        self._rows = self._newest()
        if self._rows:
            self._oldest = self._rows[-1][0]

    def __iter__(self) -> Iterator[T]:
        return (item for *_, item in self._newest())

    def __len__(self) -> int:
        return min(self._most, len(self._rows))


_ROOM = 64


def _order(row: tuple[datetime, int, int, T]) -> tuple[datetime, int, int]:
    return row[:3]
