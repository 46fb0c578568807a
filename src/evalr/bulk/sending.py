"""How a reading gets from one process to another without being held twice.

Pickle alone would copy what it sends before it is sent, and again before it is there. So what is large goes in pieces
of its own, and the sender forgets each: first the keys of the clusters, which all tallies share, and then the measures
one by one, each without its columns, and then those.
"""

from __future__ import annotations

import pickle
from array import array
from itertools import repeat
from typing import IO, Any

from evalr.reports.reading import Reading
from evalr.tallies.numbering import Numbering

KEYS = 10_000
"""Keys that are sent at once."""

BYTES = 1 << 18
"""Bytes of a column that are sent at once."""


def send_reading(numbering: Numbering, reading: Reading, file: IO[bytes]) -> None:
    """Write a reading, whose tallies may have the numbering, for `receive_reading`. Both are used up."""
    numbering.numbers.clear()
    keys = numbering.keys
    for begin in range(1, len(keys), KEYS):
        pickle.dump(keys[begin : begin + KEYS], file, pickle.HIGHEST_PROTOCOL)
        keys[begin : begin + KEYS] = repeat(None, len(keys[begin : begin + KEYS]))
    pickle.dump(None, file)
    tracks, reading.tracks = reading.tracks, []
    _send(reading, numbering, file)
    vars(reading).clear()
    while tracks:
        _send(tracks.pop(0), numbering, file)
    _send(None, numbering, file)
    file.flush()


def receive_reading(file: IO[bytes], numbering: Numbering) -> Reading:
    """Read what `send_reading` writes; its clusters are given their numbers in another numbering as well.

    The tracks are read when they are asked for, once.
    """
    own = numbering if numbering.is_empty() else Numbering()  # the first one's numbers are right as they are
    while keys := pickle.load(file):
        numbering.take(own, keys)
    reading: Reading = _receive(own, file)
    reading.tracks = iter(lambda: _receive(own, file), None)  # type: ignore[assignment]
    return reading


class _Pickler(pickle.Pickler):
    """Leaves out the numbering, and the columns, which it notes."""

    def __init__(self, file: IO[bytes], numbering: Numbering) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbering = numbering
        self.columns: list[array[Any]] = []

    def persistent_id(self, thing: object) -> str | None:
        if isinstance(thing, array):
            self.columns.append(thing)
            return thing.typecode
        return "numbering" if thing is self._numbering else None


class _Unpickler(pickle.Unpickler):
    """Puts the numbering in its place, and empty columns, which it notes."""

    def __init__(self, file: IO[bytes], numbering: Numbering) -> None:
        super().__init__(file)
        self._numbering = numbering
        self.columns: list[array[Any]] = []

    def persistent_load(self, name: str) -> object:
        if name == "numbering":
            return self._numbering
        self.columns.append(array(name))
        return self.columns[-1]


def _send(thing: object, numbering: Numbering, file: IO[bytes]) -> None:
    pickler = _Pickler(file, numbering)
    pickler.dump(thing)
    for column in pickler.columns:
        with memoryview(column) as items, items.cast("B") as data:
            pickle.dump(len(data), file)
            for begin in range(0, len(data), BYTES):
                file.write(data[begin : begin + BYTES])
        del column[:]


def _receive(numbering: Numbering, file: IO[bytes]) -> Any:
    unpickler = _Unpickler(file, numbering)
    thing = unpickler.load()
    for column in unpickler.columns:
        left = pickle.load(file)
        while left:
            data = file.read(min(left, BYTES))
            if not data:
                raise EOFError("the end of a column is missing")
            column.frombytes(data)
            left -= len(data)
    return thing
