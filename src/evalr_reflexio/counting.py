"""What a report counts of a Reflexio log, without an input or a verdict object for each thing that happened.

Making those objects, and asking each summary about each of them, takes several times as long as reading the log. This
counts what the measures that evalr has itself would have counted; whatever is out of the ordinary goes the way of
objects, session by session or as the whole log. Tests hold both ways equal, field by field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import compress, repeat
from typing import Any, TypeVar

from evalr.inputs import Exchange, Input, LearningUse, Session, Side, Transcript
from evalr.measures.drop_off import measure as drop_off
from evalr.measures.learning import measure as learning
from evalr.measures.session_outcome import measure as outcome
from evalr.measures.shadow import measure as shadow
from evalr.measures.task_completion import measure as completion
from evalr.measures.waits import measure as waits
from evalr.reports.reading import Reading, Track
from evalr.summaries.columns import cut
from evalr.summaries.summary import PENDING
from evalr.tallies.numbering import Clusters, Numbering
from evalr_reflexio.conversations import attributes_of
from evalr_reflexio.rows import LearningRow, OutcomeRow, SessionRecord, ShadowRow
from evalr_reflexio.speaking import Spoken
from evalr_reflexio.stored import LEARNING_JUDGE, SHADOW_JUDGE, UNVERSIONED
from evalr_reflexio.verdict_sums import LearningVerdicts, OutcomeVerdicts, ShadowVerdicts

S = TypeVar("S", OutcomeVerdicts, ShadowVerdicts, LearningVerdicts)

INPUTS: tuple[type[Input], ...] = (Transcript, Session, Exchange, LearningUse)
_KNOWN = (completion, outcome, shadow, learning, drop_off, waits)
_CHUNK = 4096
"""How many verdicts are counted at a time."""

_HIT, _MISS = (1, 1), (0, 1)


def counts_alone(reading: Reading) -> bool:
    """Whether all that a report asks of a log is counted here: measures that are known, without groups."""
    return all(_is_plain(track) for track in reading.tracks)


def _is_plain(track: Track) -> bool:
    if not any(issubclass(kind, track.measure.reads) for kind in INPUTS):
        return True
    return _is_known(track) and track.by is None and track.cluster is None and not track.details


def _is_known(track: Track) -> bool:
    return any(track.measure is each for each in _KNOWN)


class _Computed:
    """What a measure computes of sessions, until there is enough of it to be counted."""

    def __init__(self, track: Track, numbering: Numbering) -> None:
        columns, evaluator = track.computed.columns(), track.evaluator
        assert columns is not None
        assert evaluator is not None
        self.columns: tuple[Any, ...] = columns
        """Those that the measure's `rows` fills, too."""
        self.users: list[int] = []
        self._track, self._numbering = track, numbering
        self._version = (evaluator.name, evaluator.version)

    def count(self) -> None:
        """Count it, and have room again."""
        if self.users:
            clusters = Clusters(self.users, self._numbering)
            self._track.computed.put_batch(self.columns, clusters, None, self._version)
            for columns in self.columns:
                cut(columns, 0)
            self.users.clear()


class ReportSums:
    """What was counted for a reading; `fill` puts it there.

    Sessions are those of users who have a name, and have requests.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading, self.now = reading, reading.now
        self.numbering = Numbering()
        self._tracks = {track.measure.name: track for track in reading.tracks if _is_known(track)}
        for track in self._tracks.values():
            track.computed.share(self.numbering)
        self._waits, self._drop_offs = self._computed(waits.name), self._computed(drop_off.name)
        self._window: timedelta = self._tracks[drop_off.name].settings["window"] if self._drop_offs else timedelta(0)
        self._counted: Counter[type[Input]] = Counter()
        self._taken: SessionRecord | None = None
        self._taken_at: datetime | None = None
        self._told: set[tuple[bool, ...]] = set()
        self._outcomes: dict[str, OutcomeVerdicts] = {}
        self._shadows: dict[str, ShadowVerdicts] = {}
        self._learnings: dict[str, LearningVerdicts] = {}
        self._keys: set[tuple[bool, ...]] = set()
        self._is_whole = reading.since is None and reading.until is None

    def _computed(self, name: str) -> _Computed | None:
        track = self._tracks.get(name)
        return None if track is None else _Computed(track, self.numbering)

    def takes(self, at: datetime, record: SessionRecord, times: int = 1) -> bool:
        """Whether inputs or results that began then count; what they are about is noted where they do."""
        if at is self._taken_at and record is self._taken:
            return True  # as the last one, which is noted
        reading = self.reading
        if at > self.now or not self._is_whole:
            reason = reading.why_not(at)
            if reason is not None:
                reading.left_out[reason] += times
                return False
        if reading.first is None or at < reading.first:
            reading.first = at
        if reading.last is None or at > reading.last:
            reading.last = at
        reading.users.add(record.user)
        first = record.requests[0]
        keys = (bool(first.agent_version), first.evaluation_only is not None)
        if keys not in self._keys:
            self._keys.add(keys)
            reading.attributes.update(attributes_of(record))
        self._taken, self._taken_at = record, at
        return True

    def _count(self, kind: type[Input], times: int = 1) -> None:
        if kind not in self._counted:
            self.reading.kinds[kind.kind] += 0  # which says when it came up first
        self._counted[kind] += times

    def _note(self, *names: str) -> None:
        self.reading.attributes.update(names)

    # -- what happened ------------------------------------------------------------------------------------------------

    def conversation(self, record: SessionRecord, said: Spoken) -> None:
        """Count the transcript of a session, and the session as times and roles."""
        if not self.takes(record.requests[0].at, record, 2):
            return
        self._count(Transcript)
        self._count(Session)
        user = self.numbering.number(record.user)
        if self._waits is not None and said.last_word is not None:
            after, end = self._waits.columns[0]
            after.extend(said.waited)
            end.extend(repeat("returned", len(said.waited)))
            if said.answered is None:
                after.append((self.now - said.last_word).total_seconds())
                end.append(None)
            users = self._waits.users
            users.extend(repeat(user, len(after) - len(users)))
            if len(users) >= _CHUNK:
                self._waits.count()
        if self._drop_offs is not None:
            self._drop_off(self._drop_offs, user, said.last_word, said.answered)

    def _drop_off(self, computed: _Computed, user: int, last_word: datetime | None, answered: datetime | None) -> None:
        """As `measure_drop_off` says it of sessions without proposals and ends, which Reflexio's logs do not have."""
        times, hits = computed.columns
        end: str | None = "continued"
        dropped: tuple[int, int] | str = _MISS
        seconds = 0.0
        if last_word is not None:
            waited = (self.now if answered is None else answered) - last_word
            seconds = waited.total_seconds()
            if answered is not None:
                dropped = _MISS if waited <= self._window else _HIT
            else:
                dropped, end = PENDING if waited < self._window else _HIT, None
        times[0].append(seconds)
        times[1].append(end)
        hits[0].append(dropped)
        computed.users.append(user)
        if len(computed.users) >= _CHUNK:
            computed.count()

    def exchange(self, record: SessionRecord, at: datetime) -> None:
        """Count an answer that has another one beside it."""
        if self.takes(at, record):
            self._count(Exchange)

    def learning_uses(self, record: SessionRecord, at: datetime, times: int, *, tell_use: bool) -> None:
        """Count so many learnings that an answer was given; `tell_use` where the answer says what it cites."""
        if self.takes(at, record, times):
            self._count(LearningUse, times)
            if tell_use:
                self._note("use")

    # -- what was said of it ------------------------------------------------------------------------------------------

    def outcome(self, record: SessionRecord, row: OutcomeRow, corrections: int | None) -> None:
        """Count a verdict on a session."""
        if not self._keeps(outcome.name, record.requests[0].at, record):
            return
        told = (bool(row.agent_version), row.tags is not None, not row.success and row.failure_type is not None)
        if told not in self._told:
            self._told.add(told)
            self._note("evaluator", *compress(("agent_version", "tags", "failure_type"), told))
        sums = _of(self._outcomes, row.evaluator, OutcomeVerdicts, self.numbering)
        sums.add(record, row, self.numbering.number(record.user), corrections)

    def shadow(self, record: SessionRecord, row: ShadowRow, at: datetime, treatment: Side) -> None:
        """Count a verdict on two answers."""
        if not self._keeps(shadow.name, at, record):
            return
        if row.agent_version:
            self._note("agent_version")
        sums = _of(self._shadows, row.prompt_version or "unknown", ShadowVerdicts, self.numbering)
        sums.add(row, treatment, self.numbering.number(record.user))

    def learnings(self, record: SessionRecord, rows: list[tuple[LearningRow, bool]]) -> None:
        """Count the verdicts on the learnings of one response, each with whether the response says what it cites."""
        kept = []
        grading = record.grading
        for row, tells_use in rows:
            if self._keeps(learning.name, row.interaction_at or row.at, record):
                kept.append(row)
                self._note("learning", "learning_kind", "response")
                if row.agent_version:
                    self._note("agent_version")
                if tells_use:
                    self._note("use")
                if row.diagnosis is not None:
                    self._note("diagnosis_evidence")
                if grading is not None:
                    self._note("grading")
        if kept:
            version = UNVERSIONED if grading is None or grading.version is None else grading.version
            sums = _of(self._learnings, version, LearningVerdicts, self.numbering)
            partial = grading is not None and grading.status != "complete"
            sums.add(kept, self.numbering.number(record.user), partial=partial)

    def _keeps(self, measure: str, at: datetime, record: SessionRecord) -> bool:
        """Whether a result that is about what began then counts for a measure that is asked for."""
        if not self.takes(at, record):
            return False
        self.reading.results += 1
        if measure in self._tracks:
            return True
        self.reading.unread[measure] += 1
        return False

    # -- the end ------------------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Put what was counted into the reading."""
        for computed in (self._waits, self._drop_offs):
            if computed is not None:
                computed.count()
        for kind in INPUTS:
            count = self._counted[kind]
            if count:
                self.reading.kinds[kind.kind] += count
            for track in self._tracks.values():
                if issubclass(kind, track.measure.reads):
                    track.inputs += count
        for name, judge, found in (
            (outcome.name, None, self._outcomes),
            (shadow.name, SHADOW_JUDGE, self._shadows),
            (learning.name, LEARNING_JUDGE, self._learnings),
        ):
            for each, sums in found.items():
                given_by = (each, UNVERSIONED) if judge is None else (judge, each)
                self._fill(self._tracks[name], given_by, sums)

    def _fill(
        self, track: Track, given_by: tuple[str, str], sums: OutcomeVerdicts | ShadowVerdicts | LearningVerdicts
    ) -> None:
        evaluator, version = given_by
        lane = track.kept_by(evaluator, version or None)
        if not lane.results:
            lane.share(self.numbering)
        entries = sums.entries()
        for entry in entries.values():
            entry.versions = Counter({given_by: sums.results})
            entry.flags = Counter(sums.flags)
        lane.add(entries, sums.results)


def _of(found: dict[str, S], name: str, make: Callable[[Numbering], S], numbering: Numbering) -> S:
    sums = found.get(name)
    if sums is None:
        sums = found[name] = make(numbering)
    return sums
