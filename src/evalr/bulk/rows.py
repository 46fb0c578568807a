"""The fast path: lines as validated rows, and rows straight into tallies, some hundreds at a time.

Per session it costs one validation and one call of each measure; everything else is done for many at once. It decides
nothing of its own: what is not a plain row goes to the object lane, line by line, and so does each row that a measure's
reader or a summary does not take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain, repeat
from operator import itemgetter, sub
from typing import Any, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from evalr.inputs import About, Input
from evalr.logs.forms import FORMS
from evalr.logs.log import Log
from evalr.logs.seen import Seen
from evalr.measures.measure import Measure
from evalr.measures.rows import ROW_FORMS, RowForm, RowReader
from evalr.quoting import quoted
from evalr.reports.details import BY_DAY_AND_ARM
from evalr.reports.lane import Grouped
from evalr.reports.reading import Progress, Reading, Track, share_read
from evalr.summaries import Key
from evalr.summaries.columns import Columns, cut
from evalr.summaries.keys import cluster_reader, group_reader
from evalr.tallies.numbering import Clusters, Numbering

CHUNK = 512
"""Rows that are counted at once: so many that it costs little, and so few that they stay in the processor's cache."""

CHUNK_OF_DETAILS = 1 << 13
"""The same where they are also counted by day and arm: so many that few of each day's are counted alone."""

LONG = 1 << 14
"""Bytes. After a longer line what was taken is counted at once, so that few such lines are held."""

MOST_HELD = 1 << 23
"""Bytes of lines that are held before what was taken is counted."""

_SHARED_KEYS = ("user", "session", "arm", "kind")
"""Keys that parts have from their whole, or that are the same for all of them."""

_Place: TypeAlias = tuple[int, Grouped | None]
"""The number of the cluster and, where there is grouping, the groups."""

T = TypeVar("T")

_time_of = itemgetter("at")

_UTC = TypeAdapter(datetime).validate_json('"2026-01-01T00:00:00Z"').tzinfo
"""The zone of a validated time in UTC."""


def row_pass(reading: Reading, log: Log, seen: Seen, numbering: Numbering, progress: Progress | None) -> RowPass | None:
    """What takes a log's rows on their way into a reading; None where no measure could use them.

    Who the users are it notes in the numbering alone, as clusters that are texts.
    """
    for form in ROW_FORMS.values():
        tracks = [track for track in reading.tracks if issubclass(form.model, track.measure.reads)]
        by_row = [each for each in map(_row_track, tracks) if each is not None]
        if by_row:
            taken = [each.track for each in by_row]
            others = [track for track in tracks if track not in taken]
            return RowPass(form, by_row, others, reading, log, seen, numbering, progress)
    return None


def _row_track(track: Track) -> _RowTrack | None:
    """A measure along the rows; None where it must be asked for its verdicts one by one."""
    measure, lane, columns = track.measure, track.computed, track.computed.columns()
    if measure.rows is None or track.evaluator is None or columns is None:
        return None
    if measure.marker is not None and measure.marker.seen_in_row is None:
        return None
    if not all(_known_of_row(key, measure) for key in (lane.by, lane.cluster)):
        return None
    try:
        return _RowTrack(track, measure.rows, columns)
    except Exception:  # noqa: BLE001  another package's measure may raise anything; its evaluator is asked instead
        return None


def _known_of_row(key: Key | None, measure: Measure) -> bool:
    """Whether a row says what a key reads from what a result is about: of parts, only what they share with it."""
    if key is None or measure.split is None or key in _SHARED_KEYS:
        return True
    return isinstance(key, str) and key not in measure.part_attributes


class _RowTrack:
    """One measure along the rows: what its reader has found since it was last counted."""

    def __init__(self, track: Track, rows: Callable[..., RowReader], columns: tuple[Columns, ...]) -> None:
        measure, evaluator, lane = track.measure, track.evaluator, track.computed
        assert evaluator is not None
        self.track, self._columns = track, columns
        self.has_parts = measure.split is not None
        self.details = lane.details
        self.began: list[datetime] = []
        """With details and parts: when the part of each verdict began."""
        self.read = rows(
            columns, **track.settings, **({"began": self.began} if lane.details and self.has_parts else {})
        )
        self.marker = None if measure.marker is None else measure.marker.seen_in_row
        """None once it was seen."""
        self.begin = 0
        """The first of the rows since the last flush that it has not counted."""
        self.ends: list[int] = []
        """With parts: how many verdicts there are up to the last of each row."""
        self.found = columns[0][0]
        """One of the columns: its length is how many verdicts there are."""
        self.placed: list[_Place] = []
        """Where each row counts, if that is not as it is by default."""
        self.firsts: list[datetime | None] = []
        """With details: when each row began or, with parts, when the first of them began at the earliest."""
        self.lasts: list[datetime | None] = []
        """With details: when the last of its parts began at the latest; the same as above without parts."""
        self.arms: list[str | None] = []
        """With details: of each row."""
        self._day_of = BY_DAY_AND_ARM.namer(_UTC)
        """Of a time and an arm, what `BY_DAY_AND_ARM` has."""
        self.by_default = lane.by is None and lane.cluster is None
        self._kind = measure.input.kind
        self._version = (evaluator.name, evaluator.version)
        self._cluster_of = cluster_reader(lane.cluster)
        self._cluster_in_group = cluster_reader(lane.cluster, lane.by)
        self._groups_of = None if lane.by is None else group_reader(lane.by)

    def place(self, about: About, numbering: Numbering) -> _Place:
        """Where the results of a row count, by what the whole of it is about."""
        if self.has_parts:
            about = about._replace(kind=self._kind, session=about.id, id=None, at=None)
        groups = None
        if self._groups_of is not None:
            groups = Grouped(self._groups_of(about), numbering.number(self._cluster_in_group(about, None)))
        return numbering.number(self._cluster_of(about, None)), groups

    def count(self, numbers: Sequence[int], numbering: Numbering) -> None:
        """Count what was found of rows, each in a cluster by its number.

        Raises:
            Exception: of any kind, where a summary does not take it. Nothing has been counted then.
        """
        groups: Sequence[Grouped] | None = None
        rows = len(numbers)
        if not self.by_default:
            numbers = [number for number, _ in self.placed]
            groups = [grouped for _, grouped in self.placed if grouped is not None]
        if self.has_parts:
            sizes = list(map(sub, self.ends, chain([0], self.ends)))
            numbers = _repeated(numbers, sizes)
            groups = groups and _repeated(groups, sizes)
        if numbers:
            days = self._days() if self.details else None
            self.track.computed.put_batch(self._columns, Clusters(numbers, numbering), groups, self._version, days)
        self.track.inputs += rows

    def _days(self) -> dict[str, list[int]]:
        """Where the verdicts of each day and arm are."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        day_of, begin = self._day_of, 0
        ends = self.ends if self.has_parts else range(1, len(self.arms) + 1)
        for first, last, arm, end in zip(self.firsts, self.lasts, self.arms, ends, strict=True):
            if begin == end:
                continue
            day = day_of(first, arm)
            if last is first or day == day_of(last, arm):
                found[day].extend(range(begin, end))
            else:
                for place in range(begin, end):
                    found[day_of(self.began[place], arm)].append(place)
            begin = end
        return found

    def undo(self, rows: int) -> None:
        """Forget what was found after the first rows of those that are not counted."""
        size = rows
        if self.has_parts:
            size = self.ends[-1] if self.ends else 0
        for columns in self._columns:
            cut(columns, size)
        del self.placed[rows:]
        for of_each_row in (self.firsts, self.lasts, self.arms):
            del of_each_row[rows:]
        del self.began[size:]

    def clear(self, rows: int) -> None:
        """Forget all that was found; the next row is that after `rows` since the last flush."""
        for columns in self._columns:
            cut(columns, 0)
        self.ends.clear()
        self.placed.clear()
        for of_each_row in (self.firsts, self.lasts, self.arms):
            of_each_row.clear()
        self.began.clear()
        self.begin = rows


def _repeated(values: Sequence[T], times: Iterable[int]) -> list[T]:
    return list(chain.from_iterable(map(repeat, values, times)))


class RowPass:
    """Takes the lines of a log that are rows, and counts what every measure says of them: `evalr.logs.jsonl.Rows`."""

    def __init__(
        self,
        form: RowForm,
        by_row: Sequence[_RowTrack],
        others: Sequence[Track],
        reading: Reading,
        log: Log,
        seen: Seen,
        numbering: Numbering,
        progress: Progress | None,
    ) -> None:
        line_form = next(each for each in FORMS if each.model is form.model)
        self._mark, self._type = line_form.mark, line_form.name
        self._model, self._kind, self._events = form.model, form.model.kind, form.events
        self._validate: Callable[..., dict[str, Any]] = TypeAdapter(form.row).validator.validate_json
        self._fields = frozenset(form.row.__annotations__)
        self._event_fields = frozenset(form.event.__annotations__)
        self._extra = "forbid"  # or "allow", while lines have fields that are not known
        self._reading, self._log, self._progress = reading, log, progress
        self._is_new = seen.add
        # In the zone that validated times have: Python compares and subtracts times of one zone object much faster.
        self._now: datetime = TypeAdapter(datetime).validate_json(f'"{reading.now.isoformat()}"')
        self._all_times = reading.since is None and reading.until is None
        self._tracks = list(by_row)
        self._chunk = CHUNK_OF_DETAILS if any(each.details for each in by_row) else CHUNK
        self._numbering = numbering
        self._number_of = numbering.numbers.get
        self._others = self._part_of_reading(others) if others else None
        # Of each row since the last flush. Here and in the tracks, a row leaves nothing behind that Python's collector
        # of cycles follows: its rounds would cost more than all the rest.
        self._lines: list[bytes] = []
        self._held = 0
        self._users: list[int] = []
        """Their numbers; see `Numbering`."""
        self._owners: list[int] = []
        """The user or, where none is known, the row itself as what its parts belong to."""
        self._times: list[datetime | None] = []

    # The next two methods run once for each row, and decide how long a log takes.

    def take(self, line: bytes) -> bool | None:
        """Count a line that is a row. Returns whether it is new; None where it is no row."""
        if self._mark not in line:
            return None
        try:
            row = self._validate(line, extra=self._extra)
        except ValidationError:
            row = None
        if row is None or "weight" in row or self._extra == "allow":
            row = self._taken_with_care(line, row)
            if row is None:
                return None
        if not self._is_new((self._kind, row.get("user") or "", row["id"])):
            return False
        events = row[self._events]
        events.sort(key=_time_of)
        at = row.get("at")
        if at is None and events:
            at = events[0]["at"]
        if not self._all_times or at is None or at > self._now:
            reason = self._reading.why_not(at)
            if reason is not None:
                self._reading.left_out[reason] += 1
                return True
        self._measure(line, row, at)
        self._held += len(line)
        if len(self._lines) >= self._chunk or len(line) > LONG or self._held > MOST_HELD:
            self.flush()
        return True

    def _measure(self, line: bytes, row: dict[str, Any], at: datetime | None) -> None:
        user, now = row.get("user"), self._now
        self._lines.append(line)
        number = self._number_of(user)
        if number is None:
            number = self._numbering.number(user)
        self._users.append(number)
        self._owners.append(number or self._numbering.number((row["id"],)))
        self._times.append(at)
        if "attributes" in row:
            self._reading.attributes.update(row["attributes"])
        read_at = row.get("read_at")
        if read_at is not None and read_at < now:
            now = read_at
            self._reading.read_earlier += 1
        if self._others is not None:
            self._others.read_in_period(self._input(line), whole=True)
        whole_row, events = row, row[self._events]
        begin, end = (events[0]["at"], events[-1]["at"]) if events else (at, at)
        if events and events[-1]["at"] > now:
            row = {**row, self._events: [event for event in events if event["at"] <= now]}
        for each in self._tracks:
            try:
                if each.marker is not None and (each.track.marked or each.marker(whole_row)):
                    each.track.marked, each.marker = True, None
                each.read(row, now)
                if not each.by_default:
                    each.placed.append(each.place(self._about(row, at), self._numbering))
                if each.details:
                    each.firsts.append(begin if each.has_parts else at)
                    each.lasts.append(end if each.has_parts else at)
                    each.arms.append(row.get("arm"))
            except Exception:  # noqa: BLE001  whatever it was, the object lane does with it what it does
                self._ask_instead(each)
            else:
                if each.has_parts:
                    each.ends.append(len(each.found))

    def _taken_with_care(self, line: bytes, row: dict[str, Any] | None) -> dict[str, Any] | None:
        """The row of a line that may have fields that are not known, or other things that a row has not."""
        if row is None:
            if self._extra == "allow":
                return None
            try:
                row = self._validate(line, extra="allow")
            except ValidationError:
                return None
        if row.get("weight") is not None:  # sampled: a batch counts each as one
            return None
        if row.get("type", self._type) != self._type:
            return None
        self._extra = "allow" if self._ignore_unknown(row) else "forbid"
        return row

    def _ignore_unknown(self, row: dict[str, Any]) -> bool:
        """Count the fields that are not known. Returns whether there are any."""
        found = [quoted(name)[1:-1] for name in row if name not in self._fields and name != "type"]
        for event in row[self._events]:
            if not event.keys() <= self._event_fields:
                unknown = (name for name in event if name not in self._event_fields)
                found += [f"{self._events}.{quoted(name)[1:-1]}" for name in unknown]
        for name in found:
            self._log.ignore_field(name)
        return bool(found) or "type" in row

    def _about(self, row: dict[str, Any], at: datetime | None) -> About:
        """What the results made of a row are about, as far as keys read it."""
        arm, attributes = row.get("arm"), row.get("attributes", {})
        return About(self._kind, row["id"], row.get("user"), None, at, row.get("read_at"), arm, None, attributes)

    def flush(self) -> None:
        """Count what was taken so far."""
        if not self._lines:
            return
        for each in self._tracks:
            self._count(each, len(self._lines))
            each.begin = 0
        reading = self._reading
        reading.kinds[self._kind] += len(self._lines)
        times = [at for at in (*self._times, reading.first, reading.last) if at is not None]
        if times:
            reading.first, reading.last = min(times), max(times)
        for of_each_row in (self._lines, self._users, self._owners, self._times):
            of_each_row.clear()
        self._held = 0
        if self._progress is not None:
            self._progress(self._log.records, share_read(self._log))

    def _count(self, each: _RowTrack, end: int) -> None:
        """Count what a measure has found of the rows up to the place `end` among those since the last flush."""
        begin = each.begin
        try:
            each.count((self._owners if each.has_parts else self._users)[begin:end], self._numbering)
        except Exception:  # noqa: BLE001  as in `_measure`
            each.clear(end)
            self._ask(each, self._lines[begin:end])
        else:
            each.clear(end)

    def _ask_instead(self, each: _RowTrack) -> None:
        """Have a measure's evaluator say what its reader did not of the last row, after what it said of others."""
        last = len(self._lines) - 1
        each.undo(last - each.begin)
        self._count(each, last)
        each.begin = last + 1
        self._ask(each, self._lines[last:])

    def _ask(self, each: _RowTrack, lines: Sequence[bytes]) -> None:
        alone = self._part_of_reading([each.track])
        for line in lines:
            alone.read_in_period(self._input(line), whole=True)

    def _part_of_reading(self, tracks: Sequence[Track]) -> Reading:
        return Reading(tracks, now=self._reading.now, since=self._reading.since, until=self._reading.until)

    def _input(self, line: bytes) -> Input:
        found: Input = self._model.__pydantic_validator__.validate_json(line, extra="ignore")
        return found
