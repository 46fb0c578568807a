"""The first request of each session of each user, found once and kept in the temporary database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.tables import REQUESTS

FIRSTS = "evalr_firsts"


def find_firsts(asked: AskedStore) -> str:
    """The name of a table of first requests, which is made where needed.

    It has session_id, user_id, source, created_at and agent_version; and the created_at of the `last` one, and whether
    the session is `odd`: has several versions or sources, or what is no text. Of several requests of one second, the
    first is the one with the lowest id.
    """
    made = asked.queries.temporary(
        FIRSTS,
        "session_id TEXT, user_id TEXT, source TEXT, created_at TEXT, agent_version TEXT, last TEXT, odd INTEGER",
        key="session_id, user_id",
    )
    if made and asked.store.has(REQUESTS):
        seen = asked.fields(REQUESTS, ("source", "created_at", "agent_version", "created_at"))
        source, version = (asked.fields(REQUESTS, [name]) for name in ("source", "agent_version"))
        # Seen before the table makes texts of numbers, which it takes for the same user or session.
        is_odd = (
            "typeof(t.session_id) <> 'text' OR typeof(t.user_id) <> 'text' OR typeof(t.created_at) <> 'text' "
            f"OR typeof({source}) NOT IN ('text', 'null') OR typeof({version}) NOT IN ('text', 'null')"
        )
        differs = "excluded.source IS NOT source OR excluded.agent_version IS NOT agent_version"
        asked.queries.change(
            f"INSERT INTO temp.{FIRSTS} SELECT t.session_id, t.user_id, {seen}, {is_odd} {_IN_ORDER.format('1')} "
            f"ON CONFLICT DO UPDATE SET last = excluded.last, odd = odd OR excluded.odd OR {differs}"
        )
    return f"temp.{FIRSTS}"


def keep_first(asked: AskedStore, table: str, what: str, where: str = "1", given: Sequence[Any] = ()) -> None:
    """Put fields of the first request of each session of each user into a table, which ignores a second one."""
    asked.queries.change(
        f"INSERT OR IGNORE INTO temp.{table} SELECT session_id, user_id, {what} {_IN_ORDER.format(where)}", given
    )


_IN_ORDER = (
    f"FROM {REQUESTS} t WHERE t.session_id IS NOT NULL AND t.user_id IS NOT NULL AND {{}} "
    "ORDER BY t.session_id, t.created_at, t.request_id"
)
