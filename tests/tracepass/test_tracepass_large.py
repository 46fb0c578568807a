"""What stays small and quick however many results there are: lists and details by an index, and memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from evalr.tracepass import Account, Pass, PlanEstimate, Result, Scope, Totals, open_store
from evalr_tracepass.stores import sql_results

ME = Account("ann", "acme")
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def a_pass(name: str) -> Pass:
    return Pass(name, ME, "complete", Scope(), (), (), PlanEstimate(), 0, 0, 0, 0, None, NOW - timedelta(days=1))


def results(run: str, conversations: int) -> Iterator[Result]:
    """Four results of each conversation, by two signals; in every tenth conversation both fire once."""
    for number in range(conversations):
        for place in range(4):
            fired = number % 10 == 0 and place > 1
            yield Result(
                run_id=run,
                batch_id="b",
                request_id=f"{number}:{place}",
                convo_id=f"convo-{number}",
                event_id=f"e{place}",
                span_id="",
                turn_index=place,
                user=f"user-{number % 97}",
                release="",
                input_kind="user_chat",
                transform_id="user_message",
                transform_version=1,
                signal_id=f"signal-{place % 2}",
                reflex_model=f"model-{place % 2}",
                model_version="1",
                status="completed",
                mode="single_label",
                top_label="bad" if fired else "good",
                top_score=0.9 if fired else 0.8,
                selected_labels=("bad",) if fired else ("good",),
                fired=fired,
                threshold=None,
                truncated=False,
                classes_json="[]",
                error_type="",
                error_message="",
                source_start_time=NOW - timedelta(days=2, seconds=number % 500),
                created_at=NOW - timedelta(days=1),
            )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    made = open_store(tmp_path / "passes.db", now=NOW)
    for run in ("p", "q"):
        made.write(ME, results(run, 200))
        made.finish(ME, a_pass(run))
    yield made
    made.close()


def plans(store: Any, ask: Callable[[], Any]) -> list[str]:
    """How SQLite finds what a call asks for: its plan for each very statement, with its values."""
    asked: list[tuple[str, Any]] = []
    engine = store._database.engine

    def note(connection: Any, cursor: Any, statement: str, values: Any, *_: Any) -> None:
        asked.append((statement, values))

    event.listen(engine, "before_cursor_execute", note)
    try:
        assert ask()
    finally:
        event.remove(engine, "before_cursor_execute", note)
    with engine.connect() as connection:
        return [
            row[3]
            for statement, values in asked
            if statement.startswith("SELECT")
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
        ]


LISTS: dict[str, Callable[[Any], Any]] = {
    "the latest": lambda store: store.conversations(ME),
    "the latest flagged": lambda store: store.conversations(ME, flagged=True),
    "by one signal": lambda store: store.conversations(ME, signal_id="signal-1"),
    "of one pass": lambda store: store.conversations(ME, passes="p", flagged=True),
}


@pytest.mark.parametrize("name", LISTS)
def test_b16_lists_are_read_by_an_index(store: Any, name: str) -> None:
    found = plans(store, lambda: LISTS[name](store))
    assert any("_order (" in each or "_flagged (" in each for each in found), found
    assert [each for each in found if each.startswith("SCAN")] == []
    # At most conversations of one time are sorted among themselves, and never all.
    assert [each for each in found if each == "USE TEMP B-TREE FOR ORDER BY"] == []


DETAILS: dict[str, Callable[[Any], Any]] = {
    "the latest": lambda store: list(store.results(ME, convo_id="convo-10")),
    "what fired": lambda store: list(store.results(ME, convo_id="convo-10", fired=True)),
    "every pass": lambda store: list(store.results(ME, convo_id="convo-10", passes="all", history=True)),
    "what was read": lambda store: store.answered(ME, ["convo-10", "convo-11"]),
}


@pytest.mark.parametrize("name", DETAILS)
def test_b17_details_are_read_by_an_index(store: Any, name: str) -> None:
    found = plans(store, lambda: DETAILS[name](store))
    assert any("ix_trace_reflex_results_convo (account_key=? AND convo_id=?" in each for each in found), found
    assert [each for each in found if each.startswith("SCAN")] == []


def grown(folder: Path, conversations: int) -> int:
    """Bytes that Python held at most while a pass was listed."""
    store = open_store(folder / f"{conversations}.db", now=NOW)
    store.write(ME, results("p", conversations))
    store.finish(ME, a_pass("q"))  # what is imported, and compiled, once
    tracemalloc.start()
    store.finish(ME, a_pass("p"))
    peak = tracemalloc.get_traced_memory()[1]
    assert store.totals(ME, "p") == Totals(
        conversations, conversations // 10, conversations // 5, conversations // 5, 4 * conversations, 0
    )
    tracemalloc.stop()
    assert len(store.conversations(ME, flagged=True, limit=10**6)) == conversations // 10
    store.close()
    return peak


def test_b2_what_a_pass_came_to_is_listed_in_flat_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_TOGETHER", "_LISTED"):
        monkeypatch.setattr(sql_results, name, 200)  # what is held at a time
    few, many = grown(tmp_path, 1_000), grown(tmp_path, 4_000)
    # A row of each conversation, kept, would take a kilobyte.
    assert many - few < 3_000 * 200
