"""How far a run has come, as a callback is told, and as a line in a terminal."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from evalr.estimates.shown import Printed
from evalr.estimates.words import duration_words
from evalr.runs.account import RunSummary

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

EVERY = 0.5
"""Seconds between two looks at a run."""

SPAN = 30.0
"""Seconds that a rate is taken over: long enough to be steady, short enough to show a server that slows down."""


@dataclass(frozen=True, slots=True)
class Progress(Printed):
    """How far a run has come.

    Attributes:
        done: items that need nothing more: results, and what is not done for a reason.
        total: items in all, None where that is not known.
        rate: results a second that were not in the journal, over the last half minute; None in the beginning.
        left: seconds until the end at this rate, None where the rate or the total is not known.
        summary: what the run has done so far.
        over: whether nothing more comes, since the run has ended or was ended.
    """

    done: int
    total: int | None
    rate: float | None
    left: float | None
    summary: RunSummary
    over: bool = False

    def __str__(self) -> str:
        summary = self.summary
        parts = [f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"]
        parts += [] if self.rate is None else [f"{self.rate:,.1f}/s"]
        parts += [f"{summary.failed:,} failed"] if summary.failed else []
        parts += [summary.cost_words()] if summary.calls else []
        parts += [f"{duration_words(self.left)} left"] if self.left and not self.over else []
        return " · ".join(parts)


Watch = Callable[[Progress], object]
"""What is called with a run's progress, about twice a second and once at its end."""


class Pace:
    """The rate at which something has grown lately."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, now: float, count: int) -> float | None:
        """Growth per second over the last half minute, None where there is no time to speak of."""
        self._seen.append((now, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now - SPAN:
            self._seen.popleft()
        begun, first = self._seen[0]
        return (count - first) / (now - begun) if now - begun >= EVERY / 2 else None


class ProgressLine:
    """A line on stderr with how far a run has come; nothing at all where stderr is no terminal.

    Args:
        what: what is run, shown in front.
        file: where it is shown, stderr unless given.
    """

    def __init__(self, what: str = "judging", file: TextIO | None = None) -> None:
        self._what = what
        self._file = file
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __call__(self, progress: Progress) -> None:
        """Show it."""
        file = sys.stderr if self._file is None else self._file
        if not file.isatty():
            return
        if self._bar is None:
            self._open(file)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=progress.done, total=progress.total, line=str(progress))
            if progress.over:
                self._bar.stop()
                self._bar = None

    def _open(self, file: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[line]}", markup=False),
            console=Console(file=file),
        )
        self._task = self._bar.add_task(self._what, total=None, line="")
        self._bar.start()
