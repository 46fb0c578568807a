"""The newest of many, without the others being kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from heapq import heappush, heappushpop
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """So many items with the latest (time, id), latest first; `seen` says how many there were."""

    __slots__ = ("_heap", "_most", "seen")

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[datetime, int, int, T]] = []
        self.seen = 0

    def add(self, at: datetime, number: int, item: T) -> None:
        """Take one in. `number` decides between those of one time."""
        self.seen += 1
        if not self._most:
            return
        heap = self._heap
        if len(heap) == self._most and at < heap[0][0]:
            return
        row = (at, number, -self.seen, item)  # of two that are alike in both, the first one seen is the newer
        if len(heap) < self._most:
            heappush(heap, row)
        elif row > heap[0]:
            heappushpop(heap, row)

    def merge(self, other: Newest[T]) -> None:
        """Take in what another has kept, and what it has seen."""
        before = self.seen
        for at, number, _, item in sorted(other._heap, key=_order, reverse=True):
            self.add(at, number, item)
        self.seen = before + other.seen

    def __iter__(self) -> Iterator[T]:
        return (item for *_, item in sorted(self._heap, key=_order, reverse=True))

    def __len__(self) -> int:
        return len(self._heap)


def _order(row: tuple[datetime, int, int, T]) -> tuple[datetime, int, int]:
    return row[:3]
