"""An estimate: a number, how sure we are of it, and what it counted and left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from evalr.errors import MissingExtraError
from evalr.estimates import display
from evalr.estimates.plot import Plotted
from evalr.estimates.words import Unit, count_words, ended_words, interval_words, rounded_words, value_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pandas import DataFrame

USUAL_LEVEL = 0.95
"""The level that goes without saying."""

GROUPS_SHOWN = 20
_ALL_IN_FRAME = "to_frame() has them all"
BUCKETS_SHOWN = 60
"""How many a table shows; the others are counted."""

_ENDINGS = {"wins": "win", "ties": "tie", "losses": "loss"}
"""Counts that are named beside the number, and what one of them is called."""

_LONGEST_REASON = 500
_MOST_NAMED = 20
"""Reasons and flags may come from a log, and a line to paste names no more of either."""

Status = Literal["ok", "undefined", "not_reached", "degenerate", "inconsistent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Plotted):
    """One number with its interval and its account. Undefined is None with a reason, never NaN and never an invented 0.

    Attributes:
        name: the summary's.
        value: the estimate, None where `status` is undefined or not_reached.
        low: the lower limit of the two-sided interval at `level`; None where there is no interval (`reason` says why).
        high: the upper limit; it alone is None where the log does not reach it.
        n: rows that were counted. `noun` is what one is called.
        level: of the interval.
        unit: "share" (0 to 1), "signed share" (-1 to 1), "seconds", or a word such as "turns".
        reading: what the value is called where the same counts can be read in several ways, such as "win rate".
        counts: what went in, by name, such as hits and total, ended and censored, or wins, ties and losses.
        clusters: independent groups of rows over which the interval is computed; `clustered_by` says how many of each
            kind.
        variance: of the value, cluster-robust where rows are clustered.
        bounds: where the value could lie whatever the missing verdicts were, None where nothing bounds it.
        method: name and version of how the interval was computed.
        status: "ok"; "undefined" (nothing to count); "not_reached" (the log is too short to say); "degenerate" (a value
            without an interval); "inconsistent".
        reason: why it is not ok, in words.
        flags: what to know before using it, such as "low_confidence" (under 30 clusters), "sampled" or
            "mixed_versions".
        left_out: results that were not counted, by reason.
        versions: verdicts that were read, by evaluator@version.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    level: float = USUAL_LEVEL
    unit: Unit = "share"
    reading: str | None = None
    noun: str = "result"
    counts: Mapping[str, float] = field(default_factory=dict)
    clusters: int = 0
    clustered_by: Mapping[str, int] = field(default_factory=dict)
    variance: float | None = None
    bounds: tuple[float, float] | None = None
    method: str = "none"
    status: Status = "ok"
    reason: str | None = None
    flags: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line to paste: name, value, interval (with its level where that is not 95%), counts, what is missing.

        Where the same counts can be read in several ways, it begins with the reading and the counts: `67% win rate ·
        134 wins · 52 ties · 14 losses · n=200 sampled · shadow 67.0% [60.2, 73.1] of 120 users`.
        """
        line = number_line(self.name, self)
        if self.reading is None or self.value is None:
            return " · ".join([line, *self.notes()])
        by = self.cluster_words()
        return " · ".join([*self._reading_words(), f"{line} of {by}" if by else line, *self._notes_on(("sampled",))])

    def _reading_words(self) -> list[str]:
        """`67% win rate`, `134 wins`, `52 ties`, `14 losses`, `n=200 sampled`."""
        rounded = rounded_words(self.value or 0, self.unit)
        sampled = " sampled" if "sampled" in self.flags else ""
        return [f"{rounded} {self.reading}", *self._ending_words(), f"n={self.n:,}{sampled}"]

    def _ending_words(self) -> list[str]:
        """`134 wins`, `52 ties`, `14 losses`, where such were counted."""
        return [ended_words(self.counts[key], noun) for key, noun in _ENDINGS.items() if key in self.counts]

    def notes(self) -> list[str]:
        """What stands beside the number: counts, the reason, what was left out and could change, flags."""
        return ([self.counted_words()] if self.n or not self.reason else []) + self._notes_on()

    def _notes_on(self, said: tuple[str, ...] = ()) -> list[str]:
        """The reason, what was left out and could change, and the flags but for those that were said already."""
        notes = []
        if self.reason:
            notes.append(safe_text(self.reason, longest=_LONGEST_REASON))
        if self.left_out:
            notes.append(self._left_out_words())
        unsaid = [flag for flag in self.flags if flag not in said]
        flags = [safe_text(flag.replace("_", " ")) for flag in unsaid[:_MOST_NAMED]]
        hidden = len(unsaid) - len(flags)
        return notes + flags + ([f"and {count_words(hidden, 'more flag')}"] if hidden else [])

    def counted_words(self) -> str:
        """`970 waits of 136 sessions, 41 pending`."""
        words = count_words(self.n, self.noun)
        by = self.cluster_words()
        if by:
            words += f" of {by}"
        # What was cut off before the time that a share is about is pending: it may yet end in time.
        cut_off = "pending" if self.unit == "share" else "not ended"
        for key, state in (("ended_otherwise", "ended otherwise"), ("censored", cut_off)):
            count = self.counts.get(key)
            if count:
                words += f", {count:,} {state}"
        endings = self._ending_words()
        return f"{words}: {', '.join(endings)}" if endings else words

    def _left_out_words(self) -> str:
        """`left out: 44 pending (17.1% to 51.2% with them)`: how far they could move the value, where that is far."""
        named = list(self.left_out.items())[:_MOST_NAMED]
        words = "left out: " + ", ".join(f"{count:,} {safe_text(reason)}" for reason, count in named)
        if len(self.left_out) > len(named):
            others = sum(self.left_out.values()) - sum(count for _, count in named)
            words += f", {others:,} for {count_words(len(self.left_out) - len(named), 'other reason')}"
        if self.bounds is None or self.low is None or self.high is None:
            return words
        lowest, highest = self.bounds
        if self.low <= lowest and highest <= self.high:
            return words
        return f"{words} ({value_words(lowest, self.unit)} to {value_words(highest, self.unit)} with them)"

    def cluster_words(self) -> str:
        """Over what the interval is computed, where several rows may share a cluster: `311 users`."""
        return " and ".join(count_words(count, safe_text(noun)) for noun, count in self.clustered_by.items() if count)

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        plain = asdict(self)
        plain["bounds"] = None if self.bounds is None else list(self.bounds)
        plain["flags"] = list(self.flags)
        return plain

    def to_dicts(self) -> list[dict[str, Any]]:
        """The one row that it is, as `Groups.to_dicts` has one for each group."""
        return [_flat_first(self.to_dict())]

    def to_frame(self) -> DataFrame:
        """One row of a pandas frame with every field. Needs pandas."""
        return frame(self.to_dicts())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What IPython shows where there is no HTML, and in lists; the repr has everything.
        printer.text(str(self))

    def _repr_html_(self) -> str:
        title = self.name if self.reading is None else f"{self.name}: {self.reading}"
        return display.shown(display.table("", self.level, [display.line(title, self)]))


def leveled_interval(estimate: Estimate) -> str:
    """The interval, with its level where that is not 95%; empty where there is none."""
    interval = interval_words(estimate.low, estimate.high, estimate.unit)
    return f"{interval} at {100 * estimate.level:g}%" if interval and estimate.level != USUAL_LEVEL else interval


def number_line(name: str, estimate: Estimate) -> str:
    """The number and its interval under a name."""
    parts = (name, value_words(estimate.value, estimate.unit), leveled_interval(estimate))
    return " ".join(word for word in parts if word)


class Groups(Plotted, Mapping[str | None, Estimate]):
    """One estimate for each group, in the order of their names; results without the attribute come last, under None.

    `overlap` says that a result may be in several groups, so that their counts do not add up to the whole.
    """

    def __init__(self, by: str, estimates: Mapping[str | None, Estimate], *, overlap: bool = False) -> None:
        self.by = by
        self.overlap = overlap
        self._estimates = dict(estimates)

    def __getitem__(self, group: str | None) -> Estimate:
        return self._estimates[group]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(by={self.by!r}, {len(self)} groups)"

    def __str__(self) -> str:
        lines = [f"{self.group_words(group)}: {estimate}" for group, estimate in self.items()]
        if self.overlap:
            lines.append("groups overlap: a result may be in several")
        return "\n".join(lines)

    def group_words(self, group: str | None) -> str:
        """The group's name, and in words what the group None is."""
        return safe_text(f"(no {self.by})" if group is None else group)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict a group: `name`, `group`, and every other field of its estimate, what is nested last.

        They make a frame of any library, such as `polars.DataFrame(groups.to_dicts(), infer_schema_length=None)`.
        """
        return [
            {"name": estimate.name, "group": group} | _flat_first(estimate.to_dict())
            for group, estimate in self.items()
        ]

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row a group. Needs pandas."""
        return frame(self.to_dicts())

    def shown(self, where: str) -> tuple[list[tuple[str, Estimate]], list[str]]:
        """The groups that fit on a page, by their names in words, and what is to be said below them.

        Args:
            where: what has all of them, where some are not shown: "to_frame() has them all".
        """
        chosen, others = self._chosen()
        hidden = len(self) - len(chosen)
        notes = [f"and {count_words(hidden, others)}; {where}"] if hidden else []
        notes += ["groups overlap: a result may be in several"] if self.overlap else []
        return [(self.group_words(group), self[group]) for group in self if group in chosen], notes

    def _chosen(self) -> tuple[set[str | None], str]:
        """The groups that fit on a page, and what the others are called."""
        return set(sorted(self, key=lambda group: -self[group].n)[:GROUPS_SHOWN]), "smaller group"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        groups, notes = self.shown(_ALL_IN_FRAME)
        printer.text("\n".join([*(f"{title}: {estimate}" for title, estimate in groups), *notes]) or repr(self))

    def _repr_html_(self) -> str:
        groups, notes = self.shown(_ALL_IN_FRAME)
        rows: list[display.Line | str] = [*(display.line(title, estimate) for title, estimate in groups), *notes]
        level = next((estimate.level for estimate in self.values()), USUAL_LEVEL)
        caption = next((estimate.name for estimate in self.values()), None)
        reading = next((estimate.reading for estimate in self.values()), None)
        caption = caption if reading is None else f"{caption}: {reading}"
        return display.shown(display.table(self.by, level, rows, caption=caption))


class Trend(Groups):
    """One estimate for each bucket of time, in order. A bucket without results is there, and undefined."""

    def group_words(self, group: str | None) -> str:
        """The bucket's name; the group None is of results without a time."""
        return "(no time)" if group is None else super().group_words(group)

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row a bucket, and when it began as `start`. Needs pandas.

        Days, weeks and months are those of the trend's own calendar, and begin on a date without a zone; hours begin
        at a moment, in UTC.
        """
        rows = super().to_frame()
        import pandas as pd

        rows.insert(rows.columns.get_loc("group") + 1, "start", pd.to_datetime(rows["group"], format="ISO8601"))
        return rows

    def _chosen(self) -> tuple[set[str | None], str]:
        """The latest, without a gap."""
        return set(list(self)[-BUCKETS_SHOWN:]), f"earlier {self.by}"


def frame(rows: list[dict[str, Any]]) -> DataFrame:
    """Rows as a pandas frame: numbers are numbers where all of them are missing too, and what is nested comes last."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        raise MissingExtraError("frames need pandas, which is not installed: pip install pandas") from error
    columns = list(_flat_first(rows[0] if rows else dict.fromkeys(_COLUMNS)))
    kinds = {name: kind for name, kind in _NUMBERS.items() if name in columns}
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def _flat_first(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain[name] for name in sorted(plain, key=_NESTED.__contains__)}


_COLUMNS = ("name", "group", *(each.name for each in fields(Estimate) if each.name != "name"))
_NESTED = ("counts", "clustered_by", "bounds", "flags", "left_out", "versions")
_NUMBERS = {
    **dict.fromkeys(("value", "low", "high", "level", "variance"), "float64"),
    **dict.fromkeys(("n", "clusters"), "int64"),
}
