"""Killed with kill -9 at any stage, a pass resumes: a real process, against a real server on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killed_pass import Job, done
from reflex_service import FakeReflex, served, talks, texts

COUNT, LARGEST = 6, 5
CHILD = Path(__file__).parent / "killed_pass.py"


def run_child(job: Job, then: Callable[[int], None] = lambda _: None) -> dict[str, Any] | None:
    """What a process made of a job; None where it was killed."""
    folders = [str(CHILD.parent), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, str(CHILD), json.dumps(job)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as child:
        then(child.pid)
        came, said = child.communicate(timeout=120)
    assert child.returncode in (0, -signal.SIGKILL), said
    return json.loads(came) if child.returncode == 0 else None


def check(came: dict[str, Any], fake: FakeReflex) -> None:
    """Nothing is lost, repeated, or paid for twice."""
    asked = texts(talks(COUNT))
    assert came["status"] == "complete"
    assert came["listed"] == COUNT
    assert len(came["results"]) == 2 * len(asked) == came["predictions"]
    assert len(set(map(tuple, came["results"]))) == len(came["results"])
    assert set(fake.billed) == {(text, model) for text in asked for model in ("m1", "m2")}
    assert set(fake.billed.values()) == {1}
    assert [*map(tuple, came["batches"])] == [(0, "ended"), (1, "ended"), (2, "ended")]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Where a pass and its results are kept: in one database, or results in ClickHouse and the pass on a server."""
    if request.param == "sqlite":
        return str(tmp_path / "passes.db"), ""
    if request.param == "clickhouse":
        pytest.importorskip("chdb")
        pytest.importorskip("clickhouse_connect")
    address = request.getfixturevalue("postgres").make(f"killed_{abs(hash(str(tmp_path)))}")
    return address, str(tmp_path / "chdb") if request.param == "clickhouse" else ""


def resumed(job: Job) -> dict[str, Any]:
    """The pass gone on with: by another process where it takes an engine of which each has one."""
    job = job._replace(kill="", resume=True)
    came = run_child(job) if job.chdb else done(job)
    assert came is not None
    return came


@pytest.mark.parametrize(
    ("place", "stage", "nth"),
    [
        ("sqlite", "before upload", 1),
        ("sqlite", "after upload", 1),
        ("sqlite", "after upload", 3),
        ("sqlite", "after status", 1),
        ("sqlite", "after results", 2),
        ("postgres", "after upload", 2),
        ("postgres", "after results", 1),
        ("clickhouse", "after results", 3),
    ],
    indirect=["place"],
)
def test_b5_killed_while_the_service_works_a_pass_resumes_and_pays_once(
    place: tuple[str, str], stage: str, nth: int
) -> None:
    pids: list[int] = []
    seen: list[str] = []

    def watch(what: str) -> None:
        seen.append(what)
        if seen.count(stage) == nth and what == stage:
            os.kill(pids[0], signal.SIGKILL)
            time.sleep(0.05)  # it is gone before it could be answered

    fake = FakeReflex(delay=1, watch=watch)
    with served(fake) as url:
        job = Job(*place, url, COUNT, LARGEST)
        assert run_child(job, then=pids.append) is None
        fake.watch = None
        check(resumed(job), fake)


@pytest.mark.parametrize(
    ("place", "stage", "nth"),
    [
        ("sqlite", "before save_batch", 1),
        ("sqlite", "after settle", 2),
        ("postgres", "before add_batch", 2),
        ("postgres", "after write", 3),
        ("postgres", "after finish", 1),
        ("clickhouse", "after write", 2),
        ("clickhouse", "before finish", 1),
        ("clickhouse", "after finish", 1),
    ],
    indirect=["place"],
)
def test_b8_killed_while_it_writes_a_pass_resumes_and_pays_once(place: tuple[str, str], stage: str, nth: int) -> None:
    fake = FakeReflex(delay=1)
    with served(fake) as url:
        job = Job(*place, url, COUNT, LARGEST, stage, nth)
        assert run_child(job) is None
        check(resumed(job), fake)
