"""Which subjects a log has named already, in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable

SMALLEST = 1 << 10
FULL = 0.6


class Seen:
    """A set of 64-bit hashes in one flat table: 14 to 28 bytes each, where a set of numbers takes about 80.

    Two subjects with one hash would be taken for one. Python's hash of texts is keyed anew in each process, so nobody
    can write a log to that end; by chance it happens in one of 37 million logs of a million subjects (n² / 2⁶⁵).
    """

    __slots__ = ("_count", "_limit", "_mask", "_table")

    def __init__(self) -> None:
        self._resize(SMALLEST)
        self._count = 0

    def _resize(self, size: int) -> None:
        self._table = array("q", [0]) * size
        self._mask = size - 1
        self._limit = int(size * FULL)

    def __len__(self) -> int:
        return self._count

    def add(self, subject: Hashable) -> bool:
        """Whether it is new. It holds texts alone: the hash of None differs between processes of Python 3.11."""
        key = hash(subject) or 1  # 0 marks an empty place
        table, mask = self._table, self._mask
        place = key & mask
        while found := table[place]:
            if found == key:
                return False
            place = (place + 1) & mask
        table[place] = key
        self._count += 1
        if self._count > self._limit:
            self._grow()
        return True

    def _grow(self) -> None:
        old = self._table
        self._resize(2 * len(old))
        self._put(filter(None, old))

    def _put(self, hashes: Iterable[int]) -> None:
        table, mask = self._table, self._mask
        for key in hashes:
            place = key & mask
            while table[place]:
                place = (place + 1) & mask
            table[place] = key

    def hashes(self) -> array[int]:
        """What it holds: means something where Python's hash of texts is keyed alike, as in processes of one seed."""
        return array("q", filter(None, self._table))

    @classmethod
    def of(cls, hashes: array[int]) -> Seen:
        """The set of these hashes, each given once."""
        seen = cls()
        while seen._limit <= len(hashes):
            seen._resize(2 * len(seen._table))
        seen._put(hashes)
        seen._count = len(hashes)
        return seen
