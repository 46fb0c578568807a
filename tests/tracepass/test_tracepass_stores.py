"""Each store keeps the contract: SQLite, a real PostgreSQL server, and ClickHouse's engine in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalr.inputs import Now
from evalr.testing import PassStoreContract, ResultStoreContract
from evalr.tracepass import clickhouse_results, open_store


class TestSqlite(PassStoreContract, ResultStoreContract):
    def open(self, folder: Path, now: Now) -> Any:
        return open_store(folder / "passes.db", now=now)


class TestPostgres(PassStoreContract, ResultStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: Any) -> None:
        self.server = postgres
        self.databases: set[str] = set()

    def open(self, folder: Path, now: Now) -> Any:
        name = f"t{abs(hash(str(folder)))}"
        if name not in self.databases:
            self.server.make(name)
            self.databases.add(name)
        return open_store(self.server.address(name), now=now)


class TestClickHouse(ResultStoreContract):
    @pytest.fixture(autouse=True)
    def _engine(self, chdb_client: Any) -> None:
        self.client = chdb_client

    def open(self, folder: Path, now: Now) -> Any:
        return clickhouse_results(self.client, database=f"t{abs(hash(str(folder)))}", now=now)
