"""Results in SQLite or PostgreSQL, and the lists of conversations that are made of them when a pass is complete."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby, islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Select, Table, and_, case, delete, exists, func, or_, select

from evalr_tracepass.records import INPUT_TOO_LONG, Account, Pass, Result
from evalr_tracepass.stores import tables
from evalr_tracepass.stores.database import Database, account_key
from evalr_tracepass.stores.moments import from_ms, to_ms
from evalr_tracepass.stores.store import (
    ALL,
    LATEST,
    AlreadyRead,
    Conversation,
    SignalSum,
    Totals,
    added,
    conversation_of,
    latest_sums,
)

_TOGETHER = 5_000
"""Rows that are written, or read, together."""

_FEW = 400
"""Values that one statement is given at most."""

_LISTED = 2_000
"""Conversations that are listed together."""

_COLUMNS = tuple(column.name for column in tables.results.columns)
_LABELS, _TIMES = Result._fields.index("selected_labels"), Result._fields.index("source_start_time")
_RESULT_OF = ("run_id", "request_id", "reflex_model", "attempt")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_R, _U, _C, _L = tables.results, tables.rollups, tables.conversations, tables.latest
_READ = tuple(
    column for column in _R.columns if column.name not in ("account_key", "account_user_id", "account_org_id")
)


class SqlResults:
    """Results. See `ResultStore`."""

    _database: Database

    def write(self, account: Account, results: Iterable[Result]) -> None:
        """Keep results. One that is there already changes nothing."""
        key, stream = account_key(account), iter(results)
        whose = (key, account.user, account.org)
        while rows := [self._row(whose, each) for each in islice(stream, _TOGETHER)]:
            with self._database.begin() as connection:
                self._database.insert_rows(connection, _R.name, _COLUMNS, rows, "ON CONFLICT DO NOTHING")
                self._supersede(connection, key, rows)

    def _row(self, whose: tuple[str, str, str], found: Result) -> tuple[Any, ...]:
        # By their places, which are those of the columns: with names it takes twice as long, and there are many.
        return (
            *whose,
            *found[:_LABELS],
            _labels_json(found.selected_labels),
            *found[_LABELS + 1 : _TIMES],
            self._database.moment(found.source_start_time),
            self._database.moment(found.created_at),
            *found[_TIMES + 2 :],
            False,
        )

    def _supersede(self, connection: Connection, key: str, written: Sequence[tuple[Any, ...]]) -> None:
        """Mark, of each row and model, every attempt but the last."""
        run, request, model, attempt = (_COLUMNS.index(name) for name in _RESULT_OF)
        again = {each[run] for each in written if each[attempt]}
        for run_id in {each[run] for each in written} - again:
            query = (
                select(_R.c.attempt).where(_R.c.account_key == key, _R.c.run_id == run_id, _R.c.attempt > 0).limit(1)
            )
            if connection.execute(query).first() is not None:
                again.add(run_id)
        rows = [(key, each[run], each[request], each[model]) * 2 for each in written if each[run] in again]
        if not rows:
            return
        mark = "?" if self._database.is_sqlite else "%s"
        true, false = ("1", "0") if self._database.is_sqlite else ("TRUE", "FALSE")
        names = ("account_key", *_RESULT_OF[:-1])
        same = " AND ".join(f"{name} = {mark}" for name in names)
        connection.exec_driver_sql(
            f"UPDATE {_R.name} SET superseded = {true} WHERE {same} AND superseded = {false} "
            f"AND attempt < (SELECT max(later.attempt) FROM {_R.name} later WHERE "
            + " AND ".join(f"later.{name} = {mark}" for name in names)
            + ")",
            rows,
        )

    # -- reading ------------------------------------------------------------------------------------------------------

    def results(
        self,
        account: Account,
        *,
        passes: str = LATEST,
        convo_id: str | None = None,
        signal_id: str | None = None,
        fired: bool | None = None,
        failed: bool | None = None,
        history: bool = False,
    ) -> Iterator[Result]:
        """Results, by conversation and time."""
        key = account_key(account)
        query = select(*_READ).where(_R.c.account_key == key, _R.c.created_at >= self._database.cutoff())
        if convo_id is not None:
            query = query.where(_R.c.convo_id == convo_id)
        if signal_id is not None:
            query = query.where(_R.c.signal_id == signal_id)
        if fired is not None:
            query = query.where(_R.c.fired if fired else ~_R.c.fired)
        if failed is not None:
            query = query.where(_R.c.status == ("failed" if failed else "completed"))
        if not history:
            query = query.where(~_R.c.superseded)
        query = _of_passes(query, key, passes)
        query = query.order_by(
            # Of one pass, as an expression: SQLite would else read the whole account in the order of its conversations.
            _R.c.convo_id if passes in (LATEST, ALL) or fired else _R.c.convo_id + "",
            _R.c.source_start_time.is_(None).desc(),
            _R.c.source_start_time,
            _R.c.request_id,
            _R.c.reflex_model,
            _R.c.run_id,
            _R.c.attempt,
        )
        return self._stream(query)

    def _stream(self, query: Select[Any]) -> Iterator[Result]:
        with self._database.begin() as connection:
            found = connection.execution_options(yield_per=_TOGETHER).execute(query)
            for row in found:
                yield _result(row)

    def conversations(
        self,
        account: Account,
        *,
        passes: str = LATEST,
        convo_ids: Sequence[str] | None = None,
        signal_id: str | None = None,
        flagged: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Conversation]:
        """Conversations of completed passes, the latest first."""
        key, cutoff = account_key(account), self._database.cutoff()
        of = _C if passes == LATEST else _U
        query = select(of.c.convo_id, of.c.end_user_id, of.c.signals_json, of.c.passed_at)
        query = query.where(of.c.account_key == key, of.c.passed_at >= cutoff)
        order: ColumnElement[Any] = of.c.order_at
        if of is _C:
            query = query.add_columns(_C.c.oldest_at)
        elif passes != ALL:
            query = query.where(_U.c.run_id == passes)
        if signal_id is not None and of is _C:
            same = (_L.c.account_key == key, _L.c.convo_id == _C.c.convo_id, _L.c.end_user_id == _C.c.end_user_id)
            query = query.join(_L, and_(*same, _L.c.signal_id == signal_id, _L.c.fired))
            order = _L.c.order_at
        elif signal_id is not None:
            query = query.where(_fired_in(key, signal_id))
        if flagged:
            query = query.where(of.c.fired_count > 0)
        query = query.order_by(order.desc(), of.c.convo_id, of.c.end_user_id, *(() if of is _C else (_U.c.run_id,)))
        with self._database.begin() as connection:
            if convo_ids is None:
                found = list(connection.execute(query.limit(limit).offset(offset)))
            else:
                found = [
                    row
                    for start in range(0, len(convo_ids), _FEW)
                    for row in connection.execute(query.where(of.c.convo_id.in_(convo_ids[start : start + _FEW])))
                ]
            listed = [
                conversation_of(
                    row.convo_id,
                    row.end_user_id,
                    _sums(row.signals_json)
                    if of is not _C or row.oldest_at >= cutoff
                    else self._latest(connection, key, [row.convo_id])[row.convo_id, row.end_user_id],
                )
                for row in found
            ]
        if convo_ids is None:
            return listed
        listed.sort(key=lambda each: (each.convo_id, each.user, each.run_id))
        listed.sort(key=lambda each: each.last_at or each.passed_at, reverse=True)
        return listed[offset : offset + limit]

    def totals(self, account: Account, pass_id: str) -> Totals:
        """What a pass came to, as far as it has come."""
        key = account_key(account)
        mine = (
            _R.c.account_key == key,
            _R.c.run_id == pass_id,
            ~_R.c.superseded,
            _R.c.created_at >= self._database.cutoff(),
        )
        fired, completed = _R.c.fired, _R.c.status == "completed"
        length = func.json_array_length if self._database.is_sqlite else func.jsonb_array_length
        with self._database.begin() as connection:
            done, failed, firing, labels = connection.execute(
                select(
                    func.count(case((completed, 1))),
                    func.count(case((~completed, 1))),
                    func.count(case((fired, 1))),
                    func.coalesce(func.sum(case((fired, length(_R.c.selected_labels)))), 0),
                ).where(*mine)
            ).one()
            conversations, flagged = (
                connection.execute(
                    # As an expression, since SQLite would read the whole account in the order of its conversations.
                    select(func.count()).select_from(
                        select(_R.c.convo_id + "", _R.c.end_user_id).where(*mine, which).distinct().subquery()
                    )
                ).scalar_one()
                for which in (completed, fired)
            )
        return Totals(conversations, flagged, firing, int(labels), done, failed)

    def answered(self, account: Account, convo_ids: Sequence[str]) -> set[AlreadyRead]:
        """What need not be read again of these conversations: by any pass, what did not fail, or was too long."""
        columns = (_R.c.end_user_id, _R.c.convo_id, _R.c.request_id, _R.c.transform_version, _R.c.reflex_model)
        found: set[AlreadyRead] = set()
        with self._database.begin() as connection:
            for start in range(0, len(convo_ids), _FEW):
                query = select(*columns, _R.c.input_hash, _R.c.status).where(
                    _R.c.account_key == account_key(account),
                    _R.c.convo_id.in_(convo_ids[start : start + _FEW]),
                    or_(_R.c.status == "completed", _R.c.error_type == INPUT_TOO_LONG),
                    _R.c.created_at >= self._database.cutoff(),
                )
                rows = connection.execute(query)
                found.update(AlreadyRead(*row[:-1], too_long=row.status == "failed") for row in rows)
        return found

    # -- completion and expiry ----------------------------------------------------------------------------------------

    def finish(self, account: Account, found: Pass) -> None:
        """Say that a pass has been completed: its conversations are listed, and what is the latest of each is known."""
        key = account_key(account)
        with self._database.begin() as connection:
            connection.execute(delete(_U).where(_U.c.account_key == key, _U.c.run_id == found.id))
            listed = self._rollup(connection, key, found)
            while rows := list(islice(listed, _LISTED)):
                self._database.insert_rows(connection, _U.name, _names(_U), rows, "")
                self._renew(connection, key, [row[2] for row in rows])

    def _rollup(self, connection: Connection, key: str, found: Pass) -> Iterator[tuple[Any, ...]]:
        """What each signal of a pass came to in each conversation: one conversation is held at a time."""
        moment = self._database.moment
        for (convo, user), sums in self._summed(connection, key, found):
            whole = conversation_of(convo, user, sums)
            passed_at, order_at = moment(found.created_at), moment(whole.last_at or found.created_at)
            yield (key, found.id, convo, user, passed_at, order_at, whole.fired_count, _encode(_sums_json(sums)))

    def _summed(
        self, connection: Connection, key: str, found: Pass
    ) -> Iterator[tuple[tuple[str, str], dict[str, SignalSum]]]:
        """The sums that the database makes of a pass, by conversation and user."""
        mine = (_R.c.account_key == key, _R.c.run_id == found.id, ~_R.c.superseded)
        # As an expression, since SQLite would read the whole account in the order of its conversations.
        convo_id, user = (_R.c.convo_id + "").label("convo"), _R.c.end_user_id.label("user")
        completed = _R.c.status == "completed"
        counted = select(
            convo_id,
            user,
            _R.c.signal_id,
            _R.c.reflex_model,
            func.max(_R.c.source_start_time, type_=tables.Moment()),
            func.sum(_R.c.fired.cast(Integer)),
            func.sum(completed.cast(Integer)),
            func.count(),
            func.max(case((completed, _R.c.top_score))),
        )
        shown = select(convo_id, user, _R.c.signal_id, _R.c.top_label, _R.c.top_score, _R.c.selected_labels)
        by_convo = counted.where(*mine).group_by(convo_id, user, _R.c.signal_id, _R.c.reflex_model)
        streamed = {"yield_per": _TOGETHER}
        summed = connection.execute(by_convo.order_by(convo_id, user), execution_options=streamed)
        by_score = shown.where(*mine, _R.c.fired).order_by(convo_id, user, _R.c.top_score.desc(), _R.c.top_label)
        firing = groupby(connection.execute(by_score, execution_options=streamed), _who)
        who, fired = next(firing, (None, ()))
        for each, rows in groupby(summed, _who):
            # Both streams are in the order of the database, and what fired is of some of the same conversations.
            surest: dict[str, tuple[float, str]] = {}
            if each == who:
                for _, _, signal_id, label, score, selected in fired:
                    surest.setdefault(signal_id, (score, label if label in selected or not selected else selected[0]))
                who, fired = next(firing, (None, ()))
            sums: dict[str, SignalSum] = {}
            for _, _, signal_id, model, at, hits, done, count, top in rows:
                score, label = surest.get(signal_id, (0.0, ""))
                one = SignalSum(found.id, found.created_at, at, model, hits, done, count - done, top, label, score)
                sums[signal_id] = added(sums[signal_id], one) if signal_id in sums else one
            yield each, sums

    def _renew(self, connection: Connection, key: str, convo_ids: Iterable[str]) -> None:
        """Work out anew what the latest passes say of these conversations."""
        ids = list(dict.fromkeys(convo_ids))
        for table in (_C, _L):
            for start in range(0, len(ids), _FEW):
                some = table.c.convo_id.in_(ids[start : start + _FEW])
                connection.execute(delete(table).where(table.c.account_key == key, some))
        moment = self._database.moment
        rows: list[tuple[Any, ...]] = []
        signals: list[tuple[Any, ...]] = []
        for (convo, user), sums in self._latest(connection, key, ids).items():
            whole = conversation_of(convo, user, sums)
            order_at = moment(whole.last_at or whole.passed_at)
            oldest_at = moment(min(each.passed_at for each in sums.values()))
            times = (moment(whole.passed_at), oldest_at, order_at)
            rows.append((key, convo, user, whole.run_id, *times, whole.fired_count, _encode(_sums_json(sums))))
            signals += [
                (key, convo, user, signal_id, each.run_id, each.fired > 0, order_at) for signal_id, each in sums.items()
            ]
        self._database.insert_rows(connection, _C.name, _names(_C), rows, "")
        self._database.insert_rows(connection, _L.name, _names(_L), signals, "")

    def _latest(
        self, connection: Connection, key: str, ids: Sequence[str]
    ) -> dict[tuple[str, str], dict[str, SignalSum]]:
        """Of conversations, by their ids and users, what the latest pass with each signal came to."""
        by_convo: dict[tuple[str, str], list[dict[str, SignalSum]]] = {}
        for start in range(0, len(ids), _FEW):
            query = select(_U.c.convo_id, _U.c.end_user_id, _U.c.signals_json).where(
                _U.c.account_key == key,
                _U.c.convo_id.in_(ids[start : start + _FEW]),
                _U.c.passed_at >= self._database.cutoff(),
            )
            for convo, user, stored in connection.execute(query):
                by_convo.setdefault((convo, user), []).append(_sums(stored))
        return {who: latest_sums(of) for who, of in by_convo.items()}

    def prune(self, account: Account, *, now: datetime | None = None) -> int:
        """Remove what has expired; how many results that were."""
        key, cutoff = account_key(account), self._database.cutoff(now)
        old = select(tables.passes.c.id).where(
            tables.passes.c.account_key == key, tables.passes.c.created_at < cutoff, tables.passes.c.status != "running"
        )
        with self._database.begin() as connection:
            gone = connection.execute(delete(_R).where(_R.c.account_key == key, _R.c.created_at < cutoff)).rowcount
            touched = select(_C.c.convo_id).where(_C.c.account_key == key, _C.c.oldest_at < cutoff)
            ids = list(connection.execute(touched).scalars())
            connection.execute(delete(_U).where(_U.c.account_key == key, _U.c.passed_at < cutoff))
            self._renew(connection, key, ids)
            for table in (tables.items, tables.batches):
                connection.execute(delete(table).where(table.c.account_key == key, table.c.pass_id.in_(old)))
        return gone


def _of_passes(query: Select[Any], key: str, passes: str) -> Select[Any]:
    if passes not in (LATEST, ALL):
        return query.where(_R.c.run_id == passes)
    of = _L if passes == LATEST else _U
    same = (
        of.c.account_key == key,
        of.c.run_id == _R.c.run_id,
        of.c.convo_id == _R.c.convo_id,
        of.c.end_user_id == _R.c.end_user_id,
    )
    return query.where(exists().where(*same, *((_L.c.signal_id == _R.c.signal_id,) if of is _L else ())))


def _fired_in(key: str, signal_id: str) -> ColumnElement[bool]:
    return exists().where(
        _R.c.account_key == key,
        _R.c.run_id == _U.c.run_id,
        _R.c.convo_id == _U.c.convo_id,
        _R.c.end_user_id == _U.c.end_user_id,
        _R.c.signal_id == signal_id,
        _R.c.fired,
        ~_R.c.superseded,
    )


def _who(row: Any) -> tuple[str, str]:
    return row[0], row[1]


@lru_cache(maxsize=1_000)
def _labels_json(labels: tuple[str, ...]) -> str:
    return _encode(labels)


def _names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def _sums_json(sums: Mapping[str, SignalSum]) -> dict[str, list[Any]]:
    return {
        signal_id: [
            each.run_id,
            to_ms(each.passed_at),
            None if each.last_at is None else to_ms(each.last_at),
            *each[3:],
        ]
        for signal_id, each in sums.items()
    }


def _sums(stored: Mapping[str, Sequence[Any]]) -> dict[str, SignalSum]:
    return {
        signal_id: SignalSum(run_id, from_ms(passed), None if last is None else from_ms(last), *rest)
        for signal_id, (run_id, passed, last, *rest) in stored.items()
    }


def _result(row: Any) -> Result:
    values = list(row)
    values[19] = tuple(values[19])
    return Result(*values[:-1])
