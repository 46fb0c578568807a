"""Straight from a SQLite store into tallies: SQLite puts the facts of each run together, and no run becomes an input.

It decides nothing of its own. A store that is not wholly as reflexr writes them, and a report that asks for more than
rates by rule, tenant or workspace, are read run by run as ever; nothing has been counted by then. It looks at fewer
rows and fields than that: only at what rates depend on, and so not at when runs were started.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic_core import from_json

from evalr.inputs import Role
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr.reports.lane import Grouped
from evalr.reports.reading import LATER, Reading, Track
from evalr.summaries import Rate
from evalr.summaries.columns import Hits
from evalr.tallies.numbering import Clusters, Numbering
from evalr_reflexr.envelopes import Actor, Workspace, fact_of, read_time
from evalr_reflexr.rules import OPERATORS, RuleOutcome, measure, outcome_of
from evalr_reflexr.runs import ARCHIVED, RULE_FACTS, STEPS, RuleFacts, RuleRun, StepKind
from evalr_reflexr.sqlite import Chunk, OpenSqlite, SqliteStore
from evalr_reflexr.stores import Store

KINDS: tuple[StepKind, ...] = tuple(STEPS.values())
CODES = {fact: code for code, fact in enumerate(STEPS)}
"""A kind of step as a number: its place among `KINDS`."""

OPERATED = min(CODES[fact] for fact in ("run_requeued", "run_skipped", "run_cancelled"))
"""From this number on, somebody operates."""

TOLD = tuple(CODES[fact] for fact in ("run_retrying", "run_succeeded", "run_dead_lettered"))
"""The kinds that a verdict has a field for."""

BY_PERSON, BY_OPERATOR, WITH_RULE = 1, 2, 4
"""Of an operation: a person's on the run itself; what reflexr counts as an intervention; one on the whole rule."""

OPERATIONS, LAST, REFIRED = len(KINDS), len(KINDS) + 2, 1 << 20
"""Where a run's code has who operated, and which fact was its last; below them, a bit for each kind of fact it has."""

CHUNK = 4_000
"""Rows that one statement looks at: for some ten milliseconds, in which a writer may have to wait."""

BATCH = 4_096


class Asked(NamedTuple):
    """Whose runs are counted, and who is who."""

    tenant: str | None
    workspace: str | None
    role: Callable[[Actor], Role]


class NotPlainError(Exception):
    """The store is to be read run by run."""


def count_runs(store: Store, log: Log, reading: Reading, asked: Asked) -> bool:
    """Count the runs of a store for the measure of rules. Returns whether that was done; nothing was counted if not."""
    tracks = [track for track in reading.tracks if issubclass(RuleRun, track.measure.reads)]
    counters = [_counter(track) for track in tracks]
    if not isinstance(store, SqliteStore) or not tracks or not reading.since is reading.until is None:
        return False
    numbering, counts = Numbering(), [each for each in counters if each is not None]
    if len(counts) < len(tracks):
        return False
    account = Log(log.path, log.kind, lambda log: iter(()), strict=log.strict)
    with store.opened() as opened:
        try:
            runs = _Runs(opened, account, asked, reading.now)
        except (NotPlainError, sqlite3.Error):
            return False
        log.notes += account.notes
        for count in counts:
            count.track.computed.share(numbering)
        for batch in runs.batches(numbering):
            for count in counts:
                count(batch, numbering)
        log.records += runs.counted + runs.later
        reading.kinds += Counter({RuleRun.kind: runs.counted})
        reading.left_out += Counter({LATER: runs.later})
        reading.attributes |= runs.attributes
        times = [at for at in (*runs.times, reading.first, reading.last) if at is not None]
        reading.first, reading.last = min(times, default=None), max(times, default=None)
    return True


class _Run(NamedTuple):
    """A run, as far as rates depend on it."""

    workspace: Workspace
    cluster: int
    """The number of its chain."""
    rule: str
    code: int
    """What became of it; see `_outcome_of`."""


class _Counter:
    """The measure of rules along the runs: what its summaries count of each, all at once."""

    def __init__(self, track: Track, columns: Sequence[Hits], rates: Sequence[Rate[RuleOutcome]]) -> None:
        self.track = track
        self._columns, self._rates = columns, rates
        self._intervention = BY_PERSON if track.settings["compat"] is None else BY_OPERATOR
        self._terms: dict[int, list[Any]] = {}

    def __call__(self, runs: Sequence[_Run], numbering: Numbering) -> None:
        """Count some runs."""
        lane, evaluator = self.track.computed, self.track.evaluator
        assert evaluator is not None
        terms = [self._terms.get(run.code) or self._terms_of(run.code) for run in runs]
        for column, of_each in zip(self._columns, zip(*terms, strict=True), strict=True):
            column.of[:] = of_each
        groups = None
        if lane.by is not None:
            group_of = _GROUP_OF[str(lane.by)]
            groups = [Grouped((group_of(run),), run.cluster) for run in runs]
        clusters = Clusters([run.cluster for run in runs], numbering)
        lane.put_batch(self._columns, clusters, groups, (evaluator.name, evaluator.version))
        self.track.inputs += len(runs)

    def _terms_of(self, code: int) -> list[Any]:
        """What each summary counts of runs like this one: (hits, total), or why it leaves them out."""
        outcome = _outcome_of(code, self._intervention)
        left_out = [None if rate.leaves_out is None else rate.leaves_out(outcome) for rate in self._rates]
        found = [why or (rate.hits(outcome), 1) for rate, why in zip(self._rates, left_out, strict=True)]
        self._terms[code] = found
        return found


def _outcome_of(code: int, intervention: int) -> RuleOutcome:
    """What became of a run, of the number that SQLite makes of its facts, in which each has bits of its own."""
    last = code >> LAST
    return outcome_of(
        {kind for number, kind in enumerate(KINDS) if code >> number & 1},
        KINDS[last >> 3 & 7],
        intervened=bool(code >> OPERATIONS & intervention),
        archived=bool(last & WITH_RULE),
        refired=bool(code & REFIRED),
    )


_GROUP_OF: Mapping[str, Callable[[_Run], str | None]] = {
    "rule": lambda run: run.rule,
    "tenant": lambda run: run.workspace.tenant,
    "workspace": lambda run: run.workspace.name,
}


def _counter(track: Track) -> _Counter | None:
    """What counts runs for a measure; None where it must be asked for its verdicts one by one."""
    lane, columns = track.computed, track.computed.columns()
    is_own = track.measure.evaluator is measure.evaluator and track.measure.input is RuleRun
    if (
        not is_own
        or columns is None
        or lane.details
        or not (lane.by is None or lane.by in _GROUP_OF)
        or lane.cluster is not None
    ):
        return None
    alike: dict[Any, Any] = {}
    for summary in lane.summaries:
        alike.setdefault(summary.reads(), summary)
    hits = [each for each in columns if isinstance(each, Hits)]
    rates = [each for each in alike.values() if isinstance(each, Rate) and each.total is None]
    return _Counter(track, hits, rates) if len(hits) == len(rates) == len(columns) else None


class _Runs:
    """The runs of a store, put together by SQLite in a temporary table that goes with the connection.

    Raises:
        NotPlainError, sqlite3.Error: the store is to be read run by run.
    """

    def __init__(self, opened: OpenSqlite, log: Log, asked: Asked, now: datetime) -> None:
        self._db = opened.connection
        self._places: list[Workspace] = []
        self._rules, self._role = RuleFacts(), asked.role
        tenant, workspace = asked.tenant, asked.workspace
        for envelope in opened.envelopes(log, tenant=tenant, workspace=workspace, types=_of_rules, size=CHUNK):
            self._rules.take(envelope)
        if log.left_out.total or log.repaired:
            raise NotPlainError
        self._db.execute("PRAGMA temp_store = FILE")
        self._db.execute(_FACTS)
        self._db.create_function("operation", 6, self._operation)
        for chunk in opened.chunks(log, tenant, workspace, _of_outcomes, size=CHUNK):
            self._take(chunk)
        self._put_together(now)

    def _take(self, chunk: Chunk) -> None:
        """Take the facts of a chunk in."""
        if self._places[-1:] != [chunk.workspace]:
            self._places.append(chunk.workspace)
        codes = [each for name in chunk.types for each in (name, CODES[fact_of(name) or ""])]
        kind = f"CASE event_type {'WHEN ? THEN ? ' * len(chunk.types)} END AS kind"
        self._db.execute(
            _taking(chunk.sql(f"{kind}, {_FIELDS}", order="seq")), (len(self._places) - 1, *codes, *chunk.values)
        )

    def _put_together(self, now: datetime) -> None:
        until = now.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
        if self._one(_BACKWARDS):
            raise NotPlainError
        self._db.execute(_RUNS, {"now": until})
        if self._one(_NOT_PLAIN):
            raise NotPlainError
        # Texts that are no Unicode are an error here, while nothing has been counted.
        deque(self._db.execute("SELECT chain, rule FROM temp.runs"), maxlen=0)
        self.later = self._db.execute("DELETE FROM temp.runs WHERE at > ?", (until,)).rowcount
        begin, end, self.counted, is_scoped, has_failed = self._one(
            "SELECT min(at), max(at), count(*), max(is_scoped), max(has_failed) FROM temp.runs"
        )
        try:
            self.times = [read_time(f"{at}+00:00") for at in (begin, end) if at is not None]
        except Reason:
            raise NotPlainError from None
        self.attributes = {"rule", "generation", "tenant", "workspace"} if self.counted else set()
        optional = {"scope": is_scoped, "reason": has_failed, "rule_version": self._has_versions()}
        self.attributes |= {name for name, is_there in optional.items() if is_there}

    def _has_versions(self) -> bool:
        return any(
            self._one(
                "SELECT 1 FROM temp.runs WHERE place = ? AND rule = ? AND seq > ? LIMIT 1",
                (self._places.index(workspace), rule, since),
            )
            for (workspace, rule), since in self._rules.versions_since().items()
            if workspace in self._places
        )

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._db.execute(sql, values).fetchone()

    def _operation(self, actor: str, kind: int, place: int, rule: str, seq: int, reason: str | None) -> int:
        """Whose an operation is, as a sum of what is said of it above."""
        who = from_json(actor)
        with_rule = KINDS[kind] == "cancelled" and (
            self._rules.archived(self._places[place], rule, seq) or reason == ARCHIVED
        )
        found = WITH_RULE if with_rule else BY_PERSON if self._role(who) == "person" else 0
        return found + (BY_OPERATOR if who["kind"] in OPERATORS else 0)

    def batches(self, numbering: Numbering) -> Iterator[list[_Run]]:
        """The runs, some thousands at a time; those of one chain one after the other."""
        cursor = self._db.execute("SELECT place, chain, first, code, rule, occurrence FROM temp.runs")
        batch: list[_Run] = []
        for (place, chain), rows in groupby(cursor, key=itemgetter(0, 1)):
            workspace = self._places[place]
            cluster = numbering.number((workspace.key(chain),))
            fired = set[tuple[str, str]]()
            for _, _, _, code, rule, occurrence in sorted(rows):
                if occurrence is not None:
                    code += REFIRED * ((rule, occurrence) in fired)
                    fired.add((rule, occurrence))
                batch.append(_Run(workspace, cluster, rule, code))
            if len(batch) >= BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def _of_rules(type_name: str) -> bool:
    return fact_of(type_name) in RULE_FACTS


def _of_outcomes(type_name: str) -> bool:
    fact = fact_of(type_name)
    return fact in STEPS and fact != "run_started"


_FACTS = """
    CREATE TEMP TABLE facts (place, kind, seq, chain, run, at, rule, operation, occurrence, is_scoped, plain)
"""
_TIME = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]*"
_FIELDS = f"""
    seq,
    envelope,
    json_extract(envelope, '$.correlation_id') AS chain,
    coalesce(json_extract(envelope, '$.event.run_id'), json_extract(envelope, '$.event.firing_id')) AS run,
    json_extract(envelope, '$.event.rule') AS rule,
    json_extract(envelope, '$.ts') AS ts,
    (json_valid(envelope) AND json_extract(
        envelope, '$.id', '$.workspace_id', '$.correlation_id', '$.actor.kind', '$.event.rule', '$.ts', '$.event.type',
        '$.seq'
    ) GLOB '[[]"?*","?*","?*","*","?*","{_TIME}Z","' || event_type || '",' || seq || ']') IS TRUE AS plain
"""
"""The texts among them are texts in a list of JSON, where nothing but their ends looks like `","`."""


def _taking(rows: str) -> str:
    # LIMIT has SQLite read a field once for each row, and not once for each time that it stands below.
    return f"""
        INSERT INTO temp.facts SELECT
            ?1, kind, seq, chain, run, substr(ts, 1, length(ts) - 1), rule,
            CASE WHEN kind >= {OPERATED} THEN
                operation(json_extract(envelope, '$.actor'), kind, ?1, rule, seq,
                    json_extract(envelope, '$.event.reason'))
            ELSE 0 END,
            CASE WHEN kind = 0 AND json_array_length(envelope, '$.event.matched') > 0 THEN
                json_extract(envelope, '$.event.scope_key', '$.event.matched') END,
            kind = 0 AND json_type(envelope, '$.event.scope') = 'object'
                AND json_extract(envelope, '$.event.scope') <> '{{}}',
            plain AND length(ts) <= 27 AND ltrim(substr(ts, 20), '.0123456789') = 'Z'
        FROM ({rows} LIMIT -1)
    """


# Times are texts, of which the earlier one is the smaller one.
_BACKWARDS = """
    SELECT 1 FROM temp.facts AS one
    JOIN temp.facts AS other ON other.rowid = one.rowid + 1 AND other.place = one.place
    WHERE other.at < one.at
    LIMIT 1
"""
# A fact's place in the log, its kind, and whether it is about the whole rule are put into one number.
_RUNS = f"""
    CREATE TEMP TABLE runs AS
    SELECT
        place, chain, max(rule) AS rule,
        {" + ".join(f"max(is_past AND kind = {code}) * {1 << code}" for code in TOLD)}
            + (max(is_past AND operation & {BY_PERSON}) * {BY_PERSON}
                + max(is_past AND operation & {BY_OPERATOR}) * {BY_OPERATOR} << {OPERATIONS})
            + ((max(CASE WHEN is_past THEN packed END) & 63) << {LAST}) AS code,
        min(packed) AS first,
        min(seq) AS seq,
        min(at) AS at,
        max(occurrence) AS occurrence,
        max(is_scoped) AS is_scoped,
        max(kind IN ({KINDS.index("retrying")}, {KINDS.index("dead_lettered")})) AS has_failed,
        min(plain) AND sum(kind = 0) = 1 AND min(packed) >> 3 & 7 = 0 AND min(rule) = max(rule)
            AND typeof(run) = 'text' AND run GLOB '[^[{{]*' AS plain
    FROM (
        SELECT *, (rowid << 6) + (kind << 3) + (operation & {WITH_RULE}) AS packed, at <= :now AS is_past
        FROM temp.facts
    )
    GROUP BY place, chain, run
"""
_NOT_PLAIN = "SELECT 1 FROM temp.runs WHERE plain IS NOT TRUE LIMIT 1"
