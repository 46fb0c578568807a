"""A Reflexio log as a report reads it, and what can be set of how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from evalr.logs.further import Further, ReportTerms
from evalr.logs.log import Log
from evalr.measures.drop_off import WINDOW
from evalr_reflexio.answers.asked import PLANNED, Asked, Bucket
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.arms import ArmCounts, Arms
from evalr_reflexio.assigning import AssignmentRule, Unit
from evalr_reflexio.blocks.beside import Beside
from evalr_reflexio.compat import own_section
from evalr_reflexio.config import Config
from evalr_reflexio.noticed import Noticed
from evalr_reflexio.stored import Served

if TYPE_CHECKING:
    from evalr.reports.reading import Progress, Reading
    from evalr_reflexio.counting import ReportSums

Compat = Literal["reflexio"]


@dataclass
class ReflexioLog(Log):
    """A Reflexio log, read as it is iterated over; its account says more than others.

    Attributes:
        noticed: sessions whose requests disagree, and verdicts on a part of a session.
        arms: how many sessions are in each arm, and why the others are in none; empty where no arms were asked for.
        config: what is known of the organisation's settings.
        impact: what a report adds to its measures, once it has read the log; None for other readers.
        beside: what a page shows beside it; None where no page was asked for.
    """

    noticed: Noticed = field(default_factory=Noticed, init=False)
    arms: ArmCounts = field(default_factory=ArmCounts, init=False)
    config: Config = field(default_factory=Config, init=False)
    terms: ReportTerms | None = field(default=None, init=False, repr=False)
    reading: Reading | None = field(default=None, init=False, repr=False)
    sums: ReportSums | None = field(default=None, init=False, repr=False)
    progress: Progress | None = field(default=None, init=False, repr=False)
    own: Mapping[str, Any] | None = field(default=None, init=False, repr=False)
    impact: Impact | None = field(default=None, init=False, repr=False)
    beside: Beside | None = field(default=None, init=False, repr=False)

    def prepare(self, terms: ReportTerms) -> None:
        """Take note of what a report asks for, so that its further sections are of the same reading."""
        self.terms = terms

    def read_into(self, reading: Reading, progress: Progress | None) -> None:
        """Count everything in it, once: as the items that it yields would be counted one by one, and sooner."""
        from evalr_reflexio.counting import ReportSums, counts_alone

        self.reading = reading
        if counts_alone(reading):
            self.sums, self.progress = ReportSums(reading), progress
        reading.read_each(self, progress)

    def merge(self, other: Log) -> None:
        """See `Log.merge`."""
        super().merge(other)
        if isinstance(other, ReflexioLog):
            self.noticed.merge(other.noticed)
            self.arms.merge(other.arms)

    def __getstate__(self) -> dict[str, Any]:
        """The account alone."""
        return {**vars(self), "items": None, "reading": None, "sums": None, "progress": None}

    def further(self) -> Sequence[Further]:
        """What the log says of Reflexio's impact, and Reflexio's own figures, where they were asked for."""
        impact = () if self.impact is None else self.impact.sections(self.beside)
        return impact if self.own is None else (*impact, own_section(self.own))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What can be set of how a log is read; see `ReflexioReader.open`."""

    config: str | PathLike[str] | Config | None = None
    arms: str | Arms | None = None
    shadow: Served = "served"
    shadow_version: str | None = None
    compat: Compat | None = None
    evaluator: str | None = None
    unit: Unit = "session"
    holdout: float | None = None
    assigned: AssignmentRule | None = None
    registry: str | PathLike[str] | None = None
    bucket: Bucket = "day"
    always_valid: bool = False
    planned: int = PLANNED
    processes: int | None = None

    def asked(self, terms: ReportTerms) -> Asked:
        """What answers are to be of, in a report of these terms."""
        return Asked(
            now=terms.now,
            since=terms.since,
            until=terms.until,
            level=terms.level,
            window=terms.window or WINDOW,
            shadow=self.shadow,
            shadow_version=self.shadow_version,
            evaluator=self.evaluator,
            holdout=self.holdout,
            assigned=self.assigned,
            bucket=self.bucket,
            always_valid=self.always_valid,
            planned=self.planned,
        )
