"""Opening stores: what they need is imported when they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from evalr.errors import MissingExtraError
from evalr.inputs import Now, utc_now

if TYPE_CHECKING:
    from evalr_tracepass.stores.clickhouse import ClickHouseResults
    from evalr_tracepass.stores.sql import SqlStore


def open_store(place: str | os.PathLike[str], *, now: Now = utc_now) -> SqlStore:
    """A store of passes and results: a file of SQLite, which is made where there is none, or a PostgreSQL database.

    Args:
        place: a path, or an address such as `postgresql://user@host/database`.
        now: the reading time, by which results expire.

    Raises:
        StoreError: it cannot be opened, or is another database.
        InputError: it is no address of PostgreSQL.
        MissingExtraError: SQLAlchemy, or the driver of PostgreSQL, is not installed.
    """
    try:
        from evalr_tracepass.stores.database import Database, server_engine, sqlite_engine
        from evalr_tracepass.stores.sql import SqlStore
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise MissingExtraError(
            "a store of passes needs SQLAlchemy: pip install 'evalr[tracepass]'", name="sqlalchemy"
        ) from error
    engine, name = server_engine(place) if isinstance(place, str) and "://" in place else sqlite_engine(place)
    return SqlStore(Database(engine, name, now))


def clickhouse_results(client: Any, *, database: str = "evalr", now: Now = utc_now) -> ClickHouseResults:
    """Results in ClickHouse, for passes whose lifecycle is kept in another store.

    Args:
        client: of clickhouse-connect: `clickhouse_connect.get_client(...)`.
        database: where the tables are, or are made.
        now: the reading time, by which results expire.

    Raises:
        StoreError: the tables cannot be made.
    """
    from evalr_tracepass.stores.clickhouse import ClickHouseResults

    return ClickHouseResults(client, database=database, now=now)
