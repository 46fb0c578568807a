"""A log of results, one on each line, that `evalr report` and the readers of `evalr.logs` read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evalr.errors import SinkError
from evalr.locking import wait_for_lock
from evalr.logs import Stored, to_line
from evalr.verdicts import Result


class JsonlSink:
    """Adds results to a log, one on each line.

    Any number of processes of one machine may add to one file: each adds whole lines, one after the other. The file is
    opened anew each time, so that it may be moved away while processes run. A line that a crash has cut off is ended,
    so that it spoils no other; readers count it as one that is cut off. When `write` is back, the disk has the lines.

    A result that supersedes another one is a line with `"supersedes": true`, and readers take it in the other's place.

    Args:
        path: of the file, which is made where there is none; its folder must exist.
        measure: what the results belong to; by default the measure of their evaluator's name.
    """

    def __init__(self, path: str | os.PathLike[str], *, measure: str | None = None) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100  a link stays a link
        self._measure = measure

    def __repr__(self) -> str:
        return f"JsonlSink({str(self.path)!r})"

    async def write(self, results: Sequence[Result[Any]], /, *, superseding: bool = False) -> None:
        """As every sink.

        Raises:
            SinkError: the file cannot be written.
        """
        from anyio import to_thread

        lines = [self._line(result, superseding) for result in results]
        await to_thread.run_sync(self._append, "".join(lines).encode())

    async def close(self) -> None:
        """As every sink; there is nothing to close."""

    def _line(self, result: Result[Any], superseding: bool) -> str:
        line = to_line(result if self._measure is None else Stored(self._measure, result))
        # At its end, as the line's model dumps it.
        return (f'{line[:-1]},"supersedes":true}}' if superseding else line) + "\n"

    def _append(self, data: bytes) -> None:
        try:
            with _locked(self.path) as file:
                size = os.fstat(file).st_size
                if size:
                    os.lseek(file, -1, os.SEEK_END)
                    if os.read(file, 1) != b"\n":
                        data = b"\n" + data
                try:
                    _write(file, data)
                except OSError:
                    # All of it comes again, and what is there by then would be there twice. A pipe has no length.
                    with contextlib.suppress(OSError):
                        os.ftruncate(file, size)
                    raise
        except OSError as error:
            raise SinkError(f"{self.path}: results cannot be added: {error.strerror or error}") from error


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
    os.fsync(file)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, open to add to, and nobody else's until it is closed."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        wait_for_lock(file)
        yield file
    finally:
        os.close(file)  # which lets go of the lock
