"""Clusters by number: each is looked up by its key once for a row, however many tallies count the row.

A table of a million keys lies all over the memory, and to look into it takes longer than most else that is done for a
row. So the tallies of one pass share their numbers, and hold no keys of their own.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from itertools import islice, repeat
from typing import NamedTuple
from weakref import ref

OWN = 0
"""The number of a cluster that is one row's own."""


class Numbering:
    """Numbers of clusters. Number 0 stands for a cluster of its own, whichever row has it; the others are from 1."""

    __slots__ = ("__weakref__", "_translated", "keys", "numbers")

    def __init__(self) -> None:
        self.keys: list[Hashable | None] = [None]
        self.numbers: dict[Hashable | None, int] = {None: OWN}
        self._translated: tuple[ref[Numbering], array[int]] | None = None

    @classmethod
    def of_keys(cls, keys: list[Hashable]) -> Numbering | None:
        """These clusters by their places, from 1; None where one is there twice, or is None."""
        numbers: dict[Hashable | None, int] = dict(zip(keys, range(1, len(keys) + 1), strict=True))
        if len(numbers) < len(keys) or None in numbers:
            return None
        found = cls()
        found.keys += keys
        found.numbers |= numbers
        return found

    def number(self, key: Hashable | None) -> int:
        """The number of a cluster, the next one for a new cluster."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.keys)
            self.keys.append(key)
        return number

    def of(self, other: Numbering) -> Sequence[int]:
        """The number here of each number there; clusters that are new get one."""
        if other is self:
            return range(len(self.keys))
        return self._of(other)

    def _of(self, other: Numbering) -> array[int]:
        if self._translated is None or self._translated[0]() is not other:
            self._translated = ref(other), array("i")  # several tallies ask for the same
        numbers = self._translated[1]
        numbers.extend(map(self.number, islice(other.keys, len(numbers), None)))
        return numbers

    def is_empty(self) -> bool:
        """Whether no cluster has a number yet."""
        return len(self.keys) == 1

    def take(self, other: Numbering, keys: Sequence[Hashable]) -> None:
        """Number more clusters of another numbering, which need not know their keys: `of` knows their numbers."""
        if other is self:
            for key in keys:
                self.number(key)
            return
        self._of(other).extend(map(self.number, keys))
        other.keys.extend(repeat(None, len(keys)))

    def __getstate__(self) -> list[Hashable | None]:
        return self.keys

    def __setstate__(self, keys: list[Hashable | None]) -> None:
        self.keys, self._translated = keys, None
        self.numbers = {key: number for number, key in enumerate(keys)}


class Clusters(NamedTuple):
    """The clusters of many rows: the number of each."""

    numbers: Sequence[int]
    numbering: Numbering

    def at(self, places: Sequence[int]) -> Clusters:
        """Those of the rows at some places."""
        numbers = self.numbers
        return Clusters([numbers[place] for place in places], self.numbering)

    def numbers_in(self, numbering: Numbering) -> Sequence[int]:
        """The same by other numbers; clusters that are new get one."""
        if numbering is self.numbering:
            return self.numbers
        keys = self.numbering.keys
        return [numbering.number(keys[number]) for number in self.numbers]
