"""What people ask of a large log: its report, its tallies to keep, and its verdicts one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any

from evalr.bulk.log import bulk_log
from evalr.bulk.processes import check_processes
from evalr.errors import InputError
from evalr.inputs import Clock
from evalr.logs.finding import find_reader
from evalr.logs.jsonl import JsonlReader
from evalr.logs.log import Log, reader_settings
from evalr.measures.measure import Measure
from evalr.reports.lane import Lane
from evalr.reports.reading import Progress, Reading
from evalr.reports.report import Asked, Report, begin
from evalr.reports.report import report as report_of_log
from evalr.summaries import Key
from evalr.tallies.tally import Tally
from evalr.verdicts import Result


def report(
    path: str | PathLike[str],
    *,
    processes: int | None = None,
    window: timedelta | None = None,
    now: datetime | Clock | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Key | None = None,
    lift: tuple[str, str] | None = None,
    randomised: bool = False,
    cluster: Key | None = None,
    level: float = 0.95,
    measures: Iterable[str | Measure] | None = None,
    kind: str | None = None,
    strict: bool = False,
    details: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Report:
    """What `evalr.report` says of a log, sooner: equal field by field.

    Args:
        path: of one of evalr's own logs. A log of another kind is read as `evalr.report` reads it.
        processes: how many read the log, each a part of it; by default one, or what a reader of another kind that has
            such a setting finds best. A compressed log is read by one. Each is a Python of its own: measures must be
            installed or be found in a module by their names, and keys must be texts or be functions of a module.
        window: how long a person has to act, as for `evalr.report`.
        now: the reading time, as for `evalr.report`.
        since: begins the period, as for `evalr.report`.
        until: ends the period, as for `evalr.report`.
        by: what to group by, as for `evalr.report`.
        lift: two groups to compare, as for `evalr.report`.
        randomised: as for `evalr.report`.
        cluster: what intervals are computed over, as for `evalr.report`.
        level: of the two-sided intervals.
        measures: only these, by name or as objects; all that are installed by default.
        kind: the reader's name, where it should not be found by looking at the log.
        strict: raise RecordError at the first record that cannot be used, rather than count it.
        details: read what pages show, as for `evalr.report`.
        progress: called now and then with the records read, and the share of the log (0 to 1) where it is known.
        settings: other settings of measures, and of the log's reader.

    Raises:
        InputError: as `evalr.report` does; and where something cannot be sent to other processes.
        EvalrError: as `evalr.report` does; and where a process ended before it was done.
    """
    log, settings = _log(path, processes, kind, strict, settings)
    return report_of_log(
        log,
        window=window,
        now=now,
        since=since,
        until=until,
        by=by,
        lift=lift,
        randomised=randomised,
        cluster=cluster,
        level=level,
        measures=measures,
        kind=kind,
        strict=strict,
        details=details,
        progress=progress,
        **settings,
    )


def _log(
    path: str | PathLike[str], processes: int | None, kind: str | None, strict: bool, settings: dict[str, Any]
) -> tuple[str | PathLike[str] | Log, dict[str, Any]]:
    """A log that reads itself, or the path of one of another kind, and the settings of that."""
    if processes is not None:
        check_processes(processes)
    reader = find_reader(path, kind=kind)
    if isinstance(reader, JsonlReader):
        return bulk_log(Path(path), strict=strict, processes=processes or 1), settings
    takes_it = processes is not None and "processes" in reader_settings(reader)
    return path, {**settings, "processes": processes} if takes_it else settings


@dataclass(frozen=True)
class Tallies(Mapping[str, Tally[Any]]):
    """Tallies by the names of their summaries: those of a day, to keep and to add to those of other days.

    `monday + tuesday` is what both logs together give, as long as no subject is in both. Pickle keeps them.

    Attributes:
        by_summary: the tallies; summaries that read alike share one.
        records: of the logs.
        left_out: records that were not counted, by reason.
    """

    by_summary: dict[str, Tally[Any]] = field(repr=False)
    records: int
    left_out: dict[str, int]

    def __getitem__(self, name: str) -> Tally[Any]:
        return self.by_summary[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_summary)

    def __len__(self) -> int:
        return len(self.by_summary)

    def __add__(self, other: Tallies) -> Tallies:
        if self.by_summary.keys() != other.by_summary.keys():
            raise InputError("these are tallies of different summaries: add only those of the same measures")
        sums: dict[int, Tally[Any]] = {}  # those that are shared stay so
        added = {name: sums.setdefault(id(tally), tally + other[name]) for name, tally in self.items()}
        left_out = Counter(self.left_out) + Counter(other.left_out)
        return Tallies(added, self.records + other.records, dict(left_out))

    def __radd__(self, other: int) -> Tallies:
        """So that `sum(days)`, which begins at 0, adds them."""
        return self if other == 0 else NotImplemented


def tallies(
    path: str | PathLike[str],
    *,
    processes: int | None = None,
    window: timedelta | None = None,
    now: datetime | Clock | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Key | None = None,
    cluster: Key | None = None,
    measures: Iterable[str | Measure] | None = None,
    kind: str | None = None,
    strict: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Tallies:
    """The sums that a report's estimates are made of, for every summary of what evaluators compute.

    `summary.estimate(tallies[summary.name])` is the number that the report shows. Results that the log holds are not
    counted.

    Args:
        path: as for `report`.
        processes: as for `report`.
        window: how long a person has to act, as for `evalr.report`.
        now: the reading time, as for `evalr.report`.
        since: begins the period, as for `evalr.report`.
        until: ends the period, as for `evalr.report`.
        by: what to group by; the tallies are then those of `summary.by`.
        cluster: what intervals are computed over, as for `evalr.report`.
        measures: only these, by name or as objects; all that are installed by default.
        kind: the reader's name, where it should not be found by looking at the log.
        strict: raise RecordError at the first record that cannot be used, rather than count it.
        progress: called now and then with the records read, and the share of the log (0 to 1) where it is known.
        settings: other settings of measures, and of the log's reader.

    Raises:
        InputError: as for `report`; and where a summary refuses a verdict.
        EvalrError: as for `report`.
    """
    given, settings = _log(path, processes, kind, strict, settings)
    asked = Asked(window, now, since, until, by, cluster, measures, settings)
    log, reading, _ = begin(given, asked, kind=kind, strict=strict)
    assert isinstance(log, Log)
    reading.read(log, progress)
    found: dict[str, Tally[Any]] = {}
    for track in reading.tracks:
        if track.evaluator is not None and track.inputs:
            if track.computed.broken is not None:
                raise InputError(f"measure {track.measure.name!r}: {track.computed.broken}")
            found |= track.computed.tallies()
    left_out = log.left_out.counts + reading.left_out
    return Tallies(found, log.records, dict(left_out))


def verdicts(
    path: str | PathLike[str],
    measure: str | Measure,
    *,
    window: timedelta | None = None,
    now: datetime | Clock | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    kind: str | None = None,
    strict: bool = False,
    **settings: Any,
) -> Iterator[Result[Any]]:
    """What the measure's evaluator says of each input of a log that a report would count, one by one.

    Nothing is held: a log may have millions.

    Args:
        path: of a log of any kind.
        measure: its name, or itself.
        window: how long a person has to act, as for `evalr.report`.
        now: the reading time, as for `evalr.report`.
        since: begins the period, as for `evalr.report`.
        until: ends the period, as for `evalr.report`.
        kind: the reader's name, where it should not be found by looking at the log.
        strict: raise RecordError at the first record that cannot be used, rather than count it.
        settings: other settings of measures, and of the log's reader.

    Raises:
        InputError: as for `report`; and where the measure takes a judge or people.
        EvalrError: as for `report`.
    """
    asked = Asked(window, now, since, until, None, None, [measure], settings)
    log, reading, _ = begin(path, asked, kind=kind, strict=strict)
    (track,) = reading.tracks
    if track.evaluator is None:
        raise InputError(f"the measure {track.measure.name!r} is not computed: it takes a judge or people")
    assert isinstance(log, Log)
    kept = track.computed = _Kept(track.measure, track.settings, None, None)
    return _each(log, reading, kept)


class _Kept(Lane):
    """Results as they are, until they are taken."""

    def __init__(self, measure: Measure, settings: Mapping[str, Any], by: Key | None, cluster: Key | None) -> None:
        super().__init__(measure, settings, by, cluster)
        self.kept: list[Result[Any]] = []

    def put(self, result: Result[Any]) -> None:
        self.kept.append(result)


def _each(log: Log, reading: Reading, lane: _Kept) -> Iterator[Result[Any]]:
    for item in log:
        reading.read_one(item)
        yield from lane.kept
        lane.kept.clear()
