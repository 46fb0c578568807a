"""The first request of each session of each user, found once and kept in the temporary database."""

from __future__ import annotations

from evalr_reflexio.compat.account import Asked
from evalr_reflexio.tables import REQUESTS

FIRSTS = "evalr_firsts"


def find_firsts(asked: Asked) -> str:
    """The name of a table of (session_id, user_id, source, created_at) of first requests, which is made where needed.

    Of several requests of one second, the first is the one with the lowest id.
    """
    source = "source" if asked.store.has(REQUESTS, "source") else "''"
    made = asked.queries.temporary(
        FIRSTS,
        "session_id TEXT, user_id TEXT, source TEXT, created_at TEXT, PRIMARY KEY (session_id, user_id)",
    )
    if made and asked.store.has(REQUESTS):
        asked.queries.change(
            f"INSERT INTO temp.{FIRSTS} SELECT session_id, user_id, coalesce({source}, ''), created_at FROM ("
            "SELECT *, row_number() OVER (PARTITION BY session_id, user_id ORDER BY created_at, request_id) AS place "
            f"FROM {REQUESTS} WHERE session_id IS NOT NULL AND user_id IS NOT NULL) WHERE place = 1"
        )
    return f"temp.{FIRSTS}"
