"""A progress bar on stderr, for people who wait; nothing at all where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from evalr.quoting import safe_text
from evalr.reports.reading import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE = 1.0
"""Seconds until it is worth saying that something takes long."""


@contextmanager
def shown_progress(what: str) -> Iterator[Progress | None]:
    """What to call with records and the share read, while a log is read; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line(what)
    try:
        yield line.update
    finally:
        line.close()


class _Line:
    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def update(self, records: int, share: float | None) -> None:
        if self._bar is None and monotonic() - self._begun > PATIENCE:
            self._open()
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, completed=share or 0, total=None if share is None else 1, records=f"{records:,}"
            )

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[records]} records", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(safe_text(self._what, longest=40), total=None, records="0")
        self._bar.start()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
