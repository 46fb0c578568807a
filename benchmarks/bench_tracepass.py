"""How fast a pass runs here, beside its heuristics alone, and how fast a store of a million results answers.

    python benchmarks/bench_tracepass.py [--rows 10000] [--results 1000000]

A pass: `--rows` rows of generated conversations are planned, read by the heuristics that come with evalr, and stored
in a new file of SQLite, with the lists of conversations, until it is closed. The other side plans the same rows and
gives their texts to the same heuristics, keeping only how many fired; both sides' counts are compared. Once with the
short messages of a chat, and once with rows as long as those of real sessions of coding agents, about 4,000
characters. Times are the best of three, without imports.

Queries: `--results` results of one organisation in SQLite, as ten passes leave them, beside as many of others. Each is
asked with a connection that has just been opened, and then again; the plan of SQLite is shown, and must use an index.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from evalr.inputs import ToolCall, Transcript, Turn
from evalr.tracepass import (
    HEURISTIC_SIGNALS,
    Account,
    LocalTransport,
    Pass,
    Passes,
    PlanEstimate,
    Result,
    Scope,
    heuristics,
    open_store,
    plan,
    reading,
)

ME, OTHER = Account("ann", "acme"), Account("ann", "umbrella")
START = datetime(2026, 9, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 30, tzinfo=UTC)
LIMIT_MS = 50.0


def traces(conversations: int, longest: int, turns: int = 12) -> Iterator[Transcript]:
    """Conversations of a person with a coding agent that calls tools, some of which fail."""
    chance = random.Random(7)
    words = [f"word{number}" for number in range(2_000)]
    for number in range(conversations):
        at = START + timedelta(minutes=number)
        made = []
        for place in range(turns):
            calls = []
            if place % 2:
                failed = chance.random() < 0.2
                calls = [
                    ToolCall(
                        name=chance.choice(["read", "edit", "test"]),
                        arguments={"path": f"src/{chance.choice(words)}.py"},
                        status="error" if failed else "ok",
                        error="no such file" if failed else None,
                        result=None if failed else " ".join(chance.choices(words, k=chance.randrange(60, 200))),
                    )
                ]
            text = " ".join(chance.choices(words, k=chance.randrange(10, longest)))
            made.append(
                Turn(
                    role="agent" if place % 2 else "person",
                    text=text,
                    id=f"e{place}",
                    at=at + timedelta(seconds=place),
                    tool_calls=calls,
                )
            )
        yield Transcript(id=f"convo-{number}", user=f"user-{number % 997}", request="", turns=made)


def timed(job: Callable[[], Any], times: int = 3) -> tuple[float, float, Any]:
    """The shortest of several times, in seconds of the wall and of the processor, and what came of it."""
    walls, processors, came = [], [], None
    for _ in range(times):
        wall, processor = time.perf_counter(), time.process_time()
        came = job()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors), came


def bench_pass(rows: int, longest: int) -> None:
    signals = list(HEURISTIC_SIGNALS.values())
    made = plan(signals)
    log = list(traces(rows // 24, longest))  # six rows by each of four transforms
    reflexes = heuristics()

    def alone() -> tuple[int, int]:
        count = fired = 0
        texts: dict[tuple[str, str], list[str]] = {}
        for row in made.rows(log):
            count += 1
            for model in row.models:
                texts.setdefault((row.item.transform_id, model), []).append(row.text)
        for key, of in texts.items():
            signal = made.signal_by[key]
            for prediction in reflexes[signal.model].predict(of):
                fired += reading(signal, prediction).fired
        return count, fired

    def whole(path: Path) -> Pass:
        path.unlink(missing_ok=True)
        store = open_store(path)
        found = Passes(ME, store, LocalTransport(reflexes)).run_sync(made, log)
        store.close()
        return found

    def came_of(path: Path, found: Pass) -> tuple[int, int]:
        store = open_store(path)
        assert found.status == "complete"
        assert len(store.conversations(ME, limit=10**6)) == len(log)
        fired = store.totals(ME, found.id).fired
        store.close()
        return found.total_inputs, fired

    alone_s, alone_cpu, alone_came = timed(alone)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passes.db"
        whole_s, whole_cpu, found = timed(partial(whole, path))
        whole_came = came_of(path, found)
    length = sum(len(row.text) for row in made.rows(log)) // whole_came[0]
    assert alone_came == whole_came, (alone_came, whole_came)
    predictions = made.estimate(log).predictions
    print(f"a pass of {whole_came[0]:,} rows of {length:,} characters, {predictions:,} predictions, ", end="")
    print(f"{whole_came[1]:,} fired")
    print(f"  heuristics alone, planning included  {alone_s:5.2f} s of the wall, {alone_cpu:5.2f} s of the processor")
    print(f"  the pass, stored                     {whole_s:5.2f} s of the wall, {whole_cpu:5.2f} s of the processor")
    print(f"  which is {whole_s / alone_s:.2f} and {whole_cpu / alone_cpu:.2f} times as long")


def stored(account: Account, run: int, results: int) -> Iterator[Result]:
    chance = random.Random(run)
    made = NOW - timedelta(days=10 - run)
    for number in range(results):
        fired = chance.random() < 0.05
        convo = number // 20 + run * 2_500
        label, score = ("bad", 0.9) if fired else ("good", 0.8)
        yield Result(
            f"{account.org}-run-{run}",
            f"rbatch-{run}",
            f"user_turn:convo-{convo}:e{number % 20}::user_message:0",
            f"convo-{convo}",
            f"e{number % 20}",
            "",
            number % 20,
            f"user-{convo % 997}",
            "1.0",
            "user_chat",
            "user_message",
            1,
            "signal",
            f"model-{number % 2}",
            "1",
            "completed" if chance.random() > 0.01 else "failed",
            "single_label",
            label,
            score,
            (label,),
            fired,
            None,
            False,
            '[{"label":"bad","score":0.9,"selected":true},{"label":"good","score":0.1,"selected":false}]',
            "",
            "",
            START + timedelta(minutes=convo, seconds=number % 20),
            made,
        )


def bench_queries(results: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passes.db"
        store = open_store(path, now=NOW)
        begun = time.perf_counter()
        for account in (ME, OTHER):
            for run in range(10):
                store.write(account, stored(account, run, results // 10))
                name = f"{account.org}-run-{run}"
                made = Pass(
                    name,
                    account,
                    "complete",
                    Scope(),
                    (),
                    (),
                    PlanEstimate(),
                    0,
                    0,
                    0,
                    0,
                    None,
                    NOW - timedelta(days=10 - run),
                )
                store.finish(account, made)
        store.close()
        print(f"{results:,} results of one organisation and {results:,} of another, written and listed in ", end="")
        print(f"{time.perf_counter() - begun:.0f} s, {path.stat().st_size / 2**20:,.0f} MiB")
        newest = max(9 * 2_500, 9 * 2_500 + results // 200 - 60)
        last = f"convo-{newest}"
        page = [f"convo-{number}" for number in range(newest, newest + 50)]
        asked: dict[str, Callable[[Any], Any]] = {
            "list: the latest 50": lambda s: s.conversations(ME),
            "list: the latest 50 that are flagged": lambda s: s.conversations(ME, flagged=True),
            "list: 50 by one signal, page 20": lambda s: s.conversations(ME, signal_id="signal", offset=1_000),
            "list: 50 by their ids": lambda s: s.conversations(ME, convo_ids=page),
            "list: 50 flagged of one pass": lambda s: s.conversations(ME, passes="acme-run-3", flagged=True),
            "detail: latest of one conversation": lambda s: list(s.results(ME, convo_id=last)),
            "detail: what fired there": lambda s: list(s.results(ME, convo_id=last, fired=True)),
            "detail: all passes": lambda s: list(s.results(ME, convo_id=last, passes="all", history=True)),
            "rerun: what 50 conversations have": lambda s: s.answered(ME, page),
        }
        worst = 0.0
        for name, ask in asked.items():
            first = []
            for _ in range(3):
                store = open_store(path, now=NOW)
                first.append(timed(partial(ask, store), 1)[0])
                again, _, came = timed(partial(ask, store))
                store.close()
            assert came, name
            cold = min(first)
            worst = max(worst, cold)
            print(f"  {name:38} {cold * 1_000:6.1f} ms, again {again * 1_000:6.1f} ms ({len(came):,} found)")
        print(f"  slowest {worst * 1_000:.1f} ms, of at most {LIMIT_MS:.0f}")
        show_plans(path)


def show_plans(path: Path) -> None:
    """How SQLite finds the rows of the two queries that matter most."""
    asked = {
        "list": "SELECT * FROM trace_reflex_conversations WHERE account_key = 'org:acme' AND fired_count > 0 "
        "ORDER BY order_at DESC LIMIT 50",
        "detail": "SELECT * FROM trace_reflex_results WHERE account_key = 'org:acme' AND convo_id = 'convo-1' "
        "ORDER BY source_start_time",
    }
    with closing(sqlite3.connect(path)) as database:
        for name, query in asked.items():
            found = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert any("INDEX" in each for each in found), found
            print(f"  {name}: {'; '.join(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--results", type=int, default=1_000_000)
    options = parser.parse_args()
    bench_pass(options.rows, longest=60)
    bench_pass(options.rows, longest=400)
    bench_queries(options.results)


if __name__ == "__main__":
    main()
