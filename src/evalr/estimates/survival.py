"""The whole course of a `TimeTo`: the share for which it had happened by each time, or had not yet."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from evalr.estimates import display
from evalr.estimates.estimate import frame
from evalr.estimates.plot import Plotted
from evalr.estimates.words import Unit, count_words, interval_words, value_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pandas import DataFrame

    from evalr.estimates.duration import Curve
    from evalr.tallies.durations import Durations

SHOWN = 12
"""Times in a table; a frame has them all."""
_STEPS = 5
MARKS = 80
"""Pending marks that a plot can have before they are one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalCurve(Plotted):
    """The share for which it had happened by each time (cumulative incidence), or with `open` had not yet.

    Attributes:
        name: the summary's.
        times: at which rows ended, in `unit`, at most 200 of them, spread over the rows.
        shares: just after each time; between two of them the curve is level.
        lows: lower limits of the pointwise interval at `level`, None where there is none.
        highs: upper limits.
        at_risk: (time, rows that lasted at least until then), for each of `times`.
        waiting: (time, rows that lasted at least until then), at six times from 0 to `until`.
        pending: (time, rows whose waiting was cut off about then); rows are joined where there are many times.
        open: whether `shares` are of those for which it had not happened.
        within: the time that the summary asks about, None where it asks for a typical time.
        until: how far it is drawn: twice `within`, or as long as one row in twenty lasted.
        longest: the longest duration of any row.
        n: rows. `noun` is what one is called.
        counts: of them, how many ended, ended otherwise, and were cut off.
        clustered_by: what the intervals are computed over, as in `Estimate`.
        level: of the intervals.
        unit: of the times.
        left_out: results that were not counted, by reason.
        called: what a share is of, where neither "by then" nor "not yet" says it.
    """

    name: str
    times: tuple[float, ...]
    shares: tuple[float, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    at_risk: tuple[int, ...]
    waiting: tuple[tuple[float, int], ...]
    pending: tuple[tuple[float, int], ...]
    open: bool
    within: float | None
    until: float
    longest: float
    n: int
    noun: str = "result"
    counts: Mapping[str, int] = field(default_factory=dict)
    clustered_by: Mapping[str, int] = field(default_factory=dict)
    level: float = 0.95
    unit: Unit = "seconds"
    left_out: Mapping[str, int] = field(default_factory=dict)
    called: str | None = None

    @property
    def says(self) -> str:
        """What a share is of."""
        return self.called or ("not yet" if self.open else "by then")

    def method_words(self) -> str:
        """`95% interval at each time: Kaplan-Meier on log(-log), clustered by user`."""
        curve = "cumulative incidence" if self.counts.get("ended_otherwise") else "Kaplan-Meier"
        over = " or ".join(safe_text(noun).partition("/")[0] for noun in self.clustered_by)
        clustered = f", clustered by {over}" if over else ""
        return f"{100 * self.level:g}% interval at each time: {curve} on log(-log){clustered}"

    def share_at(self, time: float) -> float:
        """The share at a time."""
        place = bisect_right(self.times, time)
        return self.shares[place - 1] if place else float(self.open)

    def counted_words(self) -> str:
        """`970 waits of 136 sessions, 41 pending`."""
        by = " and ".join(count_words(count, safe_text(noun)) for noun, count in self.clustered_by.items() if count)
        words = count_words(self.n, safe_text(self.noun)) + (f" of {by}" if by else "")
        for key, state in (("ended_otherwise", "ended otherwise"), ("censored", self.called or "still open")):
            if self.counts.get(key):
                words += f", {self.counts[key]:,} {state}"
        return words

    def _lines(self) -> list[tuple[str, str, str, str]]:
        places = range(len(self.times))
        if len(places) > SHOWN:
            places = range(0, len(self.times), -(-len(self.times) // SHOWN))
        return [
            (
                value_words(self.times[k], self.unit),
                value_words(self.shares[k], "share"),
                interval_words(self.lows[k], self.highs[k], "share"),
                f"{self.at_risk[k]:,} at risk",
            )
            for k in places
        ]

    def __str__(self) -> str:
        head = f"{self.name}, {self.says} · {self.counted_words()}"
        return "\n".join([head, *(f"  {'  '.join(line)}" for line in self._lines())])

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        plain = asdict(self)
        lists = {name: list(value) for name, value in plain.items() if isinstance(value, tuple)}
        return {**plain, **lists, "waiting": list(map(list, self.waiting)), "pending": list(map(list, self.pending))}

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for each time."""
        columns = zip(self.times, self.shares, self.lows, self.highs, self.at_risk, strict=True)
        names = ("time", "share", "low", "high", "at_risk")
        return [{"name": self.name, **dict(zip(names, row, strict=True))} for row in columns]

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each time. Needs pandas."""
        frame([])  # says what to install
        import pandas as pd

        return pd.DataFrame(self.to_dicts(), columns=["name", "time", "share", "low", "high", "at_risk"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        rows: list[display.Line | str] = [display.Line(*line) for line in self._lines()]
        hidden = len(self.times) - len(rows)
        rows += [f"and {count_words(hidden, 'time')} between them; to_frame() has them all"] if hidden else []
        caption = f"{self.name}, {self.says} · {self.counted_words()}"
        return display.shown(display.table(f"after ({self.unit})", self.level, rows, caption=caption))


def survival_curve(
    durations: Durations,
    *,
    open: bool,  # noqa: A002  as a TimeTo spells it
    within: float | None,
    level: float,
    points: int = 200,
    found: Curve | None = None,
    **account: Any,
) -> SurvivalCurve:
    """The curve of rows, with limits at each of at most `points` times; see `evalr.estimates.duration.curve`.

    That is `found`, where it is known already.
    """
    import numpy as np

    from evalr.estimates.duration import curve
    from evalr.tallies.durations import OPEN

    after, end, cluster = durations.arrays()
    found = found or curve(after, end, cluster, level=level, points=points)
    lasted = np.sort(np.asarray(after))
    longest = float(lasted[-1]) if len(lasted) else 0.0
    usual = float(np.quantile(lasted, 0.95)) if len(lasted) else 0.0
    until = min(longest, 2 * within) if within else usual
    shares, lows, highs = found.shares, found.lows, found.highs
    if open:
        shares = [1 - share for share in shares]
        lows, highs = ([None if x is None else 1 - x for x in limits] for limits in (found.highs, found.lows))
    at_risk = (len(lasted) - np.searchsorted(lasted, found.times, side="left")).tolist()
    until = until or longest or 1.0
    steps = [until * step / _STEPS for step in range(_STEPS + 1)]
    waiting = (len(lasted) - np.searchsorted(lasted, steps, side="left")).tolist()
    cut_off = np.sort(np.asarray(after)[np.asarray(end) == OPEN])
    return SurvivalCurve(
        times=tuple(found.times),
        shares=tuple(shares),
        lows=tuple(lows),
        highs=tuple(highs),
        at_risk=tuple(at_risk),
        waiting=tuple(zip(steps, waiting, strict=True)),
        pending=_marks(cut_off.tolist(), until),
        open=open,
        within=within,
        until=until,
        longest=longest,
        level=level,
        **account,
    )


def _marks(times: list[float], until: float) -> tuple[tuple[float, int], ...]:
    """When rows were cut off, those about the same time together."""
    counts = Counter(times)
    if len(counts) > MARKS and until:
        width = until / MARKS
        counts = Counter((int(time / width) + 0.5) * width for time in times)
    return tuple(sorted(counts.items()))
