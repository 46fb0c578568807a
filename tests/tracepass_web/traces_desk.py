"""A help desk's log, and a pass over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalr.tracepass import (
    HEURISTIC_SIGNALS,
    Account,
    LocalTransport,
    Pass,
    Passes,
    Reflex,
    Store,
    heuristics,
    log_traces,
    plan,
)

ME = Account("local")


def desk_lines(n: int) -> list[dict[str, Any]]:
    """Conversations of which every third is annoyed, and every fourth goes round in circles."""
    search = {"name": "search_orders", "arguments": {"number": "A-17"}, "result": "no such order"}
    lines = []
    for number in range(n):
        annoyed, stuck = number % 3 == 0, number % 4 == 0
        at = f"2026-11-{1 + number % 28:02}T09:0"
        spent = {"model": "small-1", "input_tokens": 600 + number, "output_tokens": 40, "finish_reason": "stop"}
        mood = "This is useless. I am so annoyed, it is the worst answer ever!" if annoyed else "Thanks, that is all."
        turns = [
            {"role": "person", "text": f"Where is my order A-{number}?", "at": at + "0:00Z"},
            *(
                {"role": "agent", "text": "", "at": at + f"{k}:10Z", "tool_calls": [search]}
                for k in range(1, 5 if stuck else 2)
            ),
            {"role": "agent", "text": "I could not find it.", "at": at + "6:00Z", "metadata": spent},
            {"role": "person", "text": mood, "at": at + "7:00Z"},
        ]
        if number % 5 == 0:
            turns[1] = {**turns[1], "tool_calls": [{**search, "status": "error", "error": "the database is away"}]}
        lines.append(
            {"id": f"convo_{number}", "user": f"user_{number % 7}", "request": turns[0]["text"], "turns": turns}
        )
    return lines


def write_log(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def run_pass(store: Store, log: Path, *names: str, reflexes: dict[str, Reflex] | None = None) -> Pass:
    """A pass over a whole log, with the rules that run here or with others."""
    signals = [HEURISTIC_SIGNALS[name] for name in names or ("heuristic-loop", "heuristic-negative-tone")]
    passes = Passes(ME, store, LocalTransport(reflexes or heuristics()))
    return passes.run_sync(plan(signals), log_traces(log))
