"""One pass over a log: every input to the measures that read it, every stored result to its own, and nothing held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

from evalr.errors import InputError, error_words
from evalr.evaluators import FunctionEvaluator
from evalr.inputs import About, Input
from evalr.logs.log import Item, Log, Stored
from evalr.logs.superseding import result_key
from evalr.measures.measure import Measure
from evalr.reports.lane import Lane, without
from evalr.summaries import Key
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict, about_of

Progress = Callable[[int, float | None], None]
"""Called now and then with the number of records read and the share of the log that they are, None where not known."""

PROGRESS_EVERY = 500
COMPUTED = "computed"
OUTSIDE, TIMELESS, LATER = "outside the period", "without a time", "after the reading time"

Given: TypeAlias = Log | Iterable[Item | Result[Any]]
Split = Callable[[Any, datetime], Iterable[Input]]


@runtime_checkable
class ReadsItself(Protocol):
    """A log that has a faster way than item by item; see `evalr.bulk`."""

    def read_into(self, reading: Reading, progress: Progress | None) -> None:
        """Count everything in it, once."""


class Track:
    """One measure along the pass: the lane of what is computed, and one lane for each evaluator of stored results."""

    def __init__(
        self,
        measure: Measure,
        settings: Mapping[str, Any],
        *,
        now: datetime,
        by: Key | None,
        cluster: Key | None,
        details: bool = False,
    ) -> None:
        self.measure = measure
        self.settings = measure.settled(settings)
        self.inputs = 0
        self.userless = 0
        self._stored: dict[tuple[str, str | None], Lane] = {}
        self.marked = measure.marker is None
        self.unsure = False  # whether the marker failed, which it does only until it was seen
        self.cluster = cluster
        self.asked_by = by
        self.by = measure.by if by is None else by
        self.details = details
        self.computed = self._lane()
        self.evaluator: FunctionEvaluator[Any, Any] | None = (
            None if measure.evaluator is None else measure.evaluator(now=now, **self.settings)
        )

    def _lane(self) -> Lane:
        return Lane(self.measure, self.settings, self.by, self.cluster, details=self.details)

    def sees(self, given: Input) -> bool:
        """Take note of one input that the log yields for it. Returns whether it can be measured."""
        self.inputs += 1
        if self.marked or self.measure.marker is None:
            return True
        try:
            self.marked = self.measure.marker.seen(given)
        except Exception as error:  # noqa: BLE001  a marker of another package may raise anything: it failed here
            self.unsure = True
            self.fail(error, given)
            return False
        return True

    def measure_one(self, given: Input) -> None:
        """Count what is computed of one input of the measure's own type."""
        if self.evaluator is not None:
            try:
                self.computed.put(self.evaluator.evaluate_inline(given))
            except Exception as error:  # noqa: BLE001  a split of another package may give anything: it failed here
                self.fail(error, given)

    def fail(self, error: Exception, given: Input) -> None:
        """Count an input that could not even be evaluated as a failure."""
        if self.evaluator is not None:
            self.computed.put(Failure(error_words(error), self.measure.name, None, given.about()))

    def keep(self, result: Result[Any]) -> None:
        """Take one stored result. Verdicts of different evaluators, or versions of one, are never pooled."""
        self.kept_by(result.evaluator or "unnamed", result.version or None).put(result)
        if isinstance(result, Verdict) and (result.about is None or result.about.user is None):
            self.userless += 1

    def kept_by(self, evaluator: str, version: str | None) -> Lane:
        """The lane of the results of one evaluator and version."""
        lane = self._stored.get((evaluator, version))
        if lane is None:
            lane = self._stored[evaluator, version] = self._lane()
        return lane

    def merge(self, other: Track) -> None:
        """Count what another track of the same measure and settings has counted."""
        self.inputs += other.inputs
        self.userless += other.userless
        self.marked |= other.marked
        self.computed.merge(other.computed)
        for evaluator, lane in other._stored.items():
            if evaluator not in self._stored:
                self._stored[evaluator] = self._lane()
            self._stored[evaluator].merge(lane)

    def __getstate__(self) -> dict[str, Any]:
        """What was counted; see `Reading`."""
        return without(vars(self), "measure", "settings", "evaluator", "cluster", "by", "asked_by", "details")

    def most_results(self) -> int:
        """How many results were computed or, where more, one evaluator stored."""
        return max(lane.results for lane in (self.computed, *self._stored.values()))

    def stored(self) -> dict[str, Lane]:
        """The lanes of stored results, by evaluator@version; after the last result, as they are merged here.

        A failure, skip or hand-off may name no version, as where a judge crashed before it knew its own: it belongs to
        the only version of its evaluator, and stands apart where there are several, or none.
        """
        versions: dict[str, list[Lane]] = {}
        for (evaluator, version), lane in self._stored.items():
            if version is not None:
                versions.setdefault(evaluator, []).append(lane)
        for evaluator, lanes in versions.items():
            if len(lanes) == 1 and (evaluator, None) in self._stored:
                lanes[0].merge(self._stored.pop((evaluator, None)))
        return {f"{evaluator}@{version or '?'}": lane for (evaluator, version), lane in self._stored.items()}


class Reading:
    """What one pass over a log found, measure by measure, and its account."""

    def __init__(
        self,
        tracks: Iterable[Track],
        *,
        now: datetime,
        since: datetime | None,
        until: datetime | None,
    ) -> None:
        self.tracks = list(tracks)
        self.now, self.since, self.until = now, since, until
        self.kinds: Counter[str] = Counter()
        self.results = 0
        self.unread: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.users: set[str] = set()
        self.attributes: set[str] = set()
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.read_earlier = 0
        self._all_times = since is None and until is None
        self._readers: dict[type[Input], list[tuple[Split | None, list[Track]]]] = {}
        self._by_name = {track.measure.name: track for track in self.tracks}

    def read(self, items: Given, progress: Progress | None) -> None:
        """Read everything, once."""
        if isinstance(items, ReadsItself):
            items.read_into(self, progress)
        else:
            self.read_each(items, progress)

    def read_each(self, items: Given, progress: Progress | None) -> None:
        """Read everything, once, item by item."""
        source = items if isinstance(items, Log) else None
        stream: Iterable[Item] = items if isinstance(items, Log) else self._first_of_each(items)
        for count, item in enumerate(stream, start=1):
            self.read_one(item)
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(count if source is None else source.records, share_read(source))

    def read_one(self, item: Item) -> None:
        """Read one item that a log yields."""
        if isinstance(item, Input):
            self._read_input(item)
        else:
            self._keep(item)

    def _read_input(self, given: Input) -> None:
        about = given.about()
        reason = self.why_not(about.at)
        if given.parts_by_time and not self._all_times and reason in (None, OUTSIDE):
            counted = self.left_out[OUTSIDE]
            if self.read_in_period(given, whole=reason is None):
                reason = None
            elif self.left_out[OUTSIDE] > counted:
                return  # each of its parts was counted as outside
        elif reason is None:
            self.read_in_period(given, whole=True)
        if reason is not None:
            self.left_out[reason] += 1
            return
        self._note(about, dated=not given.parts_by_time)
        self.kinds[about.kind] += 1
        if about.read_at is not None and about.read_at < self.now:
            self.read_earlier += 1

    def read_in_period(self, given: Input, *, whole: bool) -> bool:
        """Read an input, or its parts that are in the period. Returns whether any are."""
        every = self._all_times or not given.parts_by_time
        found = False
        for split, tracks in self._readers_of(type(given)):
            if split is not None:
                found |= self._read_parts(given, split, tracks, every=every)
            elif whole:
                for track in tracks:
                    if track.sees(given):
                        track.measure_one(given)
        return found

    def _read_parts(self, given: Input, split: Split, tracks: list[Track], *, every: bool) -> bool:
        """Read the parts of an input, once for all that measure them. Returns whether there are any."""
        seeing = [track for track in tracks if track.sees(given)] if every else None
        try:
            for part in split(given, self.now):
                if given.parts_by_time:
                    about = part.about()
                    reason = None if every else self.why_not(about.at)
                    if reason is not None:
                        self.left_out[reason] += 1
                        continue
                    self._note(about)
                if seeing is None:
                    seeing = [track for track in tracks if track.sees(given)]
                for track in seeing:
                    track.measure_one(part)
        except Exception as error:  # noqa: BLE001  a split of another package may raise anything: it failed here
            seeing = tracks if seeing is None else seeing
            for track in seeing:
                track.fail(error, given)
        return seeing is not None

    def _readers_of(self, kind: type[Input]) -> list[tuple[Split | None, list[Track]]]:
        """The tracks that read such an input; those with one split together."""
        found = self._readers.get(kind)
        if found is None:
            by_split: dict[Split | None, list[Track]] = {}
            for track in self.tracks:
                if issubclass(kind, track.measure.reads):
                    by_split.setdefault(track.measure.split, []).append(track)
            found = self._readers[kind] = list(by_split.items())
        return found

    def _placed(self, result: Result[Any]) -> Stored:
        """A result that names no measure belongs to the one of its evaluator's name, or else of its verdict type."""
        if not isinstance(result, Verdict | Failure | Skip | HandOff):
            raise InputError(f"a report reads inputs and results, not {type(result).__name__}")
        name = result.evaluator or ""
        if name not in self._by_name and isinstance(result, Verdict):
            fitting = (track.measure.name for track in self.tracks if isinstance(result.value, track.measure.verdict))
            name = next(fitting, name)
        return Stored(name, result)

    def _keep(self, stored: Stored) -> None:
        if not self._selects(about_of(stored.result)):
            return
        if stored.result.as_of is not None and stored.result.as_of > self.now:
            self.left_out[LATER] += 1
            return
        self.results += 1
        track = self._by_name.get(stored.measure)
        if track is None:
            self.unread[stored.measure] += 1
        else:
            track.keep(stored.result)

    def _selects(self, about: About | None) -> bool:
        """Whether a result that is about this counts, by when that began; what it is about is noted where it does."""
        reason = self.why_not(None if about is None else about.at)
        if reason is not None:
            self.left_out[reason] += 1
            return False
        self._note(about)
        return True

    def why_not(self, at: datetime | None) -> str | None:
        """Why what began then does not count; None where it does."""
        if at is None:
            return None if self._all_times else TIMELESS
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return OUTSIDE
        return LATER if at > self.now else None

    def _note(self, about: About | None, *, dated: bool = True) -> None:
        if about is None:
            return
        at = about.at
        if at is not None and dated:
            self.first = at if self.first is None or at < self.first else self.first
            self.last = at if self.last is None or at > self.last else self.last
        if about.user is not None:
            self.users.add(about.user)
        if about.attributes:
            self.attributes.update(about.attributes)

    def merge(self, other: Reading) -> None:
        """Count what another reading of the same measures has counted, of what comes after in the log."""
        for counts, others in zip(self._counts(), other._counts(), strict=True):
            counts.update(others)
        self.results += other.results
        self.read_earlier += other.read_earlier
        self.users |= other.users
        self.attributes |= other.attributes
        times = [at for at in (self.first, self.last, other.first, other.last) if at is not None]
        self.first, self.last = min(times, default=None), max(times, default=None)
        for track, another in zip(self.tracks, other.tracks, strict=True):
            track.merge(another)

    def _counts(self) -> tuple[Counter[str], ...]:
        return self.kinds, self.unread, self.left_out

    def __getstate__(self) -> dict[str, Any]:
        """What was counted, which is all that `merge` takes of another reading: measures have functions."""
        return without(vars(self), "_readers", "_by_name")

    def _first_of_each(self, items: Iterable[Item | Result[Any]]) -> Iterator[Item]:
        """The items without later ones of the same subject: what a reader of logs has already seen to."""
        seen: set[int] = set()
        for given in items:
            item = given if isinstance(given, Input | Stored) else self._placed(given)
            key = _identity(item)
            if key is not None:
                if hash(key) in seen:
                    self.left_out["duplicate"] += 1
                    continue
                seen.add(hash(key))
            yield item


def _identity(item: Item) -> Hashable:
    return item.about().subject if isinstance(item, Input) else result_key(item.measure, item.result)


def share_read(log: Log | None) -> float | None:
    """How much of a log was read, from 0 to 1; None where its size is not known."""
    return None if log is None or not log.bytes_total else min(1.0, log.bytes_read / log.bytes_total)
