"""Made-up repositories, written by the real git program, the same on every machine.

A `Story` tells commits; `write` turns it into a repository at once. No configuration of the user or the system is read,
every time is given, and what the default branch is called does not matter.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from evalr.inputs import History
from evalr.logs import Log
from evalr.logs.git import reader

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)

PERSON = "Alice <alice@example.com>"
OTHER = "Bob <bob@example.com>"
AGENT = "claude[bot] <209825114+claude[bot]@users.noreply.github.com>"
DEVIN = "devin-ai-integration[bot] <158243242+devin-ai-integration[bot]@users.noreply.github.com>"
BOT = "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>"
TRAILER = "Co-Authored-By: Claude <noreply@anthropic.com>"


@dataclass(frozen=True)
class Link:
    """A symbolic link to `target`, as a file of a commit."""

    target: str


@dataclass(frozen=True)
class Submodule:
    """A submodule at a commit."""

    commit: str


@dataclass(frozen=True)
class Program:
    """An executable file."""

    text: str


Content = str | bytes | Link | Submodule | Program | None
Files = Mapping[str, Content] | Mapping[bytes, Content]

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Alice",
    "GIT_AUTHOR_EMAIL": "alice@example.com",
    "GIT_AUTHOR_DATE": "1772442000 +0000",
    "GIT_COMMITTER_NAME": "Alice",
    "GIT_COMMITTER_EMAIL": "alice@example.com",
    "GIT_COMMITTER_DATE": "1772442000 +0000",
    "HOME": os.devnull,
    "LC_ALL": "C",
}


def git(where: Path, *arguments: str | bytes, given: bytes = b"", check: bool = True, **environment: str) -> bytes:
    """What git prints; its keyword arguments are variables of its environment."""
    command = ["git", "-c", "protocol.file.allow=always", "-c", "gc.auto=0", *arguments]
    done = subprocess.run(
        command, cwd=where, input=given, env=ENVIRONMENT | environment, capture_output=True, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"{arguments!r}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def init(path: Path, *arguments: str) -> Path:
    """An empty repository, with a work tree unless told otherwise."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet", *arguments)
    return path


@dataclass
class _Told:
    mark: int
    lines: list[bytes]


@dataclass
class Story:
    """Commits one after the other, each an hour later than the one before unless its time is given."""

    told: list[_Told] = field(default_factory=list)
    at: datetime = START
    _marks: count[int] = field(default_factory=lambda: count(1))

    def commit(
        self,
        files: Files,
        *,
        by: str | bytes = PERSON,
        message: str | bytes = "Change it",
        trailers: Sequence[str] = (),
        after: Sequence[int] | None = None,
        at: datetime | int | str | None = None,
        committed: datetime | int | str | None = None,
        committer: str | bytes = "Committer <committer@example.com>",
    ) -> int:
        """One commit; returns a number to name it by.

        Args:
            files: what each changed path holds now; None takes it away.
            by: the author, `Name <address>`.
            message: its first paragraphs.
            trailers: the lines of its last one.
            after: its parents: the commit told before unless given; the files are told from the first.
            at: when it was written, in seconds where it is a number, and with a zone where it is a text.
            committed: when it was put there; the same unless given.
            committer: who put it there.
        """
        if at is None:
            self.at += HOUR
            at = self.at
        elif isinstance(at, datetime):
            self.at = at
        parents = ([self.told[-1].mark] if self.told else []) if after is None else list(after)
        number = next(self._marks)
        text = _bytes(message) + (b"\n\n" + _bytes("\n".join(trailers)) if trailers else b"") + b"\n"
        lines = [b"reset refs/heads/main\n"] if not parents and self.told else []
        lines += [
            b"commit refs/heads/main\nmark :%d\n" % number,
            b"author %s %s\n" % (_bytes(by), _time(at)),
            b"committer %s %s\n" % (_bytes(committer), _time(at if committed is None else committed)),
            b"data %d\n%s\n" % (len(text), text),
            *(b"%s :%d\n" % (b"merge" if place else b"from", parent) for place, parent in enumerate(parents)),
            *_changes(files),
        ]
        self.told.append(_Told(number, lines))
        return number

    def write(self, path: Path, *arguments: str, head: int | None = None) -> Repo:
        """Make it a repository whose branch main ends at the last commit, or at `head`."""
        init(path, *arguments)
        stream = b"feature done\n" + b"".join(line for told in self.told for line in told.lines)
        if head is not None:
            stream += b"reset refs/heads/main\nfrom :%d\n\n" % head
        marks = path / "marks"
        options = ("--quiet", "--force", "--date-format=raw-permissive", f"--export-marks={marks.name}")
        git(path, "fast-import", *options, given=stream + b"done\n")
        lines = marks.read_text().splitlines()
        marks.unlink()
        git(path, "symbolic-ref", "HEAD", "refs/heads/main")
        hashes = {int(number[1:]): name for number, name in map(str.split, lines)}
        return Repo(path, {told.mark: hashes[told.mark] for told in self.told})


@dataclass(frozen=True)
class Repo:
    """A repository that was written: where it is, and the hash of each commit told."""

    path: Path
    hashes: Mapping[int, str]

    def short(self, number: int) -> str:
        """What the reader calls a commit."""
        return self.hashes[number][:12]

    def git(self, *arguments: str | bytes, given: bytes = b"", check: bool = True, **environment: str) -> bytes:
        """What git prints in it."""
        return git(self.path, *arguments, given=given, check=check, **environment)

    def log(self, **settings: Any) -> Log:
        """It as the reader opens it."""
        return reader.open(self.path, **settings)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _time(at: datetime | int | str) -> bytes:
    if isinstance(at, str):
        return at.encode()
    return b"%d +0000" % (at if isinstance(at, int) else int(at.timestamp()))


def _changes(files: Files) -> Iterable[bytes]:
    for path, content in files.items():
        if content is None:
            yield b"D %s\n" % _quoted(path)
    for path, content in files.items():
        if isinstance(content, Submodule):
            yield b"M 160000 %s %s\n" % (content.commit.encode(), _quoted(path))
        elif content is not None:
            mode, text = _file(content)
            yield b"M %s inline %s\ndata %d\n%s\n" % (mode, _quoted(path), len(text), text)


def _file(content: str | bytes | Link | Program) -> tuple[bytes, bytes]:
    if isinstance(content, Link):
        return b"120000", content.target.encode()
    if isinstance(content, Program):
        return b"100755", content.text.encode()
    return b"100644", _bytes(content)


def _quoted(path: str | bytes) -> bytes:
    return b'"%s"' % b"".join(b"\\%03o" % byte for byte in _bytes(path))


# What was read


def histories(log: Log) -> list[History]:
    """All that a log yields; the account of it must add up."""
    found = list(log)
    assert all(isinstance(item, History) for item in found)
    read = [item for item in found if isinstance(item, History)]
    named = sum(revision.id is not None for history in read for revision in history.revisions)
    assert named + log.left_out.total == log.records, (named, log.left_out, log.records)
    assert len({history.id for history in read}) == len(read)
    for history in read:
        times = [revision.at for revision in history.revisions]
        assert times == sorted(times)
        assert any(revision.role == "agent" for revision in history.revisions)
        path = str(history.attributes["path"])
        assert history.attributes["directory"] == (path.rpartition("/")[0] or ".")
        agents = {str(r.attributes["agent"]) for r in history.revisions if r.role == "agent"}
        assert history.attributes["agent"] == sorted(agents)
        assert [r.role for r in history.revisions if r.id is None] in ([], ["system"])
    return read


def told(history: History) -> list[tuple[str, str]]:
    """The roles and texts of a history."""
    return [(revision.role, revision.text) for revision in history.revisions]


def read(story: Story, path: Path, **settings: Any) -> tuple[dict[str, list[tuple[str, str]]], dict[str, int]]:
    """Each file's roles and texts by its path, and what was left out; for stories with one history a file."""
    log = story.write(path / "repo").log(**settings)
    found = {str(history.attributes["path"]): told(history) for history in histories(log)}
    return found, dict(log.left_out.counts)
