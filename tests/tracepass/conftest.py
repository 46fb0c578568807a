"""A server of PostgreSQL and ClickHouse's engine, for the tests of stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from postgres_server import Server, started


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real server, started here and stopped at the end."""
    with started() as server:
        yield server


@pytest.fixture(scope="session")
def chdb_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine, of which a process can have one."""
    pytest.importorskip("chdb")
    clickhouse_connect = pytest.importorskip("clickhouse_connect")
    made = clickhouse_connect.get_client(interface="chdb", path=str(tmp_path_factory.mktemp("chdb")))
    yield made
    made.close()
