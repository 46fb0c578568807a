"""How fast the traces page answers over a log of ten thousand conversations, in processor time of this process.

    python benchmarks/bench_traces_page.py [--conversations 10000]

The log has JSON lines of generated conversations of 6 to 23 turns, and the store one pass over all of them. Each page
is asked for twice, in the process: the first time with nothing known, and then again. The other side reads the same log
once, as every command does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from evalr.tracepass import (
    HEURISTIC_SIGNALS,
    Account,
    LocalTransport,
    Passes,
    heuristics,
    log_traces,
    open_store,
    plan,
    traces_page,
)

ME = Account("ann")
WORDS = ("order", "refund", "please", "where", "is", "my", "error", "useless", "thanks", "login", "page", "invoice")


def write_log(path: Path, conversations: int) -> None:
    """Conversations of a person with an agent that calls tools."""
    chance = random.Random(3)
    with path.open("w", encoding="utf-8") as log:
        for number in range(conversations):
            turns: list[dict[str, Any]] = []
            for place in range(chance.randrange(6, 24)):
                text = " ".join(chance.choice(WORDS) for _ in range(chance.randrange(5, 80)))
                turn: dict[str, Any] = {"role": "agent" if place % 2 else "person", "text": text}
                turn["at"] = f"2026-{1 + number % 11:02}-{1 + number % 28:02}T{place:02}:00:00Z"
                if place % 2:
                    turn["metadata"] = {"input_tokens": chance.randrange(3_000), "output_tokens": chance.randrange(400)}
                turns.append(turn)
            convo = {"id": f"convo_{number}", "user": f"user_{number % 900}", "request": turns[0]["text"]}
            log.write(json.dumps({**convo, "turns": turns}) + "\n")


async def asked(app: Any, paths: dict[str, str]) -> None:
    """Print what each page takes."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        before = time.process_time()
        while "Reading the log" in (await client.get("/")).text:
            pass  # it answers after a while
        print(f"| reading the log | {1_000 * (time.process_time() - before):,.0f} | |")
        convo = (await client.get("/")).text.partition('<a href="/c/')[2].partition('"')[0]
        for name, path in paths.items():
            spent, size = [], 0
            for _ in range(2):
                before = time.process_time()
                answer = await client.get(path.format(convo=convo))
                spent.append(1_000 * (time.process_time() - before))
                answer.raise_for_status()
                size = len(answer.content)
            print(f"| {name}, {size / 1_000:.0f} kB | {spent[0]:,.0f} | {spent[1]:,.0f} |")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=10_000)
    count = parser.parse_args().conversations
    with tempfile.TemporaryDirectory() as folder:
        log, store = Path(folder) / "log.jsonl", open_store(Path(folder) / "passes.db")
        write_log(log, count)
        before = time.process_time()
        assert sum(1 for _ in log_traces(log)) == count
        spent = time.process_time() - before
        print(f"{log.stat().st_size / 1e6:,.0f} MB; reading it takes {spent:.1f} s of the processor")
        signals = [HEURISTIC_SIGNALS["heuristic-negative-tone"], HEURISTIC_SIGNALS["heuristic-no-answer"]]
        Passes(ME, store, LocalTransport(heuristics())).run_sync(plan(signals), log_traces(log))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print("| page | first, ms | again, ms |\n|---|---|---|")
        paths = {
            "the list": "/",
            "its page 150": "/?page=150",
            "a search": "/?q=useless+thanks",
            "flagged": "/?show=flagged",
            "where one signal fired": "/?show=heuristic-negative-tone",
            "a conversation": "/c/{convo}",
            "the run panel": "/run?c={convo}&set=1&s=heuristic-negative-tone",
            "passes": "/passes",
        }
        asyncio.run(asked(traces_page(log, store, ME), paths))
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
        print(f"{max(0, more) / 1_024:,.0f} MiB more at the peak than the pass took")
        store.close()


if __name__ == "__main__":
    main()
