"""Passes, their batches and rows, signals, presets and monitors, in SQLite or PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from evalr.errors import StoreError
from evalr.quoting import safe_text
from evalr_tracepass.records import Account, Item, Pass, PlanEstimate, Scope
from evalr_tracepass.signal_files import Preset
from evalr_tracepass.signals import Signal
from evalr_tracepass.stores import tables
from evalr_tracepass.stores.database import Database, account_key
from evalr_tracepass.stores.store import Batch, ItemStatus, MonitorState

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_SQLITE_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_POSTGRES_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"

_ITEM_TIME = Item._fields.index("source_start_time")
_ITEM_COLUMNS = tuple(column.name for column in tables.items.columns)
_SENT_AGAIN = (
    "ON CONFLICT (account_key, pass_id, request_id) DO UPDATE SET batch_number = excluded.batch_number, "
    "position = excluded.position, sent_models = excluded.sent_models, status = excluded.status"
)


class SqlPasses:
    """The lifecycle of passes. See `PassStore`."""

    _database: Database

    # -- passes -------------------------------------------------------------------------------------------------------

    def add_pass(self, account: Account, made: Pass) -> None:
        """Keep a new pass."""
        with self._database.begin() as connection:
            connection.execute(
                insert(tables.passes).values(
                    id=made.id,
                    account_key=account_key(account),
                    account_user_id=account.user,
                    account_org_id=account.org,
                    **_pass_values(made),
                )
            )

    def save_pass(self, account: Account, changed: Pass) -> None:
        """Keep a pass as it now is."""
        of = tables.passes
        with self._database.begin() as connection:
            connection.execute(update(of).where(*_is(of, account, id=changed.id)).values(**_pass_values(changed)))

    def get_pass(self, account: Account, pass_id: str) -> Pass:
        """A pass."""
        of = tables.passes
        with self._database.begin() as connection:
            found = connection.execute(select(of).where(*_is(of, account, id=pass_id))).first()
            if found is None:
                raise StoreError(f"{self._database.name}: there is no pass {safe_text(pass_id)!r} of this account")
            return _pass(found)

    def passes(self, account: Account, *, limit: int = 100) -> list[Pass]:
        """Passes, the latest first."""
        of = tables.passes
        query = select(of).where(*_is(of, account)).order_by(of.c.created_at.desc(), of.c.id.desc()).limit(limit)
        with self._database.begin() as connection:
            return [_pass(found) for found in connection.execute(query)]

    def claim(self, account: Account, pass_id: str, owner: str, seconds: float) -> bool:
        """Claim a pass for so long, by the store's clock, or claim it anew; whether no other owner's claim stands."""
        sqlite = self._database.is_sqlite
        mark, now = ("?", _SQLITE_NOW) if sqlite else ("%s", _POSTGRES_NOW)
        sql = (
            f"INSERT INTO {tables.claims.name} AS held (account_key, pass_id, owner, until_ms) "
            f"VALUES ({mark}, {mark}, {mark}, {now} + {mark}) "
            "ON CONFLICT (account_key, pass_id) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms "
            f"WHERE held.owner = excluded.owner OR held.until_ms <= {now}"
        )
        with self._database.begin() as connection:
            values = (account_key(account), pass_id, owner, round(seconds * 1_000))
            return connection.exec_driver_sql(sql, values).rowcount == 1

    def release(self, account: Account, pass_id: str, owner: str) -> None:
        """Give up a claim. Where it is another's by now, that stands."""
        self._delete(tables.claims, account, pass_id=pass_id, owner=owner)

    # -- batches and rows ---------------------------------------------------------------------------------------------

    def add_batch(
        self, account: Account, batch: Batch, items: Sequence[Item], *, statuses: Sequence[ItemStatus] | None = None
    ) -> None:
        """Keep a batch and its rows, all or nothing, before it is sent."""
        key = account_key(account)
        try:
            with self._database.begin() as connection:
                connection.execute(
                    insert(tables.batches).values(
                        account_key=key,
                        pass_id=batch.pass_id,
                        number=batch.number,
                        attempt=batch.attempt,
                        idempotency_key=batch.key,
                        created_at=batch.created_at,
                        **_batch_values(batch),
                    )
                )
                self._add_items(connection, key, batch.pass_id, items, batch.number, statuses or ["open"] * len(items))
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise StoreError(
                    f"pass {batch.pass_id} has a batch {batch.number} already: another process runs it"
                ) from error
            raise

    def add_failed(self, account: Account, pass_id: str, items: Sequence[Item]) -> None:
        """Keep rows that failed before they could be sent."""
        with self._database.begin() as connection:
            self._add_items(connection, account_key(account), pass_id, items, None, ["failed"] * len(items))

    def _add_items(
        self,
        connection: Connection,
        key: str,
        pass_id: str,
        items: Sequence[Item],
        number: int | None,
        statuses: Sequence[ItemStatus],
    ) -> None:
        models: dict[tuple[str, ...], str] = {}
        rows = []
        for position, (item, status) in enumerate(zip(items, statuses, strict=True)):
            sent = models.get(item.selected_models)
            if sent is None:
                sent = models[item.selected_models] = _encode(item.selected_models)
            # By their places, which are those of the columns: with names it takes twice as long, and there are many.
            at = self._database.moment(item.source_start_time)
            rows.append((
                key, pass_id, *item[:_ITEM_TIME], at, sent, *item[_ITEM_TIME + 2 :], number, position, sent, status,
            ))  # fmt: skip
        self._database.insert_rows(connection, tables.items.name, _ITEM_COLUMNS, rows, _SENT_AGAIN)

    def save_batch(self, account: Account, batch: Batch) -> None:
        """Keep a batch as it now is."""
        of = tables.batches
        with self._database.begin() as connection:
            connection.execute(
                update(of)
                .where(*_is(of, account, pass_id=batch.pass_id, number=batch.number))
                .values(**_batch_values(batch))
            )

    def batches(self, account: Account, pass_id: str) -> list[Batch]:
        """A pass's batches, by number."""
        of = tables.batches
        with self._database.begin() as connection:
            query = select(of).where(*_is(of, account, pass_id=pass_id)).order_by(of.c.number)
            return [
                Batch(
                    found.pass_id,
                    found.number,
                    found.attempt,
                    found.idempotency_key,
                    found.status,
                    found.batch_id,
                    found.said,
                    found.created_at,
                )
                for found in connection.execute(query)
            ]

    def items(self, account: Account, pass_id: str, *, number: int | None = None) -> list[Item]:
        """The rows of a pass, or of one of its batches, in the order in which they are sent."""
        of = tables.items
        query = select(of).where(*_is(of, account, pass_id=pass_id))
        if number is None:
            query = query.order_by(of.c.batch_number, of.c.position)
        else:
            query = query.where(of.c.batch_number == number).order_by(of.c.position)
        with self._database.begin() as connection:
            return [_item(found, sent=number is not None) for found in connection.execute(query)]

    def asked(self, account: Account, pass_id: str) -> dict[str, tuple[str, ...]]:
        """The models that the rows of a pass are for, by the ids of the rows."""
        of = tables.items
        # One tuple for all rows of the same models: there may be a million rows.
        known: dict[tuple[str, ...], tuple[str, ...]] = {}
        query = select(of.c.request_id, of.c.selected_models).where(*_is(of, account, pass_id=pass_id))
        with self._database.begin() as connection:
            return {
                row.request_id: known.setdefault(tuple(row.selected_models), tuple(row.selected_models))
                for row in connection.execute(query)
            }

    def settle(self, account: Account, pass_id: str, statuses: Iterable[tuple[str, ItemStatus]]) -> None:
        """Say how rows ended, by their ids."""
        key = account_key(account)
        rows = [(status, key, pass_id, request_id) for request_id, status in statuses]
        if not rows:
            return
        mark = "?" if self._database.is_sqlite else "%s"
        sql = (
            f"UPDATE {tables.items.name} SET status = {mark} "
            f"WHERE account_key = {mark} AND pass_id = {mark} AND request_id = {mark}"
        )
        with self._database.begin() as connection:
            connection.exec_driver_sql(sql, rows)

    def counts(self, account: Account, pass_id: str) -> dict[ItemStatus, int]:
        """How many rows of a pass are open, completed and failed."""
        of = tables.items
        query = select(of.c.status, func.count()).where(*_is(of, account, pass_id=pass_id)).group_by(of.c.status)
        counted: dict[ItemStatus, int] = {"open": 0, "completed": 0, "failed": 0}
        with self._database.begin() as connection:
            counted.update({row[0]: row[1] for row in connection.execute(query)})
        return counted

    # -- signals, presets and monitors --------------------------------------------------------------------------------

    def save_signal(self, account: Account, signal: Signal) -> None:
        """Keep a signal of one's own, in place of one of its id."""
        values = {
            "model_alias": signal.model,
            "display_name": signal.display_name,
            "transform_id": signal.transform.id,
            "transform_version": signal.transform.version,
            "transform_config": signal.transform.model_dump(mode="json"),
            "threshold_config": dict(signal.thresholds),
            "monitor": signal.monitor,
            "config": signal.to_dict(),
            "created_at": signal.created,
            "updated_at": signal.updated,
        }
        self._replace(tables.signals, account, {"signal_id": signal.signal_id}, values)

    def signals(self, account: Account) -> dict[str, Signal]:
        """The account's own signals, by their ids."""
        of = tables.signals
        with self._database.begin() as connection:
            found = connection.execute(select(of.c.config).where(*_is(of, account)).order_by(of.c.signal_id)).scalars()
            return {each.signal_id: each for each in map(Signal.model_validate, found)}

    def delete_signal(self, account: Account, signal_id: str) -> bool:
        """Forget a signal; whether there was one."""
        return self._delete(tables.signals, account, signal_id=signal_id)

    def save_preset(self, account: Account, preset: Preset) -> None:
        """Keep a preset, in place of one of its name."""
        values = {
            "config": preset.model_dump(mode="json"),
            "monitor": preset.monitor,
            "created_at": preset.created,
            "updated_at": preset.updated,
        }
        self._replace(tables.presets, account, {"name": preset.name}, values)

    def presets(self, account: Account) -> dict[str, Preset]:
        """The account's presets, by their names."""
        of = tables.presets
        with self._database.begin() as connection:
            found = connection.execute(select(of.c.config).where(*_is(of, account)).order_by(of.c.name)).scalars()
            return {each.name: each for each in map(Preset.model_validate, found)}

    def delete_preset(self, account: Account, name: str) -> bool:
        """Forget a preset; whether there was one."""
        return self._delete(tables.presets, account, name=name)

    def monitor(self, account: Account, name: str) -> MonitorState:
        """Where a monitor stands; one that never ran has no watermark."""
        of = tables.monitors
        with self._database.begin() as connection:
            found = connection.execute(select(of).where(*_is(of, account, name=name))).first()
        if found is None:
            return MonitorState(name)
        return MonitorState(name, found.watermark, found.pass_id or None, found.until)

    def move_monitor(self, account: Account, was: MonitorState, now: MonitorState) -> bool:
        """Move a monitor on, if it still stands where it was."""
        of = tables.monitors
        values = {"watermark": now.watermark, "pass_id": now.pass_id or "", "until": now.until}
        stands = (
            *_is(of, account, name=was.name),
            of.c.pass_id == (was.pass_id or ""),
            of.c.watermark.is_(None) if was.watermark is None else of.c.watermark == was.watermark,
        )
        try:
            with self._database.begin() as connection:
                if was == MonitorState(was.name):
                    there = connection.execute(select(of.c.name).where(*_is(of, account, name=was.name))).first()
                    if there is None:
                        connection.execute(insert(of).values(account_key=account_key(account), name=was.name, **values))
                        return True
                return connection.execute(update(of).where(*stands).values(**values)).rowcount == 1
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError):
                return False
            raise

    def alerted(self, account: Account, pass_id: str) -> int:
        """Up to which attempt of a pass alerts have been sent; -1 before any has."""
        of = tables.passes
        with self._database.begin() as connection:
            found = connection.execute(select(of.c.alerted).where(*_is(of, account, id=pass_id))).scalar()
        return -1 if found is None else found

    def save_alerted(self, account: Account, pass_id: str, attempt: int) -> None:
        """Remember that."""
        of = tables.passes
        with self._database.begin() as connection:
            connection.execute(update(of).where(*_is(of, account, id=pass_id)).values(alerted=attempt))

    def _replace(self, of: Table, account: Account, name: dict[str, str], values: dict[str, Any]) -> None:
        with self._database.begin() as connection:
            if not connection.execute(update(of).where(*_is(of, account, **name)).values(**values)).rowcount:
                connection.execute(
                    insert(of).values(
                        account_key=account_key(account),
                        account_user_id=account.user,
                        account_org_id=account.org,
                        **name,
                        **values,
                    )
                )

    def _delete(self, of: Table, account: Account, **name: str) -> bool:
        with self._database.begin() as connection:
            return connection.execute(delete(of).where(*_is(of, account, **name))).rowcount > 0


def _is(table: Table, account: Account, **values: Any) -> list[Any]:
    """The conditions for rows of an account, and of these values."""
    key = account_key(account)
    return [table.c.account_key == key, *(table.c[name] == value for name, value in values.items())]


def _pass_values(found: Pass) -> dict[str, Any]:
    return {
        "status": found.status,
        "scope_json": found.scope.model_dump(mode="json"),
        "selected_signals_json": list(found.selected_signals),
        "transform_plan_json": list(found.transform_plan),
        "estimate_json": found.estimate.model_dump(mode="json"),
        "total_inputs": found.total_inputs,
        "total_predictions": found.total_predictions,
        "completed_inputs": found.completed_inputs,
        "failed_inputs": found.failed_inputs,
        "error_message": found.error_message,
        "created_at": found.created_at,
        "started_at": found.started_at,
        "completed_at": found.completed_at,
        "rerun": found.rerun,
        "answered": found.answered,
        "planned": found.planned,
    }


def _pass(found: Row[Any]) -> Pass:
    return Pass(
        found.id,
        Account(found.account_user_id, found.account_org_id),
        found.status,
        Scope.model_validate(found.scope_json),
        tuple(found.selected_signals_json),
        tuple(found.transform_plan_json),
        PlanEstimate.model_validate(found.estimate_json),
        found.total_inputs,
        found.total_predictions,
        found.completed_inputs,
        found.failed_inputs,
        found.error_message,
        found.created_at,
        found.started_at,
        found.completed_at,
        found.rerun,
        found.answered,
        found.planned,
    )


def _batch_values(batch: Batch) -> dict[str, Any]:
    return {"status": batch.status, "batch_id": batch.batch_id, "said": batch.said}


def _item(found: Row[Any], *, sent: bool) -> Item:
    return Item(
        found.request_id,
        found.convo_id,
        found.event_id,
        found.span_id,
        found.turn_index,
        found.end_user_id,
        found.release,
        found.input_kind,
        found.transform_id,
        found.transform_version,
        found.source_start_time,
        tuple(found.sent_models if sent else found.selected_models),
        found.truncated,
        found.input_hash,
    )
