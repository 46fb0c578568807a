"""A help desk's log with a pass over it, and the page of it, asked in process or served to a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalr.background import run_sync
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
    open_store,
    plan,
)

ME = Account("local")
BASE = "http://127.0.0.1:8765"


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


@dataclass
class Site:
    """A page, asked in this process."""

    app: Any
    desk: Any
    log: Path
    store: Store

    def ask(self, path: str, *, method: str = "GET", **options: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
                return await client.request(method, path, **options)

        return run_sync(asked())

    def page(self, path: str, *, status: int = 200, **options: Any) -> str:
        answer = self.ask(path, **options)
        assert answer.status_code == status, answer.text
        return answer.text

    def send(self, path: str, fields: dict[str, Any], *, status: int = 303, **headers: str) -> httpx.Response:
        """A form, as a browser sends it from this very page."""
        fields = {"form_key": self.desk.guard.form_key, **fields}
        headers = {"origin": BASE, "sec-fetch-site": "same-origin", **headers}
        answer = self.ask(path, method="POST", data=fields, headers=headers)
        assert answer.status_code == status, answer.text
        return answer


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes the page of a log, and of a store in which there may be passes."""
    pytest.importorskip("starlette", reason="the traces page needs the extra evalr[web]")
    from evalr_tracepass.web.app import make_app
    from evalr_tracepass.web.desk import Desk
    from evalr_tracepass.web.guard import Guard
    from evalr_tracepass.web.kept import Kept
    from evalr_tracepass.web.reading import read_log

    stores = []

    def made(lines: list[dict[str, Any]] | None = None, *, passes: int = 0, **options: Any) -> Site:
        log = write_log(tmp_path / "desk.jsonl", desk_lines(12) if lines is None else lines)
        store = open_store(tmp_path / "passes.db")
        stores.append(store)
        for _ in range(passes):
            run_pass(store, log)
        reflexes = options.pop("reflexes", None) or heuristics()
        transport = options.pop("transport", None) or LocalTransport(reflexes)
        rate = options.pop("rate", dict.fromkeys(reflexes, 0.0))
        reading = read_log(str(log))
        reading.begin()
        reading.wait(30)
        desk = Desk(reading, Kept(store, ME), Guard(**options), transport, reflexes, rate=rate)
        return Site(make_app(desk), desk, log, store)

    yield made
    for store in stores:
        store.close()
