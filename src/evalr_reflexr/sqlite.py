"""reflexr's SQLite store, read without a lock that a writer would wait for, and without a byte written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from evalr.errors import LogError
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr.logs.sqlite import Database, database_error, is_sqlite, open_database
from evalr_reflexr.envelopes import Envelope, Workspace
from evalr_reflexr.stores import (
    FIELDS,
    Row,
    TypeFilter,
    chosen,
    no_store,
    parsed,
    row_of,
    schema_note,
)

CHUNK = 500
"""Rows that one statement reads: its lock is held for milliseconds, and an envelope may be large."""

PATIENCE = 30.0
"""Seconds to wait for a writer that is just committing."""

GLANCE = 0.2
"""The same, where it is only asked what a file is."""

COLUMNS = ("tenant_id", "workspace_id", "seq", "event_id", "event_type", "envelope")


class SqliteStore:
    """A store in a file."""

    def __init__(self, path: Path, *, wait: float = PATIENCE) -> None:
        self._path, self._wait = path, wait

    @property
    def path(self) -> str:
        """The file's."""
        return str(self._path)

    @contextmanager
    def opened(self) -> Iterator[OpenSqlite]:
        """The store, open for reading alone."""
        # Each statement is a transaction of its own: a log that is only appended to needs none over several.
        with closing(open_database(self._path, wait=self._wait, snapshot=False)) as database:
            yield OpenSqlite(database)
            database.check_unchanged()


def is_store(path: Path, head: bytes) -> bool:
    """Whether a file is a SQLite database with reflexr's events, also where it cannot be read now, or all of it."""
    if not is_sqlite(head):
        return False
    try:
        with SqliteStore(path, wait=GLANCE).opened() as store:
            return store.has_events()
    except LogError:
        return b"reflexr_events" in head


class OpenSqlite:
    """A store in a file that is open."""

    ends: Mapping[Workspace, datetime] = MappingProxyType({})

    def __init__(self, database: Database) -> None:
        self._path, self.connection, self._notes = str(database.path), database.connection, database.notes

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement, so that its lock is gone when they are looked at."""
        try:
            return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise database_error(self._path, error) from error

    def has_events(self) -> bool:
        """Whether it has reflexr's table of events."""
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'reflexr_events'"))

    def version(self) -> str | None:
        """Of its schema."""
        if not self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'reflexr_alembic_version'"):
            return None
        found = self._rows("SELECT version_num FROM reflexr_alembic_version")
        return str(found[0][0]) if found else None

    def check(self, log: Log) -> None:
        """Raise LogError where its tables are not reflexr's; tell what is to be known of its version."""
        version = self.version()
        if not self.has_events():
            raise no_store(self._path, "table reflexr_events", version)
        columns = {row[1] for row in self._rows("PRAGMA table_info(reflexr_events)")}
        lacks = [column for column in COLUMNS if column not in columns]
        if lacks:
            raise no_store(self._path, f"column {lacks[0]} in reflexr_events", version)
        note = schema_note(version)
        notes = self._notes if note is None else [*self._notes, note]
        log.notes += [each for each in notes if each not in log.notes]

    def workspaces(self) -> list[Workspace]:
        """Those that have events."""
        # From one to the next along the key, rather than over all rows.
        found: list[Workspace] = []
        last: tuple[str, str] = ("", "")
        while rows := self._rows(
            "SELECT tenant_id, workspace_id FROM reflexr_events WHERE (tenant_id, workspace_id) > (?, ?) "
            "ORDER BY tenant_id, workspace_id LIMIT 1",
            last,
        ):
            last = rows[0]
            found.append(Workspace(*last))
        return found

    def envelopes(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter, size: int = CHUNK
    ) -> Iterator[Envelope]:
        """See `OpenStore`. What is appended after this began is not read. `size`: as for `chunks`."""
        for chunk in self.chunks(log, tenant, workspace, types, size=size):
            yield from self._parsed(chunk, log)

    def rows(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter, fields: Sequence[str]
    ) -> Iterator[Row]:
        """See `OpenStore`. One row that is no JSON would stop SQLite: its chunk is then parsed row by row."""
        paths = ", ".join(f"json_extract(envelope, '$.{'.'.join(FIELDS[field])}')" for field in fields)
        for chunk in self.chunks(log, tenant, workspace, types):
            try:
                found = self.connection.execute(chunk.sql(f"seq, event_type, {paths}"), chunk.values).fetchall()
            except sqlite3.Error:
                for envelope in self._parsed(chunk, log):
                    yield row_of(envelope, fields)
            else:
                for seq, type_name, *values in found:
                    yield chunk.workspace, seq, type_name, values

    def _parsed(self, chunk: Chunk, log: Log) -> Iterator[Envelope]:
        for seq, text in self._rows(chunk.sql("seq, CAST(envelope AS BLOB)"), chunk.values):
            try:
                yield stored_envelope(chunk.workspace, seq, text, log)
            except Reason as reason:
                log.records += 1
                log.skip(str(reason), chunk.workspace.place(seq))

    def chunks(
        self, log: Log, tenant: str | None, workspace: str | None, types: TypeFilter, *, size: int = CHUNK
    ) -> Iterator[Chunk]:
        """What is wanted, in ranges of so many rows by the key, which the index of types serves as well."""
        self.check(log)
        found = chosen(self._path, self.workspaces(), tenant=tenant, workspace=workspace)
        ends = {each: self._rows(f"SELECT max(seq) {_OF_WORKSPACE}", each)[0][0] for each in found}
        for each in found:
            names = [row[0] for row in self._rows(f"SELECT DISTINCT event_type {_OF_WORKSPACE}", each)]
            wanted = tuple(name for name in names if types(name))
            after = -1
            while wanted and after < ends[each]:
                limited = f"SELECT seq {_OF_WORKSPACE} AND seq > ? AND seq <= ? ORDER BY seq LIMIT {size}"
                until = self._rows(f"SELECT max(seq) FROM ({limited})", (*each, after, ends[each]))[0][0]
                if until is None:
                    break
                yield Chunk(each, after, until, wanted, is_all=len(wanted) == len(names))
                after = until


class Chunk(NamedTuple):
    """The rows of a workspace after one seq and until another, of some types or of all that there are."""

    workspace: Workspace
    after: int
    until: int
    types: tuple[str, ...]
    is_all: bool

    def sql(self, what: str, *, order: str = "+seq") -> str:
        """The statement that reads something of each, in the order of the log.

        By `+seq` SQLite finds rows by their types and sorts them, and of rare types need not look at all the others.
        Where most rows are wanted, `seq` spares the sorting.
        """
        only = "" if self.is_all else f"AND event_type IN ({', '.join('?' * len(self.types))})"
        return f"SELECT {what} {_OF_WORKSPACE} AND seq > ? AND seq <= ? {only} ORDER BY {order}"

    @property
    def values(self) -> tuple[Any, ...]:
        """Of the statement."""
        return (*self.workspace, self.after, self.until, *(() if self.is_all else self.types))


_OF_WORKSPACE = "FROM reflexr_events WHERE tenant_id = ? AND workspace_id = ?"


def stored_envelope(workspace: Workspace, seq: int, text: object, log: Log) -> Envelope:
    """The envelope of a row, whose own columns say which workspace it is of and which place it has.

    Raises:
        Reason: the row holds none.
    """
    if not isinstance(text, str | bytes):
        raise Reason("row without an envelope")
    return parsed(text, tenant=workspace.tenant, log=log)._replace(workspace=workspace, seq=seq)
