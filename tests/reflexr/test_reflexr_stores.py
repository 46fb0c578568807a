"""Stores: what is broken or missing is said, nothing is written, and nobody who writes has to wait."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexr_samples import BEGIN, Row, Writer, append_sqlite, oracle_rows, row, write_sqlite, write_wire

from evalr import InputError, LogError, MissingExtraError, RecordError, UnknownLogError, report
from evalr.logs import find_reader
from evalr.logs import read as read_log
from evalr.reflexr import Workspace, chains, measure_chain, read, rule_outcomes, rule_runs, time_to_resolution
from evalr_reflexr.sqlite import Chunk


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# What a store says of itself


def test_a_missing_workspace_is_named_beside_those_that_there_are(oracle_store: Path | str) -> None:
    with pytest.raises(LogError, match=r"no workspace 'nowhere' of tenant 'acme'.*it has acme/prod, acme/staging$"):
        list(read(oracle_store, tenant="acme", workspace="nowhere"))
    with pytest.raises(LogError, match=r"no tenant 'umbrella' in this log; it has acme/prod, acme/staging, globex"):
        list(read(oracle_store, tenant="umbrella"))


def test_a_workspace_that_the_wire_does_not_name(oracle_wire: Path) -> None:
    with pytest.raises(LogError, match=r"no workspace 'nowhere' in this log; it has prod$"):
        list(read(oracle_wire, workspace="nowhere"))


def test_a_name_that_two_tenants_have_is_two_workspaces(oracle_store: Path | str) -> None:
    runs = [run.id for run in rule_runs(oracle_store, workspace="prod")]  # type: ignore[union-attr]
    assert len(runs) == len(set(runs)) == 73 + 7
    assert {each.rpartition("/")[0] for each in runs} == {"acme/prod", "globex/prod"}


def test_ids_that_repeat_in_another_workspace_are_kept_apart(tmp_path: Path) -> None:
    def rows(tenant: str, workspace: str) -> Iterator[Row]:
        writer = Writer(tenant, workspace)
        chain = writer.event("desk:ticket.opened")
        writer.fact("rule_fired", "fir_1", chain=chain, matched=[1])
        writer.fact("run_succeeded", "fir_1", chain=chain)
        writer.event("desk:ticket.resolved", chain=chain)
        yield from writer.rows

    places = [("a", "b/c"), ("a/b", "c"), ("a", "c")]
    path = write_sqlite(tmp_path / "store.db", [each for place in places for each in rows(*place)])
    found = report(path, measures=["rules", "chains"], now=None)
    assert found["rules"].n == 3
    assert found["chains"].n == 3
    assert rule_outcomes(path)["r"].runs == 3
    assert len(time_to_resolution(path, resolves="ticket.resolved")) == 3


@pytest.mark.parametrize("version", ["0009", "1234abcd"])
def test_a_version_of_the_schema_that_is_not_known_is_told(tmp_path: Path, version: str) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE reflexr_alembic_version SET version_num = ?", (version,))
    log = rule_runs(path)
    assert sum(1 for _ in log) == 85
    assert any(f"schema is of version '{version}'" in note for note in log.notes)


def test_the_known_versions_go_without_saying(oracle_sqlite: Path) -> None:
    log = rule_runs(oracle_sqlite)
    assert list(log)
    assert log.notes == []


def test_a_store_that_lacks_a_column_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE reflexr_events (tenant_id, workspace_id, seq, event_id, envelope)")
        db.execute("CREATE TABLE reflexr_alembic_version (version_num)")
        db.execute("INSERT INTO reflexr_alembic_version VALUES ('0003')")
    with pytest.raises(LogError, match=r"schema is of version '0003'.*no column event_type in reflexr_events"):
        report(path)


def test_a_database_of_something_else_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE notes (text)")
    with pytest.raises(UnknownLogError):
        report(path)
    with pytest.raises(LogError, match="no table reflexr_events"):
        report(path, kind="reflexr")


def test_a_store_without_events_says_so(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "empty.db", [])
    with pytest.raises(LogError, match="there are no events in this reflexr log"):
        report(path)


def test_a_damaged_store_is_a_log_error(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    stored = bytearray(path.read_bytes())
    stored[5 * 4096 :] = b"\xff" * len(stored[5 * 4096 :])
    path.write_bytes(stored)
    with pytest.raises(LogError, match="is damaged or cut off"):
        report(path)


def test_a_missing_store_is_a_log_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no such file"):
        rule_runs(tmp_path / "missing.db")
    with pytest.raises(InputError, match="mysql:// is no address of PostgreSQL"):
        rule_runs("mysql://host/reflexr")


def test_of_rare_types_no_other_row_is_looked_at(oracle_sqlite: Path) -> None:
    chunk = Chunk(Workspace("acme", "prod"), 0, 1000, ("reflexr:rule_installed", "reflexr:rule_reset"), is_all=False)
    with closing(sqlite3.connect(oracle_sqlite)) as db:
        plan = db.execute(f"EXPLAIN QUERY PLAN {chunk.sql('envelope')}", chunk.values).fetchall()
    assert "INDEX ix_reflexr_events_type" in plan[0][3]


# Broken rows and unknown events


def broken_texts() -> list[tuple[str, bytes]]:
    good = json.loads(next(oracle_rows())[4])
    naive = {**good, "ts": "2026-11-02T08:00:00"}
    return [
        ("not JSON", b'{"seq": 1, '),
        ("not a JSON object", b"[1, 2]"),
        ("not a JSON object", b"null"),
        ("not a JSON object", b"NaN"),
        ("envelope without an event", b"{}"),
        ("envelope without an event", json.dumps({**good, "event": None}).encode()),
        ("missing field 'type'", json.dumps({**good, "event": {}}).encode()),
        ("envelope without an actor", json.dumps({**good, "actor": {}}).encode()),
        ("missing field 'correlation_id'", json.dumps({**good, "correlation_id": None}).encode()),
        ("wrong type in 'id'", json.dumps({**good, "id": 7}).encode()),
        ("naive time", json.dumps(naive).encode()),
        ("unreadable time", json.dumps({**good, "ts": "yesterday"}).encode()),
        ("not UTF-8", b'{"seq": "\xff"}'),
        ("envelope without a seq", json.dumps({**good, "seq": -1}).encode()),
        ("seq beyond 64 bits", json.dumps({**good, "seq": 2**63}).encode()),
        ("nested too deeply", b'{"seq":' * 5_000 + b"1" + b"}" * 5_000),
    ]


@pytest.mark.parametrize(("reason", "text"), broken_texts(), ids=range(len(broken_texts())))
def test_a_broken_row_is_counted_by_its_place_and_the_others_are_read(tmp_path: Path, reason: str, text: bytes) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    where = "tenant_id = 'acme' AND workspace_id = 'prod' AND seq = 200"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE reflexr_events SET envelope = CAST(? AS TEXT) WHERE {where}", (text,))
    log = read(path)
    items = list(log)
    assert dict(log.left_out.counts)[reason] == 1
    assert log.left_out.places[reason] == ["seq 200 of acme/prod"]
    assert len(items) > 100
    with pytest.raises(RecordError, match=r"seq 200 of acme/prod"):
        list(read(path, strict=True))
    # What needs none of its kind does not stumble over it.
    assert rule_outcomes(path, tenant="acme", workspace="prod")["oncall:judge"].succeeded == 20


@pytest.mark.parametrize(("reason", "text"), broken_texts(), ids=range(len(broken_texts())))
def test_a_broken_line_is_counted_by_its_number(tmp_path: Path, oracle_wire: Path, reason: str, text: bytes) -> None:
    lines = oracle_wire.read_bytes().splitlines(keepends=True)
    lines.insert(199, text + b"\n")
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(lines))
    log = read(path, tenant="acme")
    assert list(log)
    assert log.left_out.places[reason] == ["line 200"]
    assert log.left_out.faults == 1


def test_a_chain_whose_first_event_is_unreadable_has_no_known_beginning(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "UPDATE reflexr_events SET envelope = '{' WHERE tenant_id = 'acme' AND workspace_id = 'prod' AND seq = 1"
        )
    log = chains(path, tenant="acme", workspace="prod")
    found = [chain.id for chain in log]  # type: ignore[union-attr]
    assert "acme/prod/evt_0000000000000002" not in found
    assert log.left_out.counts["chain whose first event is missing"] == 1
    assert "evt_0000000000000002" not in str(time_to_resolution(path, resolves="*.resolved"))


def test_what_messages_say_of_hostile_names_is_fit_to_print(tmp_path: Path) -> None:
    writer = Writer("a\x1b[31m", "b\u202e\nc")
    chain = writer.event("desk:\x1b[2J", id="\x1b[0m")
    writer.fact("run_succeeded", "fir_1", chain=chain)
    writer.event("desk:other", chain="\x07missing")
    log = read(write_sqlite(tmp_path / "store.db", writer.rows), starts="nothing:of.this")
    list(log)
    assert log.left_out.total == 3
    for text in (log.left_out.words(), *log.left_out.counts):
        assert text.isprintable()
    with pytest.raises(LogError) as failed:
        list(read(tmp_path / "store.db", workspace="\x1b[31m"))
    assert str(failed.value).isprintable()


def test_unknown_events_stay_in_their_chains_and_are_told(tmp_path: Path) -> None:
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.event("reflexr:run_paused", chain=chain, rule="r", run_id="fir_1")
    writer.event("desk:something.new", chain=chain)
    log = read(write_wire(tmp_path / "log.jsonl", writer.rows), resolves="ticket.opened")
    items = {item.kind: item for item in log}  # type: ignore[union-attr]
    assert [activity.kind for activity in items["session"].activities] == [  # type: ignore[union-attr]
        "closed",
        "reflexr:run_paused",
        "desk:something.new",
    ]
    assert log.notes == ["1 kind of event that this reader does not know: 'reflexr:run_paused' (1)"]


# Other spellings


def unqualified(rows: Iterator[Row]) -> Iterator[Row]:
    """The same log as versions before 0005 of the schema wrote it: types without their namespace."""
    for tenant, _, _, _, text, _, _ in rows:
        envelope = json.loads(text)
        envelope["event"]["type"] = envelope["event"]["type"].rpartition(":")[2]
        yield row(tenant, envelope)


def test_types_without_namespaces_are_the_same_events(tmp_path: Path, oracle_sqlite: Path) -> None:
    path = write_sqlite(tmp_path / "old.db", unqualified(oracle_rows()))
    assert rule_outcomes(path) == rule_outcomes(oracle_sqlite)
    for resolves in ("oncall:incident.resolved", "incident.resolved", "*.resolved", "reflexr:run_succeeded"):
        found = time_to_resolution(path, resolves=resolves)
        assert found
        assert found == time_to_resolution(oracle_sqlite, resolves=resolves)
    old, new = (
        report(each, now=None, starts="oncall:service.error", measures=["chains"]) for each in (path, oracle_sqlite)
    )
    assert old["chains"].n == new["chains"].n


def test_the_wire_holds_line_ends_of_unicode_and_large_envelopes(tmp_path: Path) -> None:
    writer = Writer()
    for number in range(3):
        writer.event("desk:ticket.opened", note="line\u2028paragraph\u2029next\x85" + "x" * 200_000, number=number)
    path = tmp_path / "log.jsonl"
    path.write_text(
        "".join(json.dumps(json.loads(each[4]), ensure_ascii=False) + "\n" for each in writer.rows), encoding="utf-8"
    )
    log = chains(path)
    assert len(list(log)) == 3
    assert log.left_out.total == 0


def test_a_wire_log_is_known_by_a_first_envelope_that_is_large_or_broken(tmp_path: Path) -> None:
    writer = Writer()
    writer.event("desk:ticket.opened", note="x" * 200_000)
    (large,) = (json.loads(each[4]) for each in writer.rows)
    path = tmp_path / "log.jsonl"
    for line in (json.dumps(large), json.dumps(large, sort_keys=True)):
        path.write_text(line + "\n", encoding="utf-8")
        assert find_reader(path).name == "reflexr"
    small = json.dumps({**large, "event": {"type": "desk:ticket.opened", "note": "half of \ud83d"}})
    path.write_text(small + "\n", encoding="utf-8")
    log = read_log(path)
    assert len(list(log)) == 2
    assert log.repaired == {"lone surrogates": 1}
    path.write_text('{"actor": {}, "event": {}}\n' + '{"event": {"note": "', encoding="utf-8")
    with pytest.raises(UnknownLogError):
        find_reader(path)


def test_where_a_clock_went_back_the_order_of_the_log_stands(tmp_path: Path) -> None:
    """reflexr's own times never go back: what comes later in the log has at least the time of what came before."""
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    for fact in ("rule_fired", "run_dead_lettered", "run_requeued", "run_succeeded"):
        writer.fact(fact, "fir_1", chain=chain, after=-60)
    writer.event("desk:ticket.resolved", chain=chain, after=-60)
    path = write_sqlite(tmp_path / "store.db", writer.rows)
    (found,) = chains(path)
    assert measure_chain(found, BEGIN + timedelta(seconds=1)).model_dump(exclude_defaults=True) == {
        "after": 0,
        "ended": "resolved",
    }
    (run,) = rule_runs(path)
    assert [step.kind for step in run.steps] == ["fired", "dead_lettered", "requeued", "succeeded"]  # type: ignore[union-attr]
    assert {step.at for step in run.steps} == {run.first_event()}  # type: ignore[union-attr]
    assert str(report(rule_runs(path), measures=["rules"])["rules"]).startswith("rules 100.0%")


# Never written to, never in the way


def test_reading_changes_nothing(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    before = digest(path)
    report(path, now=None)
    read_log(path, strict=True)
    assert digest(path) == before
    assert [each.name for each in tmp_path.iterdir()] == ["store.db"]


def test_a_write_ahead_log_at_rest_gets_no_second_file(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = digest(path)
    assert report(path, now=None)["rules"].n
    assert digest(path) == before
    assert [each.name for each in tmp_path.iterdir()] == ["store.db"]


def test_a_store_that_changes_under_a_reader_of_a_file_at_rest_is_an_error(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    from evalr_reflexr.sqlite import SqliteStore

    with (
        pytest.raises(LogError, match="was written while it was read"),
        SqliteStore(path).opened(),
        closing(sqlite3.connect(path)) as db,
        db,
    ):
        db.execute("DELETE FROM reflexr_events WHERE seq > 5")


WRITE = """
import json, os, sqlite3, sys, time
path, journal, patience = sys.argv[1], sys.argv[2], float(sys.argv[3])
db = sqlite3.connect(path, isolation_level=None, timeout=patience)
db.execute(f"PRAGMA journal_mode = {journal}")
longest, seq = 0.0, db.execute(
    "SELECT max(seq) FROM reflexr_events WHERE tenant_id = 'acme' AND workspace_id = 'prod'").fetchone()[0]
print("ready", flush=True)
count = 0
while not os.path.exists(path + ".stop"):
    seq += 1
    envelope = {"seq": seq, "id": f"live_{seq}", "ts": "2026-11-02T12:00:00Z", "workspace_id": "prod",
        "actor": {"kind": "source", "name": "monitor"}, "causation": None, "correlation_id": f"live_{seq}",
        "traceparent": None, "event": {"type": "oncall:service.error", "service": "live"}}
    begin = time.monotonic()
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO reflexr_events VALUES ('acme', 'prod', ?, ?, ?, 'oncall:service.error', NULL)",
        (seq, f"live_{seq}", json.dumps(envelope)))
    db.execute("COMMIT")
    longest = max(longest, time.monotonic() - begin)
    count += 1
    time.sleep(0.001)
print(json.dumps({"count": count, "longest": longest}))
"""


@pytest.mark.parametrize(("journal", "patience"), [("WAL", 0.0), ("DELETE", 1.0)])
def test_a_live_process_writes_on_while_the_store_is_read(tmp_path: Path, journal: str, patience: float) -> None:
    """With a write-ahead log, without waiting at all; in the other mode, for no longer than a chunk is read."""
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    command = [sys.executable, "-c", WRITE, str(path), journal, str(patience)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        counts: list[int] = []
        begin = time.monotonic()
        try:
            slow = iter(rule_runs(path))
            next(slow)  # whoever takes the items may take long: nothing is locked meanwhile
            while len(set(counts)) < 4 and writer.poll() is None and time.monotonic() < begin + 60:
                counts.append(sum(1 for _ in chains(path, tenant="acme", workspace="prod")))
                time.sleep(0.05)
        finally:
            path.with_name(path.name + ".stop").touch()
        output, errors = writer.communicate(timeout=30)
        list(slow)
    assert errors == ""
    said: dict[str, Any] = json.loads(output)
    assert said["count"] >= 3
    assert counts == sorted(counts)
    assert len(set(counts)) > 2, "the reader saw the log grow"


# PostgreSQL


def test_row_level_security_shows_a_tenant_its_own_rows_alone(postgres: Any) -> None:
    address = postgres.store("guarded", oracle_rows())
    postgres.run(
        "guarded",
        "CREATE ROLE reader LOGIN PASSWORD 'hunter2'",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        "ALTER TABLE reflexr_events ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON reflexr_events USING (tenant_id = current_setting('lattice.tenant_id', true))",
    )
    address = postgres.address("guarded", user="reader:hunter2")
    assert sum(1 for _ in rule_runs(address, tenant="acme")) == 78
    assert sum(1 for _ in rule_runs(address, tenant="globex")) == 7
    with pytest.raises(LogError, match=r"row-level security keeps tenants apart.*tenant=") as refused:
        list(rule_runs(address))
    assert "hunter2" not in str(refused.value)
    with pytest.raises(LogError, match="no events"):
        list(rule_runs(address, tenant="umbrella"))


def test_a_store_on_a_server_is_only_read(oracle_postgres: str) -> None:
    import sqlalchemy

    from evalr_reflexr.postgres import PostgresStore

    with (
        pytest.raises(LogError, match="read-only transaction"),
        PostgresStore(oracle_postgres).opened() as store,
    ):
        store._connection.execute(sqlalchemy.text("DELETE FROM reflexr_events"))


def test_a_report_of_a_store_on_a_server_is_that_of_the_file(oracle_postgres: str, oracle_sqlite: Path) -> None:
    now = report(oracle_sqlite).now
    found, expected = (report(read(each), now=now) for each in (oracle_postgres, oracle_sqlite))
    assert found.to_dict()["sections"] == expected.to_dict()["sections"]
    assert found.left_out.counts == expected.left_out.counts


def test_the_command_reads_an_address_and_never_shows_its_password(oracle_postgres: str, postgres: Any) -> None:
    address = oracle_postgres.replace("evalr@", "evalr:hunter2@")
    command = [sys.executable, "-m", "evalr.cli", "report"]
    done = subprocess.run([*command, address, "--tenant", "globex"], capture_output=True, text=True, check=True)
    assert "7 runs" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    for wrong in (address + "_not", "mysql://ada:hunter2@host/db"):
        done = subprocess.run([*command, wrong], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "hunter2" not in done.stdout + done.stderr


def test_a_large_store_on_a_server_is_streamed(postgres: Any) -> None:
    def rows() -> Iterator[Row]:
        writer = Writer()
        for _ in range(3_000):
            chain = writer.event("desk:ticket.opened", after=0.001)
            writer.event("desk:ticket.resolved", chain=chain, after=0.001)
        yield from writer.rows

    address = postgres.store("large", rows())
    assert len(list(chains(address))) == 3_000


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE reflexr_events", "no table reflexr_events"),
        ("ALTER TABLE reflexr_events DROP COLUMN event_type", "no column event_type"),
        ("DELETE FROM reflexr_events", "no events in this reflexr log"),
        (
            "ALTER TABLE reflexr_events RENAME TO agent_success_evaluation_result",
            "has the tables of Reflexio, which are read from .* fetch the answers",
        ),
    ],
)
def test_a_server_without_a_store(postgres: Any, statement: str, message: str) -> None:
    name = f"broken_{abs(hash(statement))}"
    address = postgres.store(name, [])
    postgres.run(name, statement)
    with pytest.raises(LogError, match=message):
        list(rule_runs(address))


def test_a_server_that_does_not_answer(postgres: Any) -> None:
    with pytest.raises(LogError, match="the store cannot be read") as failed:
        list(rule_runs("postgresql://ada:hunter2@127.0.0.1:1/reflexr"))
    assert "hunter2" not in str(failed.value)
    with pytest.raises(LogError, match=r'database "nowhere" does not exist'):
        list(rule_runs(postgres.address("nowhere")))
    with pytest.raises(InputError, match="no address of a database"):
        rule_runs("postgresql://:::/")


@pytest.mark.parametrize("module", ["sqlalchemy", "psycopg"])
def test_without_the_extra_a_store_on_a_server_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs {module}.*pip install 'evalr\[reflexr\]'"):
        list(rule_runs("postgresql://host/reflexr"))


def test_json_with_a_nul_in_it_is_read_all_the_same(postgres: Any) -> None:
    """The server keeps such JSON and refuses to look into it."""
    writer = Writer()
    chain = writer.event("desk:ticket.opened")
    writer.fact("rule_fired", "fir_1", chain=chain, matched=[1])
    writer.fact("run_dead_lettered", "fir_1", chain=chain, error="a\0b")
    address = postgres.store("nul", writer.rows)
    assert rule_outcomes(address)["r"].dead_lettered == 1
    assert len(list(rule_runs(address))) == 1


def test_rows_that_are_json_and_no_envelopes(postgres: Any) -> None:
    address = postgres.store("odd", oracle_rows())
    postgres.run("odd", "UPDATE reflexr_events SET envelope = '[]' WHERE seq = 7")
    log = read(address)
    assert list(log)
    assert log.left_out.counts["not a JSON object"] == 3


def test_appending_while_reading_is_seen_by_the_next_reader(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "store.db", oracle_rows())
    writer = Writer()
    writer.event("oncall:late", id="late")
    late = (*writer.rows[0][:2], 1_000, *writer.rows[0][3:])
    items = iter(chains(path))
    first = next(items)
    with closing(sqlite3.connect(path)) as db, db:
        append_sqlite(db, [late])
    rest = [first, *items]
    assert len(list(chains(path))) == len(rest) + 1
