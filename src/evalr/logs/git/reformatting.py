"""Commits that only reformatted many files: nobody rewrote anything there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalr.errors import LogError
from evalr.logs.git.blobs import LARGEST, Blobs
from evalr.logs.git.changes import Change

MANY = 20
"""From how many edited files on a commit is looked at."""

LOOKED_AT = 40
"""How many of them are compared, from all over the commit."""

SHARE = 0.9

IGNORED = b" \t\r\n\f\v'\"`,;()[]{}\\"
"""What formatters add, take away or exchange."""

IGNORE_LIST = b".git-blame-ignore-revs"
"""The file in which a repository may itself name such commits."""


Edit = tuple[bytes, bytes]
"""The blobs before and after."""


def sample(changes: Iterable[Change]) -> Sequence[Edit]:
    """A few of the files that a commit edited; none where these are not many."""
    edits = [(change.old, change.new) for change in changes if change.old and change.new and change.old != change.new]
    if len(edits) < MANY:
        return []
    looked_at = min(LOOKED_AT, len(edits))
    return [edits[number * len(edits) // looked_at] for number in range(looked_at)]


def only_reformats(edits: Sequence[Edit], sizes: Mapping[bytes, int], blobs: Blobs) -> bool:
    """Whether a commit only moved and formatted text, judged by a sample of its files.

    Nine of ten must hold the same characters before and after, whatever their order, but for blanks, quotes and
    brackets. A file that is too large, or is missing, does not.
    """
    small = [edit for edit in edits if all(sizes.get(name, LARGEST + 1) <= LARGEST for name in edit)]
    enough = SHARE * len(edits)
    return bool(edits) and len(small) >= enough and sum(_same_letters(*edit, blobs) for edit in small) >= enough


def _same_letters(old: bytes, new: bytes, blobs: Blobs) -> bool:
    try:
        return _letters(blobs.content(old)) == _letters(blobs.content(new))
    except LogError:
        return False  # it is damaged, so nobody can say


def _letters(text: bytes) -> bytes:
    return bytes(sorted(text.translate(None, IGNORED)))


def listed(text: str) -> Iterable[str]:
    """The commits that an ignore list names."""
    words = (line.partition("#")[0].strip().lower() for line in text.splitlines())
    return (word for word in words if word)
