"""ClickHouse's engine, for the tests of stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def chdb_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine, of which a process can have one."""
    pytest.importorskip("chdb")
    clickhouse_connect = pytest.importorskip("clickhouse_connect")
    made = clickhouse_connect.get_client(interface="chdb", path=str(tmp_path_factory.mktemp("chdb")))
    yield made
    made.close()
