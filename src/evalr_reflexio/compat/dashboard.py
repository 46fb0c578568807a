"""Reflexio's dashboard: how much there is of everything in the last days, and in as many days before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
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
    bounds = (begin - days_back * DAY, begin, end)
    interactions, results = _read(asked, [INTERACTIONS], bounds), _read(asked, [OUTCOMES], bounds, "is_success")
    profiles, playbooks = _read(asked, [PROFILES], bounds), _read(asked, [USER_PLAYBOOKS, AGENT_PLAYBOOKS], bounds)

    def period(which: int) -> dict[str, Any]:
        return {
            "total_interactions": interactions.rows[which],
            "total_profiles": profiles.rows[which],
            "total_playbooks": playbooks.rows[which],
            "success_rate": mean(results.true[which], results.rows[which]) * 100,
        }

    return {
        "success": True,
        "msg": "Retrieved dashboard stats successfully",
        "stats": {
            "current_period": period(True),
            "previous_period": period(False),
            "interactions_time_series": _by_day(interactions),
            "profiles_time_series": _by_day(profiles),
            "playbooks_time_series": _by_day(playbooks),
            "evaluations_time_series": [
                {"timestamp": day, "value": 100.0 * so / rows, "count": rows}
                for day, (rows, so) in sorted(results.days.items())
            ],
        },
    }


@dataclass(slots=True)
class _Counts:
    """What tables have in two periods, the last one at True, and on the days of that one; and of which it is true."""

    rows: list[int] = field(default_factory=lambda: [0, 0])
    true: list[int] = field(default_factory=lambda: [0, 0])
    days: defaultdict[int, tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))

    def add(self, day: int, rows: int, true: int) -> None:
        """Count rows of a day."""
        before = self.days[day]
        self.days[day] = (before[0] + rows, before[1] + true)


def _read(asked: AskedStore, tables: Sequence[str], bounds: tuple[int, int, int], what: str = "1") -> _Counts:
    """Rows whose time is written as Reflexio writes it are counted by SQLite, and any others one by one."""
    begin, middle, end = map(text_of_time, bounds)
    counts = _Counts()
    for table in tables:
        if not asked.store.has(table, "created_at"):
            continue
        # Profiles that were replaced have a status.
        is_current = " AND status IS NULL" if table == PROFILES and asked.store.has(PROFILES, "status") else ""
        where = f"FROM {table} WHERE created_at <= ?{is_current} AND created_at >= ?"
        has_others = False
        for is_last, day, rows, true, days_true in asked.queries.rows(
            f"SELECT created_at >= ?, CASE WHEN created_at >= ? AND {_IS_USUAL} THEN substr(created_at, 1, 10) END, "
            f"count(*), count(CASE WHEN {what} THEN 1 END), total({what} <> 0) {where} GROUP BY 1, 2",
            [middle, middle, end, begin],
        ):
            counts.rows[is_last] += rows
            counts.true[is_last] += true
            if day is not None:
                asked.account.records += rows
                counts.add(time_of(day), rows, int(days_true))
            has_others |= is_last and day is None
        if has_others:
            others = asked.queries.rows(
                f"SELECT rowid, created_at, {what} <> 0 {where} AND NOT {_IS_USUAL}", [end, middle]
            )
            for day, true in asked.read(others, _day_of, f"row of {table}"):
                counts.add(day, 1, true)
    return counts


def _day_of(row: Sequence[Any]) -> tuple[int, int]:
    return time_of(row[1]) // DAY * DAY, row[2] or 0


def _by_day(counts: _Counts) -> list[dict[str, Any]]:
    return [{"timestamp": day, "value": float(rows)} for day, (rows, _) in sorted(counts.days.items())]


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
        of_texts = _apply_texts(asked, begin)
        found = _apply_each(asked, begin) if of_texts is None else of_texts
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
