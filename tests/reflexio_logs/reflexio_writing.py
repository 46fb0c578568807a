"""Small Reflexio databases for tests: the tables and columns that a release has, filled row by row."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BEGIN = datetime(2026, 9, 1, tzinfo=UTC)

REQUESTS = {
    "request_id": "TEXT PRIMARY KEY",
    "user_id": "TEXT NOT NULL",
    "created_at": "TEXT NOT NULL",
    "source": "TEXT NOT NULL DEFAULT ''",
    "agent_version": "TEXT NOT NULL DEFAULT ''",
    "session_id": "TEXT",
    "metadata": "TEXT NOT NULL DEFAULT '{}'",
    "evaluation_only": "INTEGER NOT NULL DEFAULT 0",
    "retrieval_experiment_id": "TEXT",
    "retrieval_experiment_arm": "TEXT",
}
INTERACTIONS = {
    "interaction_id": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "user_id": "TEXT NOT NULL DEFAULT ''",
    "content": "TEXT NOT NULL DEFAULT ''",
    "request_id": "TEXT NOT NULL",
    "created_at": "TEXT NOT NULL",
    "role": "TEXT NOT NULL DEFAULT 'User'",
    "token_count": "INTEGER",
    "user_action": "TEXT NOT NULL DEFAULT 'none'",
    "user_action_description": "TEXT NOT NULL DEFAULT ''",
    "shadow_content": "TEXT NOT NULL DEFAULT ''",
    "expert_content": "TEXT NOT NULL DEFAULT ''",
    "tools_used": "TEXT",
    "citations": "TEXT",
    "retrieved_learnings": "TEXT",
    "embedding": "TEXT",
}
OUTCOMES = {
    "result_id": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "user_id": "TEXT NOT NULL DEFAULT ''",
    "session_id": "TEXT NOT NULL",
    "agent_version": "TEXT NOT NULL DEFAULT ''",
    "evaluation_name": "TEXT",
    "is_success": "INTEGER NOT NULL DEFAULT 0",
    "failure_type": "TEXT",
    "failure_reason": "TEXT",
    "created_at": "TEXT NOT NULL",
    "number_of_correction_per_session": "INTEGER NOT NULL DEFAULT 0",
    "user_turns_to_resolution": "INTEGER",
    "is_escalated": "INTEGER NOT NULL DEFAULT 0",
    "tags": "TEXT",
    "trajectory_through_request_id": "TEXT",
}
SHADOWS = {
    "verdict_id": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "interaction_id": "TEXT NOT NULL",
    "session_id": "TEXT NOT NULL",
    "agent_version": "TEXT NOT NULL DEFAULT ''",
    "reflexio_is_request_1": "INTEGER NOT NULL",
    "better_request": "TEXT NOT NULL",
    "is_significantly_better": "INTEGER NOT NULL DEFAULT 0",
    "comparison_reason": "TEXT",
    "judge_prompt_version": "TEXT NOT NULL",
    "created_at": "TEXT NOT NULL",
}
LEARNINGS = {
    "result_id": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "user_id": "TEXT NOT NULL",
    "session_id": "TEXT NOT NULL",
    "interaction_id": "INTEGER",
    "interaction_created_at": "INTEGER",
    "kind": "TEXT NOT NULL",
    "learning_id": "TEXT NOT NULL",
    "is_relevant": "INTEGER",
    "relevance_reason": "TEXT NOT NULL DEFAULT ''",
    "impact": "TEXT",
    "impact_reason": "TEXT NOT NULL DEFAULT ''",
    "created_at": "INTEGER NOT NULL",
    "diagnosis": "TEXT",
    "evaluated_playbook_digest": "TEXT",
    "diagnosis_evidence_complete": "INTEGER NOT NULL DEFAULT 0",
}
CUSTOMERS = {
    "outcome_id": "TEXT NOT NULL UNIQUE",
    "user_id": "TEXT NOT NULL",
    "session_id": "TEXT NOT NULL",
    "outcome": "TEXT NOT NULL",
    "occurred_at": "INTEGER NOT NULL",
    "source": "TEXT NOT NULL DEFAULT ''",
    "label": "TEXT",
    "value": "REAL",
    "is_inferred": "INTEGER NOT NULL DEFAULT 0",
}

RELEASES = ("0.2.24", "0.2.25", "0.2.26", "0.2.27", "0.2.28", "0.2.29", "0.2.30", "0.2.32")

_SINCE: dict[str, dict[str, str]] = {
    "requests": {
        "evaluation_only": "0.2.26",
        "retrieval_experiment_id": "0.2.30",
        "retrieval_experiment_arm": "0.2.30",
    },
    "interactions": {"token_count": "0.2.30", "retrieved_learnings": "0.2.29"},
    "agent_success_evaluation_result": {
        "user_id": "0.2.27",
        "tags": "0.2.30",
        "trajectory_through_request_id": "0.2.32",
    },
    "retrieved_learning_evaluation": {
        "diagnosis": "0.2.32",
        "evaluated_playbook_digest": "0.2.32",
        "diagnosis_evidence_complete": "0.2.32",
    },
}
_TABLES = {
    "requests": REQUESTS,
    "interactions": INTERACTIONS,
    "agent_success_evaluation_result": OUTCOMES,
    "shadow_comparison_verdicts": SHADOWS,
    "retrieved_learning_evaluation": LEARNINGS,
    "session_outcomes": CUSTOMERS,
}


def columns_of(table: str, release: str) -> dict[str, str]:
    found = {name: kind for name, kind in _TABLES[table].items() if _SINCE.get(table, {}).get(name, "") <= release}
    if table == "requests" and release > "0.2.25":
        del found["metadata"]
    return found


class Writer:
    """A database of one release, written row by row."""

    def __init__(self, path: Path, release: str = "0.2.32", *, indexes: bool = True, wal: bool = False) -> None:
        path.unlink(missing_ok=True)
        self.path, self.release = path, release
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA synchronous = OFF")
        if wal:
            self.connection.execute("PRAGMA journal_mode = WAL")
        for table in _TABLES:
            if table in ("retrieved_learning_evaluation", "session_outcomes") and release < "0.2.29":
                continue
            columns = ", ".join(f"{name} {kind}" for name, kind in columns_of(table, release).items())
            self.connection.execute(f"CREATE TABLE {table} ({columns})")
        if indexes:
            self.connection.execute("CREATE INDEX i1 ON interactions(request_id)")
            self.connection.execute("CREATE INDEX i2 ON requests(session_id, created_at)")

    def add(self, table: str, **row: Any) -> int:
        known = columns_of(table, self.release)
        row = {name: value for name, value in row.items() if name in known}
        marks = ", ".join("?" * len(row))
        cursor = self.connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
        return int(cursor.lastrowid or 0)

    def request(self, name: str, user: str, session: str | None, at: object = BEGIN, **row: Any) -> str:
        self.add("requests", request_id=name, user_id=user, session_id=session, created_at=time_text(at), **row)
        return name

    def turn(self, request: str, at: object, role: str, content: str = "text", **row: Any) -> int:
        row = {"token_count": len(content.split()), **row}  # from 0.2.30 on each turn has it
        return self.add("interactions", request_id=request, created_at=time_text(at), role=role, content=content, **row)

    def session(
        self,
        session: str,
        user: str = "u1",
        at: datetime = BEGIN,
        *,
        roles: Sequence[str] = ("User", "Agent"),
        **row: Any,
    ) -> list[int]:
        """One request with a turn for each role, a minute apart; returns their ids."""
        request = self.request(f"r-{user}-{session}", user, session, at, **row)
        return [
            self.turn(request, at + timedelta(minutes=number), role, f"{role} {number}")
            for number, role in enumerate(roles)
        ]

    def outcome(self, session: str, user: str = "u1", at: object = BEGIN, *, success: int = 1, **row: Any) -> int:
        return self.add(
            "agent_success_evaluation_result",
            session_id=session,
            user_id=user,
            created_at=time_text(at),
            is_success=success,
            **row,
        )

    def shadow(self, interaction: object, session: str, at: object = BEGIN, **row: Any) -> int:
        given = {"reflexio_is_request_1": 1, "better_request": "1", "judge_prompt_version": "v1.1.0", **row}
        return self.add(
            "shadow_comparison_verdicts",
            interaction_id=str(interaction),
            session_id=session,
            created_at=time_text(at),
            **given,
        )

    def done(self) -> Path:
        self.connection.commit()
        self.connection.close()
        return self.path


def time_text(at: object) -> object:
    return at.isoformat() if isinstance(at, datetime) else at


def stored_log(folder: Path, name: str, *, file: str = "reflexio_self-host-org.db") -> Path:
    """One of the logs that Reflexio itself wrote, made anew of its statements."""
    path = folder / file
    connection = sqlite3.connect(path)
    connection.executescript((HERE / f"{name}.sql").read_text(encoding="utf-8"))
    connection.close()
    return path


def answer(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "answers" / f"{name}.json").read_text(encoding="utf-8"))
    return found
