"""Lines of changes: a repository's history branches, and what people made of an agent's text is one line through it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from evalr.logs.git.changes import Change


@dataclass(frozen=True, slots=True)
class Line:
    """Changes of one file of which each replaced what the one before had left, renames included.

    Attributes:
        steps: places among the changes.
        path: the file's last name.
        cut: the place of the change that ended it although it is none that counts; None where none did.
        whole: whether it ends as the newest commit has the file. Otherwise it went on in what a merge wrote.
    """

    steps: tuple[int, ...]
    path: bytes
    cut: int | None
    whole: bool


def lines(changes: Sequence[Change], stops: Collection[int], tip: Mapping[bytes, bytes]) -> Iterator[Line]:
    """Every change on exactly one line, except those at `stops`, which end lines and are on none.

    Where several changes replaced one text, on branches, the line goes on with the one that led to the newest commit,
    and else with the first; the others begin lines of their own.

    Args:
        changes: every parent's before its children's.
        stops: places of changes that do not count.
        tip: the files of the newest commit, each with its blob.
    """
    befores, names, makers = _links(changes)
    followers: dict[int, list[int]] = {}
    for place, before in enumerate(befores):
        if before is not None:
            followers.setdefault(before, []).append(place)
    lasting = _lasting(changes, befores, makers, tip)
    following = {
        before: next((place for place in places if lasting[place]), places[0]) for before, places in followers.items()
    }
    for place, before in enumerate(befores):
        begins = before is None or before in stops or following[before] != place
        if begins and place not in stops and not _same_text(changes[place]):
            yield _line(place, following, stops, names, lasting)


def _line(
    first: int, following: Mapping[int, int], stops: Collection[int], names: Sequence[bytes], lasting: Sequence[int]
) -> Line:
    steps = [first]
    while (after := following.get(steps[-1])) is not None and after not in stops:
        steps.append(after)
    return Line(tuple(steps), names[steps[-1]], after, whole=after is None and bool(lasting[steps[-1]]))


def _links(changes: Sequence[Change]) -> tuple[list[int | None], list[bytes], dict[tuple[bytes, bytes], int]]:
    """For each change the one whose text it replaced and the file's last name; and which change made each text."""
    befores: list[int | None] = [None] * len(changes)
    names = [change.path for change in changes]
    makers: dict[tuple[bytes, bytes], int] = {}
    deleted: dict[tuple[bytes, bytes], int] = {}
    for place, change in enumerate(changes):
        path, old, new = change.path, change.old, change.new
        before = None if old is None else makers.get((change.old_path, old))
        if _same_text(change):
            if before is not None and new is not None:
                makers[path, new] = before
                names[before] = path
            continue
        if old is None and new is not None:
            before = deleted.get((path, new))  # put back as it was
        befores[place] = before
        if new is not None:
            makers[path, new] = place
        elif old is not None:
            deleted[path, old] = place
    return befores, names, makers


def _same_text(change: Change) -> bool:
    """Whether only a name or a mode changed: that is no revision."""
    return change.old == change.new


def _lasting(
    changes: Sequence[Change],
    befores: Sequence[int | None],
    makers: Mapping[tuple[bytes, bytes], int],
    tip: Mapping[bytes, bytes],
) -> bytearray:
    """For each change, whether the newest commit has what it led to."""
    lasting = bytearray(len(changes))
    for place, change in enumerate(changes):
        lasting[place] = change.new is None and change.path not in tip
    for file in tip.items():
        maker = makers.get(file)
        if maker is not None:
            lasting[maker] = True
    for place in range(len(changes) - 1, -1, -1):
        before = befores[place]
        if before is not None and lasting[place]:
            lasting[before] = True
    return lasting


def times_in_order(times: Sequence[datetime]) -> tuple[list[datetime], int]:
    """The times of a line made to never go back, and how many had to be changed for that.

    Clocks go back, and now and then ahead. The longest run of times in order is trusted; any other becomes that of the
    trusted one before it, or of the first.
    """
    if all(earlier <= later for earlier, later in pairwise(times)):
        return list(times), 0
    ends: list[datetime] = []  # of the shortest-ending run of each length
    places: list[int] = []
    previous: list[int | None] = []
    for place, time in enumerate(times):
        length = bisect_right(ends, time)
        previous.append(places[length - 1] if length else None)
        ends[length : length + 1] = [time]
        places[length : length + 1] = [place]
    trusted: set[int] = set()
    last: int | None = places[-1]
    while last is not None:
        trusted.add(last)
        last = previous[last]
    current = times[min(trusted)]
    ordered = []
    for place, time in enumerate(times):
        current = time if place in trusted else current
        ordered.append(current)
    return ordered, len(times) - len(trusted)
