"""A server of PostgreSQL, for the tests of stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import Server, started


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real server, started here and stopped at the end."""
    with started() as server:
        yield server
