"""The report: every installed measure over one log, each number with its interval and its account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from importlib import metadata
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from evalr.errors import InputError, PluginError
from evalr.estimates.buckets import Bucket, TimeBucket
from evalr.estimates.estimate import Estimate, frame
from evalr.estimates.interval import tail
from evalr.estimates.plot import Plotted
from evalr.estimates.words import choice_words, count_words, plural, window_words
from evalr.inputs import Clock, check_window, resolve_now, utc_now
from evalr.logs.finding import find_reader, place_of
from evalr.logs.further import Further, ReportTerms
from evalr.logs.log import LeftOut, Log, reader_settings
from evalr.measures.measure import REPORT_OPTIONS, Measure, installed_measures
from evalr.measures.ready_judges import judged_measures
from evalr.quoting import safe_text
from evalr.reports.lane import Arms, Lane, Row, title_of
from evalr.reports.ranking import Ranked
from evalr.reports.reading import COMPUTED, OUTSIDE, Given, Progress, Reading, Track, share_read
from evalr.summaries import Key
from evalr.summaries.keys import group_reader

if TYPE_CHECKING:
    from pandas import DataFrame

NO_VERDICTS = "no verdicts in this log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One measure in a report.

    Attributes:
        measure: the measure's name.
        question: what it answers.
        headline: what its first summary is called.
        rows: one for each summary, and for each evaluator where a log holds verdicts of several; none where it read
            nothing.
        reason: why there are no rows.
        advice: what to do about that in a shell.
        notes: what to know of all of them.
        settings: the measure's, as used.
        names: of its summaries.
        rankings: the groups that stand out.
    """

    measure: str
    question: str
    headline: str
    rows: tuple[Row, ...] = ()
    reason: str | None = None
    advice: str | None = None
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    rankings: tuple[Ranked, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            "measure": self.measure,
            "question": self.question,
            "reason": self.reason,
            "notes": list(self.notes),
            "settings": {name: _plain(value) for name, value in self.settings.items()},
            "rows": [
                {
                    "title": row.title,
                    "evaluator": row.evaluator,
                    "estimate": row.estimate.to_dict(),
                    "grouped_by": None if row.groups is None else row.groups.by,
                    "groups": None if row.groups is None else row.groups.to_dicts(),
                    "groups_overlap": row.groups is not None and row.groups.overlap,
                    "lift": None if row.lift is None else row.lift.to_dict(),
                    "no_lift": row.no_lift,
                    **({} if row.details is None else {"details": row.details.to_dict()}),
                }
                for row in self.rows
            ],
            "rankings": [ranked.to_dict() for ranked in self.rankings],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Plotted):
    """What a log says. Print it, show it in a notebook, or take it apart: `sections`, `rows`, `report["drop_off"]`.

    Attributes:
        path: of the log; None where inputs were given as they are.
        kind: the name of its reader; None likewise.
        sections: one for each measure: what was measured first, then what lacks a marker, then what read nothing.
        now, now_from: the reading time, and where it comes from: "given" or "wall clock".
        level: of every interval.
        by: as asked for.
        lift: the two groups that were asked to be compared.
        cluster: as asked for.
        since: as asked for.
        until: as asked for.
        inputs: how many were counted, by kind.
        results: how many results the log held, those of no installed measure (`unread`, by measure) included.
        users: how many different ones.
        first: when the first thing that was counted began; None where no times are known.
        last: when the last did.
        read_earlier: inputs that were read at a time of their own, before `now`.
        records: of the log, as its reader counts them; `noun` is what one is called.
        notes: on how it was read, as its reader says.
        log_settings: what its reader was told, and the defaults beside that, as far as the reader says.
        left_out: what the reader skipped, with places.
        not_counted: what it read and the report did not count: outside the period, without a time, later, duplicate.
        unknown_fields: as the reader says.
        repaired: as the reader says.
        attributes: what the log can be grouped by.
        broken: measures that cannot be loaded, and why.
        further: sections that the log's reader adds, where all measures were asked for.
    """

    path: str | None
    kind: str | None
    sections: tuple[Section, ...]
    now: datetime
    now_from: str
    level: float
    by: str | None
    lift: tuple[str, str] | None
    cluster: str | None
    since: datetime | None
    until: datetime | None
    inputs: Mapping[str, int]
    results: int
    unread: Mapping[str, int]
    users: int
    first: datetime | None
    last: datetime | None
    read_earlier: int
    records: int
    noun: str
    notes: tuple[str, ...]
    log_settings: Mapping[str, Any]
    left_out: LeftOut
    not_counted: Mapping[str, int]
    unknown_fields: Mapping[str, int]
    repaired: Mapping[str, int]
    attributes: tuple[str, ...]
    broken: Mapping[str, str]
    further: tuple[Further, ...] = ()

    @property
    def rows(self) -> list[Row]:
        """The rows of all sections."""
        return [row for section in self.sections for row in section.rows]

    def __getitem__(self, name: str) -> Estimate:
        """The estimate of a summary, by its name; undefined, with the reason, where the log does not say one number.

        Raises:
            InputError: no measure of this report has such a summary.
        """
        for section in self.sections:
            if name not in section.names:
                continue
            found = [row for row in section.rows if row.estimate.name == name]
            if len(found) == 1:
                return found[0].estimate
            reason = section.reason or "nothing was read"
            if found:
                evaluators = ", ".join(f"{row.evaluator} ({row.estimate.n:,})" for row in found)
                reason = f"verdicts of several evaluators, which are not pooled: {evaluators}"
            return Estimate(name=name, value=None, level=self.level, status="undefined", reason=reason)
        known = choice_words(name, (name for section in self.sections for name in section.names))
        raise InputError(f"no summary of this report is named {name!r}; {known}")

    def __str__(self) -> str:
        return self.text()

    def text(self, *, width: int = 100, color: bool = False) -> str:
        """The report as lines of text that fit `width`; `color` adds what makes a terminal show bold and dim."""
        from evalr.reports.screen import screen

        return screen(self, width=width, color=color)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Tidy rows: a plain dict for each summary, and for each of its groups, with every field of the estimate."""
        return [row for each in self.rows for row in each.to_dicts()]

    def to_frame(self) -> DataFrame:
        """`to_dicts` as a pandas frame. Needs pandas."""
        return frame(self.to_dicts())

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "evalr": metadata.version("evalr"),
            "log": {
                "path": self.path,
                "kind": self.kind,
                "records": self.records,
                "noun": self.noun,
                "notes": list(self.notes),
                "settings": {name: _plain(value) for name, value in self.log_settings.items()},
                "inputs": dict(self.inputs),
                "results": self.results,
                "users": self.users,
                "first": _plain(self.first),
                "last": _plain(self.last),
                "attributes": list(self.attributes),
            },
            "left_out": {
                "by_the_reader": {
                    reason: {"count": count, "places": list(self.left_out.places[reason])}
                    for reason, count in self.left_out.counts.items()
                },
                "by_the_report": dict(self.not_counted),
                "results_of_no_measure": dict(self.unread),
                "unknown_fields": dict(self.unknown_fields),
                "repaired": dict(self.repaired),
            },
            "now": _plain(self.now),
            "now_from": self.now_from,
            "read_earlier": self.read_earlier,
            "since": _plain(self.since),
            "until": _plain(self.until),
            "level": self.level,
            "by": self.by,
            "lift": None if self.lift is None else list(self.lift),
            "cluster": self.cluster,
            "sections": [section.to_dict() for section in self.sections],
            "further": {each.name: dict(each.data) for each in self.further},
            "broken_measures": dict(self.broken),
        }

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """The report as one page of HTML, which is also written to `path`, where one is given. Needs `evalr[report]`.

        It asks no network for anything and runs no script. What it shows over time, by arm and as curves was read only
        with `report(..., details=True)`.

        Raises:
            MissingExtraError: the extra is not installed.
        """
        from evalr.reports.pages import html_page

        page = html_page(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal: the report as it is printed."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        from evalr.reports.page import page

        return page(self)


def report(
    log: str | PathLike[str] | Given,
    *,
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
    """What every installed measure says of a log, read once as a stream.

    Args:
        log: a path, a log that `evalr.logs.read` opened, or inputs and results as they are.
        window: how long a person has to act, for every measure with a window; each has its own default.
        now: the reading time: an aware datetime, or a clock that is read once; the wall clock by default. Inputs that
            say when they were read are read then, where that is earlier. What began after it does not exist yet.
        since: begins the period, which selects whole inputs by when they began, and cuts nothing. Of a history it
            selects the drafts, each by when it was written.
        until: ends the period; what began exactly then is outside.
        by: what to group by: "user", "session", "arm", "kind", an attribute's name, or a span of time, by the calendar
            of UTC: "hour", "day", "week", "month".
        lift: two groups to compare, as (treatment, control); by arm where `by` says nothing else.
        randomised: say that they were assigned at random; without it, a lift is flagged observational.
        cluster: what intervals are computed over; by default what the log's reader names, or else users where they are
            known. Every result must have it.
        level: of the two-sided intervals.
        measures: only these, by name or as objects; all that are installed by default.
        kind: the reader's name, where it should not be found by looking at the log.
        strict: raise RecordError at the first record that cannot be used, rather than count it.
        details: read what pages show beside the numbers, too: each over time, by arm, arms compared, and the whole
            course of times. `to_html` shows it.
        progress: called now and then with the records read, and the share of the log (0 to 1) where it is known.
        settings: other settings of measures, such as `threshold=0.3`, and of the log's reader.

    Raises:
        LogError: the log cannot be read.
        InputError: a setting that no measure has, an unknown measure, a naive time, a level outside 0..1.
        PluginError: a measure that was named cannot be used.
    """
    tail(level)
    by = "arm" if by is None and lift is not None else by
    asked = Asked(window, now, since, until, by, cluster, measures, settings, details)
    given, reading, broken = begin(log, asked, kind=kind, strict=strict)
    source = given if isinstance(given, Log) else None
    adds = source is not None and measures is None
    if source is not None and adds:
        source.prepare(ReportTerms(reading.now, since, until, level, randomised, window, details))
    reading.read(given, progress)
    randomised = randomised or (source is not None and source.randomised)
    records = sum(reading.kinds.values()) + reading.results if source is None else source.records
    if progress is not None:
        progress(records, share_read(source))

    return Report(
        path=None if source is None else source.path,
        kind=None if source is None else source.kind,
        sections=_sections(reading, source, level, _arms(lift, randomised), randomised, asked=measures is not None),
        now=reading.now,
        now_from="wall clock" if now is None else "given",
        level=level,
        by=_key_words(by),
        lift=lift,
        cluster=_key_words(_cluster(cluster, given)),
        since=since,
        until=until,
        inputs=dict(reading.kinds),
        results=reading.results,
        unread=dict(reading.unread) if measures is None else {},
        users=len(reading.users),
        first=reading.first,
        last=reading.last,
        read_earlier=reading.read_earlier,
        records=records,
        noun="record" if source is None else source.noun,
        notes=() if source is None else tuple(source.notes),
        log_settings={} if source is None else source.settings,
        left_out=LeftOut() if source is None else source.left_out,
        not_counted=dict(reading.left_out),
        unknown_fields={} if source is None else dict(source.unknown_fields),
        repaired={} if source is None else dict(source.repaired),
        attributes=tuple(sorted(reading.attributes)),
        broken=broken,
        further=tuple(source.further()) if source is not None and adds else (),
    )


class Asked(NamedTuple):
    """What a report is asked for, as `report` says."""

    window: timedelta | None
    now: datetime | Clock | None
    since: datetime | None
    until: datetime | None
    by: Key | None
    cluster: Key | None
    measures: Iterable[str | Measure] | None
    settings: Mapping[str, Any]
    details: bool = False


def begin(
    log: str | PathLike[str] | Given, asked: Asked, *, kind: str | None = None, strict: bool = False
) -> tuple[Given, Reading, dict[str, str]]:
    """What is to be read, an empty reading for it, and the measures that cannot be loaded, with why.

    Raises:
        LogError, InputError, PluginError: as for `report`.
    """
    settings = dict(asked.settings)
    if asked.window is not None:
        settings["window"] = check_window(asked.window)
    _check_period(asked.since, asked.until)
    for key in (asked.by, asked.cluster):
        group_reader(key)  # which refuses what is no key
    chosen, broken = _chosen(asked.measures)
    given: Given
    if isinstance(log, str | PathLike):
        reader = find_reader(log, kind=kind)
        own = reader_settings(reader)
        _check_settings(chosen.values(), own, settings)
        chosen_own = {name: value for name, value in settings.items() if name in own}
        given = reader.open(place_of(log), strict=strict, **chosen_own)
    elif hasattr(log, "columns"):
        raise InputError(
            "a frame is a log once it is said what its columns are: report(evalr.logs.read_frame(frame, columns={...}))"
        )
    else:
        _check_settings(chosen.values(), {}, settings)
        given = log
    cluster = _cluster(asked.cluster, given)
    now = resolve_now(utc_now if asked.now is None else asked.now)
    by = TimeBucket(asked.by) if asked.by in get_args(Bucket) else asked.by  # type: ignore[arg-type]
    tracks = [
        Track(measure, settings, now=now, by=by, cluster=cluster, details=asked.details) for measure in chosen.values()
    ]
    return given, Reading(tracks, now=now, since=asked.since, until=asked.until), broken


def _cluster(asked: Key | None, given: Given) -> Key | None:
    """What intervals are computed over, where it is named: by who asks, or else by the log's reader."""
    return given.cluster if asked is None and isinstance(given, Log) else asked


def _check_period(since: datetime | None, until: datetime | None) -> None:
    for name, time in (("since", since), ("until", until)):
        if time is not None and (not isinstance(time, datetime) or time.tzinfo is None):
            raise InputError(f"{name}={time!r} must be a datetime with its time zone")
    if since is not None and until is not None and since >= until:
        raise InputError(f"the period is empty: since={since.isoformat()} is not before until={until.isoformat()}")


def _chosen(measures: Iterable[str | Measure] | None) -> tuple[dict[str, Measure], dict[str, str]]:
    installed = installed_measures()
    if measures is None:
        return installed.loaded, installed.broken
    chosen: dict[str, Measure] = {}
    for each in [measures] if isinstance(measures, str) else measures:
        if isinstance(each, Measure):
            chosen[each.name] = each
        elif each in installed.loaded:
            chosen[each] = installed.loaded[each]
        elif each in installed.broken:
            raise PluginError(f"the measure {each!r} cannot be used: {installed.broken[each]}")
        else:
            raise InputError(f"no installed measure is named {each!r}; {_meant(each, installed.loaded)}")
    return chosen, {}


def _meant(name: str, measures: Mapping[str, Measure]) -> str:
    """What to choose instead of a name that no measure has: the measure of the summary so named, where there is one."""
    for measure in measures.values():
        if any(summary.name == name for summary in measure.summaries(**measure.settings)):
            return f"it is a summary of the measure {measure.name!r}: ask for that"
    return choice_words(name, measures)


def _check_settings(measures: Iterable[Measure], of_reader: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    known = {name for measure in measures for name in measure.settings}
    for name in settings:
        if name not in known and name not in of_reader:
            option = get_close_matches(name, REPORT_OPTIONS, n=1)
            choices = choice_words(name, [*sorted(known | set(of_reader)), *option])
            reader = " and no reader" if of_reader else ""
            raise InputError(f"no measure{reader} of this report has a setting {name!r}; {choices}")


def _arms(lift: tuple[str, str] | None, randomised: bool) -> Arms | None:
    if lift is None:
        return None
    if not (isinstance(lift, tuple) and len(lift) == 2 and all(isinstance(arm, str) for arm in lift)):
        raise InputError(f"lift={lift!r} must be two groups, as in ('treatment', 'control')")
    return Arms(*lift, randomised)


def _key_words(key: Key | None) -> str | None:
    if isinstance(key, TimeBucket):
        return key.bucket
    return key if key is None or isinstance(key, str) else getattr(key, "__name__", "function")


# ---------------------------------------------------------------------------------------------------------------------
# From what was read to sections, in the order in which they are shown
# ---------------------------------------------------------------------------------------------------------------------


def _sections(
    reading: Reading, log: Log | None, level: float, arms: Arms | None, randomised: bool, *, asked: bool
) -> tuple[Section, ...]:
    found = [(track, _section(track, reading, log, level, arms, randomised)) for track in reading.tracks]
    # What the log says most about comes first; measures of the same things in the order of their names.
    found.sort(key=lambda pair: (-pair[0].most_results(), pair[1].measure))
    measured = [section for track, section in found if section.rows and _marked(track)]
    unmarked = [section for track, section in found if section.rows and not _marked(track)]
    empty = [(track, section) for track, section in found if not section.rows]
    nothing_applies = asked or not (measured or unmarked)
    # A log of sessions need not be told that it holds no histories; verdicts could be put into most logs.
    verdicts = asked or log is None or log.holds_results
    listed = [section for track, section in empty if verdicts and (nothing_applies or _awaits_verdicts(track, reading))]
    return tuple(measured + unmarked + listed)


def _awaits_verdicts(track: Track, reading: Reading) -> bool:
    """Whether a judged measure lacks verdicts: one of parts, such as exchanges, only where the log has such parts."""
    reads = track.measure.reads
    return track.measure.evaluator is None and (not reads.is_part or reading.kinds[reads.kind] > 0)


def _marked(track: Track) -> bool:
    return track.marked or not track.inputs


def _section(
    track: Track, reading: Reading, log: Log | None, level: float, arms: Arms | None, randomised: bool
) -> Section:
    measure = track.measure
    rows: list[Row] = []
    notes: list[str] = []
    computed = track.computed.results > 0 or (track.inputs > 0 and measure.evaluator is not None)
    stored = track.stored()
    lanes = {COMPUTED: track.computed} if computed else stored
    called = _called(lanes, {} if log is None else log.titles)
    for evaluator, lane in sorted(lanes.items()):
        own = lane.rows(evaluator, level, arms, randomised=randomised)
        rows += [replace(row, called=called[evaluator]) for row in own] if evaluator in called else own
    notes += _failed({name: lane for name, lane in sorted(lanes.items()) if lane.failure is not None})
    if computed and not track.marked and measure.marker is not None:
        notes.insert(0, measure.marker.without)
    if computed and stored:
        count = count_words(sum(lane.results for lane in stored.values()), "stored result")
        notes.append(f"not counted: {count}, since the log holds what they are made of")
    if not computed and track.userless and reading.users and track.cluster is None:
        name, each = ("names", "it") if track.userless == 1 else ("name", "each")
        notes.append(
            f"{count_words(track.userless, 'verdict')} {name} no user (about.user), so {each} counts as independent of "
            "the others"
        )
    summaries = track.computed.summaries
    reason = None if rows else _why_empty(measure, reading, log)
    return Section(
        measure=measure.name,
        question=measure.question,
        headline=title_of(summaries[0]),
        rows=tuple(rows),
        reason=reason,
        advice=_advice(measure, reading, log) if reason == NO_VERDICTS else None,
        notes=tuple(notes),
        settings=track.settings,
        names=tuple(summary.name for summary in summaries),
        rankings=next(iter(lanes.values())).rankings() if len(lanes) == 1 else (),
    )


def _called(evaluators: Iterable[str], titles: Mapping[str, str]) -> dict[str, str]:
    """What people call evaluators that have a title; with its version, where several versions have one title."""
    parts = {each: each.partition("@") for each in evaluators}
    found = {each: (titles[name], version) for each, (name, _, version) in parts.items() if name in titles}
    often = Counter(title for title, _ in found.values())
    return {each: title if often[title] == 1 else f"{title}@{version}" for each, (title, version) in found.items()}


def _failed(lanes: Mapping[str, Lane]) -> Iterator[str]:
    """What failed, in one line: the first of it, and how much more there is, by evaluator where there are several."""
    failed: Counter[str] = Counter()
    for name, lane in lanes.items():
        failed[name.partition("@")[0]] += lane.failed
    first = next((lane.failure for lane in lanes.values()), None)
    if first is None:
        return
    more = failed.total() - 1
    if len(lanes) == 1:
        yield f"failed: {first}" + (f", and {more:,} more" if more else "")
    else:
        by = ", ".join(f"{count:,} of {name}" for name, count in failed.most_common())
        yield f"failed: {by}; the first: {first}"


def _why_empty(measure: Measure, reading: Reading, log: Log | None) -> str:
    refused = 0 if log is None else log.refused[measure.name]
    if refused:
        return f"no verdict that could be used: {count_words(refused, 'result')} left out"
    if measure.evaluator is None:
        if reading.left_out[OUTSIDE]:
            return "no verdicts in the period"
        return NO_VERDICTS
    kinds = ", ".join(count_words(count, kind) for kind, count in reading.kinds.items())
    where = "this log has" if reading.since is None and reading.until is None else "the period has"
    return f"needs {plural(measure.reads.kind)}; {where} {kinds or 'none'}"


def _advice(measure: Measure, reading: Reading, log: Log | None) -> str:
    """Where verdicts come from: a judge that is installed, of a log that holds what it reads, or else from outside."""
    if log is None or not reading.kinds[measure.reads.kind] or measure.name not in judged_measures():
        return "see `evalr schema result`"
    return f"try `evalr judge {quote(safe_text(log.path, longest=200))} --measure {measure.name}`"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return window_words(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return getattr(value, "__name__", type(value).__name__)
