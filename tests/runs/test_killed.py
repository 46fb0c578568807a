"""Processes that are really killed, and processes that share a journal: the server counts what they ask."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalr import JournalError
from evalr.runs import Journal
from evalr.runs.locks import LivenessLock, is_held, remove_dead
from evalr.runs.waiting import Waiting

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
AT_ONCE = 6

CHILD = """
import asyncio, json, sys
from pydantic import BaseModel
from evalr import FunctionEvaluator
from evalr.inputs import Transcript
from evalr.runs import Retry, evaluate_all

url, journal, items, at_once = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
host, port = url.removeprefix("http://").split(":")

class Said(BaseModel):
    done: bool

async def ask(given):
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET /{given.id} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        answer = await reader.read()
        if b" 200 " not in answer.partition(b"\\r\\n")[0]:
            raise ConnectionError("no answer")
        return Said(done=answer.endswith(b"yes"))
    finally:
        writer.close()

judge = FunctionEvaluator("judge", "1", ask, Transcript, Said)

async def main():
    run = evaluate_all(judge, (Transcript(id=f"t{n}", request="secret words") for n in range(items)),
                       journal=journal, limit=at_once)
    async for result in run:
        print(result.status, result.about.id, flush=True)
    summary = run.summary
    print("summary", json.dumps([summary.calls, summary.from_journal, summary.in_doubt, summary.verdicts]), flush=True)

asyncio.run(main())
"""


class Child:
    """A process that judges, and what it has said so far."""

    def __init__(self, url: str, journal: Path, items: int) -> None:
        command = [sys.executable, "-c", CHILD, url, str(journal), str(items), str(AT_ONCE)]
        env = {**os.environ, "PYTHONPATH": SOURCE}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.strip() for line in self.process.stdout)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def interrupt(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self._end()

    def finish(self) -> list[int]:
        self.process.wait(60)
        stderr = self._end()
        assert self.process.returncode == 0, stderr
        found: list[int] = json.loads(self.lines[-1].removeprefix("summary "))
        return found

    def _end(self) -> str:
        self.process.wait(60)
        self._reading.join()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        stderr = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return stderr

    def acknowledged(self) -> set[str]:
        return {line.split()[1] for line in self.lines if line.startswith("verdict ")}


def rows(journal: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(journal)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_five_times_each_item_has_one_verdict_and_only_calls_in_flight_are_repeated(
    judge_server: Any, reply: Any, tmp_path: Path
) -> None:
    items, journal, draw = 150, tmp_path / "j.db", random.Random()
    judge_server.script = lambda item, n: reply(delay=0.02)
    acknowledged: set[str] = set()
    asked_when_acknowledged: dict[str, int] = {}
    for kill in range(5):
        before = judge_server.calls.total()
        child = Child(judge_server.url, journal, items)
        while judge_server.calls.total() == before:
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.15))
        while kill == 2 and len(child.acknowledged()) <= 5:
            time.sleep(0.005)  # however slow the machine, something was acknowledged before the last kill
        child.kill()
        time.sleep(0.1)  # the server ends what it has begun
        acknowledged |= child.acknowledged()
        asked_when_acknowledged = {item: judge_server.calls[item] for item in acknowledged}
    child = Child(judge_server.url, journal, items)
    calls, from_journal, in_doubt, verdicts = child.finish()

    assert verdicts == items
    assert child.acknowledged() == {f"t{n}" for n in range(items)}
    assert calls + from_journal == items
    assert len(acknowledged) > 5
    # What was acknowledged was not asked again.
    assert {item: judge_server.calls[item] for item in acknowledged} == asked_when_acknowledged
    # One verdict for each item, and beside it only calls that were in flight at a kill.
    outcomes = rows(journal, "SELECT i.id, o.status FROM outcomes o JOIN items i USING (item)")
    assert Counter(item for item, status in outcomes if status == "verdict") == {f"t{n}": 1 for n in range(items)}
    doubts = Counter(item for item, status in outcomes if status == "in_doubt")
    assert {status for _, status in outcomes} <= {"verdict", "in_doubt"}
    assert all(judge_server.calls[f"t{n}"] - 1 <= doubts[f"t{n}"] for n in range(items))
    # In flight is what has not been written yet: as many as are asked at once, and as many on their way to the disk.
    assert judge_server.calls.total() - items <= doubts.total() <= 5 * 2 * AT_ONCE
    with Journal(journal) as opened:
        totals = opened.totals()
    assert totals.items == {"verdict": items}
    assert totals.in_doubt == doubts.total()
    assert totals.calls == items + doubts.total()
    assert totals.unknown_costs == totals.calls
    assert in_doubt <= doubts.total()
    assert rows(journal, "SELECT count(*) FROM claims") == [(0,)]
    assert b"secret words" not in b"".join(path.read_bytes() for path in tmp_path.glob("j.db*") if path.is_file())


def test_two_processes_on_one_journal_do_not_judge_an_item_twice(judge_server: Any, reply: Any, tmp_path: Path) -> None:
    items, journal = 120, tmp_path / "j.db"
    judge_server.script = lambda item, n: reply(delay=0.01)
    children = [Child(judge_server.url, journal, items) for _ in range(2)]
    summaries = [child.finish() for child in children]
    assert judge_server.calls == {f"t{n}": 1 for n in range(items)}
    for child, (calls, from_journal, in_doubt, verdicts) in zip(children, summaries, strict=True):
        assert child.acknowledged() == {f"t{n}" for n in range(items)}
        assert (verdicts, calls + from_journal, in_doubt) == (items, items, 0)
    assert sum(calls for calls, *_ in summaries) == items
    assert not (tmp_path / "j.db-locks").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_live_run_takes_over_what_a_killed_one_had_in_hand(judge_server: Any, reply: Any, tmp_path: Path) -> None:
    """The other one waits for it as long as it lives, and not a moment longer."""
    journal = tmp_path / "j.db"
    judge_server.script = lambda item, n: reply(delay=30 if n == 1 else 0)
    first = Child(judge_server.url, journal, AT_ONCE)
    while judge_server.calls.total() < AT_ONCE:
        time.sleep(0.01)
    second = Child(judge_server.url, journal, AT_ONCE)
    time.sleep(1.5)
    assert judge_server.calls.total() == AT_ONCE
    first.kill()
    calls, from_journal, in_doubt, verdicts = second.finish()
    assert (calls, from_journal, in_doubt, verdicts) == (AT_ONCE, 0, AT_ONCE, AT_ONCE)
    assert set(judge_server.calls.values()) == {2}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_an_interrupted_process_ends_cleanly_and_goes_on_later(judge_server: Any, reply: Any, tmp_path: Path) -> None:
    journal = tmp_path / "j.db"
    judge_server.script = lambda item, n: reply(delay=0.05)
    child = Child(judge_server.url, journal, 60)
    while len(child.acknowledged()) < 10:
        time.sleep(0.01)
    stderr = child.interrupt()
    assert stderr.strip().endswith("KeyboardInterrupt")
    assert "never" not in stderr
    assert "destroyed" not in stderr
    with Journal(journal) as opened:
        totals = opened.totals()
    # Calls that were cancelled are known as such: nothing is in doubt.
    assert (totals.in_doubt, not totals.items.keys() - {"verdict"}) == (0, True)
    assert totals.items["verdict"] >= len(child.acknowledged())
    assert not (tmp_path / "j.db-locks").exists()
    calls, from_journal, in_doubt, verdicts = Child(judge_server.url, journal, 60).finish()
    assert (from_journal, calls, in_doubt, verdicts) == (totals.items["verdict"], 60 - from_journal, 0, 60)


def test_a_lock_ends_with_its_holder_and_is_not_kept_by_a_forked_child(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "1"
    assert not is_held(path)
    lock = LivenessLock(path)
    assert is_held(path)
    if hasattr(os, "fork"):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
        os.close(read)
        lock._forget()  # as when the parent dies
        held = True
        for _ in range(200):
            held = is_held(path)
            if not held:
                break
            time.sleep(0.01)
        os.close(write)
        os.waitpid(child, 0)
        assert not held
    else:
        lock.release()
        assert not is_held(path)
    LivenessLock(path).release()
    assert not path.parent.exists()


def left_by(code: str, folder: Path) -> list[Path]:
    """The locks there are after a process that ends in the middle of its work."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    code = f"import os; {code}; os._exit(7)"
    assert subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=False).returncode == 7
    return list(folder.glob("*-locks/*"))


def test_the_lock_of_a_dead_run_is_removed_by_the_next(tmp_path: Path) -> None:
    (left,) = left_by("from evalr.runs import Journal; Journal('j.db').begin_run()", tmp_path)
    with Journal(tmp_path / "j.db") as journal:
        run, _ = journal.begin_run()
        (own,) = left.parent.iterdir()
        assert (own != left, is_held(own)) == (True, True)
        journal.end_run(run)
    assert not left.parent.exists()


def test_the_lock_of_a_dead_process_is_removed_when_its_spool_is_opened(tmp_path: Path) -> None:
    (left,) = left_by("from evalr.runs.waiting import Waiting; spool = Waiting('s.db')", tmp_path)
    spool = Waiting(tmp_path / "s.db")
    (own,) = left.parent.iterdir()
    assert (own != left, is_held(own)) == (True, True)
    spool.close()
    assert not left.parent.exists()


def test_a_lock_is_held_whoever_tidies_up_at_the_same_time(tmp_path: Path) -> None:
    folder, done = tmp_path / "locks", threading.Event()

    def tidy() -> None:
        while not done.is_set():
            remove_dead(folder)

    tidying = threading.Thread(target=tidy)
    tidying.start()
    try:
        for n in range(300):
            lock = LivenessLock(folder / str(n))
            assert is_held(lock.path)
            lock.release()
            assert not lock.path.exists()
    finally:
        done.set()
        tidying.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_journal_is_not_used_in_a_forked_child(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            journal.totals()
        except JournalError as error:
            code = 0 if "open it again in this one" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert journal.totals().calls == 0
    journal.close()
