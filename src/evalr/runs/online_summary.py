"""What became of everything that an application handed in."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields, replace

from evalr.estimates import display
from evalr.runs.account import RunSummary


@dataclass(slots=True)
class OnlineSummary:
    """What was submitted, and what became of it. Everything is in one of the counts.

    `submitted` is the sum of `unsampled`, `unchanged`, `outdated`, `replaced`, `refused`, `judged`, `waiting`,
    `held` and `in_work`, less what waited in the spool at the beginning.

    Attributes:
        submitted: inputs that were handed in.
        unsampled: those that are not in the sample.
        unchanged: those of which the same waited, or had been judged.
        outdated: those of which a later reading waited, or had been judged.
        replaced: those in whose place a later reading came before they were judged.
        refused: those that were not taken, by the reason.
        judged: those that were judged, and whose results every sink has.
        superseding: those of the judged of which an earlier reading had been judged.
        waiting: those that wait.
        held: those that are in memory until the spool can be written, and are lost if the process is killed before.
        in_work: those that are being judged, or whose results a sink does not have yet.
        not_done: of those that wait, how many for another reason than that they are not ready yet, by the reason.
        undelivered: results that a sink does not have.
        runs: the results, and what they cost.
    """

    submitted: int = 0
    unsampled: int = 0
    unchanged: int = 0
    outdated: int = 0
    replaced: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    judged: int = 0
    superseding: int = 0
    waiting: int = 0
    held: int = 0
    in_work: int = 0
    not_done: dict[str, int] = field(default_factory=dict)
    undelivered: int = 0
    runs: RunSummary = field(default_factory=RunSummary)

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        counts = (
            ("not in the sample", self.unsampled),
            ("unchanged", self.unchanged),
            ("outdated", self.outdated),
            ("replaced by a later reading", self.replaced),
            ("waiting", self.waiting),
            ("held until the spool can be written", self.held),
            ("in work", self.in_work),
        )
        superseding = f" ({self.superseding:,} once more)" if self.superseding else ""
        parts = [f"{self.submitted:,} submitted: {self.judged:,} judged{superseding}"]
        parts[0] += "".join(f", {count:,} {name}" for name, count in counts if count)
        parts[0] += "".join(f", {count:,} refused: {reason}" for reason, count in self.refused.items())
        parts += [f"{count:,} not done: {reason}" for reason, count in self.not_done.items()]
        parts += [f"{self.undelivered:,} results undelivered"] if self.undelivered else []
        return " · ".join([*parts, str(self.runs)])


class Counts:
    """An `OnlineSummary` that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._summary = OnlineSummary()

    def add(self, **more: int) -> None:
        """Count more, by the names of the summary's attributes."""
        with self._lock:
            for name, count in more.items():
                setattr(self._summary, name, getattr(self._summary, name) + count)

    def refuse(self, reason: str) -> None:
        """Count one that was not taken."""
        with self._lock:
            self._summary.refused[reason] = self._summary.refused.get(reason, 0) + 1

    def add_run(self, run: RunSummary, *, over_ceiling: int, throttled: float) -> None:
        """Count what a run did. How often it went over the ceiling, or was throttled, is known of all runs together."""
        with self._lock:
            total = self._summary.runs
            for each in fields(RunSummary):
                value = getattr(run, each.name)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    setattr(total, each.name, getattr(total, each.name) + value)
            total.over_ceiling, total.throttled = over_ceiling, throttled

    def copy(self) -> OnlineSummary:
        """What was counted so far."""
        with self._lock:
            return replace(self._summary, refused=dict(self._summary.refused), runs=self._summary.runs.copy())
