"""Killed with kill -9 at any stage, a pass resumes: a real process, against a real server on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from reflex_service import KEY, FakeReflex, talks, texts

from evalr.runs.retries import Retry
from evalr.tracepass import Account, BatchTransport, Passes, Service, open_store

ME = Account("ann")
COUNT, LARGEST = 6, 5
CHILD = Path(__file__).parent / "killed_pass.py"


@contextmanager
def served(fake: FakeReflex) -> Iterator[str]:
    """The service on loopback; its address."""
    import uvicorn

    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(fake, lifespan="off", log_level="critical"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)


def run_child(store: Path, url: str, write: int = 0, then: Callable[[int], None] = lambda _: None) -> int:
    command = [sys.executable, str(CHILD), str(store), url, str(COUNT), str(LARGEST), str(write)]
    folders = [str(CHILD.parent), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as child:
        then(child.pid)
        _, said = child.communicate(timeout=60)
    assert child.returncode in (0, -signal.SIGKILL), said
    return child.returncode


def finish(store_path: Path, url: str, fake: FakeReflex) -> None:
    """Resume the pass here, and count."""
    traces = talks(COUNT)
    store = open_store(store_path)
    service = Service(url, KEY, retry=Retry(first=0.01))
    passes = Passes(ME, store, BatchTransport(service, largest=LARGEST), poll=0.01)
    found = passes.resume_sync("p", traces)
    assert found.status == "complete"
    results = list(store.results(ME, passes="p"))
    assert len(results) == 2 * len(texts(traces)) == found.total_predictions
    assert len({(each.request_id, each.reflex_model) for each in results}) == len(results)
    assert set(fake.billed) == {(text, model) for text in texts(traces) for model in ("m1", "m2")}
    assert set(fake.billed.values()) == {1}
    assert [(each.number, each.status) for each in store.batches(ME, "p")] == [(0, "ended"), (1, "ended"), (2, "ended")]
    store.close()


@pytest.mark.parametrize(
    ("stage", "nth"),
    [("before upload", 1), ("after upload", 1), ("after upload", 3), ("after status", 1), ("after results", 2)],
)
def test_b5_killed_while_the_service_works_a_pass_resumes_and_pays_once(tmp_path: Path, stage: str, nth: int) -> None:
    pids: list[int] = []
    seen: list[str] = []

    def watch(what: str) -> None:
        seen.append(what)
        if seen.count(stage) == nth and what == stage:
            os.kill(pids[0], signal.SIGKILL)
            time.sleep(0.05)  # it is gone before it could be answered

    fake = FakeReflex(delay=1, watch=watch)
    with served(fake) as url:
        assert run_child(tmp_path / "passes.db", url, then=pids.append) == -signal.SIGKILL
        fake.watch = None
        finish(tmp_path / "passes.db", url, fake)


@pytest.mark.parametrize("write", [4, 8, 12, 15])
def test_b8_killed_while_it_writes_a_pass_resumes_and_pays_once(tmp_path: Path, write: int) -> None:
    fake = FakeReflex(delay=1)
    with served(fake) as url:
        assert run_child(tmp_path / "passes.db", url, write) == -signal.SIGKILL
        finish(tmp_path / "passes.db", url, fake)
