"""Logs of reflexr as its SQLite store, its PostgreSQL store and its wire have them, all of the same envelopes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent
WORKSPACES = {"acme/prod": "acme_prod", "acme/staging": "acme_staging", "globex/prod": "globex_prod"}
BEGIN = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)

TABLES = (
    "CREATE TABLE reflexr_alembic_version (version_num VARCHAR(32) PRIMARY KEY)",
    """
    CREATE TABLE reflexr_workspaces (
        tenant_id VARCHAR NOT NULL, workspace_id VARCHAR NOT NULL, head_seq BIGINT NOT NULL, head_ts {timestamp},
        last_position BIGINT NOT NULL, PRIMARY KEY (tenant_id, workspace_id)
    )
    """,
    """
    CREATE TABLE reflexr_events (
        tenant_id VARCHAR NOT NULL, workspace_id VARCHAR NOT NULL, seq BIGINT NOT NULL, event_id VARCHAR NOT NULL,
        envelope JSON NOT NULL, event_type VARCHAR NOT NULL, rule VARCHAR,
        PRIMARY KEY (tenant_id, workspace_id, seq), UNIQUE (tenant_id, workspace_id, event_id)
    )
    """,
    "CREATE INDEX ix_reflexr_events_type ON reflexr_events (tenant_id, workspace_id, event_type, seq)",
    "INSERT INTO reflexr_alembic_version VALUES ('0008')",
)
COLUMNS = ("tenant_id", "workspace_id", "seq", "event_id", "envelope", "event_type", "rule")

Row = tuple[str, str, int, str, str, str, str | None]


def row(tenant: str, envelope: Mapping[str, Any]) -> Row:
    """An envelope as reflexr stores it: the column of the rule is for facts about rules alone."""
    event = envelope["event"]
    rule = event.get("rule") if event["type"].rpartition(":")[2] in ("rule_installed", "rule_archived") else None
    text = json.dumps(envelope)
    return tenant, envelope["workspace_id"], envelope["seq"], envelope["id"], text, event["type"], rule


def oracle_rows() -> Iterator[Row]:
    for name, file in WORKSPACES.items():
        tenant = name.partition("/")[0]
        for line in (DATA / f"{file}.jsonl").read_text(encoding="utf-8").split("\n"):
            if line:
                yield row(tenant, json.loads(line))


def write_sqlite(path: Path, rows: Iterable[Row], *, unique: bool = True) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in TABLES:
            text = statement.format(timestamp="DATETIME")
            db.execute(text if unique else text.replace(", UNIQUE (tenant_id, workspace_id, event_id)", ""))
        append_sqlite(db, rows)
    return path


def append_sqlite(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    db.executemany(f"INSERT INTO reflexr_events ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})", rows)


def write_wire(path: Path, rows: Iterable[Row]) -> Path:
    path.write_text("".join(each[4] + "\n" for each in rows), encoding="utf-8")
    return path


@dataclass
class Writer:
    """Writes the log of one workspace, event by event, each a second after the one before."""

    tenant: str = "acme"
    workspace: str = "prod"
    rows: list[Row] = field(default_factory=list)
    at: datetime = BEGIN

    def event(
        self,
        type_name: str,
        *,
        chain: str | None = None,
        actor: Mapping[str, Any] | None = None,
        after: float = 1,
        id: str | None = None,  # noqa: A002
        **fields: Any,
    ) -> str:
        """Append an event; returns its id, which is the chain's where it begins one."""
        self.at += timedelta(seconds=after)
        seq = len(self.rows) + 1
        name = f"evt_{seq}" if id is None else id
        envelope = {
            "seq": seq,
            "id": name,
            "ts": self.at.isoformat().replace("+00:00", "Z"),
            "workspace_id": self.workspace,
            "actor": actor or {"kind": "source", "name": "monitor"},
            "causation": None,
            "correlation_id": name if chain is None else chain,
            "traceparent": None,
            "event": {"type": type_name, **fields},
        }
        self.rows.append(row(self.tenant, envelope))
        return name

    def fact(
        self, name: str, run: str, *, chain: str, rule: str = "r", actor: Any = None, after: float = 1, **fields: Any
    ) -> None:
        """Append a fact about a run."""
        key = "firing_id" if name == "rule_fired" else "run_id"
        reactor = {"kind": "system", "name": "reactor"}
        self.event(
            f"reflexr:{name}", chain=chain, actor=actor or reactor, after=after, rule=rule, **{key: run}, **fields
        )


ADA = {"kind": "user", "id": "ada", "name": None}
BOT = {"kind": "agent", "rule": "r", "run_id": "fir_1", "name": "r"}
