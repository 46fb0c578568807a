"""What a page shows of a repository: how long agents' lines stay, and the files of which people took out most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from evalr.errors import LogError
from evalr.estimates.words import count_words, interval_words, value_words, window_words
from evalr.inputs import History
from evalr.logs.blocks import Block, Cell, Table
from evalr.logs.further import Further, ReportTerms, figure
from evalr.logs.git.lives import Life, lives_of
from evalr.tallies.durations import COMPETING, EVENT, OPEN, Durations

if TYPE_CHECKING:
    from evalr.estimates.survival import SurvivalCurve

TIMES = tuple(timedelta(days=days) for days in (1, 7, 14, 30, 90, 180, 365))
MOST_FILES = 50
_METHODS = {"still_there": "Kaplan-Meier", "by_people": "cumulative incidence", "by_agents": "cumulative incidence"}
POINTS = 100


@dataclass
class File:
    """What became of the lines that agents wrote in one file."""

    agents: set[str] = field(default_factory=set)
    written: int = 0
    by_people: int = 0
    by_others: int = 0


@dataclass
class Lines:
    """All lines that agents wrote in a repository, and what became of each: EVENT is a person, COMPETING an agent."""

    terms: ReportTerms
    durations: Durations = field(default_factory=Durations)
    files: dict[str, File] = field(default_factory=dict)
    agents: Counter[str] = field(default_factory=Counter)
    unread: int = 0

    def add(self, history: History) -> None:
        """Take in the lines of one file; those that came outside the period are left out."""
        try:
            lives = lives_of(history, self.terms.now)
        except LogError:  # the measures say which texts are missing
            self.unread += 1
            return
        path = str(history.attributes.get("path", history.id))
        for life in lives:
            if self.terms.selects(life.born):
                self._put(life, path)

    def _put(self, life: Life, path: str) -> None:
        end = OPEN if life.taken_by is None else EVENT if life.taken_by == "person" else COMPETING
        self.durations.add(max(0.0, (life.until - life.born).total_seconds()), end, path)
        found = self.files.setdefault(path, File())
        found.written += 1
        found.by_people += end == EVENT
        found.by_others += end == COMPETING
        if life.agent is not None:
            found.agents.add(life.agent)
            self.agents[life.agent] += 1

    def section(self) -> list[Further]:
        """The section of a page; none where agents wrote no line in the period."""
        if not len(self.durations):
            return []
        curve = self.curve()
        still = figure(
            curve,
            title="share of agents' lines still there, by the time since they were written",
            footnote=f"Below, how many lines were followed so long. Whoever took a line out. {_WHAT_IS_A_LINE}"
            f"{self._unread_words()}",
        )
        blocks: list[Block] = [still, self._at_times(), self._by_file()]
        return [
            Further(name="lines", title="What became of agents' lines", lines=(), data=self.data(curve), blocks=blocks)
        ]

    def curve(self) -> SurvivalCurve:
        """The share of lines still there, by the time since they were written."""
        from evalr.estimates.survival import survival_curve

        gone = self._whoever()
        return survival_curve(
            gone,
            open=True,
            within=None,
            level=self.terms.level,
            points=POINTS,
            name="lines",
            n=len(gone),
            noun="line",
            counts={"ended": gone.end.count(EVENT), "ended_otherwise": 0, "censored": gone.end.count(OPEN)},
            clustered_by={"file": len(self.files)},
            unit="seconds",
            called="still there",
        )

    def _whoever(self) -> Durations:
        """The same, where it does not matter who took a line out."""
        gone = self.durations.empty()
        gone.merge(self.durations)
        for place, end in enumerate(gone.end):
            if end == COMPETING:
                gone.end[place] = EVENT
        return gone

    def at_times(self) -> list[dict[str, Any]]:
        """At each of some times: the share still there, and those taken out by people and by agents, with limits."""
        from evalr.estimates.duration import incidence

        after, end, cluster = self.durations.arrays()
        gone_after, gone, gone_cluster = self._whoever().arrays()
        by_agents = end.copy()
        by_agents[end == EVENT], by_agents[end == COMPETING] = COMPETING, EVENT
        found: list[dict[str, Any]] = []
        for time in TIMES:
            at, level = time.total_seconds(), self.terms.level
            whole = incidence(gone_after, gone, gone_cluster, at=at, level=level)
            if whole.status == "not_reached":
                break
            still = whole.complement()
            people = incidence(after, end, cluster, at=at, level=level)
            agents = incidence(after, by_agents, cluster, at=at, level=level)
            row: dict[str, Any] = {"after": window_words(time), "at_risk": whole.at_risk}
            for name, each in (("still_there", still), ("by_people", people), ("by_agents", agents)):
                row[name] = {"value": each.value, "low": each.interval.low, "high": each.interval.high}
            found.append(row)
        return found

    def _at_times(self) -> Table:
        columns = ("after", "still there", "taken out by people", "replaced by agents", "lines followed so long")
        rows = tuple(
            (
                row["after"],
                *(self._cell(row, name) for name in ("still_there", "by_people", "by_agents")),
                f"{row['at_risk']:,}",
            )
            for row in self.at_times()
        )
        return Table(
            title="what became of lines by then",
            columns=columns,
            rows=rows,
            numbers=columns[1:],
            footnote="Of all lines; of those taken out, whoever comes first counts. Times to which no line was "
            "followed are left out.",
        )

    def _cell(self, row: dict[str, Any], name: str) -> Cell:
        found = row[name]
        interval = interval_words(found["low"], found["high"], "share")
        words = f"{value_words(found['value'], 'share')} {interval}".rstrip()
        of = f"of {count_words(len(self.durations), 'line')}, {row['at_risk']:,} of them followed for {row['after']}"
        return Cell(
            words, of, f"{100 * self.terms.level:g}% interval: {_METHODS[name]} on log(-log), clustered by file."
        )

    def _by_file(self) -> Table:
        columns = ("file", "agents", "lines by agents", "taken out by people", "replaced by agents", "still there")
        most = nlargest(MOST_FILES, self.files.items(), key=lambda item: (item[1].by_people, item[1].written, item[0]))
        rows = tuple(
            (
                path,
                ", ".join(sorted(each.agents)) or "—",
                f"{each.written:,}",
                _of(each.by_people, each.written),
                _of(each.by_others, each.written),
                _of(each.written - each.by_people - each.by_others, each.written),
            )
            for path, each in most
        )
        return Table(
            title="rewritten files",
            columns=columns,
            rows=rows,
            numbers=columns[2:],
            filtered_by="agents" if len({row[1] for row in rows}) > 1 else None,
            total=len(self.files),
            footnote="Counted, to the last revision that was read: of a file everything is known, so that there is no "
            "interval. Those of which people took out most lines come first.",
        )

    def _unread_words(self) -> str:
        return f" Left out: {count_words(self.unread, 'file')} whose texts are missing." if self.unread else ""

    def data(self, curve: SurvivalCurve) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            "lines": len(self.durations),
            "by_agent": dict(self.agents),
            "still_there": curve.to_dict(),
            "at": self.at_times(),
            "files": len(self.files),
            "unread": self.unread,
        }


_WHAT_IS_A_LINE = (
    "A line is one that is not blank; from revision to revision as many stay as can, and one that is moved is written "
    "anew."
)


def _of(part: int, whole: int) -> str:
    return f"{part:,} ({value_words(part / whole, 'share')})"
