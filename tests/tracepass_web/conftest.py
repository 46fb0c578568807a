"""The traces page of a help desk's log, asked in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from traces_desk import ME, desk_lines, run_pass, write_log

from evalr.background import run_sync
from evalr.tracepass import LocalTransport, Store, heuristics, open_store

BASE = "http://127.0.0.1:8765"


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
        reflexes = options.pop("reflexes", heuristics())
        transport = options.pop("transport", None) or LocalTransport(reflexes)
        rate = options.pop("rate", dict.fromkeys(reflexes, 0.0))
        reading = read_log(str(log))
        reading.begin()
        reading.wait(30)
        desk = Desk(reading, Kept(store, store, ME), Guard(**options), transport, reflexes, rate=rate, poll=0.02)
        return Site(make_app(desk), desk, log, store)

    yield made
    for store in stores:
        store.close()
