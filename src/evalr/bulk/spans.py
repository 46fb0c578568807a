"""Where to cut a file, so that several processes can read it."""

from __future__ import annotations

from io import BufferedReader
from itertools import pairwise
from pathlib import Path

from evalr.logs.finding import GZIP, HEAD, unreadable
from evalr.logs.lines import Span, check_head

PIECE = 1 << 20

LARGER = 0.04
"""How much larger each part is than the one before it, as a share of the first: what is found in one is put together
with the others while the next is still read."""


def spans_of(path: Path, processes: int) -> list[Span]:
    """Parts of a file, at most one for each process, each of whole lines; none where it cannot be cut.

    A file that is compressed, or is no file at all, cannot be cut.

    Raises:
        LogError: it cannot be opened, or nothing in it could be a line of JSON.
    """
    if processes < 2 or not path.is_file():
        return []
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            if head.startswith(GZIP):
                return []
            check_head(path, head)
            size = file.seek(0, 2)
            places = [0]
            weights = [1 + LARGER * number for number in range(processes)]
            for number in range(1, processes):
                place = int(size * sum(weights[:number]) / sum(weights))
                if place > places[-1]:  # one long line is not read again for each place in it
                    places.append(_line_begin(file, place, size))
    except OSError as error:
        raise unreadable(path, error) from error
    places = sorted({*places, size})
    return [Span(begin, end) for begin, end in pairwise(places)]


def _line_begin(file: BufferedReader, place: int, size: int) -> int:
    """Where the first line begins that begins at a place or after it."""
    if place == 0:
        return 0
    place = file.seek(place - 1)
    while piece := file.read(PIECE):
        end = piece.find(b"\n")
        if end >= 0:
            return place + end + 1
        place += len(piece)
    return size


def lines_before(path: Path, place: int) -> int:
    """How many lines of a file end before a place."""
    count = 0
    with path.open("rb") as file:
        while place and (piece := file.read(min(PIECE, place))):
            count += piece.count(b"\n")
            place -= len(piece)
    return count
