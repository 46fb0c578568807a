"""Reflexio's dashboard: how much there is of everything in the last days, and in as many days before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr_reflexio.cells import KINDS_OF_CITATION
from evalr_reflexio.compat.account import Asked
from evalr_reflexio.compat.cells import json_of
from evalr_reflexio.compat.tiles import mean
from evalr_reflexio.compat.windows import DAY, now_of, text_of_time, time_of
from evalr_reflexio.store import Store
from evalr_reflexio.tables import INTERACTIONS, LEARNING_TABLES, OUTCOMES

PROFILES, USER_PLAYBOOKS, AGENT_PLAYBOOKS = (LEARNING_TABLES[kind][0] for kind in LEARNING_TABLES)
DAYS = 30


def get_dashboard_stats(
    store: Store, *, days_back: int = DAYS, now: datetime | Clock = utc_now, account: Log | None = None
) -> dict[str, Any]:
    """`POST /api/get_dashboard_stats`: counts and success of two periods, and by day of UTC of the last one.

    Args:
        store: the log.
        days_back: days of each period.
        now: the reading time, which ends the last period.
        account: takes count of rows that are skipped.
    """
    asked = Asked(store, account)
    end = now_of(now)
    begin = end - days_back * DAY
    current = _period(asked, begin, end, "<=")
    previous = _period(asked, begin - days_back * DAY, begin, "<")
    outcomes = _success_by_day(asked, begin, end)
    return {
        "success": True,
        "msg": "Retrieved dashboard stats successfully",
        "stats": {
            "current_period": current,
            "previous_period": previous,
            "interactions_time_series": _by_day(asked, [INTERACTIONS], begin, end),
            "profiles_time_series": _by_day(asked, [PROFILES], begin, end),
            "playbooks_time_series": _by_day(asked, [USER_PLAYBOOKS, AGENT_PLAYBOOKS], begin, end),
            "evaluations_time_series": outcomes,
        },
    }


def _where(asked: Asked, table: str, end: str = "<=") -> str:
    # Profiles that were replaced have a status.
    is_current = " AND status IS NULL" if table == PROFILES and asked.store.has(PROFILES, "status") else ""
    return f"FROM {table} WHERE created_at >= ? AND created_at {end} ?{is_current}"


def _period(asked: Asked, begin: int, end: int, comparison: str) -> dict[str, Any]:
    given = [text_of_time(begin), text_of_time(end)]

    def count(table: str) -> int:
        if not asked.store.has(table, "created_at"):
            return 0
        return int(next(asked.queries.rows(f"SELECT count(*) {_where(asked, table, comparison)}", given))[0])

    successes = 0
    if asked.store.has(OUTCOMES):
        query = f"SELECT count(*) {_where(asked, OUTCOMES, comparison)} AND is_success"
        successes = next(asked.queries.rows(query, given))[0]
    return {
        "total_interactions": count(INTERACTIONS),
        "total_profiles": count(PROFILES),
        "total_playbooks": count(USER_PLAYBOOKS) + count(AGENT_PLAYBOOKS),
        "success_rate": mean(successes, count(OUTCOMES)) * 100,
    }


def _days(asked: Asked, table: str, begin: int, end: int, field: str) -> Iterator[tuple[int, Any]]:
    """(day, field) of each row of a table in a period."""
    if not asked.store.has(table, "created_at"):
        return iter(())
    rows = asked.queries.rows(
        f"SELECT rowid, created_at, {field} {_where(asked, table)}", [text_of_time(begin), text_of_time(end)]
    )
    return asked.read(rows, lambda row: (time_of(row[1]) // DAY * DAY, row[2]), f"row of {table}")


def _by_day(asked: Asked, tables: list[str], begin: int, end: int) -> list[dict[str, Any]]:
    days: Counter[int] = Counter()
    for table in tables:
        for day, _ in _days(asked, table, begin, end, "1"):
            days[day] += 1
    return [{"timestamp": day, "value": float(count)} for day, count in sorted(days.items())]


def _success_by_day(asked: Asked, begin: int, end: int) -> list[dict[str, Any]]:
    rows, successes = Counter[int](), Counter[int]()
    for day, success in _days(asked, OUTCOMES, begin, end, "is_success"):
        rows[day] += 1
        successes[day] += bool(success)
    return [
        {"timestamp": day, "value": 100.0 * successes[day] / count, "count": count}
        for day, count in sorted(rows.items())
    ]


def get_playbook_application_stats(
    store: Store, *, days_back: int = DAYS, now: datetime | Clock = utc_now, account: Log | None = None
) -> dict[str, Any]:
    """`POST /api/get_playbook_application_stats`: in how many answers of the last days each rule was cited.

    Args:
        store: the log.
        days_back: how many days.
        now: the reading time.
        account: takes count of rows that are skipped.
    """
    asked = Asked(store, account)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    if asked.store.has(INTERACTIONS, "citations"):
        rows = asked.queries.rows(
            f"SELECT interaction_id, created_at, citations FROM {INTERACTIONS} WHERE created_at >= ? "
            "AND citations IS NOT NULL AND citations <> '' AND citations <> '[]' "
            "ORDER BY created_at DESC, interaction_id DESC",
            [text_of_time(now_of(now) - days_back * DAY)],
        )
        read = asked.read(rows, lambda row: (row[0], time_of(row[1]), json_of(row[2], "citations")), "interaction")
        for interaction, at, citations in read:
            _apply(found, interaction, at, citations)
    stats = sorted(found.values(), key=lambda each: (-each["applied_count"], -each["last_applied_at"]))
    return {"success": True, "stats": stats}


def _apply(found: dict[tuple[str, str], dict[str, Any]], interaction: int, at: int, citations: Any) -> None:
    seen: set[tuple[str, str]] = set()
    for each in citations if isinstance(citations, list) else ():
        if not isinstance(each, dict) or each.get("kind") not in KINDS_OF_CITATION or not each.get("real_id"):
            continue
        rule = (each["kind"], str(each["real_id"]))
        if rule in seen:
            continue
        seen.add(rule)
        stat = found.setdefault(
            rule,
            {
                "real_id": rule[1],
                "kind": rule[0],
                "title": "",
                "applied_count": 0,
                "last_applied_at": at,
                "last_interaction_id": interaction,
            },
        )
        stat["applied_count"] += 1
        title = each.get("title")
        if not stat["title"] and isinstance(title, str):
            stat["title"] = title.strip()
