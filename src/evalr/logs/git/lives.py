"""How long lines that agents wrote stay: each from the revision that brought it to the one that took it out."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from evalr.inputs import History, Now, Revision, Role, known_reading_time

MOST_PAIRS = 400_000_000
"""Pairs of lines that an alignment may weigh: some tenths of a second, and 50 MB."""

REMEMBERED = 8
"""Revisions whose lines are known again where an edit is undone."""


class Life(NamedTuple):
    """One line that an agent wrote.

    Attributes:
        agent: who wrote it, None where the log does not say.
        born: when.
        until: when it was taken out, or until when it is known to be there.
        taken_by: the role of who took it out; None where nobody did.
    """

    agent: str | None
    born: datetime
    until: datetime
    taken_by: Role | None


class _Line:
    """A line as it goes on through revisions."""

    __slots__ = ("agent", "born", "taken_by", "until")

    def __init__(self, agent: str | None, born: datetime) -> None:
        self.agent, self.born = agent, born
        self.until: datetime | None = None
        self.taken_by: Role | None = None


def lives_of(history: History, now: Now | None) -> list[Life]:
    """The lines that agents wrote, in the order in which they came; blank ones are none.

    From one revision to the next the lines are aligned so that as many as can be stay; one that is moved elsewhere is
    taken out and written anew. A revision that puts a text back as it was a few revisions before undoes what took its
    lines out. Deleting the file takes out all of them.

    Args:
        history: the file's.
        now: the reading time; the history's own comes first, where that is earlier.
    """
    moment = known_reading_time(history, now)
    found: list[_Line] = []
    texts: list[str] = []
    lines: list[_Line | None] = []  # of each line of the text, None where no agent wrote it
    before: OrderedDict[tuple[str, ...], list[_Line | None]] = OrderedDict()
    last = None
    for revision in history.revisions:
        if moment is not None and revision.at > moment:
            break
        last = revision.at
        new_texts = [line for line in revision.text.splitlines() if line.strip()]
        key = tuple(new_texts)
        new_lines = before.get(key)
        if new_lines is None:
            kept = dict(_kept(texts, new_texts))
            new_lines = [lines[kept[place]] if place in kept else _written(revision) for place in range(len(new_texts))]
            found += [line for place, line in enumerate(new_lines) if line is not None and place not in kept]
        there = {id(line) for line in new_lines}
        for line in lines:
            if line is not None and id(line) not in there:
                line.until, line.taken_by = revision.at, revision.role
        for line in new_lines:
            if line is not None:
                line.until = line.taken_by = None
        before[key] = new_lines
        before.move_to_end(key)
        if len(before) > REMEMBERED:
            before.popitem(last=False)
        texts, lines = new_texts, new_lines
    end = moment or last
    return [Life(each.agent, each.born, each.until or end or each.born, each.taken_by) for each in found]


def _written(revision: Revision) -> _Line | None:
    """A line that a revision brought; None where no agent wrote it."""
    if revision.role != "agent":
        return None
    agent = revision.attributes.get("agent")
    return _Line(agent if isinstance(agent, str) else None, revision.at)


def _kept(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which line of the new text is which of the old one: as many as can be, in order.

    Where that would be too much to find out, those of equal words, the first ones of either side.
    """
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    same = [(place, place) for place in range(begin)]
    same += [(len(new) - place, len(old) - place) for place in range(end, 0, -1)]
    a, b = old[begin : len(old) - end], new[begin : len(new) - end]
    if not a or not b:
        return same
    if len(a) * len(b) > MOST_PAIRS:
        return same + [(begin + other, begin + one) for one, other in _first_equal(a, b)]
    from rapidfuzz.distance import LCSseq

    for step in LCSseq.opcodes(a, b):
        if step.tag == "equal":
            size = step.src_end - step.src_start
            same += [(begin + step.dest_start + i, begin + step.src_start + i) for i in range(size)]
    return same


def _first_equal(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    places: dict[str, list[int]] = {}
    left = Counter(b)
    for place, text in enumerate(a):
        if left[text] > len(places.get(text, ())):
            places.setdefault(text, []).append(place)
    taken: Counter[str] = Counter()
    found = []
    for place, text in enumerate(b):
        if taken[text] < len(places.get(text, ())):
            found.append((places[text][taken[text]], place))
            taken[text] += 1
    return found
