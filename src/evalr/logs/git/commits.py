"""The commits of a repository: when each was made, and who wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from evalr.input_fields import EARLIEST, LATEST
from evalr.logs.git.agents import Agents, Identity, Wrote, who_wrote
from evalr.logs.git.repository import Repository

TimeOf = Literal["author", "commit"]
"""Whose clock says when a commit was made: the author's, or that of who put it where it is."""

ABSURD_TIME = "absurd time"
FIELDS = ("%H", "%P", "%an", "%ae", "%at", "%ct", "%s", "%(trailers:only,unfold)")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit.

    Attributes:
        hash: its name.
        parent: its parent's; empty where it has none, several with blanks between for a merge.
        at: when it was made, None where that cannot be.
        wrote: who wrote it.
        origin: the same for the same change picked onto another branch: its author and when they wrote it.
    """

    hash: str
    parent: str
    at: datetime | None
    wrote: Wrote
    origin: int


@dataclass(slots=True)
class Commits:
    """The commits from an agent's first on, every parent before its children, and what was passed over.

    Attributes:
        read: the commits.
        before: how many come before an agent's first. Nothing of them is needed: what an agent changed is at hand.
        merges: merges since then.
        cut: the hashes of commits since then whose parents are not there, as at the edge of a shallow clone.
        last: when the newest commit was put where it is.
        shallow: whether the parents of any are not there.
    """

    read: list[Commit] = field(default_factory=list)
    before: int = 0
    merges: list[Commit] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    last: datetime | None = None
    shallow: bool = False

    @property
    def total(self) -> int:
        """How many commits there are."""
        return self.before + len(self.read) + len(self.merges) + len(self.cut)


def read_commits(repository: Repository, tip: str, *, agents: Agents, time: TimeOf) -> Commits:
    """The commits that lead to `tip`."""
    commits = Commits()
    arguments = ("log", "--topo-order", "--reverse", "-z", f"--format={'%x00'.join(FIELDS)}", tip, "--")
    for name, parents, author, address, authored, committed, subject, trailers in _records(repository.run(*arguments)):
        at = moment(committed)
        commits.last = at
        commits.shallow |= name in repository.boundary
        wrote = who_wrote(agents, author=Identity(author, address), subject=subject, trailers=list(_pairs(trailers)))
        if wrote.role != "agent" and not (commits.read or commits.merges or commits.cut):
            commits.before += 1
        elif name in repository.boundary:
            commits.cut.append(name)
        else:
            made = _written(moment(authored), at) if time == "author" else at
            # An agent's own merge may be its first commit of all: what follows it is read from there on.
            kind = commits.merges if " " in parents else commits.read
            kind.append(Commit(name, parents, made, wrote, hash((author, address, authored))))
    return commits


def _written(authored: datetime | None, committed: datetime | None) -> datetime | None:
    """When it was written: by the author's clock, unless that was ahead of the one by which it was put where it is."""
    return authored if authored is None or committed is None else min(authored, committed)


def _records(fields: Iterator[bytes]) -> Iterator[list[str]]:
    while record := [text.decode(errors="replace") for text in islice(fields, len(FIELDS))]:
        if len(record) == len(FIELDS):
            yield record


def _pairs(trailers: str) -> Iterator[tuple[str, str]]:
    for line in trailers.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key, value


def moment(seconds: str) -> datetime | None:
    """The time that git gives in seconds, None where there is none, or none that could be."""
    try:
        at = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return at if EARLIEST <= at < LATEST else None
