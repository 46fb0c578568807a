"""Where each subject of a stream was first met, in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Hashable

from evalr.logs.seen import FULL, SMALLEST

_LOW = (1 << 32) - 1


class Places:
    """A map from subjects to a position and 32 bits of content, in two flat tables: 27 to 54 bytes a subject.

    As in `evalr.logs.seen.Seen`, a subject is its 64-bit hash, which is keyed anew in each process.
    """

    __slots__ = ("_count", "_keys", "_limit", "_mask", "_values")

    def __init__(self) -> None:
        self._resize(SMALLEST)
        self._count = 0

    def _resize(self, size: int) -> None:
        self._keys = array("q", [0]) * size
        self._values = array("Q", [0]) * size
        self._mask = size - 1
        self._limit = int(size * FULL)

    def __len__(self) -> int:
        return self._count

    def add(self, subject: Hashable, position: int, content: bytes) -> tuple[int, bool] | None:
        """Note a subject that is new, and return None; or where it was first, and whether its content was the same."""
        key = hash(subject) or 1  # 0 marks an empty place
        mark = hash(content) & _LOW
        keys, mask = self._keys, self._mask
        place = key & mask
        while found := keys[place]:
            if found == key:
                value = self._values[place]
                return value >> 32, value & _LOW == mark
            place = (place + 1) & mask
        keys[place] = key
        self._values[place] = (position & _LOW) << 32 | mark
        self._count += 1
        if self._count > self._limit:
            self._grow()
        return None

    def _grow(self) -> None:
        before = zip(self._keys, self._values, strict=True)
        self._resize(2 * len(self._keys))
        keys, values, mask = self._keys, self._values, self._mask
        for key, value in before:
            if key:
                place = key & mask
                while keys[place]:
                    place = (place + 1) & mask
                keys[place] = key
                values[place] = value
