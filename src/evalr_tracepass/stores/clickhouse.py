"""Results in ClickHouse, by clickhouse-connect: passes themselves are kept in another store."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any

from evalr.errors import StoreError
from evalr.inputs import Now, resolve_now
from evalr_tracepass.records import INPUT_TOO_LONG, Account, Pass, Result
from evalr_tracepass.stores.clickhouse_ddl import PASSES, RESULTS, clickhouse_ddl
from evalr_tracepass.stores.moments import from_ms, to_ms
from evalr_tracepass.stores.store import (
    ALL,
    KEPT_FOR,
    LATEST,
    AlreadyRead,
    Conversation,
    SignalSum,
    Totals,
    added,
    conversation_of,
)

_TOGETHER = 20_000
"""Rows that are written together."""

_FIELDS = tuple("end_user_id" if name == "user" else name for name in Result._fields)
_COLUMNS = ("account_user_id", "account_org_id", *_FIELDS)
_TIMES = ("source_start_time", "created_at")
_READ = ", ".join(f"toUnixTimestamp64Milli({name}) AS {name}_ms" if name in _TIMES else name for name in _FIELDS)
_AT = tuple(_FIELDS.index(name) for name in _TIMES)
_LABELS = _FIELDS.index("selected_labels")


class ClickHouseResults:
    """Results. See `ResultStore`. A repeated write is replaced by the engine, and counted once before it has been."""

    def __init__(self, client: Any, *, database: str, now: Now) -> None:
        self._client = client
        self._database = database
        self._now = now
        self._results = f"{database}.{RESULTS}"
        self._passes = f"{database}.{PASSES}"
        statements = clickhouse_ddl(database)
        with _errors():
            client.command(f"CREATE DATABASE IF NOT EXISTS {database}")
            for statement in statements:
                client.command(statement)

    def __repr__(self) -> str:
        return f"ClickHouseResults(database={self._database!r})"

    def close(self) -> None:
        """Nothing: the client is whoever's made it."""

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, account: Account, results: Iterable[Result]) -> None:
        """Keep results. One that is there already changes nothing."""
        owner, stream = tuple(account.checked()), iter(results)
        while together := [(*owner, *each) for each in islice(stream, _TOGETHER)]:
            with _errors():
                self._client.insert(RESULTS, together, column_names=_COLUMNS, database=self._database)

    def finish(self, account: Account, found: Pass) -> None:
        """Say that a pass has been completed."""
        done = found.completed_at or resolve_now(self._now)
        row = (*account.checked(), found.id, found.status, found.created_at, done)
        names = ("account_user_id", "account_org_id", "run_id", "status", "created_at", "completed_at")
        with _errors():
            self._client.insert(PASSES, [row], column_names=names, database=self._database)

    def prune(self, account: Account, *, now: datetime | None = None) -> int:
        """Remove what has expired, as the engine does by itself in time; how many results that were."""
        scope, values = self._scope(account, cutoff=False)
        values["cutoff"] = to_ms(resolve_now(now or self._now) - KEPT_FOR)
        old = f"{scope} AND created_at < fromUnixTimestamp64Milli({{cutoff:Int64}})"
        gone = self._rows(f"SELECT count() FROM {self._results} FINAL WHERE {old}", values)[0][0]
        if gone:
            with _errors():
                self._client.command(f"DELETE FROM {self._results} WHERE {old}", parameters=values)
        return int(gone)

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
        scope, values = self._scope(account)
        where = [scope, *self._of_passes(scope, passes, values)]
        if convo_id is not None:
            where.append("convo_id = {convo_id:String}")
            values["convo_id"] = convo_id
        if signal_id is not None:
            where.append("signal_id = {signal_id:String}")
            values["signal_id"] = signal_id
        if fired is not None:
            where.append("fired" if fired else "NOT fired")
        if failed is not None:
            where.append(f"status = '{'failed' if failed else 'completed'}'")
        if not history:
            where.append(self._stands(scope))
        query = (
            f"SELECT {_READ} FROM {self._results} FINAL WHERE {' AND '.join(where)} "
            "ORDER BY convo_id, source_start_time ASC NULLS FIRST, request_id, reflex_model, run_id, attempt"
        )
        with _errors(), self._client.query_row_block_stream(query, parameters=values) as stream:
            for block in stream:
                yield from map(_result, block)

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
        scope, values = self._scope(account)
        where = [scope, self._stands(scope), *self._of_passes(scope, passes, values, completed=True)]
        having = ["1"]
        if convo_ids is not None:
            where.append("convo_id IN {convo_ids:Array(String)}")
            values["convo_ids"] = list(convo_ids)
        if signal_id is not None:
            having.append("countIf(fired AND signal_id = {signal_id:String}) > 0")
            values["signal_id"] = signal_id
        if flagged:
            having.append("countIf(fired) > 0")
        values |= {"limit": limit, "offset": offset}
        by = "convo_id, end_user_id" if passes == LATEST else "convo_id, end_user_id, found.run_id"
        query = f"""
            SELECT convo_id, end_user_id,
                toUnixTimestamp64Milli(max(passed.created_at)) AS passed_ms,
                toUnixTimestamp64Milli(max(source_start_time)) AS last_ms,
                groupArray((
                    signal_id, found.run_id, toUnixTimestamp64Milli(passed.created_at),
                    toUnixTimestamp64Milli(source_start_time), reflex_model, fired, status = 'completed', top_score,
                    if(has(selected_labels, top_label) OR empty(selected_labels), top_label, selected_labels[1])
                )) AS rows
            FROM (SELECT * FROM {self._results} FINAL WHERE {" AND ".join(where)}) AS found
            INNER JOIN (SELECT run_id, created_at FROM {self._passes} FINAL WHERE {_owner()}) AS passed
            ON found.run_id = passed.run_id
            GROUP BY {by}
            HAVING {" AND ".join(having)}
            ORDER BY coalesce(last_ms, passed_ms) DESC, {by}
            LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}
        """
        return [
            conversation_of(convo_id, user, _sums(rows)) for convo_id, user, _, _, rows in self._rows(query, values)
        ]

    def totals(self, account: Account, pass_id: str) -> Totals:
        """What a pass came to, as far as it has come."""
        scope, values = self._scope(account)
        values["run_id"] = pass_id
        query = f"""
            SELECT uniqExactIf((convo_id, end_user_id), status = 'completed'),
                uniqExactIf((convo_id, end_user_id), fired),
                countIf(fired), sumIf(length(selected_labels), fired), countIf(status = 'completed'),
                countIf(status = 'failed')
            FROM {self._results} FINAL WHERE {scope} AND run_id = {{run_id:String}} AND {self._stands(scope)}
        """
        return Totals(*map(int, self._rows(query, values)[0]))

    def answered(self, account: Account, convo_ids: Sequence[str]) -> set[AlreadyRead]:
        """What need not be read again of these conversations: by any pass, what did not fail, or was too long."""
        scope, values = self._scope(account)
        values |= {"convo_ids": list(convo_ids), "too_long": INPUT_TOO_LONG}
        query = f"""
            SELECT DISTINCT end_user_id, convo_id, request_id, transform_version, reflex_model, input_hash, status
            FROM {self._results}
            WHERE {scope} AND convo_id IN {{convo_ids:Array(String)}}
                AND (status = 'completed' OR error_type = {{too_long:String}})
        """
        return {
            AlreadyRead(user, convo_id, request_id, version, model, input_hash, status == "failed")
            for user, convo_id, request_id, version, model, input_hash, status in self._rows(query, values)
        }

    # -- conditions ---------------------------------------------------------------------------------------------------

    def _scope(self, account: Account, *, cutoff: bool = True) -> tuple[str, dict[str, Any]]:
        """The rows of an account that have not expired, and the values that this takes."""
        checked = account.checked()
        values: dict[str, Any] = {"org": checked.org, "user": checked.user}
        if not cutoff:
            return _owner(), values
        values["cutoff"] = to_ms(resolve_now(self._now) - KEPT_FOR)
        return f"{_owner()} AND created_at >= fromUnixTimestamp64Milli({{cutoff:Int64}})", values

    def _of_passes(self, scope: str, passes: str, values: dict[str, Any], *, completed: bool = False) -> list[str]:
        done = f"SELECT run_id, created_at FROM {self._passes} FINAL WHERE {_owner()}"
        if passes == LATEST:
            return [
                f"""(convo_id, end_user_id, signal_id, run_id) IN (
                    SELECT convo_id, end_user_id, signal_id, argMax(read.run_id, (passed.created_at, read.run_id))
                    FROM (SELECT DISTINCT convo_id, end_user_id, signal_id, run_id
                          FROM {self._results} WHERE {scope}) AS read
                    INNER JOIN ({done}) AS passed ON read.run_id = passed.run_id
                    GROUP BY convo_id, end_user_id, signal_id)"""
            ]
        if passes == ALL:
            return [] if completed else [f"run_id IN (SELECT run_id FROM ({done}))"]
        values["run_id"] = passes
        return ["run_id = {run_id:String}"]

    def _stands(self, scope: str) -> str:
        """That no later attempt has replaced a result. Few rows have a second one."""
        later = f"FROM {self._results} WHERE {scope} AND attempt > 0"
        which = "run_id, request_id, reflex_model"
        return (
            f"if(attempt = 0, ({which}) NOT IN (SELECT {which} {later}), "
            f"({which}, attempt) IN (SELECT {which}, max(attempt) {later} GROUP BY {which}))"
        )

    def _rows(self, query: str, values: dict[str, Any]) -> list[Any]:
        with _errors():
            found: list[Any] = self._client.query(query, parameters=values).result_rows
            return found


def _owner() -> str:
    return "account_org_id = {org:String} AND (account_org_id != '' OR account_user_id = {user:String})"


def _result(row: Sequence[Any]) -> Result:
    values = list(row)
    for place in _AT:
        values[place] = None if values[place] is None else from_ms(values[place])
    values[_LABELS] = tuple(values[_LABELS])
    return Result(*values)


def _sums(rows: Sequence[Sequence[Any]]) -> dict[str, SignalSum]:
    """What each signal came to, from its results in one conversation."""
    found: dict[str, SignalSum] = {}
    for signal_id, run_id, passed, last, model, fired, completed, score, label in rows:
        at = None if last is None else from_ms(last)
        each = SignalSum(
            run_id,
            from_ms(passed),
            at,
            model,
            int(fired),
            int(completed),
            int(not completed),
            score if completed else None,
            label if fired else "",
            score if fired else 0.0,
        )
        found[signal_id] = added(found[signal_id], each) if signal_id in found else each
    return found


@contextmanager
def _errors() -> Iterator[None]:
    """What the server says of an error may quote the values of a row: its type and its code are told."""
    from clickhouse_connect.driver.exceptions import Error

    try:
        yield
    except (Error, TypeError, ValueError, OverflowError, struct.error) as error:
        code = getattr(error, "code", None)
        raise StoreError(f"ClickHouse: {type(error).__name__}" + (f" (code {code})" if code else "")) from None
