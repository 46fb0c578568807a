"""Of two processes that run one pass here, one reads: real processes over one store, killed and held up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from local_pass import ME, REFUSED, Job
from reflex_service import talks, texts

from evalr.tracepass import open_store

COUNT, LARGEST = 15, 5
TEXTS = texts(talks(COUNT))
CHILD = Path(__file__).parent / "local_pass.py"


@pytest.fixture(params=["sqlite", "postgres"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    place = str(tmp_path / "passes.db")
    if request.param == "postgres":
        place = request.getfixturevalue("postgres").make(f"claims_{abs(hash(str(tmp_path)))}")
    return Job(place, str(tmp_path / "read.log"), COUNT, LARGEST, pause=0.4, lease=2.0, resume=False)


def begun(job: Job) -> subprocess.Popen[str]:
    folders = [str(CHILD.parent), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, str(CHILD), json.dumps(job)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def read(job: Job) -> dict[int, list[str]]:
    """What each process has read, by its id."""
    found: dict[int, list[str]] = {}
    if Path(job.log).exists():
        for line in Path(job.log).read_text(encoding="utf-8").splitlines():
            who, _, text = line.partition(" ")
            found.setdefault(int(who), []).append(text)
    return found


def wait_for_readings(process: subprocess.Popen[str], job: Job, count: int) -> None:
    until = time.monotonic() + 60
    while sum(map(len, read(job).values())) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "it reads nothing"
        time.sleep(0.02)


def ended(process: subprocess.Popen[str]) -> int:
    _, said = process.communicate(timeout=60)
    assert process.returncode in (0, REFUSED, -signal.SIGKILL), said
    assert process.returncode != REFUSED or "another process" in said
    return process.returncode


def check(job: Job) -> None:
    """Every text has one result."""
    store = open_store(job.store)
    assert store.get_pass(ME, "p").status == "complete"
    results = [each.request_id for each in store.results(ME, passes="p")]
    assert len(results) == len(set(results)) == len(TEXTS) == store.get_pass(ME, "p").completed_inputs
    assert {each.status for each in store.batches(ME, "p")} == {"ended"}
    store.close()


def test_r2_two_processes_that_resume_a_pass_at_once_read_nothing_twice(job: Job) -> None:
    with begun(job) as first:
        wait_for_readings(first, job, 2 * LARGEST)
        first.kill()
        assert ended(first) == -signal.SIGKILL
    again = job._replace(resume=True)
    with begun(again) as one, begun(again) as other:
        codes = sorted([ended(one), ended(other)])
    assert codes in ([0, 0], [0, REFUSED])  # the other was refused, or came when all had been done
    by_process = read(job)
    resumed = Counter(by_process.get(one.pid, []) + by_process.get(other.pid, []))
    assert set(resumed.values()) == {1}
    assert set(resumed) | set(by_process[first.pid]) == set(TEXTS)
    # Of the killed process, the batch that had not been stored is read again, and no more.
    assert len(resumed.keys() & by_process[first.pid]) <= LARGEST
    check(job)


def test_r2_a_pass_that_a_living_process_reads_is_left_to_it(job: Job) -> None:
    with begun(job._replace(pause=1.0)) as first:
        wait_for_readings(first, job, 1)
        with begun(job._replace(resume=True)) as second:
            assert ended(second) == REFUSED
        assert ended(first) == 0
    assert read(job).keys() == {first.pid}
    check(job)


def test_r2_a_process_that_was_held_up_finds_its_pass_taken_over(job: Job) -> None:
    with begun(job) as first:
        wait_for_readings(first, job, 2 * LARGEST)
        first.send_signal(signal.SIGSTOP)
        try:
            with begun(job._replace(resume=True)) as second:
                assert ended(second) == 0
        finally:
            first.send_signal(signal.SIGCONT)
        assert ended(first) == REFUSED
    by_process = read(job)
    # What it had been reading when it was held up is all that was read twice.
    assert len(set(by_process[first.pid]) & set(by_process[second.pid])) <= LARGEST
    check(job)
