"""No raw text of a trace is in any store, whatever a service or a classifier says of it, and no key is."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from reflex_service import FakeReflex, a_signal, no_sleep, talks

from evalr.errors import TransportError
from evalr.inputs import ToolCall, Transcript
from evalr.tracepass import (
    Account,
    BatchTransport,
    LivePreview,
    LocalTransport,
    Passes,
    Prediction,
    Transport,
    clickhouse_results,
    heuristics,
    open_store,
    plan,
    schema,
    signal,
    transform,
)

ME = Account("ann")
HASH_KEY = b"0123456789abcdef"


def words(seed: int) -> list[str]:
    """Words that stand nowhere else."""
    chance = random.Random(seed)
    return ["".join(chance.choices(string.ascii_lowercase, k=12)) for _ in range(4)]


SECRETS = words(2026)


def secret_talks() -> list[Transcript]:
    said, tool, error, result = SECRETS
    found = []
    for trace in talks(4, words=f"{said} 555-867-5309 "):
        turns = list(trace.turns)
        turns[1] = turns[1].model_copy(
            update={
                "tool_calls": [
                    ToolCall(name="search", arguments={"q": tool}, status="error", error=error, result=result)
                ]
            }
        )
        found.append(trace.model_copy(update={"turns": turns, "request": said}))
    return found


NOWHERE = (*SECRETS, "867-5309", "sk-test-5b1c9e0a7f")


def found_in(folder: Path, texts: Iterable[str] = NOWHERE) -> list[tuple[str, str]]:
    """Which texts stand in which files, in any encoding that a store may use."""
    wanted = {text: [text.encode(), text.encode("utf-16-le")] for text in texts}
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert files
    found = []
    for file in files:
        with suppress(FileNotFoundError):  # a server removes files of its own at any time
            content = file.read_bytes()
            found += [
                (file.name, text)
                for text, spellings in wanted.items()
                if any(spelling in content for spelling in spellings)
            ]
    return found


class Quoting:
    """A classifier whose errors repeat what they were given."""

    name, version, labels = "m1", "1", ("good", "bad")

    def predict(self, texts: list[str]) -> list[Prediction]:
        raise ValueError(f"cannot read {texts}")


def transports() -> Iterator[Transport]:
    for quote in (True,):
        fake = FakeReflex(
            quote=quote, fail_row=lambda text: " 1-" in text, fail_model=lambda model: model == "m2", refuse=1
        )
        yield BatchTransport(fake.service(), largest=5)
        yield LivePreview(fake.service())
        yield BatchTransport(FakeReflex(key="other", quote=True).service(key="sk-test-5b1c9e0a7f"))
    yield LocalTransport({**heuristics(), **{name: Quoting() for name in ("m1", "m2", "m3")}})


SIGNALS = [
    a_signal("m1"),
    a_signal("m2", "assistant_message"),
    a_signal("m3", "agent_window"),
    a_signal("m3", "full_conversation"),
]


def test_r12_no_text_is_in_any_file_of_a_store(tmp_path: Path) -> None:
    store = open_store(tmp_path / "passes.db")
    traces = secret_talks()
    sent = 0
    for transport in transports():
        run = Passes(ME, store, transport, hash_key=HASH_KEY, sleep=no_sleep)
        made = plan(SIGNALS)
        assert any(SECRETS[1] in row.text for row in made.rows(traces))
        with suppress(TransportError):
            found = run.run_sync(made, traces)
            sent += found.total_predictions
            run.retry_sync(found.id, traces)
    assert sent > 60
    assert (tmp_path / "passes.db-wal").stat().st_size > 0
    assert found_in(tmp_path) == []
    messages = {each.error_message for each in store.results(ME, passes="all", failed=True)}
    assert "too many tokens" in {message[:15] for message in messages}
    store.close()
    assert found_in(tmp_path) == []


def test_r12_no_text_is_in_postgres(postgres: Any) -> None:
    store = open_store(postgres.make("no_text"))
    for transport in transports():
        run = Passes(ME, store, transport, hash_key=HASH_KEY, sleep=no_sleep)
        with suppress(TransportError):
            run.run_sync(plan(SIGNALS), secret_talks())
    store.close()
    import psycopg

    with psycopg.connect(postgres.address("no_text")) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        whole = " ".join(
            str(row) for (name,) in names for row in connection.execute(f"SELECT * FROM {name}".encode()).fetchall()
        )
    assert "input_too_long" in whole or "overloaded" in whole
    assert [text for text in NOWHERE if text in whole] == []
    # The tables' own files, which were written out, and the log of what was written to them.
    postgres.run("no_text", "CHECKPOINT")
    there = {file for file, _ in found_in(postgres.folder / "data", ["convo:3", "m1.user_message"])}
    assert any(file.isdigit() for file in there)
    assert any(len(file) == 24 for file in there)
    assert found_in(postgres.folder / "data") == []


def test_r12_no_text_is_in_clickhouse(tmp_path: Path, chdb_client: Any) -> None:
    store = open_store(tmp_path / "lifecycle.db")
    results = clickhouse_results(chdb_client, database="no_text")
    for transport in transports():
        run = Passes(ME, store, transport, results=results, hash_key=HASH_KEY, sleep=no_sleep)
        with suppress(TransportError):
            run.run_sync(plan(SIGNALS), secret_talks())
    rows = str(chdb_client.query("SELECT * FROM no_text.trace_reflex_results").result_rows)
    assert "overloaded" in rows
    assert [text for text in NOWHERE if text in rows] == []
    folder = Path(chdb_client.query("SELECT path FROM system.disks WHERE name = 'default'").result_rows[0][0])
    assert found_in(folder, ["convo:3", "m1.user_message"])
    assert found_in(folder) == []
    store.close()


def test_r12_a_hash_tells_a_text_again_under_its_key_alone(tmp_path: Path) -> None:
    hashes = []
    for number, key in enumerate((HASH_KEY, HASH_KEY, b"another key of 16")):
        store = open_store(tmp_path / f"{number}.db")
        run = Passes(ME, store, BatchTransport(FakeReflex().service()), hash_key=key, sleep=no_sleep)
        run.run_sync(plan([a_signal("m1")]), talks(2))
        hashes.append([each.input_hash for each in store.results(ME)])
        assert key not in (tmp_path / f"{number}.db").read_bytes()
        assert repr(key) not in repr(run)
        store.close()
    assert hashes[0] == hashes[1]
    assert not set(hashes[0]) & set(hashes[2])


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "clickhouse"])
def test_r12_the_tables_say_that_no_text_is_kept(engine: Any) -> None:
    ddl = schema(engine)
    assert "no raw text of a trace" in ddl.lower()
    names = {line.split()[0].strip('"`,').lower() for line in ddl.splitlines() if line.startswith(("\t", "    "))}
    assert not names & {"text", "input", "input_text", "content", "body", "prompt"}


def test_r12_the_ddl_of_a_schema_is_what_a_store_makes(tmp_path: Path, chdb_client: Any) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "by_hand.db")) as database:
        database.executescript(schema("sqlite"))
    store = open_store(tmp_path / "made.db")
    store.close()
    tables = []
    for name in ("by_hand", "made"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as database:
            query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
            tables.append([(name, " ".join(sql.split())) for name, sql in database.execute(query)])
    assert tables[0] == tables[1]
    for statement in schema("clickhouse", database="by_hand").split(";\n"):
        lines = [line for line in statement.splitlines() if not line.startswith("--")]
        if "".join(lines).strip():
            chdb_client.command("\n".join(lines))
    clickhouse_results(chdb_client, database="made")
    described = [
        chdb_client.query(
            f"SELECT name, engine_full FROM system.tables WHERE database = '{name}' ORDER BY name"
        ).result_rows
        for name in ("by_hand", "made")
    ]
    assert described[0] == described[1]
    assert "run_id, request_id, reflex_model" in dict(described[0])["trace_reflex_results"]
    assert "toIntervalDay(365)" in dict(described[0])["trace_reflex_results"]


def test_r7_signals_of_ones_own_bring_their_transform(tmp_path: Path) -> None:
    store = open_store(tmp_path / "passes.db")
    store.save_signal(ME, a_signal("mine").model_copy(update={"transform": transform("agent_window")}))
    assert signal("mine.user_message", store.signals(ME)).transform.id == "agent_window"
    store.close()
