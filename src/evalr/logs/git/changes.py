"""What commits changed in files, as git tells it: which blob was replaced by which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, groupby
from operator import attrgetter
from os import fsdecode
from typing import NamedTuple

from evalr.errors import LogError
from evalr.logs.git.commits import Commit
from evalr.logs.git.repository import Repository

FILE, SYMLINK, SUBMODULE, NOTHING = b"100", b"120", b"160", b"000"
"""How the modes of each begin."""

MOST_RENAMES = 1000
"""A commit with more files that could be renamed is only searched for those whose text stayed the same."""

SIMILAR = "-M50%"
SAME = "-M100%"

MOST_NAMED = 2_000
"""Bytes of paths that git is asked for by name. Where they are more, to be told of all files is faster."""

MOST_FAILURES = 1000
MOST_FAILURES_OF_RENAMES = 50
"""After so many, texts are taken to be missing all over, and no more are asked for."""


@dataclass(slots=True)
class Change:
    """What one commit changed in one file.

    Attributes:
        commit: its place among the commits that were read.
        path: of the file; `old_path` before, which differs where it was renamed.
        old: the blob that was replaced; None where the file began.
        new: the blob that replaced it; None where the file was deleted.
        mode: of the file that is there after, or was before it was deleted: how it begins.
    """

    commit: int
    path: bytes
    old_path: bytes
    old: bytes | None
    new: bytes | None
    mode: bytes


class Changes(NamedTuple):
    """What commits changed, in their order, and what could not be read of it.

    Attributes:
        read: the changes.
        unread: places of commits of which git cannot tell what they changed: directories are missing or damaged.
        unsure: places of commits of which, for lack of texts, renames were only found where the text stayed the same.
    """

    read: list[Change]
    unread: list[int]
    unsure: Collection[int]

    def perhaps_renamed(self, commits: Collection[int]) -> set[int]:
        """The places among the changes of deletions in commits that may be halves of renames which were not found."""
        began = {change.commit for change in self.read if change.commit in commits and change.old is None}
        return {
            place
            for place, change in enumerate(self.read)
            if change.commit in began and change.new is None and change.old
        }

    def crowded(self) -> set[int]:
        """The places of commits in which so many files began and ended that git did not compare their texts."""
        began = Counter(change.commit for change in self.read if change.old is None)
        ended = Counter(change.commit for change in self.read if change.new is None)
        return {commit for commit, count in began.items() if count * ended[commit] > MOST_RENAMES**2}


def read_changes(repository: Repository, commits: Sequence[Commit]) -> Changes:
    """What commits changed.

    Git gives up at the first commit for which it lacks an object. What it did not come to is asked for again: that
    commit by itself, with renames for which no text is needed, and then those after it.

    Raises:
        LogError: that happens too often.
    """
    read: list[Change] = []
    unread: list[int] = []
    unsure: set[int] = set()
    renames = SIMILAR
    places = list(range(len(commits)))
    for failures in count():
        done, error = _read(repository, commits, places, (renames,), read)
        places = places[done:]
        if error is None:
            break
        if failures == 0:
            rootless = _rootless(repository, commits, places)
            unread += (place for place in places if place in rootless)
            places = [place for place in places if place not in rootless]
            continue
        if failures > MOST_FAILURES:
            raise error
        if renames == SAME or _read(repository, commits, places[:1], (SAME,), read).error is not None:
            unread.append(places[0])
        unsure.add(places[0])
        places = places[1:]
        if failures == MOST_FAILURES_OF_RENAMES:
            renames = SAME
            unsure.update(places)
    return Changes(_with_moves(repository, commits, read), sorted(unread), unsure)


class _Done(NamedTuple):
    commits: int
    error: LogError | None


def _read(
    repository: Repository, commits: Sequence[Commit], places: Sequence[int], options: Sequence[str], into: list[Change]
) -> _Done:
    """Add the changes of the commits at these places. Returns how many of those git came to, and why it gave up."""
    arguments = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--root", "--always", *options, f"-l{MOST_RENAMES}")
    fields = repository.run(*arguments, given=(f"{commits[place].hash}\n".encode() for place in places))
    names: dict[bytes, bytes] = {}  # each path and blob once, however often it is named
    done = 0
    try:
        for field in fields:
            if not field.startswith(b":"):
                done += 1  # each commit is told, in this order, also where it changed nothing
                continue
            old_mode, new_mode, old, new, status = field[1:].split(b" ")
            old_path = next(fields)
            path = next(fields) if status[:1] in b"RC" else old_path
            mode = old_mode if new_mode.startswith(NOTHING) else new_mode
            change = Change(
                commit=places[done - 1],
                path=names.setdefault(path, path),
                old_path=names.setdefault(old_path, old_path),
                old=_blob(old_mode, names.setdefault(old, old)),
                new=_blob(new_mode, names.setdefault(new, new)),
                mode=mode[:3],
            )
            into.append(change)
    except LogError as error:
        return _Done(done, error)
    return _Done(done, None)


def _rootless(repository: Repository, commits: Sequence[Commit], places: Sequence[int]) -> set[int]:
    """Of these places those of commits whose files cannot be listed at all, or those before, as in a treeless clone."""
    asked = [
        (place, f"{name}^{{tree}}") for place in places for name in (commits[place].hash, commits[place].parent) if name
    ]
    try:
        there = repository.answers("cat-file", "--batch-check", "--buffer", given=(name for _, name in asked))
    except LogError:
        return set()  # one is not missing but damaged, which is found when it is read
    return {place for (place, _), answer in zip(asked, there, strict=True) if answer.split(b" ")[1:2] != [b"tree"]}


def _with_moves(repository: Repository, commits: Sequence[Commit], changes: list[Change]) -> list[Change]:
    """The same changes, with renames also found where something else came to be at the old name in the same commit.

    Git compares the texts of all that a commit changed for that; here only where a whole text came to be elsewhere.
    """
    by_commit = {number: list(group) for number, group in groupby(changes, key=attrgetter("commit"))}
    moving = [number for number, group in by_commit.items() if _may_move(group)]
    found: list[Change] = []
    if not moving or _read(repository, commits, moving, (SIMILAR, "-B"), found).error is not None:
        return changes
    moved = groupby(found, key=attrgetter("commit"))
    by_commit |= {number: _moved(list(group)) for number, group in moved}
    return [change for group in by_commit.values() for change in group]


def _may_move(changes: Sequence[Change]) -> bool:
    if len(changes) > MOST_RENAMES:
        return False
    edited = {change.old for change in changes if change.old is not None and change.new is not None}
    return any(change.new in edited and change.new != change.old for change in changes)


def _moved(changes: Sequence[Change]) -> list[Change]:
    """Where the text of a file that has a new one went elsewhere, the new one is another file's beginning."""
    gone = {change.old_path for change in changes if change.path != change.old_path}
    return [
        replace(change, old=None) if change.path == change.old_path and change.path in gone else change
        for change in changes
    ]


def _blob(mode: bytes, name: bytes) -> bytes | None:
    return name if mode.startswith(FILE) else None


Text = tuple[bytes, bytes]
"""A path, and the blob that it has."""


def merged_away(repository: Repository, merges: Sequence[Commit], texts: AbstractSet[Text]) -> dict[Text, Commit]:
    """For each of these texts the first merge that has something else in its place than a parent had.

    Where directories are missing, merges from there on are not looked at.
    """
    found: dict[Text, Commit] = {}
    by_name = {merge.hash.encode(): merge for merge in merges}
    given = (f"{merge.hash}\n".encode() for merge in merges)
    paths = {path for path, _ in texts}
    few = sum(map(len, paths)) <= MOST_NAMED
    asked = [f":(top,literal){fsdecode(path)}" for path in paths] if few else []
    arguments = ("diff-tree", "--stdin", "-m", "-r", "-z", "--raw", "--no-renames", "--", *asked)
    fields = repository.run(*arguments, given=given)
    with suppress(LogError):
        merge = merges[0]
        for field in fields:
            if field.startswith(b":"):
                text = next(fields), field.split(b" ")[2]
                if text in texts:
                    found.setdefault(text, merge)
            else:
                merge = by_name[field]
    return found
