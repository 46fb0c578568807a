"""Reflexio's dashboard: how much there is of everything in the last days, and in as many days before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexio.cells import KINDS_OF_CITATION
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.cells import json_of
from evalr_reflexio.compat.tiles import mean
from evalr_reflexio.compat.windows import DAY, IS_USUAL, now_of, text_of_time, time_of
from evalr_reflexio.store import Store
from evalr_reflexio.tables import INTERACTIONS, LEARNING_TABLES, OUTCOMES

PROFILES, USER_PLAYBOOKS, AGENT_PLAYBOOKS = (LEARNING_TABLES[kind][0] for kind in LEARNING_TABLES)
DAYS = 30
_IS_USUAL = IS_USUAL.format("created_at")


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
    asked = AskedStore(store, account)
    end = now_of(now)
    begin = end - days_back * DAY
    current, previous = _periods(asked, begin - days_back * DAY, begin, end)
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


def _where(asked: AskedStore, table: str) -> str:
    # Profiles that were replaced have a status.
    is_current = " AND status IS NULL" if table == PROFILES and asked.store.has(PROFILES, "status") else ""
    return f"FROM {table} WHERE created_at >= ? AND created_at <= ?{is_current}"


def _periods(asked: AskedStore, begin: int, middle: int, end: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The period from `middle` on, and the one before it."""
    given = [text_of_time(middle), text_of_time(begin), text_of_time(end)]

    def counts(table: str, what: str = "1") -> tuple[int, int]:
        if not asked.store.has(table, "created_at"):
            return 0, 0
        query = f"SELECT created_at >= ?, count(CASE WHEN {what} THEN 1 END) {_where(asked, table)} GROUP BY 1"
        found = {bool(is_last): count for is_last, count in asked.queries.rows(query, given)}
        return found.get(True, 0), found.get(False, 0)

    interactions, profiles, results = counts(INTERACTIONS), counts(PROFILES), counts(OUTCOMES)
    of_users, of_agents = counts(USER_PLAYBOOKS), counts(AGENT_PLAYBOOKS)
    successes = counts(OUTCOMES, "is_success")

    def period(which: int) -> dict[str, Any]:
        return {
            "total_interactions": interactions[which],
            "total_profiles": profiles[which],
            "total_playbooks": of_users[which] + of_agents[which],
            "success_rate": mean(successes[which], results[which]) * 100,
        }

    return period(0), period(1)


def _days(
    asked: AskedStore, tables: Sequence[str], begin: int, end: int, what: str = "1"
) -> list[tuple[int, tuple[int, int]]]:
    """(day, (rows, rows of which `what` is so)) of tables in a period, in the order of days."""
    days: defaultdict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for table in tables:
        if asked.store.has(table, "created_at"):
            for day, rows, so in _read_days(asked, table, begin, end, what):
                days[day] = (days[day][0] + rows, days[day][1] + so)
    return sorted(days.items())


def _read_days(asked: AskedStore, table: str, begin: int, end: int, what: str) -> Iterator[tuple[int, int, int]]:
    """Rows whose time is written as Reflexio writes it, counted by SQLite, and then any others one by one."""
    rows = asked.queries.rows(
        f"SELECT CASE WHEN {_IS_USUAL} THEN substr(created_at, 1, 10) END, count(*), total({what} <> 0) "
        f"{_where(asked, table)} GROUP BY 1",
        [text_of_time(begin), text_of_time(end)],
    )
    others: Iterator[tuple[int, int, int]] = iter(())
    for day, count, so in rows:
        if day is None:
            others = _others(asked, table, begin, end, what)
            continue
        asked.account.records += count
        try:
            yield time_of(day), count, int(so)
        except Reason as reason:
            for _ in range(count):
                asked.account.skip(str(reason), f"{table} of {day}")
    yield from others


def _others(asked: AskedStore, table: str, begin: int, end: int, what: str) -> Iterator[tuple[int, int, int]]:
    rows = asked.queries.rows(
        f"SELECT rowid, created_at, {what} <> 0 {_where(asked, table)} AND NOT {_IS_USUAL}",
        [text_of_time(begin), text_of_time(end)],
    )
    return asked.read(rows, lambda row: (time_of(row[1]) // DAY * DAY, 1, row[2] or 0), f"row of {table}")


def _by_day(asked: AskedStore, tables: Sequence[str], begin: int, end: int) -> list[dict[str, Any]]:
    return [{"timestamp": day, "value": float(rows)} for day, (rows, _) in _days(asked, tables, begin, end)]


def _success_by_day(asked: AskedStore, begin: int, end: int) -> list[dict[str, Any]]:
    found = _days(asked, [OUTCOMES], begin, end, "is_success")
    return [{"timestamp": day, "value": 100.0 * so / rows, "count": rows} for day, (rows, so) in found]


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
    asked = AskedStore(store, account)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    if asked.store.has(INTERACTIONS, "citations"):
        begin = text_of_time(now_of(now) - days_back * DAY)
        found = _apply_texts(asked, begin) or _apply_each(asked, begin)
    stats = sorted(found.values(), key=lambda each: (-each["applied_count"], -each["last_applied_at"]))
    return {"success": True, "stats": stats}


_CITED = (
    f"FROM {INTERACTIONS} WHERE created_at >= ? AND citations IS NOT NULL AND citations <> '' AND citations <> '[]'"
)


def _apply_texts(asked: AskedStore, begin: str) -> dict[tuple[str, str], dict[str, Any]] | None:
    """The rules of each text of citations, the newest first; None where any row is not as Reflexio writes it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    is_plain = f"{_IS_USUAL} AND typeof(interaction_id) = 'integer' AND interaction_id >= 0"
    records = 0
    for text, count, plain, last in asked.queries.rows(
        f"SELECT citations, count(*), count(CASE WHEN {is_plain} THEN 1 END), "
        f"max(created_at || printf('%020d', interaction_id)) {_CITED} GROUP BY 1 ORDER BY 4 DESC",
        [begin],
    ):
        try:
            citations = json_of(text, "citations")
        except Reason:
            return None
        if plain < count:
            return None
        records += count
        _apply(found, int(last[-20:]), time_of(last[:-20]), citations, count)
    asked.account.records += records
    return found


def _apply_each(asked: AskedStore, begin: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The same, row by row."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    rows = asked.queries.rows(
        f"SELECT interaction_id, created_at, citations {_CITED} ORDER BY created_at DESC, interaction_id DESC", [begin]
    )
    read = asked.read(rows, lambda row: (row[0], time_of(row[1]), json_of(row[2], "citations")), "interaction")
    for interaction, at, citations in read:
        _apply(found, interaction, at, citations)
    return found


def _apply(
    found: dict[tuple[str, str], dict[str, Any]], interaction: int, at: int, citations: Any, count: int = 1
) -> None:
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
        stat["applied_count"] += count
        title = each.get("title")
        if not stat["title"] and isinstance(title, str):
            stat["title"] = title.strip()
