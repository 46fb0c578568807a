"""Rows of results: those of a window, as Reflexio selects them, and what the API shows of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from evalr.logs.reasons import Reason
from evalr_reflexio.compat.account import Asked
from evalr_reflexio.compat.cells import (
    count_of,
    name_of,
    name_or_none,
    regular_vs_shadow_of,
    tags_of,
    whole_of,
)
from evalr_reflexio.compat.tiles import Result, without_none
from evalr_reflexio.compat.windows import Window, text_of_time, time_of
from evalr_reflexio.tables import OUTCOMES

NOUN = "result"
CORRECTIONS = "number_of_correction_per_session"
_COUNTED: Final = (
    "result_id", "user_id", "session_id", "created_at", "is_success", CORRECTIONS, "user_turns_to_resolution",
    "is_escalated", "failure_type", "tags", "regular_vs_shadow", "trajectory_interaction_count",
)  # fmt: skip
_SHOWN: Final = (
    "result_id", "user_id", "session_id", "created_at", "is_success", CORRECTIONS, "user_turns_to_resolution",
    "is_escalated", "failure_type", "tags", "regular_vs_shadow", "agent_version", "evaluation_name", "failure_reason",
)  # fmt: skip
SYSTEM_ERROR = "system_error"


def counted(row: Sequence[Any]) -> Result:
    """A row of `_COUNTED`, and whatever comes after. Raises Reason where Reflexio could not read it."""
    result_id, user, session, at, success, corrections, turns, escalated, failure, tags, compared, judged = row[:12]
    if type(corrections) is not int or corrections < 0:
        corrections = count_of(corrections or 0, CORRECTIONS)
    if turns is not None and type(turns) is not int:
        turns = whole_of(turns, "user_turns_to_resolution")
    if tags is not None:
        tags_of(tags)
    if compared is not None:
        regular_vs_shadow_of(compared)
    if judged is not None:
        count_of(judged, "trajectory_interaction_count")
    if failure is not None:
        name_of(failure, "failure_type")
    return Result(
        result_id,
        name_of(user or "", "user_id"),
        name_of(session, "session_id"),
        time_of(at),
        bool(success),
        corrections,
        turns,
        bool(escalated),
        not success and (failure or "").strip().lower() == SYSTEM_ERROR,
    )


def shown(row: Sequence[Any]) -> dict[str, Any]:
    """A row of `_SHOWN` as the API shows it."""
    result_id, user, session, at, success, corrections, turns, escalated, failure, tags, compared, *names = row
    version, evaluator, reason = names
    return without_none({
        "result_id": result_id,
        "user_id": user or "",
        "agent_version": name_of(version, "agent_version"),
        "session_id": name_of(session, "session_id"),
        "is_success": bool(success),
        "failure_type": name_or_none(failure, "failure_type"),
        "failure_reason": name_or_none(reason, "failure_reason"),
        "evaluation_name": name_or_none(evaluator, "evaluation_name"),
        "created_at": time_of(at),
        "regular_vs_shadow": regular_vs_shadow_of(compared),
        CORRECTIONS: count_of(corrections or 0, CORRECTIONS),
        "user_turns_to_resolution": None if turns is None else whole_of(turns, "user_turns_to_resolution"),
        "is_escalated": bool(escalated),
        "tags": tags_of(tags),
    })  # fmt: skip


def in_window(asked: Asked, window: Window, *, join: str = "", more: str = "") -> Iterator[Sequence[Any]]:
    """The rows whose time, as a text, is in a window: newest first, those of one time by their ids.

    Args:
        asked: the store.
        window: the window.
        join: what else to ask, of results called `t`.
        more: what to select of that.
    """
    if not asked.store.has(OUTCOMES):
        return iter(())
    fields = asked.fields(OUTCOMES, _COUNTED)
    return asked.queries.rows(
        f"SELECT {fields}{more and ', ' + more} FROM {OUTCOMES} t {join} "
        "WHERE t.created_at >= ? AND t.created_at <= ? ORDER BY t.created_at DESC, t.result_id",
        [text_of_time(window.start), text_of_time(window.end)],
    )


def newest_rows(asked: Asked, limit: int) -> Iterator[Sequence[Any]]:
    """The newest rows of any time, by the text of their time."""
    if not asked.store.has(OUTCOMES):
        return iter(())
    fields = asked.fields(OUTCOMES, _COUNTED)
    query = f"SELECT {fields} FROM {OUTCOMES} t ORDER BY t.created_at DESC, t.result_id LIMIT ?"
    return asked.queries.rows(query, [limit])


def shown_by_id(asked: Asked, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What the API shows of some results."""
    fields = asked.fields(OUTCOMES, _SHOWN)
    found: dict[int, dict[str, Any]] = {}
    for row in asked.queries.rows(
        f"SELECT {fields} FROM {OUTCOMES} t WHERE t.result_id IN ({','.join('?' * len(ids))})", list(ids)
    ):
        try:
            found[row[0]] = shown(row)
        except Reason as reason:
            asked.account.skip(str(reason), f"{NOUN} {row[0]}")
    return found


def newest(asked: Asked, where: Sequence[str], given: Sequence[Any], limit: int) -> list[dict[str, Any]]:
    """The newest results by the text of their time, as the API shows them."""
    if not asked.store.has(OUTCOMES):
        return []
    clause = f"WHERE {' AND '.join(where)}" if where else ""
    rows = asked.queries.rows(
        f"SELECT {asked.fields(OUTCOMES, _SHOWN)} FROM {OUTCOMES} t {clause} "
        "ORDER BY t.created_at DESC, t.result_id LIMIT ?",
        [*given, limit],
    )
    return list(asked.read(rows, shown, NOUN))
