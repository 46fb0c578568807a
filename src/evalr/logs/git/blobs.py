"""The texts of a repository, read one at a time when they are asked for."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from sys import getsizeof
from threading import Lock

from evalr.errors import LogError
from evalr.logs.git.repository import Repository

LARGEST = 1 << 20
"""Bytes. Larger files are data, whatever they are called."""

REMEMBERED = 16 << 20
"""Bytes of memory for texts that are kept in case they are asked for again soon."""


class Blobs:
    """The blobs of a repository. What one measure has read, another finds in memory for a while."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._holder, self._lock = os.getpid(), Lock()
        self._texts: OrderedDict[bytes, tuple[str, int]] = OrderedDict()
        self._size = 0

    def __deepcopy__(self, memo: object) -> Blobs:
        """Itself: what is copied of a repository reads where the original does."""
        return self

    def sizes(self, names: Iterable[bytes]) -> dict[bytes, int]:
        """The bytes of each blob that is there; one that is missing, or is no blob, has none."""
        asked = list(dict.fromkeys(names))
        command = ("cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer")
        answers = self._repository.answers(*command, given=map(bytes.decode, asked))
        sizes: dict[bytes, int] = {}
        for name, answer in zip(asked, answers, strict=True):
            kind, _, size = answer.partition(b" ")
            if kind == b"blob":
                sizes[name] = int(size)
        return sizes

    def text(self, name: bytes) -> str:
        """A blob as text: as UTF-8 or, where it is none, each byte as a character, so that no difference is lost.

        Raises:
            LogError: it cannot be read.
        """
        with self._alone():
            if name in self._texts:
                self._texts.move_to_end(name)
                return self._texts[name][0]
            text = _decoded(self._read(name))
            self._remember(name, text)
            return text

    def content(self, name: bytes) -> bytes:
        """A blob's bytes.

        Raises:
            LogError: it cannot be read.
        """
        with self._alone():
            return self._read(name)

    def _alone(self) -> Lock:
        """What one thread at a time holds. A forked process gets its own: another thread may have held the old one."""
        if self._holder != os.getpid():
            self._holder, self._lock = os.getpid(), Lock()
        return self._lock

    def _remember(self, name: bytes, text: str) -> None:
        size = getsizeof(text)
        self._texts[name] = text, size
        self._size += size
        while self._size > REMEMBERED and len(self._texts) > 1:
            _, (_, size) = self._texts.popitem(last=False)
            self._size -= size

    def _read(self, name: bytes) -> bytes:
        process = self._running()
        content = None
        try:
            content = _answer(process, name)
        finally:
            if content is None:  # also when interrupted: what is left of the answer must not be taken for the next one
                self._process = None
                _end(process, self._owner)
        if content is None:
            raise LogError(f"{self._repository.path}: the object {name.decode()} cannot be read")
        return content

    def _running(self) -> subprocess.Popen[bytes]:
        """A git that answers. A forked process needs its own: two that ask one would get each other's answers."""
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self._process = self._repository.popen(
                ("cat-file", "--batch"), given=subprocess.PIPE, errors=subprocess.DEVNULL
            )
            self._owner = os.getpid()
            weakref.finalize(self, _end, self._process, self._owner)
        return self._process


def _answer(process: subprocess.Popen[bytes], name: bytes) -> bytes | None:
    """The content of a blob, None where git has none to give."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(name + b"\n")
        process.stdin.flush()
        head = process.stdout.readline().split()
        if len(head) != 3 or head[:2] != [name, b"blob"]:
            return None
        size = int(head[2])
        content = process.stdout.read(size + 1)
        return content[:size] if len(content) == size + 1 else None
    except BrokenPipeError:
        return None  # git gave up on what it was asked for


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process where this one began it. Forked ones only let go of its pipes."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            with suppress(BrokenPipeError):  # what was left to write is for nobody
                pipe.close()
    if owner == os.getpid():
        process.terminate()
        process.wait()
    else:
        process.returncode = 0  # it is not for this process to wait for


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")
