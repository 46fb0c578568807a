"""A made-up git repository in which it is known what people left of what two agents wrote: the other half of the demo.

Every line is unique and stays whole or goes whole, so that what is measured is what was drawn, to the character.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from evalr.cli.sample import NOW, PLAIN_WORDS

PERIOD = timedelta(days=90)
DRAFTS = 240
FOLDERS = {"api": ".py", "api/store": ".py", "web": ".ts", "web/pages": ".ts", "docs": ".md"}
FILES = tuple(f"{folder}/{word}{ending}" for folder, ending in FOLDERS.items() for word in PLAIN_WORDS[:9])
LOCKFILE = "web/package-lock.json"

PERSON = "Robin Vale <robin@example.org>"
BOT = "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>"


class Agent(NamedTuple):
    """An agent: how its commits are signed, and which share of its lines people take out when they edit its text."""

    author: str
    trailer: str
    taken_out: float


AGENTS = (
    Agent(PERSON, "Co-Authored-By: Claude <noreply@anthropic.com>", taken_out=0.15),
    Agent("Robin Vale (aider) <robin@example.org>", "", taken_out=0.45),
)
EDITED = 0.6
"""How often a person edits what an agent wrote, within days."""


class Truth(NamedTuple):
    """Characters that agents added, and those of them that people left."""

    added: int
    kept: int


class Commit(NamedTuple):
    """One commit of one file: its whole text after it."""

    at: datetime
    author: str
    trailer: str
    path: str
    text: str


@dataclass
class _Drawing:
    """The repository as it is drawn: what each file holds, the commits so far, and the truth so far."""

    draw: Random
    files: dict[str, list[str]] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    added: int = 0
    kept: int = 0
    lines: int = 0

    def line(self) -> str:
        self.lines += 1
        words = (PLAIN_WORDS[int(self.draw.random() * len(PLAIN_WORDS))] for _ in range(3 + self.lines % 6))
        return f"{' '.join(words)} {self.lines}\n"

    def commit(self, at: datetime, author: str, trailer: str, path: str) -> None:
        self.commits.append(Commit(at, author, trailer, path, "".join(self.files[path])))


def sample_repository(seed: int) -> tuple[list[Commit], Truth]:
    """The commits, oldest first, and what is true of them."""
    drawing = _Drawing(Random(seed))
    draw, step = drawing.draw, PERIOD / DRAFTS
    for number in range(DRAFTS):
        # Early enough that people's time for the last draft is over.
        at = NOW - 2 * PERIOD + number * step
        path = FILES[int(draw.random() * len(FILES))]
        if path not in drawing.files:
            drawing.files[path] = [drawing.line() for _ in range(8)]
            drawing.commit(at, PERSON, "", path)
        agent = AGENTS[int(draw.random() * len(AGENTS))]
        _draft(drawing, agent, at + step / 4, path)
        if number % 20 == 10:
            drawing.files[LOCKFILE] = [f'{{"lockfileVersion": {number}}}\n']
            drawing.commit(at + step / 2, BOT, "", LOCKFILE)
    return drawing.commits, Truth(drawing.added, drawing.kept)


def _draft(drawing: _Drawing, agent: Agent, at: datetime, path: str) -> None:
    """An agent appends lines to a file; a person may take some of them out, and writes a line of their own above."""
    draw, file = drawing.draw, drawing.files[path]
    block = [drawing.line() for _ in range(4 + int(draw.random() * 12))]
    file += block
    drawing.commit(at, agent.author, agent.trailer, path)
    left = block
    if draw.random() < EDITED:
        left = [line for line in block if draw.random() >= agent.taken_out]
        drawing.files[path] = [drawing.line(), *(line for line in file if line not in set(block) - set(left))]
        drawing.commit(at + PERIOD / DRAFTS / 8, PERSON, "", path)
    drawing.added += sum(map(len, block))
    drawing.kept += sum(map(len, left))


def write_repository(folder: Path, commits: list[Commit]) -> bool:
    """Make a git repository of the commits in an empty folder. Returns whether there is a git to do so."""
    git = shutil.which("git")
    if git is None:
        return False
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    stream = b"".join(_stream(commits))

    def run(*arguments: str, given: bytes = b"") -> None:
        subprocess.run([git, *arguments], cwd=folder, env=own, input=given, check=True, capture_output=True)

    run("init", "--quiet")
    run("symbolic-ref", "HEAD", "refs/heads/main")  # older programs know no --initial-branch
    run("fast-import", "--quiet", given=stream)
    run("reset", "--quiet", "--hard")
    return True


def _stream(commits: list[Commit]) -> Iterator[bytes]:
    for commit in commits:
        message = f"Work on {commit.path}\n\n{commit.trailer}".strip().encode()
        when = int(commit.at.timestamp())
        yield f"commit refs/heads/main\nauthor {commit.author} {when} +0000\n".encode()
        yield f"committer {PERSON} {when} +0000\ndata {len(message)}\n".encode() + message + b"\n"
        text = commit.text.encode()
        yield f"M 100644 inline {commit.path}\ndata {len(text)}\n".encode() + text + b"\n"
