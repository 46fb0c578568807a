"""The texts of a repository, read one at a time when they are asked for."""

from __future__ import annotations

import subprocess
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock

from evalr.errors import LogError
from evalr.logs.git.repository import Repository

REMEMBERED = 16 << 20
"""Bytes of texts that are kept in case they are asked for again soon."""


class Blobs:
    """The blobs of a repository. What one measure has read, another finds in memory for a while."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._texts: OrderedDict[bytes, str] = OrderedDict()
        self._size = 0

    def sizes(self, names: Iterable[bytes]) -> dict[bytes, int]:
        """The bytes of each blob that is there; one that is missing, or is no blob, has none."""
        asked = list(dict.fromkeys(names))
        lines = self._repository.run(
            "cat-file",
            "--batch-check=%(objecttype) %(objectsize)",
            "--buffer",
            given=(name + b"\n" for name in asked),
        )
        answers = b"".join(lines).splitlines()
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
        with self._lock:
            found = self._texts.get(name)
            if found is None:
                found = _decoded(self._read(name))
                self._remember(name, found)
            else:
                self._texts.move_to_end(name)
            return found

    def content(self, name: bytes) -> bytes:
        """A blob's bytes.

        Raises:
            LogError: it cannot be read.
        """
        with self._lock:
            return self._read(name)

    def _remember(self, name: bytes, text: str) -> None:
        self._texts[name] = text
        self._size += len(text)
        while self._size > REMEMBERED and len(self._texts) > 1:
            self._size -= len(self._texts.popitem(last=False)[1])

    def _read(self, name: bytes) -> bytes:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = self._repository.popen(
                ("cat-file", "--batch"), given=subprocess.PIPE, errors=subprocess.DEVNULL
            )
            weakref.finalize(self, _end, process)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(name + b"\n")
            process.stdin.flush()
            head = process.stdout.readline().split()
            if len(head) == 3 and head[1] == b"blob":
                content = process.stdout.read(int(head[2]) + 1)
                if len(content) == int(head[2]) + 1:
                    return content[:-1]
        except BrokenPipeError:
            """git gave up on what it was asked for, as the next lines tell."""
        _end(process)
        self._process = None
        raise LogError(f"{self._repository.path}: the object {name.decode()} cannot be read")


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            with suppress(BrokenPipeError):  # what was left to write is for nobody
                pipe.close()
    process.terminate()
    process.wait()


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")
