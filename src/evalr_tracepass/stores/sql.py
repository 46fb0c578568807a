"""Stores through SQLAlchemy: a file of SQLite, and PostgreSQL."""

from __future__ import annotations

from evalr_tracepass.stores.database import Database
from evalr_tracepass.stores.sql_passes import SqlPasses
from evalr_tracepass.stores.sql_results import SqlResults


class SqlStore(SqlPasses, SqlResults):
    """Passes and results in one database. It can be used from several threads and processes at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __repr__(self) -> str:
        return f"SqlStore({self._database.name!r})"

    def close(self) -> None:
        """Let go of files and connections."""
        self._database.engine.dispose()
