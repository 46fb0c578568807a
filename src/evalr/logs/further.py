"""Further sections: what a log's reader says of a log beside the measures, in a report and on its screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.plot import Plotted
from evalr.estimates.stating import denominator_words, method_sentence, number_cell
from evalr.estimates.words import count_words, interval_words, value_words
from evalr.logs.blocks import Block, Cell, Figure


class ReportTerms(NamedTuple):
    """What a report is asked for, as far as it bears on further sections.

    Attributes:
        now: the reading time.
        since: begins the period.
        until: ends it; what began exactly then is outside.
        level: of all intervals.
        randomised: whether the caller says that arms were assigned at random.
        window: how long a person has to act, where that was asked for.
        details: whether what pages show is asked for, too: `Further.blocks`.
    """

    now: datetime
    since: datetime | None
    until: datetime | None
    level: float
    randomised: bool
    window: timedelta | None = None
    details: bool = False

    def selects(self, at: datetime | None) -> bool:
        """Whether what began then counts: in the period, and not after the reading time; without a time in none."""
        if at is None:
            return self.since is None and self.until is None
        begun = self.since is None or at >= self.since
        return begun and (self.until is None or at < self.until) and at <= self.now


class FurtherLine(NamedTuple):
    """One line of a further section: what it is about, its number, its interval, and what stands beside them.

    Texts are shown with escapes for whatever could steer a terminal or a page.
    """

    title: str
    value: str = ""
    interval: str = ""
    notes: Sequence[str] = ()
    within: bool = False
    """Whether it is a part of the line above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """A section that a reader adds to the report on its log.

    Attributes:
        name: its name in `Report.further` and in JSON; unlike any other's of the log.
        title: what stands above it.
        lines: what it says; a text is a note on those above. Without any, it is on pages alone.
        data: everything that it says, in plain types that JSON takes.
        leads: whether it comes before the measures: what somebody asked the reader for.
        blocks: the same as a page shows it, with plots, tiles and things to open; none where it shows the lines.
    """

    name: str
    title: str
    lines: Sequence[FurtherLine | str]
    data: Mapping[str, Any]
    leads: bool = False
    blocks: Sequence[Block] = ()


def estimate_line(title: str, estimate: Estimate, *, within: bool = False, notes: Sequence[str] = ()) -> FurtherLine:
    """The line of an estimate; `notes` come after its own."""
    value = value_words(estimate.value, estimate.unit)
    interval = interval_words(estimate.low, estimate.high, estimate.unit)
    return FurtherLine(title, value, interval, (*estimate.notes(), *notes), within)


def lift_line(title: str, lift: Lift, *, within: bool = True) -> FurtherLine:
    """The line of the difference between two arms."""
    found = lift.difference
    value, interval = value_words(found.value, found.unit), interval_words(found.low, found.high, found.unit)
    return FurtherLine(title, value, interval, tuple(lift.beside()), within)


def estimate_cell(estimate: Estimate, *, counted: bool = False) -> Cell:
    """The cell of an estimate: with its interval, what it is of, how it was computed and, if asked, its n."""
    n = f" · {count_words(estimate.n, estimate.noun)}" if counted else ""
    return Cell(f"{number_cell(estimate)}{n}", denominator_words(estimate), method_sentence(estimate))


def figure(
    result: Plotted, *, title: str | None = None, footnote: str | None = None, width: int | None = None
) -> Figure:
    """The plot of a result as a block; what its own title says beside it comes before the footnote."""
    plot = result.plot(title="", width=width)
    spec = dict(plot.spec)
    beside = [*spec.pop("title", {}).get("subtitle", []), *([] if footnote is None else [footnote])]
    return Figure(spec=spec, says=plot.says, title=title, footnote=" · ".join(beside) or None)
