"""Lists of verdicts as the API's own routes give them, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexio.cells import DIAGNOSES, IMPACTS, KINDS_OF_LEARNING
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.cells import json_of, name_of, name_or_none, whole_of
from evalr_reflexio.compat.results import newest
from evalr_reflexio.compat.tiles import without_none
from evalr_reflexio.compat.windows import Moment, seconds_of, text_of_time
from evalr_reflexio.store import Store
from evalr_reflexio.tables import CUSTOMERS, LEARNINGS, REQUESTS

_LEARNING: Final = (
    "result_id", "user_id", "session_id", "agent_version", "interaction_id", "interaction_created_at", "kind",
    "learning_id", "is_relevant", "relevance_reason", "impact", "impact_reason", "diagnosis",
    "evaluated_playbook_digest", "diagnosis_evidence_complete", "created_at",
)  # fmt: skip
_OUTCOME: Final = (
    "outcome_id", "outcome_revision", "user_id", "session_id", "outcome", "occurred_at", "source", "label", "value",
    "metadata", "outcome_contract_digest", "finalized_trajectory_digest", "created_at", "is_inferred",
    "trajectory_through_request_id",
)  # fmt: skip
LAST_TIME = 2**31 - 1


def get_agent_success_evaluation_results(
    store: Store, *, agent_version: str | None = None, since: Moment | None = None, until: Moment | None = None,
    limit: int = 100, account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`POST /api/get_agent_success_evaluation_results`: the newest results, by the text of their time.

    Args:
        store: the log.
        agent_version: only of this one.
        since: see `overview`.
        until: see `overview`.
        limit: at most so many.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    where, given = [], list[Any]()
    if since is not None or until is not None:
        start = 0 if since is None else seconds_of(since, "since")
        where += ["t.created_at >= ?", "t.created_at <= ?"]
        given += [text_of_time(start), text_of_time(_end(until, LAST_TIME))]
    if agent_version is not None:
        where.append("t.agent_version = ?")
        given.append(agent_version)
    found = newest(asked, where, given, limit)
    return {
        "success": True,
        "msg": f"Found {len(found)} evaluation result(s)",
        "agent_success_evaluation_results": found,
    }


def get_retrieved_learning_evaluation_results(
    store: Store, *, user_id: str | None = None, session_id: str | None = None, since: Moment | None = None,
    until: Moment | None = None, limit: int = 100, account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`POST /api/get_retrieved_learning_evaluation_results`: verdicts on learnings, newest sessions first.

    A period is one of the answers that learnings were given to, so that verdicts on whole sessions are in none.

    Args:
        store: the log.
        user_id: only of this user.
        session_id: only of this session.
        since: see `overview`.
        until: see `overview`.
        limit: at most so many, from 1 to 1000.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    if not store.has(LEARNINGS):
        return {"success": True, "msg": "Found 0 retrieved-learning evaluation result(s)", "results": []}
    where, given = ["1"], list[Any]()
    for column, value in (("user_id", user_id), ("session_id", session_id)):
        if value is not None:
            where.append(f"t.{column} = ?")
            given.append(value)
    if since is not None:
        where.append("t.interaction_created_at >= ?")
        given.append(seconds_of(since, "since"))
    if until is not None:
        where.append("t.interaction_created_at <= ?")
        given.append(_end(until, 0))
    order = "t.created_at DESC, t.result_id DESC"
    if since is not None or until is not None:
        order = "t.interaction_created_at DESC, t.interaction_id DESC, t.result_id DESC"
    rows = asked.queries.rows(
        f"SELECT {asked.fields(LEARNINGS, _LEARNING)} FROM {LEARNINGS} t WHERE {' AND '.join(where)} "
        f"ORDER BY {order} LIMIT ?",
        [*given, max(1, min(limit, 1000))],
    )
    found = list(asked.read(rows, _learning, "learning result"))
    return {"success": True, "msg": f"Found {len(found)} retrieved-learning evaluation result(s)", "results": found}


def _end(until: Moment | None, default: int) -> int:
    return default if until is None else seconds_of(until, "until") - (not isinstance(until, int))


def _learning(row: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(_LEARNING, row, strict=True))
    diagnosis = _checked(row)
    relevant = found["is_relevant"]
    return found | {
        "agent_version": found["agent_version"] or "",
        "is_relevant": None if relevant is None else bool(relevant),
        "relevance_reason": found["relevance_reason"] or "",
        "impact_reason": found["impact_reason"] or "",
        "diagnosis": diagnosis,
        "diagnosis_evidence_complete": bool(found["diagnosis_evidence_complete"]),
        "created_at": whole_of(found["created_at"], "created_at"),
    }


def _checked(row: Sequence[Any]) -> dict[str, Any] | None:
    """The diagnosis of a row of `_LEARNING`. Raises Reason where Reflexio could not read the row."""
    _, user, session, _, _, _, kind, learning, _, _, impact, _, diagnosis, digest, _, at = row
    if kind not in KINDS_OF_LEARNING:
        raise Reason("wrong value in 'kind'")
    if impact is not None and impact not in IMPACTS:
        raise Reason("wrong value in 'impact'")
    for name, value in (("user_id", user), ("session_id", session), ("learning_id", learning)):
        name_of(value, name)
    found = None if diagnosis is None else _diagnosis(diagnosis)
    name_or_none(digest, "evaluated_playbook_digest")
    whole_of(at, "created_at")
    return found


def _diagnosis(text: Any) -> dict[str, Any] | None:
    found = json_of(text, "diagnosis")
    if found is None:
        return None
    cited = found.get("evidence_interaction_ids", []) if isinstance(found, dict) else None
    reason = found.get("reason", "") if isinstance(found, dict) else None
    is_list = isinstance(cited, list) and all(type(each) is int for each in cited)
    if not is_list or type(reason) is not str or found.get("category") not in DIAGNOSES:
        raise Reason("unreadable diagnosis")
    return {"category": found["category"], "reason": reason, "evidence_interaction_ids": cited}


def learning_counts(store: Store, *, account: Log | None = None) -> dict[str, Any]:
    """How verdicts on learnings come out, by row and by answer: what the page's percentages can be made of.

    Reflexio's page counts each answer once, by a rule that no public text says: here are the counts for any.

    Args:
        store: the log.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    rows: Counter[str] = Counter()
    impacts: Counter[str] = Counter(dict.fromkeys(("positive", "neutral", "negative", "null"), 0))
    answers: Counter[str] = Counter()
    of_answer: tuple[Any, list[tuple[Any, Any]]] = (None, [])
    for interaction, relevant, impact in _learnings(asked):
        impacts["null" if impact is None else impact] += 1
        rows["all"] += 1
        rows["unknown" if relevant is None else "relevant" if relevant else "irrelevant"] += 1
        if interaction is None:
            rows["legacy"] += 1
            continue
        if of_answer[0] != interaction:
            answers.update(_of_answer(of_answer[1]))
            of_answer = (interaction, [])
        of_answer[1].append((relevant, impact))
    answers.update(_of_answer(of_answer[1]))
    return {
        "rows": rows["all"],
        "responses": answers["responses"],
        "legacy_rows": rows["legacy"],
        "rows_relevant": rows["relevant"],
        "rows_irrelevant": rows["irrelevant"],
        "rows_relevance_unknown": rows["unknown"],
        "rows_impact": dict(impacts),
        **{f"responses_{name}": answers[name] for name in _ANSWERS},
    }


_ANSWERS: Final = (
    "any_relevant", "all_relevant", "relevance_judged", "any_positive", "any_negative", "pos_and_neg", "only_neutral",
    "impact_judged",
)  # fmt: skip


def _learnings(asked: AskedStore) -> Iterator[tuple[Any, Any, Any]]:
    """(answer, relevant, impact) of each row that Reflexio can read, those of one answer together."""
    if not asked.store.has(LEARNINGS):
        return iter(())
    rows = asked.queries.rows(
        f"SELECT {asked.fields(LEARNINGS, _LEARNING)} FROM {LEARNINGS} t ORDER BY t.interaction_id, t.result_id"
    )
    return asked.read(rows, _judged, "learning result")


def _judged(row: Sequence[Any]) -> tuple[Any, Any, Any]:
    _checked(row)
    return row[_ANSWER], row[_RELEVANT], row[_IMPACT]


_ANSWER, _RELEVANT, _IMPACT = map(_LEARNING.index, ("interaction_id", "is_relevant", "impact"))


def _of_answer(rows: list[tuple[Any, Any]]) -> list[str]:
    """What is true of one answer, of the (relevant, impact) of what it was given."""
    relevant = [each for each, _ in rows]
    impacts = {impact for _, impact in rows} - {None}
    said = {
        "responses": bool(rows),
        "any_relevant": any(relevant),
        "all_relevant": bool(rows) and all(relevant),
        "relevance_judged": any(each is not None for each in relevant),
        "any_positive": "positive" in impacts,
        "any_negative": "negative" in impacts,
        "pos_and_neg": impacts >= {"positive", "negative"},
        "only_neutral": impacts == {"neutral"},
        "impact_judged": bool(impacts),
    }
    return [name for name, is_so in said.items() if is_so]


def get_session_outcomes(
    store: Store, *, top_k: int = 100, offset: int = 0, account: Log | None = None
) -> dict[str, Any]:
    """`POST /api/get_session_outcomes`: what customers reported of sessions, newest first.

    Args:
        store: the log.
        top_k: at most so many.
        offset: how many to pass over.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    found = []
    if store.has(CUSTOMERS):
        rows = asked.queries.rows(
            f"SELECT {asked.fields(CUSTOMERS, _OUTCOME)} FROM {CUSTOMERS} t "
            "ORDER BY t.occurred_at DESC, t.user_id, t.session_id LIMIT ? OFFSET ?",
            [top_k, offset],
        )
        found = list(asked.read(rows, _outcome, "customer outcome"))
    return {"success": True, "message": "", "session_outcomes": found}


def _outcome(row: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(_OUTCOME, row, strict=True))
    if found["outcome"] not in ("success", "failure", "unknown"):
        raise Reason("wrong value in 'outcome'")
    value, metadata = found["value"], json_of(found["metadata"], "metadata")
    if value is not None and not isinstance(value, int | float):
        raise Reason("wrong type in 'value'")
    return without_none(found | {
        "value": None if value is None else float(value),
        "metadata": metadata,
        "is_inferred": bool(found["is_inferred"]),
    })  # fmt: skip


def session_outcome(store: Store, session_id: str) -> dict[str, Any] | None:
    """What `POST /api/session_outcome` answered when the outcome of a session was recorded; None where none was.

    It goes by the session's id alone, and so to the user of its first request, whoever else has a session of that id.

    Args:
        store: the log.
        session_id: of the session.
    """
    asked = AskedStore(store, None)
    if not store.has(CUSTOMERS) or not store.has(REQUESTS):
        return None
    owner = f"SELECT user_id FROM {REQUESTS} WHERE session_id = ? ORDER BY created_at, request_id LIMIT 1"
    row = next(
        asked.queries.rows(
            f"SELECT {asked.fields(CUSTOMERS, _OUTCOME)} FROM {CUSTOMERS} t WHERE t.session_id = ? "
            f"AND t.user_id = ({owner})",
            [session_id, session_id],
        ),
        None,
    )
    if row is None:
        return None
    found = dict(zip(_OUTCOME, row, strict=True))
    kept = (
        "user_id", "source", "outcome_id", "outcome_revision", "outcome_contract_digest", "finalized_trajectory_digest",
    )  # fmt: skip
    return {"success": True, "recorded": True, "message": "Outcome recorded"} | {name: found[name] for name in kept}
