"""Rows of results: those of a window, as Reflexio selects them, and what the API shows of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evalr.logs.reasons import Reason
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.cells import (
    count_of,
    name_of,
    name_or_none,
    regular_vs_shadow_of,
    tags_of,
    whole_of,
)
from evalr_reflexio.compat.firsts import find_firsts
from evalr_reflexio.compat.tiles import SUMS, Result, Tally, without_none
from evalr_reflexio.compat.windows import IS_USUAL, Window, seconds_in_sql, text_of_time, time_of
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
# Of other texts SQLite does not say whether they are UTF-8; those that are not are mended where they are read.
_ASCII = "typeof({0}) = 'text' AND {0} NOT GLOB '*[^\x01-\x7f]*'"
_PLAIN: Final = {
    "user_id": f"({{0}} IS NULL OR {_ASCII})",
    "session_id": _ASCII,
    "created_at": IS_USUAL,
    "is_success": "typeof({0}) = 'integer'",
    CORRECTIONS: "({0} IS NULL OR typeof({0}) = 'integer' AND {0} >= 0)",
    "user_turns_to_resolution": "typeof({0}) IN ('integer', 'null')",
    "is_escalated": "typeof({0}) IN ('integer', 'null')",
    "failure_type": "({0} IS NULL OR typeof({0}) = 'text' AND "
    f"(lower({{0}}) = '{SYSTEM_ERROR}' OR {{0}} NOT LIKE '%{SYSTEM_ERROR}%'))",
    # SQLite bears a line break inside a text of JSON, and anything after a NUL, which Python does not.
    "tags": "({0} IS NULL OR {0} = '[]' OR {0} NOT GLOB '*[' || char(1) || '-' || char(31) || '\\]*' "
    "AND NOT instr({0}, char(0)) AND "
    "CASE WHEN json_valid({0}) THEN json_type({0}) = 'array' "
    "AND NOT EXISTS (SELECT 1 FROM json_each({0}) WHERE type <> 'text') END)",
    "regular_vs_shadow": "{0} IS NULL",
    "trajectory_interaction_count": "({0} IS NULL OR typeof({0}) = 'integer' AND {0} >= 0)",
}
"""What SQL can tell of a cell that `counted` would read as it stands; whatever else it holds, `counted` says."""


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


RESULTS, ODD = "evalr_results", "evalr_odd_results"
UNREAD = "not read yet"
# `written` has no type, so that times are compared as they are stored.
_COLUMNS = (
    "result_id INTEGER PRIMARY KEY, user_id TEXT, session_id TEXT, at INTEGER, success INTEGER, corrections INTEGER, "
    "turns INTEGER, escalated INTEGER, system_error INTEGER, written, source TEXT, reason TEXT"
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of results that an answer is made of: what selects them of the temporary table, and what that is given."""

    asked: AskedStore
    clause: str
    given: tuple[Any, ...] = ()

    def check(self) -> None:
        """Count the rows, and those that Reflexio could not read as skipped."""
        account = self.asked.account
        account.records += next(self.select("count(*)", reason="1"))[0]
        for result_id, reason in self.select("result_id, reason", reason="reason IS NOT NULL"):
            account.skip(reason, f"{NOUN} {result_id}")

    def query(self, what: str, where: str = "1", *, reason: str = "reason IS NULL", end: str = "") -> str:
        """The SQL of `select`."""
        return f"SELECT {what} FROM (SELECT * FROM temp.{RESULTS} {self.clause}) r WHERE {reason} AND {where} {end}"

    def select(
        self, what: str, where: str = "1", given: Sequence[Any] = (), *, reason: str = "reason IS NULL", end: str = ""
    ) -> Iterator[Sequence[Any]]:
        """What is asked of the rows that can be used."""
        return self.asked.queries.rows(self.query(what, where, reason=reason, end=end), [*self.given, *given])

    def tally(self, where: str, given: Sequence[Any]) -> Tally:
        """Their sums."""
        return Tally.of(next(self.select(SUMS, where, given)))

    def buckets(self, step: int, where: str, given: Sequence[Any]) -> Iterator[tuple[int, Tally]]:
        """The same, by spans of so many seconds."""
        rows = self.select(f"at / {step} * {step}, {SUMS}", where, given, end="GROUP BY 1 ORDER BY 1")
        return ((row[0], Tally.of(row[1:])) for row in rows)


def rows_in(asked: AskedStore, window: Window) -> Rows:
    """The rows whose time, as a text, is in a window."""
    _load(asked)
    given = (text_of_time(window.start), text_of_time(window.end))
    return Rows(asked, "WHERE written >= ? AND written <= ?", given)


def newest_rows(asked: AskedStore, limit: int) -> Rows:
    """The newest rows of any time, by the text of their time."""
    _load(asked)
    return Rows(asked, "ORDER BY written DESC, result_id LIMIT ?", (limit,))


def _load(asked: AskedStore) -> None:
    """Put every row into the temporary database once, with the request source of its session."""
    if not asked.queries.temporary(RESULTS, _COLUMNS) or not asked.store.has(OUTCOMES):
        return
    cell = {name: asked.fields(OUTCOMES, [name]) for name in _COUNTED}
    checks = [check.format(cell[name]) for name, check in _PLAIN.items()]
    is_plain = " AND ".join([f"(f.source IS NULL OR {_ASCII.format('f.source')})", *checks])
    rows = (
        f"FROM {OUTCOMES} t LEFT JOIN {find_firsts(asked)} f "
        f"ON f.session_id = t.session_id AND f.user_id = coalesce({cell['user_id']}, '')"
    )
    asked.queries.change(
        f"INSERT INTO temp.{RESULTS} SELECT t.result_id, coalesce({cell['user_id']}, ''), t.session_id, "
        f"{seconds_in_sql('t.created_at')}, t.is_success <> 0, coalesce({cell[CORRECTIONS]}, 0), "
        f"{cell['user_turns_to_resolution']}, coalesce({cell['is_escalated']}, 0) <> 0, "
        f"t.is_success = 0 AND lower(coalesce({cell['failure_type']}, '')) = '{SYSTEM_ERROR}', "
        f"t.created_at, coalesce(f.source, ''), CASE WHEN {is_plain} THEN NULL ELSE '{UNREAD}' END {rows} "
        "WHERE typeof(t.result_id) = 'integer'"
    )
    asked.queries.temporary(ODD, "result_id INTEGER PRIMARY KEY", anew=True)
    asked.queries.change(f"INSERT INTO temp.{ODD} SELECT result_id FROM temp.{RESULTS} WHERE reason = '{UNREAD}'")
    asked.queries.change(f"DELETE FROM temp.{RESULTS} WHERE reason = '{UNREAD}'")
    odd = asked.queries.rows(
        f"SELECT {', '.join(cell.values())}, f.source {rows} "
        f"WHERE typeof(t.result_id) <> 'integer' OR t.result_id IN (SELECT result_id FROM temp.{ODD})"
    )
    marks = ", ".join("?" * 12)
    asked.queries.change_many(f"INSERT INTO temp.{RESULTS} VALUES ({marks})", map(_loaded, odd))


def _loaded(row: Sequence[Any]) -> tuple[Any, ...]:
    try:
        return (*counted(row), row[3], row[-1] or "", None)
    except Reason as reason:
        return (row[0], *[None] * 8, row[3], None, str(reason))


def shown_by_id(asked: AskedStore, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What the API shows of some results."""
    if not ids:
        return {}
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


def newest(asked: AskedStore, where: Sequence[str], given: Sequence[Any], limit: int) -> list[dict[str, Any]]:
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
