"""Which rows of a table were met already."""

from __future__ import annotations

from typing import Any

from evalr.logs.seen import Seen

MOST = 1 << 27


class Ids:
    """A set of ids: a bit for each of the whole numbers that SQLite counts up to, and a hash for any other."""

    __slots__ = ("_bits", "_count", "_others")

    def __init__(self) -> None:
        self._bits = bytearray(1 << 8)
        self._others = Seen()
        self._count = 0

    def add(self, name: Any) -> bool:
        """Whether it is new."""
        if type(name) is not int or not 0 <= name < MOST:
            return self._others.add(name)
        place, bit = name >> 3, 1 << (name & 7)
        bits = self._bits
        if place >= len(bits):
            bits.extend(bytes(place + (place >> 3) + 1 - len(bits)))
        elif bits[place] & bit:
            return False
        bits[place] |= bit
        self._count += 1
        return True

    def __len__(self) -> int:
        return self._count + len(self._others)
