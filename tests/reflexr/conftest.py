"""The oracle's log in each kind of store."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from postgres_server import Server
from reflexr_samples import COLUMNS, DATA, TABLES, Row, oracle_rows, write_sqlite


@pytest.fixture(scope="session")
def oracle() -> Any:
    """What reflexr itself says of the three workspaces, and of one that does not exist."""
    return json.loads((DATA / "oracle.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def drop_off_oracle() -> Any:
    return json.loads((DATA / "oracle_dropoff.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def oracle_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sqlite(tmp_path_factory.mktemp("reflexr") / "oracle.db", oracle_rows())


@pytest.fixture(scope="session")
def oracle_wire() -> Path:
    return DATA / "acme_prod.jsonl"


class ReflexrServer(Server):
    """A server whose databases hold reflexr's tables."""

    def store(self, database: str, rows: Iterable[Row]) -> str:
        """A database with reflexr's tables and these rows; its address."""
        import psycopg

        address = self.make(database)
        self.run(database, *(statement.format(timestamp="TIMESTAMPTZ") for statement in TABLES))
        found = list(rows)
        values = ", ".join(["%s"] * len(COLUMNS))
        with psycopg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
            if found:
                cursor.executemany(
                    f"INSERT INTO reflexr_events ({', '.join(COLUMNS)}) VALUES ({values})".encode(), found
                )
        return address


@pytest.fixture(scope="session")
def postgres(postgres: Server) -> ReflexrServer:
    return ReflexrServer(postgres.port, postgres.folder)


@pytest.fixture(scope="session")
def oracle_postgres(postgres: ReflexrServer) -> str:
    return postgres.store("oracle", oracle_rows())


@pytest.fixture(params=["sqlite", "postgres"])
def oracle_store(request: pytest.FixtureRequest) -> Path | str:
    """The same log in each kind of store."""
    found: Path | str = request.getfixturevalue(f"oracle_{request.param}")
    return found
