"""Which rows of a table were met already."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from evalr.logs.seen import Seen

MOST = 1 << 27


class Ids:
    """A set of ids: a bit for each of the whole numbers that SQLite counts up to, and a hash for any other.

    Args:
        key: of the hashes; sets that are merged need the same one. Drawn at random, so that nobody who writes a log can
            have two ids taken for one.
    """

    __slots__ = ("_bits", "_count", "_key", "_others")

    def __init__(self, key: bytes) -> None:
        self._bits = bytearray(1 << 8)
        self._others = Seen()
        self._count = 0
        self._key = key

    def add(self, name: Any) -> bool:
        """Whether it is new."""
        if type(name) is not int or not 0 <= name < MOST:
            return self._others.add(self._hash(name))
        place, bit = name >> 3, 1 << (name & 7)
        bits = self._bits
        if place >= len(bits):
            bits.extend(bytes(place + (place >> 3) + 1 - len(bits)))
        elif bits[place] & bit:
            return False
        bits[place] |= bit
        self._count += 1
        return True

    def _hash(self, name: Any) -> int:
        """The same in every process, unlike Python's; of 56 bits, which are their own hash to Python."""
        text = repr(name).encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=7, key=self._key).digest(), "little")

    def has_none_of(self, other: Ids) -> bool:
        """Whether no id is in both."""
        both = min(len(self._bits), len(other._bits))
        mine, theirs = (int.from_bytes(memoryview(each._bits)[:both], "little") for each in (self, other))
        return not mine & theirs and set(self._others.hashes()).isdisjoint(other._others.hashes())

    def merge(self, other: Ids) -> None:
        """Take in those of another set."""
        bits = self._bits
        bits.extend(bytes(max(0, len(other._bits) - len(bits))))
        both = int.from_bytes(bits, "little") | int.from_bytes(other._bits, "little")
        self._bits = bytearray(both.to_bytes(len(bits), "little"))
        self._count = both.bit_count()
        for each in other._others.hashes():
            self._others.add(each)

    def __len__(self) -> int:
        return self._count + len(self._others)
