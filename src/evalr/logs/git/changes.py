"""What commits changed in files, as git tells it: which blob was replaced by which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalr.errors import LogError
from evalr.logs.git.commits import Commit
from evalr.logs.git.repository import Repository

FILE, SYMLINK, SUBMODULE, NOTHING = b"100", b"120", b"160", b"000"
"""How the modes of each begin."""

MOST_RENAMES = 1000
"""A commit with more files that could be renamed is only searched for those whose text stayed the same."""

SIMILAR = "-M50%"
SAME = "-M100%"


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


def read_changes(repository: Repository, commits: Sequence[Commit]) -> tuple[list[Change], bool]:
    """What the commits changed, in their order, and whether renames with edits could be followed.

    That takes the texts, which a partial clone may lack. Renames that left the text alone are followed anyway.

    Raises:
        LogError: git cannot say, such as where whole directories are missing.
    """
    try:
        return list(_changes(repository, commits, SIMILAR)), True
    except LogError:
        return list(_changes(repository, commits, SAME)), False


def _changes(repository: Repository, commits: Sequence[Commit], renames: str) -> Iterator[Change]:
    arguments = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--root", renames, f"-l{MOST_RENAMES}")
    fields = repository.run(*arguments, given=(f"{commit.hash}\n".encode() for commit in commits))
    places = {commit.hash.encode(): place for place, commit in enumerate(commits)}
    names: dict[bytes, bytes] = {}  # each path and blob once, however often it is named
    place = 0
    for field in fields:
        if not field.startswith(b":"):
            place = places[field]
            continue
        old_mode, new_mode, old, new, status = field[1:].split(b" ")
        old_path = next(fields)
        path = next(fields) if status[:1] in b"RC" else old_path
        mode = old_mode if new_mode.startswith(NOTHING) else new_mode
        yield Change(
            commit=place,
            path=names.setdefault(path, path),
            old_path=names.setdefault(old_path, old_path),
            old=_blob(old_mode, names.setdefault(old, old)),
            new=_blob(new_mode, names.setdefault(new, new)),
            mode=mode[:3],
        )


def _blob(mode: bytes, name: bytes) -> bytes | None:
    return name if mode.startswith(FILE) else None
