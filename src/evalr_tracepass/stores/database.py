"""A database that SQLAlchemy knows: opened, with its tables made, and errors that tell no values."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, insert, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, NoSuchModuleError

from evalr.errors import InputError, MissingExtraError, StoreError
from evalr.inputs import Now, resolve_now
from evalr.quoting import safe_text
from evalr_tracepass.error_words import kept_message
from evalr_tracepass.records import Account
from evalr_tracepass.stores.moments import from_ms, to_ms
from evalr_tracepass.stores.store import KEPT_FOR
from evalr_tracepass.stores.tables import VERSION, metadata, schema_versions

BUSY = 30.0
"""Seconds to wait for another process that is writing."""

LOCK = 7_236_911
"""Of PostgreSQL's advisory locks, the one under which tables are made."""


NOT_STORABLE = "it was given a name or a text with NUL, or with half of a character, which it cannot hold"

NO_TEXT = frozenset({None, "22021", "22P02", "22P05"})
"""PostgreSQL's codes for what is no text, in a column or in its JSON; its driver has none for NUL, and asks nobody."""


class Database:
    """An engine whose tables are there.

    Attributes:
        engine: SQLAlchemy's.
        is_sqlite: whether it is a file of SQLite.
        name: as messages name it.
    """

    def __init__(self, engine: Engine, name: str, now: Now) -> None:
        self._file = _file_of(engine)
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.name = name
        self._now = now
        with self.begin() as connection:
            _make_tables(connection, metadata, name)

    def moment(self, time: datetime | None) -> int | datetime | None:
        """A time as the driver takes it, to the millisecond."""
        if time is None:
            return None
        return to_ms(time) if self.is_sqlite else from_ms(to_ms(time))

    def cutoff(self, now: datetime | None = None) -> datetime:
        """Results that were made before it have expired."""
        return resolve_now(now or self._now) - KEPT_FOR

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction, whose errors name neither values nor passwords."""
        if self._file != _file_of(self.engine):
            # What is written to a file that is no longer there would be gone with this process.
            raise StoreError(f"{self.name}: the file was removed, or replaced by another, while it was in use")
        try:
            with self.engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            unstorable = isinstance(error, DataError) and getattr(error.orig, "sqlstate", None) in NO_TEXT
            raise StoreError(f"{self.name}: {NOT_STORABLE if unstorable else _said(error)}") from error
        except UnicodeEncodeError as error:
            raise StoreError(f"{self.name}: {NOT_STORABLE}") from error
        except OverflowError as error:
            raise StoreError(f"{self.name}: it was given a number that is larger than it can hold") from error
        except (ValidationError, json.JSONDecodeError) as error:
            raise StoreError(f"{self.name}: what it holds cannot be read: was it changed by hand?") from error

    def insert_rows(
        self,
        connection: Connection,
        table: str,
        columns: tuple[str, ...],
        rows: list[tuple[Any, ...]],
        ending: str = "",
    ) -> None:
        """Many rows at once, as the driver takes them: no layer above looks at each."""
        if not rows:
            return
        mark = "?" if self.is_sqlite else "%s"
        marks = ", ".join([mark] * len(columns))
        connection.exec_driver_sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) {ending}", rows)


def sqlite_engine(path: str | os.PathLike[str]) -> tuple[Engine, str]:
    """An engine for a file, which is made where there is none, for its owner alone.

    Raises:
        StoreError: it cannot be opened.
        InputError: no file can have such a name.
    """
    place = Path(path)
    if place.name == ":memory:":
        raise InputError("a store is a file, since several connections use it: name one")
    try:
        os.close(os.open(place, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(f"{safe_text(str(place), longest=200)}: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{safe_text(str(place), longest=200)!r} is no name that a file can have") from error
    engine = create_engine(
        URL.create("sqlite", database=str(place.absolute())), hide_parameters=True, connect_args={"timeout": BUSY}
    )
    event.listen(engine, "connect", _prepare_sqlite)
    return engine, safe_text(str(place), longest=200)


def _file_of(engine: Engine) -> tuple[int, int] | None:
    """Which file the database of SQLite is; None where there is none, or it is a server."""
    if engine.dialect.name != "sqlite":
        return None
    try:
        found = Path(engine.url.database or "").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    # Of a new file: a row of results is long, and with its indexes few would fit a page of the usual size.
    connection.execute("PRAGMA page_size = 8192")
    connection.execute("PRAGMA journal_mode = WAL")
    # What was acknowledged must be there after a power cut, too: a batch may have been paid for.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -65536")


def server_engine(url: str) -> tuple[Engine, str]:
    """An engine for a server of PostgreSQL.

    Raises:
        InputError: it is no address of one.
        MissingExtraError: its driver is not installed.
    """
    try:
        found = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise InputError("the address of a store must be like postgresql://user@host/database") from error
    if found.get_backend_name() != "postgresql":
        raise InputError(f"a store is a file, or an address of PostgreSQL, and not of {found.get_backend_name()!r}")
    if found.drivername == "postgresql":
        found = found.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(found, hide_parameters=True, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise MissingExtraError(
            "a store in PostgreSQL needs psycopg: pip install 'evalr[postgres]'", name="psycopg"
        ) from error
    return engine, found.set(username=None, password=None, query={}).render_as_string()


def _make_tables(connection: Connection, tables: MetaData, name: str) -> None:
    if connection.dialect.name == "postgresql":
        # Two processes that begin at once would both make them.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    elif (there := inspect(connection).get_table_names()) and schema_versions.name not in there:
        raise StoreError(f"{name}: this is another database, with tables of its own: name a file that does not exist")
    tables.create_all(connection)
    version = connection.execute(select(schema_versions.c.version)).scalar()
    if version is None:
        connection.execute(insert(schema_versions).values(version=VERSION))
    elif version != VERSION:
        raise StoreError(f"{name}: its tables are of version {version}, and this release reads version {VERSION}")


def _said(error: DBAPIError) -> str:
    """What a driver says: its kind and its code, and of its words those that quote no value."""
    said = error.orig
    code = getattr(said, "sqlstate", None) or getattr(said, "sqlite_errorname", None)
    words = kept_message(str(said).partition("\n")[0])
    return f"{type(said).__name__}" + (f" ({code})" if code else "") + (f": {words}" if words else "")


def account_key(account: Account) -> str:
    """What an account's rows are found by: the organisation, or the user where there is none."""
    checked = account.checked()
    return f"org:{checked.org}" if checked.org else f"user:{checked.user}"
