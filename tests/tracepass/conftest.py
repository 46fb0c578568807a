"""Stores for the tests of passes, and a service for those of the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reflex_service import KEY, FakeReflex, served
from tracepass_command import ran

from evalr.tracepass import open_store


@pytest.fixture(scope="session")
def chdb_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The engine, of which a process can have one."""
    pytest.importorskip("chdb")
    clickhouse_connect = pytest.importorskip("clickhouse_connect")
    made = clickhouse_connect.get_client(interface="chdb", path=str(tmp_path_factory.mktemp("chdb")))
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """Passes and results in a file of SQLite."""
    made = open_store(tmp_path / "passes.db")
    yield made
    made.close()


@pytest.fixture
def fake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeReflex]:
    """The service on loopback, and a signal of one of its models in the store of a module's `folder`."""
    made = FakeReflex()
    ran(folder, "signals", "save", "rude", "--model", "m1", "--fires-on", "bad")
    monkeypatch.setenv("MORPH_API_KEY", KEY)
    with served(made) as url:
        monkeypatch.setenv("MORPH_BASE_URL", url)
        yield made
