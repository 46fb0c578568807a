"""Commits that only reformatted many files: nobody rewrote anything there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evalr.logs.git.changes import Change

MANY = 20
"""From how many edited files on a commit is looked at."""

LOOKED_AT = 12
SHARE = 0.9

IGNORED = b" \t\r\n\f\v'\"`,;()[]{}\\"
"""What formatters add, take away or exchange."""

IGNORE_LIST = b".git-blame-ignore-revs"
"""The file in which a repository may itself name such commits."""


def only_reformats(changes: Sequence[Change], read: Callable[[bytes], bytes]) -> bool:
    """Whether a commit with these changes only moved and formatted text, judged by a few of its files.

    Nine of ten that are looked at must hold the same characters before and after, whatever their order, but for blanks,
    quotes and brackets.
    """
    edits = [(change.old, change.new) for change in changes if change.old and change.new and change.old != change.new]
    if len(edits) < MANY:
        return False
    sample = edits[:: max(1, len(edits) // LOOKED_AT)][:LOOKED_AT]
    same = sum(_letters(read(old)) == _letters(read(new)) for old, new in sample)
    return same >= SHARE * len(sample)


def _letters(text: bytes) -> bytes:
    return bytes(sorted(text.translate(None, IGNORED)))


def listed(text: str) -> Iterable[str]:
    """The commits that an ignore list names."""
    words = (line.partition("#")[0].strip() for line in text.splitlines())
    return (word for word in words if word)
