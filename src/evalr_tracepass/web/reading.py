"""A log, read in the background and again when its files have changed, while whoever looks sees what is there."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from evalr.errors import EvalrError, error_words
from evalr_tracepass.sources import Source, log_sources
from evalr_tracepass.web.snapshot import Files, Part, Snapshot, read_snapshot, signature_of

LOOK_AGAIN = 3.0
"""Seconds after which it is looked again whether many files have changed, at the earliest."""
FEW = 50

Look = Callable[[Counter[str]], Files]
"""Finds the files of a log, and counts what is none."""


class Reading:
    """A log as it was read last.

    Attributes:
        name: of the log.
        snapshot: None before it has been read once.
        error: why it could not be read the last time.
        so_far: conversations that have been read, while it is read.
    """

    def __init__(self, name: str, look: Look) -> None:
        self.name = name
        self.snapshot: Snapshot | None = None
        self.error: str | None = None
        self.so_far = 0
        self._look = look
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._looked = 0.0

    def begin(self) -> None:
        """Read it in the background, unless that is being done."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(target=self._read, name="evalr traces", daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> Snapshot | None:
        """What was read, for whoever can wait so long."""
        thread = self._thread
        if self.snapshot is None and thread is not None:
            thread.join(seconds)
        return self.snapshot

    @property
    def is_running(self) -> bool:
        """Whether it is being read."""
        return self._thread is not None and self._thread.is_alive()

    def look(self) -> None:
        """Read it again where a file has changed, or could not be read."""
        snapshot, now = self.snapshot, time.monotonic()
        if snapshot is None or self.is_running:
            return
        # To look at a few files takes no time; at many, it is not done for every page.
        if now - self._looked < (LOOK_AGAIN if self.error is not None or len(snapshot.parts) > FEW else 0.0):
            return
        self._looked = now
        if self.error is not None or not snapshot.is_there:
            self.begin()

    def anew(self, seconds: float) -> Snapshot | None:
        """What is read now, as far as it is there in so many seconds; else what was read before."""
        self.begin()
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return self.snapshot

    def _read(self) -> None:
        self.so_far, left_out = 0, Counter[str]()
        try:
            found = read_snapshot(self._look(left_out), progress=self._progress)
        except Exception as error:  # noqa: BLE001  whatever a reader stumbles over, the page must say it
            self.error = str(error) if isinstance(error, EvalrError) else error_words(error)
            # What cannot be read any more is not shown either.
            self.snapshot, self._looked = Snapshot(), time.monotonic()
            return
        found.left_out.update(left_out)
        self.error, self.snapshot, self._looked = None, found, time.monotonic()

    def _progress(self, count: int) -> None:
        self.so_far = count


def read_log(path: str, *, kind: str | None = None, strict: bool = False) -> Reading:
    """A log of conversations, or a folder of logs. Nothing outside of it is read, wherever links in it lead."""
    root = Path(path)

    def look(left_out: Counter[str]) -> Files:
        folders = [root, *(each for each in root.rglob("*") if each.is_dir())] if root.is_dir() else []
        # Before its files are read: what is changed meanwhile is read again.
        seen = [(each, signature_of(each)) for each in folders]
        parts = []
        for source in log_sources(path, kind=kind, strict=strict, unknown=left_out, within=root.resolve()):
            file = Path(source.name)
            parts.append(Part(source, file, signature_of(file)))
        return Files(parts, seen)

    return Reading(path, look)


def read_source(source: Source) -> Reading:
    """Traces that are no file: they are read once, and again for every pass."""
    return Reading(source.name, lambda _: Files([Part(source, None, None)], []))
