"""Results in SQLite or PostgreSQL, and the lists of conversations that are made of them when a pass is complete."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Select, and_, delete, exists, func, select, update

from evalr_tracepass.records import Account, Pass, Result
from evalr_tracepass.stores import tables
from evalr_tracepass.stores.database import Database, account_key
from evalr_tracepass.stores.store import ALL, LATEST, AlreadyRead, Chip, Conversation, Totals, chips_of

_TOGETHER = 5_000
"""Rows that are written, or read, together."""

_FEW = 400
"""Values that one statement is given at most."""

_COLUMNS = tuple(column.name for column in tables.results.columns)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_R, _C, _S = tables.results, tables.conversations, tables.fired_signals
_READ = tuple(
    column for column in _R.columns if column.name not in ("account_key", "account_user_id", "account_org_id")
)


class SqlResults:
    """Results. See `ResultStore`."""

    _database: Database

    def write(self, account: Account, results: Iterable[Result]) -> None:
        """Keep results. One that is there already changes nothing."""
        key, stream = account_key(account), iter(results)
        while together := list(islice(stream, _TOGETHER)):
            rows = [self._row(key, account, each) for each in together]
            with self._database.begin() as connection:
                self._database.insert_rows(connection, _R.name, _COLUMNS, rows, "ON CONFLICT DO NOTHING")
                self._supersede(connection, key, together)

    def _row(self, key: str, account: Account, found: Result) -> tuple[Any, ...]:
        moment = self._database.moment
        return (
            key,
            account.user,
            account.org,
            found.run_id,
            found.batch_id,
            found.request_id,
            found.convo_id,
            found.event_id,
            found.span_id,
            found.turn_index,
            found.user,
            found.release,
            found.input_kind,
            found.transform_id,
            found.transform_version,
            found.signal_id,
            found.reflex_model,
            found.model_version,
            found.status,
            found.mode,
            found.top_label,
            found.top_score,
            _encode(found.selected_labels),
            found.fired,
            found.threshold,
            found.truncated,
            found.classes_json,
            found.error_type,
            found.error_message,
            moment(found.source_start_time),
            moment(found.created_at),
            found.input_hash,
            found.attempt,
            False,
        )

    def _supersede(self, connection: Connection, key: str, written: Sequence[Result]) -> None:
        """Mark, of each row and model, every attempt but the last."""
        again = {each.run_id for each in written if each.attempt}
        for run_id in {each.run_id for each in written} - again:
            query = (
                select(_R.c.attempt).where(_R.c.account_key == key, _R.c.run_id == run_id, _R.c.attempt > 0).limit(1)
            )
            if connection.execute(query).first() is not None:
                again.add(run_id)
        rows = [(key, each.run_id, each.request_id, each.reflex_model) * 2 for each in written if each.run_id in again]
        if not rows:
            return
        mark = "?" if self._database.is_sqlite else "%s"
        true, false = ("1", "0") if self._database.is_sqlite else ("TRUE", "FALSE")
        names = ("account_key", "run_id", "request_id", "reflex_model")
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
            _R.c.convo_id,
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
        """Conversations, the latest first."""
        key = account_key(account)
        query = select(_C).where(_C.c.account_key == key, _C.c.passed_at >= self._database.cutoff())
        order: tuple[ColumnElement[Any], ...] = (_C.c.order_at.desc(),)
        if signal_id is not None:
            query = query.join(
                _S,
                and_(
                    _S.c.account_key == key,
                    _S.c.run_id == _C.c.run_id,
                    _S.c.convo_id == _C.c.convo_id,
                    _S.c.end_user_id == _C.c.end_user_id,
                    _S.c.signal_id == signal_id,
                ),
            )
            order = (_S.c.order_at.desc(),)
            if passes == LATEST:
                query = query.where(_S.c.latest)
        if passes == LATEST:
            query = query.where(_C.c.latest)
        elif passes != ALL:
            query = query.where(_C.c.run_id == passes)
        else:
            query = query.where(_C.c.latest.in_([True, False]))
        if flagged:
            query = query.where(_C.c.fired_count > 0)
        query = query.order_by(*order, _C.c.convo_id, _C.c.end_user_id, _C.c.run_id)
        with self._database.begin() as connection:
            if convo_ids is None:
                return [_conversation(row) for row in connection.execute(query.limit(limit).offset(offset))]
            found = [
                _conversation(row)
                for start in range(0, len(convo_ids), _FEW)
                for row in connection.execute(query.where(_C.c.convo_id.in_(convo_ids[start : start + _FEW])))
            ]
        found.sort(key=lambda each: (each.convo_id, each.user, each.run_id))
        found.sort(key=lambda each: each.last_at or each.passed_at, reverse=True)
        return found[offset : offset + limit]

    def totals(self, account: Account, pass_id: str) -> Totals:
        """What a pass came to, as far as it has come."""
        key = account_key(account)
        mine = (
            _R.c.account_key == key,
            _R.c.run_id == pass_id,
            ~_R.c.superseded,
            _R.c.created_at >= self._database.cutoff(),
        )
        who = (_R.c.convo_id, _R.c.end_user_id)
        with self._database.begin() as connection:
            counted = connection.execute(select(_R.c.status, func.count()).where(*mine).group_by(_R.c.status)).all()
            by_status = {row[0]: row[1] for row in counted}
            read = select(*who).where(*mine, _R.c.status == "completed").distinct().subquery()
            conversations = connection.execute(select(func.count()).select_from(read)).scalar_one()
            firing = connection.execute(select(*who, _R.c.selected_labels).where(*mine, _R.c.fired)).all()
        return Totals(
            conversations,
            len({(row.convo_id, row.end_user_id) for row in firing}),
            len(firing),
            sum(len(row.selected_labels) for row in firing),
            by_status.get("completed", 0),
            by_status.get("failed", 0),
        )

    def answered(self, account: Account, convo_ids: Sequence[str]) -> set[AlreadyRead]:
        """What has been read of these conversations, by any pass, and did not fail."""
        columns = (_R.c.end_user_id, _R.c.convo_id, _R.c.request_id, _R.c.transform_version, _R.c.reflex_model)
        found: set[AlreadyRead] = set()
        with self._database.begin() as connection:
            for start in range(0, len(convo_ids), _FEW):
                query = select(*columns, _R.c.input_hash).where(
                    _R.c.account_key == account_key(account),
                    _R.c.convo_id.in_(convo_ids[start : start + _FEW]),
                    _R.c.status == "completed",
                    _R.c.created_at >= self._database.cutoff(),
                )
                found.update(AlreadyRead(*row) for row in connection.execute(query))
        return found

    # -- completion and expiry ----------------------------------------------------------------------------------------

    def finish(self, account: Account, found: Pass) -> None:
        """Say that a pass has been completed: its conversations are listed, and of each the latest is marked."""
        key, run_id = account_key(account), found.id
        with self._database.begin() as connection:
            for table in (_C, _S):
                connection.execute(delete(table).where(table.c.account_key == key, table.c.run_id == run_id))
            rows, fired = self._rollup(connection, key, found)
            if rows:
                connection.execute(_C.insert(), rows)
            if fired:
                connection.execute(_S.insert(), fired)
            _mark_latest(connection, key, run_id)

    def _rollup(
        self, connection: Connection, key: str, found: Pass
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        mine = (_R.c.account_key == key, _R.c.run_id == found.id, ~_R.c.superseded)
        who = (_R.c.convo_id, _R.c.end_user_id)
        by_model = (
            select(
                *who,
                _R.c.reflex_model,
                func.max(_R.c.source_start_time, type_=tables.Moment()),
                func.sum(_R.c.fired.cast(Integer)),
                func.count(),
                func.sum((_R.c.status == "failed").cast(Integer)),
                func.max(_R.c.top_score),
            )
            .where(*mine)
            .group_by(*who, _R.c.reflex_model)
        )
        of: dict[tuple[str, str], dict[str, Any]] = {}
        for convo, user, model, last_at, fired, count, failed, score in connection.execute(by_model):
            row = of.get((convo, user))
            if row is None:
                row = of[convo, user] = {
                    "account_key": key,
                    "run_id": found.id,
                    "convo_id": convo,
                    "end_user_id": user,
                    "passed_at": found.created_at,
                    "last_at": None,
                    "fired_count": 0,
                    "completed": 0,
                    "failed": 0,
                    "chips_json": [],
                    "max_scores_json": {},
                    "latest": False,
                }
            row["fired_count"] += fired
            row["completed"] += count - failed
            row["failed"] += failed
            if last_at is not None and (row["last_at"] is None or last_at > row["last_at"]):
                row["last_at"] = last_at
            if count > failed:
                row["max_scores_json"][model] = score
        labels: dict[tuple[str, str], list[tuple[str, str, str, float]]] = defaultdict(list)
        firing = select(*who, _R.c.reflex_model, _R.c.signal_id, _R.c.top_label, _R.c.top_score, _R.c.selected_labels)
        for convo, user, model, signal_id, label, score, selected in connection.execute(
            firing.where(*mine, _R.c.fired)
        ):
            shown = label if label in selected or not selected else selected[0]
            labels[convo, user].append((model, signal_id, shown, score))
        fired_rows: list[dict[str, Any]] = []
        for who_, row in of.items():
            chips = chips_of(labels.get(who_, ()))
            row["chips_json"] = [list(chip) for chip in chips]
            row["order_at"] = row["last_at"] or found.created_at
            fired_rows.extend(
                {
                    "account_key": key,
                    "run_id": found.id,
                    "convo_id": row["convo_id"],
                    "end_user_id": row["end_user_id"],
                    "signal_id": chip.signal_id,
                    "latest": False,
                    "order_at": row["order_at"],
                }
                for chip in chips
            )
        return list(of.values()), fired_rows

    def prune(self, account: Account, *, now: datetime | None = None) -> int:
        """Remove what has expired; how many results that were."""
        key, cutoff = account_key(account), self._database.cutoff(now)
        old = select(tables.passes.c.id).where(
            tables.passes.c.account_key == key, tables.passes.c.created_at < cutoff, tables.passes.c.status != "running"
        )
        with self._database.begin() as connection:
            gone = connection.execute(delete(_R).where(_R.c.account_key == key, _R.c.created_at < cutoff)).rowcount
            connection.execute(
                delete(_S).where(
                    _S.c.account_key == key,
                    _S.c.run_id.in_(select(_C.c.run_id).where(_C.c.account_key == key, _C.c.passed_at < cutoff)),
                )
            )
            connection.execute(delete(_C).where(_C.c.account_key == key, _C.c.passed_at < cutoff))
            for table in (tables.items, tables.batches):
                connection.execute(delete(table).where(table.c.account_key == key, table.c.pass_id.in_(old)))
        return gone


def _of_passes(query: Select[Any], key: str, passes: str) -> Select[Any]:
    if passes not in (LATEST, ALL):
        return query.where(_R.c.run_id == passes)
    listed = exists().where(
        _C.c.account_key == key,
        _C.c.run_id == _R.c.run_id,
        _C.c.convo_id == _R.c.convo_id,
        _C.c.end_user_id == _R.c.end_user_id,
        *((_C.c.latest,) if passes == LATEST else ()),
    )
    return query.where(listed)


def _mark_latest(connection: Connection, key: str, run_id: str) -> None:
    """Of each conversation of a pass, mark what the latest pass that read it says, in both lists."""
    mine = _C.alias("mine")
    other = _C.alias("other")
    touched = exists().where(
        mine.c.account_key == key,
        mine.c.run_id == run_id,
        mine.c.convo_id == _C.c.convo_id,
        mine.c.end_user_id == _C.c.end_user_id,
    )
    later = exists().where(
        other.c.account_key == key,
        other.c.convo_id == _C.c.convo_id,
        other.c.end_user_id == _C.c.end_user_id,
        (other.c.passed_at > _C.c.passed_at) | ((other.c.passed_at == _C.c.passed_at) & (other.c.run_id > _C.c.run_id)),
    )
    connection.execute(update(_C).where(_C.c.account_key == key, touched).values(latest=~later))
    same = (
        _C.c.account_key == key,
        _C.c.run_id == _S.c.run_id,
        _C.c.convo_id == _S.c.convo_id,
        _C.c.end_user_id == _S.c.end_user_id,
    )
    of_signal = exists().where(
        mine.c.account_key == key,
        mine.c.run_id == run_id,
        mine.c.convo_id == _S.c.convo_id,
        mine.c.end_user_id == _S.c.end_user_id,
    )
    connection.execute(
        update(_S).where(_S.c.account_key == key, of_signal).values(latest=exists().where(*same, _C.c.latest))
    )


def _result(row: Any) -> Result:
    values = list(row)
    values[19] = tuple(values[19])
    return Result(*values[:-1])


def _conversation(row: Any) -> Conversation:
    return Conversation(
        row.convo_id,
        row.end_user_id,
        row.run_id,
        row.passed_at,
        row.last_at,
        row.fired_count,
        row.completed,
        row.failed,
        tuple(Chip(*chip) for chip in row.chips_json),
        dict(row.max_scores_json),
    )
