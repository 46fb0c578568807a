"""Requests and interactions as the API's own routes give them, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexio.cells import ACTIONS, NO_ACTION, text_of
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.cells import count_of, json_of, learnings_of, name_of, tools_of
from evalr_reflexio.compat.firsts import find_firsts
from evalr_reflexio.compat.rules import citations_of
from evalr_reflexio.compat.tiles import without_none
from evalr_reflexio.compat.windows import Moment, seconds_of, text_of_time, time_of
from evalr_reflexio.store import Store
from evalr_reflexio.tables import INTERACTIONS, LEARNINGS, OUTCOMES, REQUESTS

_REQUEST: Final = (
    "request_id", "user_id", "created_at", "source", "agent_version", "session_id", "evaluation_only",
    "retrieval_experiment_id", "retrieval_experiment_arm",
)  # fmt: skip
_INTERACTION: Final = (
    "interaction_id", "user_id", "request_id", "created_at", "role", "content", "user_action",
    "user_action_description", "interacted_image_url", "shadow_content", "expert_content", "tools_used",
    "retrieved_learnings", "citations", "token_count",
)  # fmt: skip
PAGE = 30
MOST_GROUPS = 100


def get_requests(
    store: Store, *, user_id: str | None = None, request_id: str | None = None, session_id: str | None = None,
    source: str | None = None, since: Moment | None = None, until: Moment | None = None, top_k: int = PAGE,
    offset: int = 0, account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`POST /api/get_requests`: a page of sessions, newest first, with their requests and interactions.

    It goes by the session's id alone: sessions of several users that share one are one here.

    Args:
        store: the log.
        user_id: only of this user.
        request_id: only this one.
        session_id: only of this session.
        source: only from this request source.
        since: see `overview`.
        until: see `overview`.
        top_k: sessions on a page.
        offset: sessions to pass over.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    where, given = ["1"], list[Any]()
    for column, value in (("user_id", user_id), ("request_id", request_id), ("session_id", session_id)):
        if value:
            where.append(f"t.{column} = ?")
            given.append(value)
    if source is not None:
        where.append("t.source = ?")
        given.append(source)
    if since is not None:
        where.append("t.created_at >= ?")
        given.append(text_of_time(seconds_of(since, "since")))
    if until is not None:
        where.append("t.created_at <= ?")
        given.append(text_of_time(seconds_of(until, "until") - (not isinstance(until, int))))
    clause = " AND ".join(where)
    page = []
    if store.has(REQUESTS):
        page = [
            session
            for session, _ in asked.queries.rows(
                f"SELECT t.session_id, max(t.created_at) AS latest FROM {REQUESTS} t WHERE {clause} "
                "GROUP BY t.session_id ORDER BY latest DESC, t.session_id DESC LIMIT ? OFFSET ?",
                [*given, top_k, offset],
            )
        ]
    sessions = [
        {"session_id": session or "", "requests": _requests_of(asked, session, clause, given)} for session in page
    ]
    count = sum(len(each["requests"]) for each in sessions)
    return {
        "success": True,
        "msg": f"Found {count} request(s) in {len(sessions)} session(s)",
        "has_more": len(sessions) >= top_k,
        "sessions": sessions,
    }


def _requests_of(asked: AskedStore, session: Any, clause: str, given: Sequence[Any]) -> list[dict[str, Any]]:
    rows = asked.queries.rows(
        f"SELECT {asked.fields(REQUESTS, _REQUEST)} FROM {REQUESTS} t WHERE {clause} AND t.session_id IS ? "
        "ORDER BY t.created_at DESC, t.rowid",
        [*given, session],
    )
    found = list(asked.read(rows, _request, "request"))
    return [{"request": each, "interactions": _interactions_of(asked, each["request_id"])} for each in found]


def _interactions_of(asked: AskedStore, request_id: str) -> list[dict[str, Any]]:
    if not asked.store.has(INTERACTIONS):
        return []
    rows = asked.queries.rows(
        f"SELECT {asked.fields(INTERACTIONS, _INTERACTION)} FROM (SELECT 1) "
        f"CROSS JOIN {asked.queries.by(INTERACTIONS, 'request_id', '?', 't')} "
        "ORDER BY t.created_at, t.interaction_id",
        [request_id],
    )
    return list(asked.read(rows, interaction, "interaction"))


def _request(row: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(_REQUEST, row, strict=True))
    experiment, arm = found["retrieval_experiment_id"], found["retrieval_experiment_arm"]
    if (experiment is None) != (arm is None) or arm not in (None, "treatment", "holdout"):
        raise Reason("an experiment without an arm, or an arm without an experiment")
    if not name_of(found["session_id"], "session_id").strip():
        raise Reason("no session id")
    return without_none(found | {
        "created_at": time_of(found["created_at"]),
        "source": found["source"] or "",
        "agent_version": found["agent_version"] or "",
        "evaluation_only": bool(found["evaluation_only"] or 0),
    })  # fmt: skip


def interaction(row: Sequence[Any]) -> dict[str, Any]:
    """A row of `_INTERACTION` as the API shows it: without its citations and count of tokens, which it checks."""
    found = dict(zip(_INTERACTION, row, strict=True))
    if found["user_action"] not in (*ACTIONS, NO_ACTION):
        raise Reason("wrong value in 'user_action'")
    tokens, citations = found.pop("token_count"), found.pop("citations")
    if tokens is not None:
        count_of(tokens, "token_count")
    _check_citations(citations)
    return found | {
        "created_at": time_of(found["created_at"]),
        "role": found["role"] or "User",
        "user_action_description": found["user_action_description"] or "",
        "interacted_image_url": found["interacted_image_url"] or "",
        "shadow_content": found["shadow_content"] or "",
        "expert_content": found["expert_content"] or "",
        "tools_used": tools_of(found["tools_used"]),
        "retrieved_learnings": learnings_of(found["retrieved_learnings"]),
    }


def _check_citations(text: Any) -> None:
    found = json_of(text, "citations")
    if isinstance(found, list) and len(citations_of(text)) < sum(isinstance(each, dict) for each in found):
        raise Reason("unreadable citations")


def get_interactions(
    store: Store, user_id: str, *, since: Moment | None = None, until: Moment | None = None, top_k: int = PAGE,
    account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`POST /api/get_interactions`: the newest interactions of one user.

    Args:
        store: the log.
        user_id: whose.
        since: see `overview`.
        until: see `overview`.
        top_k: at most so many.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    rows = _interactions(asked, "WHERE t.user_id = ? ORDER BY t.created_at DESC, t.interaction_id DESC", [user_id])
    start = 0 if since is None else seconds_of(since, "since")
    end = None if until is None else seconds_of(until, "until") - (not isinstance(until, int))
    inside = (each for each in rows if start <= each["created_at"] and (end is None or each["created_at"] <= end))
    return _found([each for each, _ in zip(inside, range(top_k), strict=False)])


def get_all_interactions(store: Store, *, limit: int = 100, account: Log | None = None) -> dict[str, Any]:
    """`GET /api/get_all_interactions`: the newest interactions of everybody.

    Args:
        store: the log.
        limit: at most so many.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    rows = _interactions(asked, "ORDER BY t.created_at DESC, t.interaction_id DESC LIMIT ?", [limit])
    return _found(list(rows))


def _interactions(asked: AskedStore, clause: str, given: Sequence[Any]) -> Any:
    if not asked.store.has(INTERACTIONS):
        return iter(())
    fields = asked.fields(INTERACTIONS, _INTERACTION)
    rows = asked.queries.rows(f"SELECT {fields} FROM {INTERACTIONS} t {clause}", given)
    return asked.read(rows, interaction, "interaction")


def _found(interactions: list[dict[str, Any]]) -> dict[str, Any]:
    interactions.sort(key=lambda each: each["created_at"], reverse=True)
    return {"success": True, "msg": f"Found {len(interactions)} interaction(s)", "interactions": interactions}


def session_counts(store: Store) -> dict[str, Any]:
    """How many sessions there are: by their id alone, as the API pages through them, and by user and id.

    Beside them, how many rows of results there are by version of the agent, and of verdicts on learnings by user; of
    each the hundred that have most.
    """
    asked = AskedStore(store, None)

    def one(query: str) -> int:
        return int(next(asked.queries.rows(query))[0]) if store.has(REQUESTS) else 0

    def by(table: str, column: str) -> dict[str, int]:
        if not store.has(table, column):
            return {}
        query = f"SELECT {column}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {MOST_GROUPS}"
        return {text_of(name): count for name, count in asked.queries.rows(query)}

    return {
        "sessions_by_id": one(f"SELECT count(DISTINCT session_id) FROM {REQUESTS}"),
        "sessions_by_user_and_id": one(
            f"SELECT count(*) FROM {find_firsts(asked)}"  # which has those with both
        )
        + one(
            "SELECT count(*) FROM (SELECT DISTINCT user_id, session_id "
            f"FROM {REQUESTS} WHERE user_id IS NULL OR session_id IS NULL)"
        ),
        "results_by_agent_version": by(OUTCOMES, "agent_version"),
        "learning_results_by_user": by(LEARNINGS, "user_id"),
    }
