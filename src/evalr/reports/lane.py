"""One measure's results on their way into tallies, and from there into rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from evalr.errors import EvalrError, error_words
from evalr.estimates.buckets import TimeBucket
from evalr.estimates.estimate import Estimate, Groups
from evalr.estimates.lift import Lift
from evalr.measures.measure import Measure
from evalr.reports.details import BY_DAY_AND_ARM, Details, Regrouped, details_of
from evalr.reports.ranking import Ranked, Ranks
from evalr.summaries import Key, Summary
from evalr.summaries.columns import Columns, chosen
from evalr.tallies.numbering import Clusters, Numbering
from evalr.tallies.tally import Entry, Tally
from evalr.verdicts import Failure, Result, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One summary of one measure, as a report shows it.

    Attributes:
        measure: the measure's name.
        evaluator: who gave the verdicts, as evaluator@version; "computed" where the report itself did.
        title: what the summary is called.
        called: what people call who gave them, where rows of one summary are told apart; None for `evaluator`.
        estimate: of everything that was read; its `name` is the summary's, which gates use.
        groups: the same by group, None where no group was asked for or nothing has the attribute.
        lift: two of the groups compared, where that was asked for and can be.
        no_lift: why they are not, where it was asked for.
        details: what a page shows of it, where that was asked for.
    """

    measure: str
    evaluator: str
    title: str
    estimate: Estimate
    groups: Groups | None = None
    lift: Lift | None = None
    no_lift: str | None = None
    details: Details | None = None
    called: str | None = None

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for the whole, and one for each group."""
        rows = [self._plain(self.estimate, None, None)]
        if self.groups is not None:
            by = self.groups.by
            rows += [self._plain(estimate, by, group) for group, estimate in self.groups.items()]
        return rows

    def _plain(self, estimate: Estimate, by: str | None, group: str | None) -> dict[str, Any]:
        """What people look for comes first: what it is, and the number."""
        plain = estimate.to_dict()
        first = {"title": self.title, "name": self.estimate.name, "group": group}
        first |= {name: plain[name] for name in ("value", "low", "high", "n")}
        return first | {"by": by, "measure": self.measure, "evaluator": self.evaluator} | plain


class Arms(NamedTuple):
    """Two groups that are compared."""

    treatment: str
    control: str
    randomised: bool
    """Whether the caller says that they were assigned at random."""


class Grouped(NamedTuple):
    """The groups that a verdict is in, and the number of its cluster among those of the groups."""

    groups: Sequence[str | None]
    cluster: int


class Lane:
    """Results of one measure and one evaluator. Summaries that read alike share a tally; no result is held.

    A result that a summary refuses breaks the lane: its sums would be wrong, so its rows say why instead.
    """

    def __init__(
        self,
        measure: Measure,
        settings: Mapping[str, Any],
        by: Key | None,
        cluster: Key | None,
        *,
        details: bool = False,
    ) -> None:
        self.measure = measure
        self.summaries = tuple(measure.summaries(**settings))
        self.by, self.cluster, self.details = by, cluster, details
        self.results = 0
        self.failed = 0
        self.failure: str | None = None
        self.broken: str | None = None
        self._tallies: dict[tuple[Hashable, Key | None], Tally[Any]] = {}
        self._ranks = [Ranks(ranking) for ranking in measure.rankings]
        self._adds: list[Callable[[Result[Any]], None]] = [ranks.add for ranks in self._ranks]
        for summary in self.summaries:
            for key in {None, by} | ({BY_DAY_AND_ARM} if details else set()):
                self._collect(summary, key)
        alike: dict[Hashable, Summary[Any]] = {}
        for summary in self.summaries:
            alike.setdefault(summary.reads(), summary)
        self._of_tallies = [
            (summary, self._tallies[reads, None], self._tallies[reads, by]) for reads, summary in alike.items()
        ]
        self._by_day = [self._tallies[reads, BY_DAY_AND_ARM] for reads in alike] if details else []

    def _collect(self, summary: Summary[Any], by: Key | None) -> None:
        if (summary.reads(), by) not in self._tallies:
            tally, add = summary.collector(by=by, cluster=self.cluster)
            self._tallies[summary.reads(), by] = tally
            self._adds.append(add)

    def put(self, result: Result[Any]) -> None:
        """Count one result."""
        self.results += 1
        if isinstance(result, Failure):
            self.failed += 1
            self.failure = self.failure or f"{describe(result)}: {result.error}"
        if self.broken is not None:
            return
        try:
            for add in self._adds:
                add(result)
        except EvalrError as error:
            self.broken = str(error)
        except Exception as error:  # noqa: BLE001  another package's summary may raise anything; its rows say so
            self.broken = f"{describe(result)}: {error_words(error)}"

    def columns(self) -> tuple[Columns, ...] | None:
        """Empty columns for each tally of the summaries, in order; None where results must be put one by one."""
        found = [summary.columns() for summary, *_ in self._of_tallies]
        return None if self._ranks or None in found else tuple(each for each in found if each is not None)

    def put_batch(
        self,
        columns: Sequence[Columns],
        clusters: Clusters,
        groups: Sequence[Grouped] | None,
        version: tuple[str, str],
        days: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Count many verdicts of one (evaluator, version) at once, without sampling weights.

        Args:
            columns: as `columns` gives them, filled.
            clusters: of each verdict.
            groups: of each verdict, where there is grouping.
            version: the evaluator's name and version.
            days: with details, where in the columns the verdicts of each day and arm are, as `BY_DAY_AND_ARM` names
                them.

        Raises:
            Exception: of any kind, where a summary does not take them. Nothing has been counted then.
        """
        if self.broken is None:
            groups = groups or ()
            members = _members(groups)
            counts = []
            for name, of_day in (days or {}).items():
                own = clusters.at(of_day)
                for (summary, *_), by_day, column in zip(self._of_tallies, self._by_day, columns, strict=True):
                    counts.append(summary.batch(by_day, name, chosen(column, of_day), own, version))
            for (summary, whole, grouped), column in zip(self._of_tallies, columns, strict=True):
                counts.append(summary.batch(whole, None, column, clusters, version))
                for group, places in members.items():
                    own = Clusters([groups[place].cluster for place in places], clusters.numbering)
                    counts.append(summary.batch(grouped, group, chosen(column, places), own, version))
            for count in counts:
                count()
            if any(len(each.groups) > 1 for each in groups):
                for _, _, grouped in self._of_tallies:
                    grouped.overlap = True
        self.results += len(clusters.numbers)

    def add(self, entries: Mapping[str, Entry[Any]], results: int) -> None:
        """Count results that are summed up already, without groups.

        Args:
            entries: what each tally would have counted of them, by the name of the first summary that reads it.
            results: how many results they are of.
        """
        self.results += results
        if self.broken is None:
            for summary, tally, _ in self._of_tallies:
                mine = tally.entry(None, entries[summary.name].cells.empty)
                mine.merge(entries[summary.name])

    def merge(self, other: Lane) -> None:
        """Count what another lane of the same measure and settings has counted."""
        self.results += other.results
        self.failed += other.failed
        self.failure = self.failure or other.failure
        self.broken = self.broken or other.broken
        for key, tally in self._tallies.items():
            tally.merge(other._tallies[key])
        for ranks, others in zip(self._ranks, other._ranks, strict=True):
            ranks.merge(others)

    def share(self, numbering: Numbering) -> None:
        """Number clusters so: for lanes that have counted nothing yet."""
        for tally in self._tallies.values():
            tally.numbering = numbering

    def tallies(self) -> dict[str, Tally[Any]]:
        """The tally of each summary, by its name: grouped where groups were asked for."""
        return {summary.name: self._tallies[summary.reads(), self.by] for summary in self.summaries}

    def __getstate__(self) -> dict[str, Any]:
        """What was counted, which is all that `merge` takes of another lane: measures have functions."""
        return without(
            vars(self), "measure", "summaries", "by", "cluster", "details", "_adds", "_of_tallies", "_by_day"
        )

    def rows(
        self, evaluator: str, level: float, arms: Arms | None = None, *, randomised: bool = False
    ) -> tuple[Row, ...]:
        """A row for each summary, with the lift of two arms where they are given, and with its details if asked for."""
        rows = [self._row(summary, evaluator, level) for summary in self.summaries]
        if arms is not None and self.broken is None:
            rows = [
                self._compared(row, summary, level, arms) for row, summary in zip(rows, self.summaries, strict=True)
            ]
        if self.details and self.broken is None:
            rows = self._detailed(rows, level, randomised)
        return tuple(rows)

    def _detailed(self, rows: Sequence[Row], level: float, randomised: bool) -> list[Row]:
        regrouped = {reads: Regrouped(tally) for (reads, key), tally in self._tallies.items() if key == BY_DAY_AND_ARM}
        terms: dict[str, Any] = {"cluster": self.cluster, "level": level, "randomised": randomised}
        found = []
        for row, summary in zip(rows, self.summaries, strict=True):
            reads = summary.reads()
            details = details_of(summary, self._tallies[reads, None], regrouped[reads], row.estimate, **terms)
            found.append(replace(row, details=details))
        return found

    def rankings(self) -> tuple[Ranked, ...]:
        """The measure's rankings in which any group has a part; none where the lane broke."""
        if self.broken is not None:
            return ()
        return tuple(ranked for ranks in self._ranks if (ranked := ranks.ranked()).groups)

    def _row(self, summary: Summary[Any], evaluator: str, level: float) -> Row:
        estimate, groups, broken = None, None, self.broken
        if broken is None:
            try:
                estimate = summary.estimate(self._tallies[summary.reads(), None], cluster=self.cluster, level=level)
                groups = self._groups(summary, level)
            except EvalrError as error:
                broken = str(error)
            except Exception as error:  # noqa: BLE001  as in `put`
                broken = error_words(error)
        if estimate is None or broken is not None:
            estimate = undefined(summary, level, broken or "")
        return Row(
            measure=self.measure.name, evaluator=evaluator, title=title_of(summary), estimate=estimate, groups=groups
        )

    def _compared(self, row: Row, summary: Summary[Any], level: float, arms: Arms) -> Row:
        tally = self._tallies[summary.reads(), self.by]
        try:
            lift = summary.lift(
                tally,
                treatment=arms.treatment,
                control=arms.control,
                by=self.by or "arm",
                randomised=arms.randomised,
                cluster=self.cluster,
                level=level,
            )
        except EvalrError as error:
            return replace(row, no_lift=str(error))
        except Exception as error:  # noqa: BLE001  as in `put`
            return replace(row, no_lift=error_words(error))
        return replace(row, lift=lift)

    def _groups(self, summary: Summary[Any], level: float) -> Groups | None:
        if self.by is None:
            return None
        tally = self._tallies[summary.reads(), self.by]
        groups: Groups
        if isinstance(self.by, TimeBucket):
            groups = summary.trend(tally, self.by.bucket, tz=self.by.tz, cluster=self.cluster, level=level)
        else:
            groups = summary.by(tally, self.by, cluster=self.cluster, level=level)
        return None if set(groups) <= {None} else groups


def _members(groups: Sequence[Grouped]) -> dict[str | None, list[int]]:
    """Where the members of each group are."""
    found: dict[str | None, list[int]] = {}
    for place, each in enumerate(groups):
        for group in each.groups:
            found.setdefault(group, []).append(place)
    return found


def without(state: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """An object's attributes but for some."""
    return {name: value for name, value in state.items() if name not in names}


def title_of(summary: Summary[Any]) -> str:
    """What a report calls a summary."""
    return summary.title or summary.name.replace("_", " ")


def undefined(summary: Summary[Any], level: float, reason: str) -> Estimate:
    """The summary's estimate where there is none, for `reason`."""
    nothing = summary.estimate([], level=level)
    return replace(nothing, value=None, low=None, high=None, status="undefined", reason=reason)
