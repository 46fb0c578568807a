"""The first request of each session of each user, found once and kept in the temporary database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.tables import REQUESTS

FIRSTS = "evalr_firsts"


def find_firsts(asked: AskedStore) -> str:
    """The name of a table of (session_id, user_id, source, created_at) of first requests, which is made where needed.

    Of several requests of one second, the first is the one with the lowest id.
    """
    made = asked.queries.temporary(
        FIRSTS, "session_id TEXT, user_id TEXT, source TEXT, created_at TEXT", key="session_id, user_id"
    )
    if made and asked.store.has(REQUESTS):
        source = "source" if asked.store.has(REQUESTS, "source") else "''"
        keep_first(asked, FIRSTS, f"coalesce({source}, ''), created_at")
    return f"temp.{FIRSTS}"


def keep_first(asked: AskedStore, table: str, what: str, where: str = "1", given: Sequence[Any] = ()) -> None:
    """Put fields of the first request of each session of each user into a table, which ignores a second one."""
    asked.queries.change(
        f"INSERT OR IGNORE INTO temp.{table} SELECT session_id, user_id, {what} FROM {REQUESTS} "
        f"WHERE session_id IS NOT NULL AND user_id IS NOT NULL AND {where} ORDER BY session_id, created_at, request_id",
        given,
    )
