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

    @property
    def is_lost(self) -> bool:
        """Whether it went on in what a merge wrote, or was given up in one."""
        return not self.whole and self.cut is None


@dataclass(frozen=True, slots=True)
class Links:
    """How changes follow each other, each list by the changes' places.

    Attributes:
        befores: the change whose text each replaced.
        following: the one that goes on from each, by its place.
        names: the last name of the file of each.
        lasting: whether the newest commit has what each led to.
        picked: those that were made before, or on another branch, and are counted there.
    """

    befores: Sequence[int | None]
    following: Mapping[int, int]
    names: Sequence[bytes]
    lasting: Sequence[int]
    picked: Collection[int]


def link(changes: Sequence[Change], origins: Sequence[int], tip: Mapping[bytes, bytes]) -> Links:
    """Find for each change the one whose text it replaced, on any branch.

    Where several changes replaced one text, on branches, that goes on with the one that led to the newest commit, and
    else with the first; with none where the newest commit still has that text. Of a change that was made on several
    branches the same one counts.

    Args:
        changes: every parent's before its children's.
        origins: of each change the same number wherever it was picked or moved to.
        tip: the files of the newest commit, each with its blob.
    """
    befores: list[int | None] = [None] * len(changes)
    names = [change.path for change in changes]
    makers: dict[tuple[bytes, bytes], int] = {}
    deleted: dict[tuple[bytes, bytes], int] = {}
    arrived: dict[bytes, int] = {}
    picks = _Picks(changes, befores)
    for place, change in enumerate(changes):
        path, old, new = change.path, change.old, change.new
        if old is None or change.old_path != path:
            arrived[path] = place
        before = None if old is None else makers.get((change.old_path, old))
        if _same_text(change):
            if before is not None and new is not None:
                makers[path, new] = before
                names[before] = path
            continue
        if old is None and new is not None:
            before = deleted.get((path, new))  # put back as it was
        if picks.is_known(place, origins[place], before):
            continue
        befores[place] = before
        if new is not None:
            makers[path, new] = place
        elif old is not None:
            deleted[path, old] = place
    standing = {maker for file in tip.items() if (maker := makers.get(file)) is not None}
    lasting = _lasting(changes, befores, standing, arrived, tip)
    return Links(befores, _following(befores, standing, lasting), names, lasting, picks.not_counted(lasting))


def lines(changes: Sequence[Change], links: Links, stops: Collection[int]) -> Iterator[Line]:
    """Every change on exactly one line, except those at `stops`, which end lines and are on none."""
    for place, before in enumerate(links.befores):
        begins = before is None or before in stops or links.following.get(before) != place
        if begins and place not in stops and not _same_text(changes[place]):
            yield _line(place, links, stops)


def _line(first: int, links: Links, stops: Collection[int]) -> Line:
    steps = [first]
    while (after := links.following.get(steps[-1])) is not None and after not in stops:
        steps.append(after)
    last = steps[-1]
    return Line(tuple(steps), links.names[last], after, whole=after is None and bool(links.lasting[last]))


def _same_text(change: Change) -> bool:
    """Whether only a name or a mode changed: that is no revision."""
    return change.old == change.new


class _Picks:
    """Changes of one origin in one file: the same change, on several branches or made once more after it was undone."""

    def __init__(self, changes: Sequence[Change], befores: Sequence[int | None]) -> None:
        self._changes, self._befores = changes, befores
        self._latest: dict[tuple[bytes, int], int] = {}
        self._branches: dict[int, list[int]] = {}
        self._undone: set[int] = set()
        self._under: dict[int, set[int]] = {}
        self._beside: dict[int, set[int]] = {}

    def is_known(self, place: int, origin: int, before: int | None) -> bool:
        """Take the next change. Returns whether its text has its maker already, on another branch."""
        change = self._changes[place]
        key = change.path, origin
        first = self._latest.setdefault(key, place)
        if first == place:
            return False
        other = self._changes[first]
        same = (other.old, other.new) == (change.old, change.new)
        if not self._goes_back(before, first):
            self._branches.setdefault(first, [first]).append(place)
            return same
        if same:
            self._undone.add(place)
        else:
            self._latest[key] = place  # they are two, in one second, one upon the other
        return False

    def not_counted(self, lasting: Sequence[int]) -> set[int]:
        """All of them but one: of those on branches, one that led to the newest commit where there is one."""
        found = set(self._undone)
        for places in self._branches.values():
            found |= {*places} - {next((place for place in places if lasting[place]), places[0])}
        return found

    def _goes_back(self, place: int | None, earlier: int) -> bool:
        """Whether a change goes back to an earlier one. No stretch between them is walked twice."""
        under, beside = self._under.setdefault(earlier, {earlier}), self._beside.setdefault(earlier, set())
        walked = []
        while place is not None and place >= earlier and place not in under and place not in beside:
            walked.append(place)
            place = self._befores[place]
        found = place in under
        (under if found else beside).update(walked)
        return found


def _following(befores: Sequence[int | None], standing: Collection[int], lasting: Sequence[int]) -> dict[int, int]:
    following: dict[int, int] = {}
    for place, before in enumerate(befores):
        # What replaced a text that still stands was itself given up, on a branch.
        if before is not None and (lasting[place] or before not in standing):
            other = following.setdefault(before, place)
            if lasting[place] and not lasting[other]:
                following[before] = place
    return following


def _lasting(
    changes: Sequence[Change],
    befores: Sequence[int | None],
    standing: Collection[int],
    arrived: Mapping[bytes, int],
    tip: Mapping[bytes, bytes],
) -> bytearray:
    """For each change, whether the newest commit has what it led to."""
    lasting = bytearray(len(changes))
    for place, change in enumerate(changes):
        # What came to be there after a file was deleted is another file.
        lasting[place] = change.new is None and (change.path not in tip or arrived.get(change.path, -1) > place)
    for place in standing:
        lasting[place] = True
    for place in range(len(changes) - 1, -1, -1):
        before = befores[place]
        if before is not None and lasting[place]:
            lasting[before] = True
    return lasting


def times_in_order(times: Sequence[datetime], *, now: datetime) -> tuple[list[datetime], int]:
    """The times of a line made to never go back, and how many had to be changed for that.

    Clocks go back, and now and then ahead. The longest run of times in order is trusted, of several the one that keeps
    to the earlier changes; any other time becomes that of the trusted one before it, or of the first. Times after `now`
    are only trusted where there are no others.
    """
    if all(earlier <= later for earlier, later in pairwise(times)):
        return list(times), 0
    # From the end, so that of two runs of one length the one found last, with the earlier changes, is the one kept.
    ends: list[float] = []  # minus the time at the beginning of the latest-beginning run of each length
    places: list[int] = []
    later: dict[int, int | None] = {}
    past = [place for place, time in enumerate(times) if time <= now] or range(len(times))
    for place in reversed(past):
        end = -times[place].timestamp()
        length = bisect_right(ends, end)
        later[place] = places[length - 1] if length else None
        ends[length : length + 1] = [end]
        places[length : length + 1] = [place]
    trusted: set[int] = set()
    following: int | None = places[-1]
    while following is not None:
        trusted.add(following)
        following = later[following]
    current = times[min(trusted)]
    ordered = []
    for place, time in enumerate(times):
        current = time if place in trusted else current
        ordered.append(current)
    return ordered, len(times) - len(trusted)
