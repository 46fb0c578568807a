"""What one Reflexio log holds, session by session: the one way in for readers, arms and reports.

Every release names its columns a little differently. They are looked up, and what is not there is read as missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from secrets import token_bytes
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from evalr.errors import InputError, LogError
from evalr.estimates.words import choice_words
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr.logs.sqlite import Database
from evalr.quoting import quoted
from evalr_reflexio.cells import instant, text_of
from evalr_reflexio.config import Experiment
from evalr_reflexio.digests import playbook_digest
from evalr_reflexio.ids import Ids
from evalr_reflexio.parsing import (
    UNNAMED_EVALUATOR,
    Parts,
    customer_outcome_row,
    grading_state,
    interaction_row,
    learning_row,
    outcome_row,
    request_place,
    request_row,
    shadow_row,
)
from evalr_reflexio.queries import MENDED, Queries, chunks, marks, padded
from evalr_reflexio.rows import (
    NOT_KEPT,
    Columns,
    CustomerOutcomeRow,
    InteractionRow,
    LearningRow,
    OutcomeRow,
    Reference,
    RequestRow,
    SessionRecord,
    ShadowRow,
)
from evalr_reflexio.tables import (
    CUSTOMERS,
    FIELDS,
    IDENTITY,
    INTERACTIONS,
    LEARNING_TABLES,
    LEARNINGS,
    NOUNS,
    OUTCOMES,
    REQUESTS,
    SHADOWS,
    STATES,
)
from evalr_reflexio.turns import OrdinaryTurns, ids_of, spoken_in

Row = TypeVar("Row")
Rows = Iterable[Sequence[Sequence[Any]]]
"""Rows as the database has them, some at a time."""

BATCH = 128
"""How many sessions are put together at a time: more would be slower, since Python then looks through more of them."""

_CLOSE = 3
"""Among how many rows for each that is wanted it is faster to read them all than to look up each."""

_SAMPLED = 1_000
"""How many requests are looked at, to cut a log into spans of time."""

NO_SESSION = "request without a session id"
NO_REQUEST = "interaction without its request"
NO_TEXT = "interaction whose request id is no text"
OF_LEFT_OUT = "interaction of a request that is left out"
_NAMED = "(session_id IS NOT NULL AND trim(session_id) <> '')"
_PLACED = (OUTCOMES, SHADOWS, LEARNINGS, CUSTOMERS)
_CONTENTS = FIELDS[INTERACTIONS][3:]
"""The columns of interactions that one can do without: all but their id, request and time."""
BAD_TEXT = "texts that are no UTF-8"
BY_TIME = "verdicts without a user, given to the one whose session began then"

_READERS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    OUTCOMES: ("result_id", outcome_row),
    SHADOWS: ("verdict_id", shadow_row),
    LEARNINGS: ("result_id", learning_row),
    CUSTOMERS: ("outcome_id", customer_outcome_row),
}
"""Of each table of verdicts the name of its id, and what reads a row."""


class Span(NamedTuple):
    """A span of time: of sessions, those whose first request, as the log writes its time, is in it.

    Attributes:
        begin: as the log writes it; None for the first span, which has what has no time, too.
        end: what began exactly then is in the next span; None for the last one.
        share: of the log's requests, from 0 to 1, about.
    """

    begin: str | None = None
    end: str | None = None
    share: float = 1.0


class Placed:
    """What of a log is in the sessions that were read so far, each row once.

    Attributes:
        key: see `Ids`.
        verdicts: by table, the ids of rows that are in a session, or cannot be used.
        told: parts of rows that cannot be used, which were counted.
        interactions: how many rows there are of these sessions, or of requests that are left out.
        mended_texts: those of another process that were no UTF-8.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self.key = token_bytes(16) if key is None else key
        self.verdicts = {table: Ids(self.key) for table in _PLACED}
        self.told = Ids(self.key)
        self.mended_texts = Ids(b"")
        self.interactions = 0

    def has_none_of(self, other: Placed) -> bool:
        """Whether no verdict is in both: one that cannot be used, of a session id of several users, may be."""
        apart = all(ids.has_none_of(other.verdicts[table]) for table, ids in self.verdicts.items())
        return apart and self.told.has_none_of(other.told)

    def merge(self, other: Placed) -> None:
        """Take in what another reading has placed, of other sessions, with the same key."""
        for table, ids in self.verdicts.items():
            ids.merge(other.verdicts[table])
        self.told.merge(other.told)
        self.interactions += other.interactions
        self.mended_texts.merge(other.mended_texts)


class Store:
    """One log, open for reading: a database, or answers of the HTTP API put into one of its own.

    Use it in a `with` statement, or close it. All that is read is of one state of the database. Every method that reads
    rows takes the account (see `account`) in which it counts what cannot be used.

    Attributes:
        path: as messages name it.
        org: the organisation that it belongs to, where it says.
        over_http: whether it holds answers of the HTTP API, which keeps less.
        experiments: those that the HTTP API listed; of a database, its configuration has them.
        notes: what else to know of how it was opened.
    """

    def __init__(
        self,
        database: Database,
        path: Path | str,
        *,
        over_http: bool = False,
        org: str | None = None,
        experiments: Sequence[Experiment] = (),
        refused: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.path = str(path)
        self.over_http = over_http
        self.notes = database.notes
        self.experiments = experiments
        self._refused = refused
        self._database = database
        self._shared: dict[str, list[tuple[str, datetime | None]]] | None = None
        self._digests: dict[str, str | None] = {}
        self._experiments: dict[str, Counter[str]] | None = None
        try:
            self._queries = Queries(database.connection, self.path)
            if not self.has(REQUESTS) and not self.has(OUTCOMES):
                why = self._why_there_is_less()
                raise LogError(
                    f"{path} is an SQLite database, but none of Reflexio's: it has no table of requests{why}"
                )
            self.org = org or self._claimed_by()
        except BaseException:
            self.close()
            raise

    # -- what it is ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the reading."""
        self._database.close()

    def is_newest(self) -> bool:
        """Whether nobody has written to the log since it was opened, `watched`; see `Database`."""
        return self._database.is_newest()

    def check_unchanged(self) -> None:
        """Raise LogError where somebody wrote to a database that was opened as one that does not change."""
        self._database.check_unchanged()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._database.size

    def empty(self) -> LogError:
        """The error for a log without a record, with what of it could not be read."""
        return LogError(f"{self.path}: there are no records in it{self._why_there_is_less()}")

    def _why_there_is_less(self) -> str:
        return "" if self.over_http else "".join(f"; {note}" for note in self.notes)

    def account(self, *, strict: bool = False) -> Log:
        """An account of its own for one reading. With `strict`, the first row that cannot be used is a RecordError."""
        return Log(self.path, "reflexio", lambda log: iter(()), strict=strict)

    @property
    def queries(self) -> Queries:
        """The database itself, to be asked in SQL."""
        return self._queries

    @property
    def columns(self) -> Columns:
        """The columns of each table that the log has; a table that is not Reflexio's is not among them."""
        return self._queries.columns

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the log has a table, or a column of it."""
        return self._queries.has(table, column)

    @property
    def keeps_metadata(self) -> bool:
        """Whether requests have metadata: only releases 0.2.24 and 0.2.25 keep it, and later ones take it out."""
        return "metadata" in self.columns.get(REQUESTS, ())

    def count(self, table: str) -> int:
        """How many rows a table has; 0 where the log has none."""
        return self._queries.count(table)

    def _claimed_by(self) -> str | None:
        if not self.has(IDENTITY, "org_id"):
            return None
        row = next(self._queries.rows(f"SELECT org_id FROM {IDENTITY} LIMIT 1"), None)
        return None if row is None else text_of(row[0]) or None

    # -- sessions -----------------------------------------------------------------------------------------------------

    def sessions(
        self, account: Log, *, without: Collection[str] = (), now: datetime | None = None
    ) -> Iterator[SessionRecord]:
        """Every session with all that the log holds of it, by when it began; last, verdicts whose session is gone.

        No more than a few hundred sessions are in memory.

        Args:
            account: takes count of what cannot be used.
            without: columns of interactions that nobody will look at, such as "content" and "tools_used", to be read as
                missing: that is faster.
            now: the reading time of whoever looks at few turns: ordinary ones until then are only made when they are
                looked at (see `turns`), which is faster still.

        Raises:
            InputError: there is no such column to do without.
            LogError: the database is damaged, locked, or was written meanwhile.
        """
        unknown = sorted(set(without) - set(_CONTENTS))
        if unknown:
            raise InputError(f"without={unknown[0]!r}; {choice_words(unknown[0], _CONTENTS)}")
        placed = Placed()
        yield from self.sessions_in(Span(), account, placed, without=without, now=now)
        yield from self.rest(account, placed)

    def sessions_in(
        self,
        span: Span,
        account: Log,
        placed: Placed,
        *,
        without: Collection[str] = (),
        now: datetime | None = None,
    ) -> Iterator[SessionRecord]:
        """The sessions of a span of time, by when they began, as `sessions` has them; `placed` takes note of them."""
        parts = self._parts(account, placed)
        for batch, rows in self._batches(account, span):
            lost = self._add_requests(batch, rows, parts)
            records = [record for record in batch.values() if record.requests]
            placed.interactions += self._fill(records, parts, placed.verdicts, without, now)
            placed.interactions += self._leave_out_turns(lost, account)
            yield from records

    def rest(self, account: Log, placed: Placed) -> Iterator[SessionRecord]:
        """Verdicts that are in none of the log's sessions, once these were read; what else is in none is counted.

        Raises:
            LogError: as for `sessions`.
        """
        for reason, place in self._refused:
            account.records += 1
            account.skip(reason, place)
        parts = self._parts(account, placed)
        placed.interactions += self._leave_out_sessionless(account, parts)
        self._count_requestless(placed.interactions, account)
        yield from self._unplaced(parts, placed.verdicts)
        self.check_unchanged()
        account.bytes_read = self.size
        placed.mended_texts.merge(self._queries.mended_texts)
        if placed.mended_texts:
            account.repaired[BAD_TEXT] = len(placed.mended_texts)

    def cut(self, shares: Sequence[float]) -> list[Span]:
        """Spans of time, one after the other and all there is, with about these shares of the requests.

        One alone, where they cannot be told apart: where requests have no times, or one for all.
        """
        times = sorted(self._sampled_times())
        cuts: list[str | None] = [None]
        before = 0.0
        for share in shares[:-1]:
            before += share
            found = times[min(int(before * len(times)), len(times) - 1)] if times else None
            if found is None or found == cuts[-1]:
                return [Span()]
            cuts.append(found)
        return [Span(*each) for each in zip(cuts, [*cuts[1:], None], shares, strict=True)]

    def _sampled_times(self) -> Iterator[str]:
        """When some requests were made, as the log writes it, from all over the table."""
        first, last = next(self._queries.rows("SELECT min(rowid), max(rowid) FROM requests"))
        if first is not None:
            for place in range(first, last + 1, max(1, (last - first) // _SAMPLED)):
                row = next(self._queries.rows("SELECT created_at FROM requests WHERE rowid >= ? LIMIT 1", [place]))
                if type(row[0]) is str:
                    yield row[0]

    def sessions_of_id(self, session: str, account: Log) -> list[SessionRecord]:
        """The sessions of one id: of several users, where several use it. Nothing else is read."""
        if REQUESTS not in self.columns:
            return []
        placed = Placed()
        parts = self._parts(account, placed)
        rows = self._queries.rows(
            "SELECT DISTINCT coalesce(user_id, '') FROM requests WHERE session_id = ? ORDER BY 1", (session,)
        )
        batch = {(user, session): SessionRecord(user, session) for (user,) in rows}
        self._add_requests(batch, self._queries.keyed(REQUESTS, "session_id", [session]), parts)
        records = [record for record in batch.values() if record.requests]
        self._fill(records, parts, placed.verdicts)
        self.check_unchanged()
        return records

    def _batches(self, account: Log, span: Span) -> Iterator[tuple[dict[tuple[str, str], SessionRecord], Rows]]:
        """The sessions, by when they began as their first request writes it, and the rows among which are theirs."""
        account.bytes_total = self.size
        if REQUESTS not in self.columns:
            return
        bounds = [bound for bound in (span.begin, span.end) if bound is not None]
        after = "1" if span.begin is None else "coalesce(began >= ?, 0)"
        before = "1" if span.end is None else "NOT coalesce(began >= ?, 0)"
        rows = self._queries.rows(
            "SELECT coalesce(user_id, ''), session_id, min(created_at) AS began, count(*), min(rowid), max(rowid) "
            f"FROM requests WHERE {_NAMED} GROUP BY 1, 2 HAVING {after} AND {before} ORDER BY began, 2, 1",
            bounds,
        )
        total, seen = max(1.0, self.count(REQUESTS) * span.share), 0
        for found in chain.from_iterable(map(_asked_together, iter(lambda: list(islice(rows, BATCH)), []))):
            records = {(user, session): SessionRecord(text_of(user), text_of(session)) for user, session, *_ in found}
            yield records, self._among(found)
            seen += sum(row[3] for row in found)
            account.bytes_read = int(self.size * min(1.0, seen / total))

    def _among(self, found: Sequence[Sequence[Any]]) -> Rows:
        """The rows among which are the requests of sessions that are asked for together."""
        _, sessions, _, counts, firsts, lasts = zip(*found, strict=True)
        first, last = min(firsts), max(lasts)
        if _is_mended(found[0]):
            return [self._queries.alike(REQUESTS, first, ("session_id", "user_id"))]
        # What is written as time goes by is close together, and need not be looked up.
        if last - first < _CLOSE * sum(counts):
            return [self._queries.between(REQUESTS, first, last)]
        return self._queries.keyed(REQUESTS, "session_id", list(dict.fromkeys(sessions)))

    def _add_requests(self, batch: Mapping[tuple[str, str], SessionRecord], requests: Rows, parts: Parts) -> list[str]:
        """Give sessions their requests, which are among these. Returns the ids of those that cannot be used."""
        lost: list[str] = []
        missing = None if self.keeps_metadata else NOT_KEPT
        for rows in requests:
            for row in rows:
                record = batch.get((row[2] or "", row[3]))
                if record is None:
                    continue  # another session's
                try:
                    record.requests.append(request_row(row, parts, missing))
                except Reason as reason:
                    parts.fault(reason, request_place(row))
                    if isinstance(row[1], str):
                        lost.append(row[1])
        for record in batch.values():
            if len(record.requests) > 1:
                record.requests.sort(key=_request_order)
        return lost

    def _leave_out_sessionless(self, account: Log, parts: Parts) -> int:
        """Count the requests without a session id. Returns how many interactions the log has of them."""
        count = 0
        if REQUESTS in self.columns:
            rows = self._queries.rows(
                f"SELECT {self._queries.fields(REQUESTS, 't')} FROM requests t WHERE NOT {_NAMED} ORDER BY 1"
            )
            while found := list(islice(rows, BATCH)):
                for row in found:
                    parts.fault(Reason(NO_SESSION), request_place(row))
                count += self._leave_out_turns([row[1] for row in found if isinstance(row[1], str)], account)
        return count

    def _leave_out_turns(self, requests: list[str], account: Log) -> int:
        """Count the interactions of requests that are left out."""
        count = 0
        if requests and INTERACTIONS in self.columns:
            for rows in self._queries.keyed(INTERACTIONS, "request_id", requests, without=_CONTENTS):
                count += len(rows)
                account.records += len(rows)
                for row in rows:
                    account.leave_out(OF_LEFT_OUT, f"interaction {row[0]}")
        return count

    def _count_requestless(self, seen: int, account: Log) -> None:
        """Count the interactions whose request is not in the log; where the numbers agree, nobody looks."""
        if INTERACTIONS not in self.columns or self.count(INTERACTIONS) == seen:
            return
        where = "NOT EXISTS (SELECT 1 FROM requests r WHERE r.request_id = t.request_id)"
        where = where if REQUESTS in self.columns else "1"
        for row in self._queries.rows(f"SELECT t.interaction_id FROM interactions t WHERE {where} ORDER BY 1"):
            seen += 1
            account.records += 1
            account.skip(NO_REQUEST, f"interaction {row[0]}")
        if self.count(INTERACTIONS) > seen:
            rows = "SELECT t.interaction_id, CAST(t.request_id AS BLOB), typeof(t.request_id) FROM interactions t"
            for name, request, kind in self._queries.rows(f"{rows} WHERE NOT {where} ORDER BY 1"):
                if kind != "text" or not _is_utf_8(request):
                    account.records += 1
                    account.skip(NO_TEXT, f"interaction {name}")

    # -- what belongs to a session ------------------------------------------------------------------------------------

    def _fill(
        self,
        batch: list[SessionRecord],
        parts: Parts,
        placed: Mapping[str, Ids],
        without: Collection[str] = (),
        now: datetime | None = None,
    ) -> int:
        """Give sessions their interactions and verdicts. Returns how many interactions the log has of them."""
        if not batch:
            return 0
        count = self._add_turns(batch, parts, without, now) if INTERACTIONS in self.columns else 0
        by_key = {(record.user, record.session): record for record in batch}
        sessions = list(dict.fromkeys(record.session for record in batch))
        for outcome in self._verdicts(OUTCOMES, sessions, outcome_row, parts, placed, list(by_key)):
            owner = by_key.get((outcome.user, outcome.session))
            if not outcome.user:
                owner = self._owner(outcome.session, outcome.at, by_key, parts)
            if owner is not None and placed[OUTCOMES].add(outcome.result_id):
                owner.outcomes.append(outcome)
        self._place_shadows(batch, by_key, sessions, parts, placed)
        for learning in self._verdicts(LEARNINGS, sessions, learning_row, parts, placed):
            owner = by_key.get((learning.user, learning.session))
            if owner is not None and placed[LEARNINGS].add(learning.result_id):
                owner.learning_verdicts.append(self._with_digest(learning))
        for reported in self._verdicts(CUSTOMERS, sessions, customer_outcome_row, parts, placed):
            owner = by_key.get((reported.user, reported.session))
            if owner is not None and placed[CUSTOMERS].add(reported.outcome_id):
                owner.customer_outcome = reported
        self._add_states(by_key, parts)
        return count

    def _add_turns(
        self, batch: list[SessionRecord], parts: Parts, without: Collection[str], now: datetime | None
    ) -> int:
        """Give sessions their interactions. Returns how many the log has of them."""
        requests = list(dict.fromkeys(request[0] for record in batch for request in record.requests))
        found = self._queries.keyed(INTERACTIONS, "request_id", requests, without=without)
        rows = list(chain.from_iterable(found))
        is_plain = now is not None and len(requests) == sum(len(record.requests) for record in batch)
        others = _without_ordinary(batch, rows, parts, now) if now is not None and is_plain else batch
        turns_of: dict[str, list[InteractionRow]] = {}
        for record in others:
            turns: list[InteractionRow] = []
            record.interactions = turns
            turns_of.update((request[0], turns) for request in record.requests)
        for row in rows if others else ():
            if row[1] in turns_of:
                try:
                    turns_of[row[1]].append(interaction_row(row, parts))
                except Reason as reason:
                    parts.fault(reason, f"interaction {row[0]}")
        for record in others:
            turns_of[record.requests[0][0]].sort(key=_by_time)
        return len(rows)

    def _place_shadows(
        self,
        batch: list[SessionRecord],
        by_key: Mapping[tuple[str, str], SessionRecord],
        sessions: list[str],
        parts: Parts,
        placed: Mapping[str, Ids],
    ) -> None:
        """Shadow verdicts name no user: their interaction does, or a session id that is one user's alone."""
        if SHADOWS not in self.columns:
            return
        of_session: defaultdict[str, list[SessionRecord]] = defaultdict(list)
        for record in batch:
            of_session[record.session].append(record)
        verdicts = self._verdicts(SHADOWS, sessions, shadow_row, parts, placed)
        judged = {verdict.session for verdict in verdicts}
        owners = {
            (session, turn): record
            for session in judged
            for record in of_session[session]
            for turn in ids_of(record.interactions)
        }
        for verdict in verdicts:
            owner = None if verdict.interaction is None else owners.get((verdict.session, verdict.interaction))
            records = of_session[verdict.session]
            if owner is None and records and verdict.session not in self._sessions_of_several():
                owner = records[0]
            if owner is not None and placed[SHADOWS].add(verdict.verdict_id):
                owner.shadow_verdicts.append(verdict)

    def _owner(
        self,
        session: str,
        at: datetime,
        by_key: Mapping[tuple[str, str], SessionRecord],
        parts: Parts,
    ) -> SessionRecord | None:
        """Whose a verdict without a user is, as older releases keep it: that of the session id.

        Where several use it, it is the one whose session began when the verdict's did.
        """
        several = self._sessions_of_several().get(session)
        if several is None:
            return next((record for key, record in by_key.items() if key[1] == session), None)
        began = [each for each, first in several if first == at]
        found = by_key.get((began[0], session)) if len(began) == 1 else None
        if found is not None:
            parts.repaired(BY_TIME)
        return found

    def _sessions_of_several(self) -> Mapping[str, list[tuple[str, datetime | None]]]:
        """The session ids that several users use, each with who they are and when their session began."""
        if self._shared is None:
            self._shared = {}
            several = (
                "SELECT session_id FROM requests GROUP BY session_id HAVING count(DISTINCT coalesce(user_id, '')) > 1"
            )
            query = (
                "SELECT session_id, user_id, min(created_at) FROM requests "
                f"WHERE session_id IN ({several}) GROUP BY session_id, user_id"
            )
            for session, user, began in self._queries.rows(query) if REQUESTS in self.columns else ():
                try:
                    at = instant(began)
                except Reason:
                    at = None
                self._shared.setdefault(text_of(session), []).append((text_of(user), at))
        return self._shared

    def _add_states(self, by_key: Mapping[tuple[str, str], SessionRecord], parts: Parts) -> None:
        if not self.has(STATES, "service_name") or not self.has(LEARNINGS):
            return
        names = {
            f"retrieved_learning_eval::{len(user)}:{user}::{len(session)}:{session}": record
            for (user, session), record in by_key.items()
        }
        for chunk in chunks(list(names)):
            query = f"SELECT service_name, operation_state FROM {STATES} WHERE service_name IN ({marks(chunk)})"
            for name, state in self._queries.rows(query, padded(chunk)):
                record = names[name]
                record.grading = parts.take(grading_state, state, place=f"grading of session {quoted(record.session)}")

    def _unplaced(self, parts: Parts, placed: Mapping[str, Ids]) -> Iterator[SessionRecord]:
        """The verdicts whose session is not in the log, or whose user cannot be told, as sessions without requests."""
        # What customers reported comes with what the judge said of the same session: customers report little.
        reported = {(row.user, row.session): row for row in self._unplaced_rows(CUSTOMERS, parts, placed)}
        for table, attribute in (
            (OUTCOMES, "outcomes"),
            (SHADOWS, "shadow_verdicts"),
            (LEARNINGS, "learning_verdicts"),
        ):
            record: SessionRecord | None = None
            for row in self._unplaced_rows(table, parts, placed):
                user = getattr(row, "user", "")
                if record is None or record.key != (user, row.session):
                    if record is not None:
                        yield record
                    record = SessionRecord(user, row.session)
                    if table == OUTCOMES:
                        record.customer_outcome = reported.pop(record.key, None)
                getattr(record, attribute).append(row)
            if record is not None:
                yield record
        for (user, session), row in reported.items():
            yield SessionRecord(user, session, customer_outcome=row)

    def _unplaced_rows(self, table: str, parts: Parts, placed: Mapping[str, Ids]) -> Iterator[Any]:
        """The rows of a table that are in no session so far, by session and user."""
        if table not in self.columns or len(placed[table]) == self.count(table):
            return
        id_name, read = _READERS[table]  # the id is the first field of each of these rows
        fields = self._queries.fields(table, "t")
        order = ", ".join(f"t.{name}" for name in ("session_id", "user_id", id_name) if self.has(table, name))
        for raw in self._queries.rows(f"SELECT {fields} FROM {table} t ORDER BY {order}"):
            if not placed[table].add(raw[0]):
                continue
            row = parts.take(read, raw, parts, place=f"{NOUNS[table]} {text_of(raw[0])}")
            if row is not None and (row[0] == raw[0] or placed[table].add(row[0])):
                yield self._with_digest(row) if table == LEARNINGS else row

    def _verdicts(
        self,
        table: str,
        sessions: list[str],
        read: Callable[[Sequence[Any], Parts], Row],
        parts: Parts,
        placed: Mapping[str, Ids],
        keys: list[tuple[str, str]] | None = None,
    ) -> list[Row]:
        if table not in self.columns:
            return []
        found = (
            self._queries.keyed(table, "session_id", sessions)
            if keys is None
            else self._queries.of_keys(table, keys, sessions)
        )
        rows = list(chain.from_iterable(found))
        try:
            rows.sort(key=_first)
        except TypeError:  # ids of several types
            rows.sort(key=_by_id)
        read_rows: list[Row] = []
        for raw in rows:
            try:
                read_rows.append(read(raw, parts))
            except Reason as reason:
                if placed[table].add(raw[0]):
                    parts.fault(reason, f"{NOUNS[table]} {text_of(raw[0])}")
        return read_rows

    # -- single tables ------------------------------------------------------------------------------------------------

    def requests(self, account: Log) -> Iterator[RequestRow]:
        """Every request that can be used, by (time as it is written, id)."""
        parts = self._parts(account)
        missing = None if self.keeps_metadata else NOT_KEPT
        yield from self._table(
            REQUESTS, "created_at, request_id", lambda row, _: request_row(row, parts, missing), parts
        )

    def interactions(self, account: Log) -> Iterator[InteractionRow]:
        """Every interaction that can be used, by id."""
        yield from self._table(INTERACTIONS, "interaction_id", interaction_row, self._parts(account))

    def outcomes(self, account: Log) -> Iterator[OutcomeRow]:
        """Every verdict on a session that can be used, by (time as written, id): none is dropped as a duplicate."""
        yield from self._table(OUTCOMES, "created_at, result_id", outcome_row, self._parts(account))

    def shadow_verdicts(self, account: Log) -> Iterator[ShadowRow]:
        """Every verdict on two answers that can be used, by id."""
        yield from self._table(SHADOWS, "verdict_id", shadow_row, self._parts(account))

    def learning_verdicts(self, account: Log) -> Iterator[LearningRow]:
        """Every verdict on a learning that can be used, by id."""
        yield from map(self._with_digest, self._table(LEARNINGS, "result_id", learning_row, self._parts(account)))

    def customer_outcomes(self, account: Log) -> Iterator[CustomerOutcomeRow]:
        """Every outcome that customers reported and that can be used, by session."""
        yield from self._table(CUSTOMERS, "session_id, user_id", customer_outcome_row, self._parts(account))

    def _table(
        self, table: str, order: str, read: Callable[[Sequence[Any], Parts], Row], parts: Parts
    ) -> Iterator[Row]:
        if table not in self.columns:
            return
        for raw in self._queries.rows(f"SELECT {self._queries.fields(table, 't')} FROM {table} t ORDER BY {order}"):
            try:
                yield read(raw, parts)
            except Reason as reason:
                parts.fault(reason, f"{NOUNS[table]} {text_of(raw[table == REQUESTS])}")

    def learning_texts(self, references: Iterable[Reference]) -> dict[Reference, str]:
        """The texts of learnings that are still in the log, playbooks with what triggers them."""
        found: dict[Reference, str] = {}
        by_kind: defaultdict[str, list[str]] = defaultdict(list)
        for kind, name in set(references):
            by_kind[kind].append(name)
        for kind, names in by_kind.items():
            table, id_name = LEARNING_TABLES.get(kind, ("", ""))
            if not self.has(table, id_name) or not self.has(table, "content"):
                continue
            trigger = "trigger" if self.has(table, "trigger") else "NULL"
            for chunk in chunks(names):
                query = f"SELECT {id_name}, content, {trigger} FROM {table} WHERE {id_name} IN ({marks(chunk)})"
                for name, content, when in self._queries.rows(query, padded(chunk)):
                    text = text_of(content)
                    found[Reference(kind, text_of(name))] = f"When: {text_of(when)}\n{text}" if when else text
        return found

    def _with_digest(self, row: LearningRow) -> LearningRow:
        """The verdict with the digest of its playbook as it is now, where the verdict has a diagnosis and a digest."""
        if row.diagnosis is None or row.digest is None or row.kind != "user_playbook":
            return row
        if row.learning not in self._digests:
            self._digests[row.learning] = self._digest_of(row.learning)
        return row._replace(digest_now=self._digests[row.learning])

    def _digest_of(self, playbook: str) -> str | None:
        if not all(self.has("user_playbooks", name) for name in ("user_playbook_id", "content", "trigger")):
            return None
        query = "SELECT content, trigger FROM user_playbooks WHERE user_playbook_id = ?"
        found = next(self._queries.rows(query, (playbook,)), None)
        if found is None:
            return None
        content, trigger = found
        return playbook_digest(text_of(content), None if trigger is None else text_of(trigger))

    def experiments_seen(self) -> dict[str, Counter[str]]:
        """The experiments that requests name, that of the newest request first, each with its requests by arm."""
        if self._experiments is None:
            self._experiments = self._find_experiments()
        return self._experiments

    def _find_experiments(self) -> dict[str, Counter[str]]:
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        if self.has(REQUESTS, "retrieval_experiment_id") and self.has(REQUESTS, "retrieval_experiment_arm"):
            # Its index has no arms, so that each would be looked up in the table.
            query = (
                "SELECT retrieval_experiment_id, retrieval_experiment_arm, count(*) FROM requests NOT INDEXED "
                "WHERE retrieval_experiment_id IS NOT NULL GROUP BY 1, 2 "
                "ORDER BY max(max(created_at)) OVER (PARTITION BY retrieval_experiment_id) DESC, 1, 2"
            )
            for name, arm, count in self._queries.rows(query):
                found[text_of(name)][text_of(arm)] += count
        return dict(found)

    def request_sources_seen(self) -> Counter[str]:
        """The request sources that there are, "" among them, each with its requests."""
        if not self.has(REQUESTS, "source"):
            return Counter()
        rows = self._queries.rows("SELECT source, count(*) FROM requests GROUP BY 1 ORDER BY 2 DESC, 1")
        found: Counter[str] = Counter()
        for source, count in rows:
            found[text_of(source)] += count
        return found

    def judges_seen(self) -> Counter[str]:
        """The judges of sessions that there are, each with its verdicts."""
        return self._seen(OUTCOMES, "evaluation_name", UNNAMED_EVALUATOR)

    def shadow_versions_seen(self) -> Counter[str]:
        """The prompt versions of the judge of two answers that there are, each with its verdicts."""
        return self._seen(SHADOWS, "judge_prompt_version", "")

    def _seen(self, table: str, column: str, unnamed: str) -> Counter[str]:
        found: Counter[str] = Counter()
        if table in self.columns:
            named = column if self.has(table, column) else "NULL"
            for name, count in self._queries.rows(
                f"SELECT {named}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC, 1"
            ):
                found[text_of(name) or unnamed] += count
        return found

    def _parts(self, account: Log, placed: Placed | None = None) -> Parts:
        def repaired(what: str) -> None:
            account.repaired[what] += 1

        return Parts(account, repaired, (Placed() if placed is None else placed).told)


def _asked_together(found: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    """Sessions in their order, but each alone whose name was mended: no row has it, and others may look like it."""
    for is_mended, some in groupby(found, _is_mended):
        if is_mended:
            yield from ([each] for each in some)
        else:
            yield list(some)


def _is_mended(session: Sequence[Any]) -> bool:
    """Whether the user or the id of a session may be no UTF-8."""
    return any(type(name) is str and MENDED in name for name in session[:2])


def _is_utf_8(stored: bytes) -> bool:
    try:
        stored.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_ordinary(
    batch: list[SessionRecord], rows: Sequence[Sequence[Any]], parts: Parts, now: datetime
) -> list[SessionRecord]:
    """Give ordinary sessions their turns, of all rows of a batch. Returns the other sessions."""
    by_request: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        by_request[row[1]].append(row)
    others = []
    for record in batch:
        raw = list(chain.from_iterable([by_request.pop(request[0], ()) for request in record.requests]))
        said = spoken_in(raw, now) if raw else None
        if said is None:
            others.append(record)
        else:
            record.interactions = OrdinaryTurns(raw, said, parts)
    return others


_request_order = itemgetter(RequestRow._fields.index("at"), RequestRow._fields.index("request_id"))
_by_time = itemgetter(InteractionRow._fields.index("at"), InteractionRow._fields.index("interaction_id"))
_first = itemgetter(0)


def _by_id(row: Sequence[Any]) -> tuple[str, Any]:
    return type(row[0]).__name__, row[0]
