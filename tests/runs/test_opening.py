"""Several processes that make one new file at the same instant."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from time import monotonic, time

import pytest

from evalr import JournalError, SpoolError
from evalr.runs import Journal
from evalr.runs.opening import once_free
from evalr.runs.waiting import Waiting

SOURCE = str(Path(__file__).parents[2] / "src")
PROCESSES = 4
ROUNDS = 60

OPENER = """
import sys
from time import time

from evalr.runs.journal import Journal
from evalr.runs.waiting import Waiting

kind = {"journal": Journal, "spool": Waiting}[sys.argv[1]]
print("ready", flush=True)
for line in sys.stdin:
    path, at = line.split()
    while time() < float(at):
        pass
    try:
        kind(path).close()
        print("opened", flush=True)
    except Exception as error:
        print(repr(error), flush=True)
"""


@pytest.mark.parametrize("kind", ["journal", "spool"])
def test_processes_that_make_one_file_at_once_all_open_it(kind: str, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-c", OPENER, kind]
    children = [
        subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]

    def said() -> list[str]:
        return [child.stdout.readline().strip() for child in children if child.stdout is not None]

    try:
        assert said() == ["ready"] * PROCESSES
        told = []
        for number in range(ROUNDS):
            at = time() + 0.01
            for child in children:
                assert child.stdin is not None
                child.stdin.write(f"{tmp_path / str(number)} {at}\n")
                child.stdin.flush()
            told += said()
    finally:
        for child in children:
            child.communicate()
    assert [words for words in told if words != "opened"] == []
    assert len(told) == PROCESSES * ROUNDS


def test_a_file_that_stays_locked_is_told_of_after_the_patience(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An exclusive lock on a file without a log is what the journal mode cannot be changed under."""
    for kind, module, error in ((Journal, "journal", JournalError), (Waiting, "waiting", SpoolError)):
        path = tmp_path / module
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(f"evalr.runs.{module}.PATIENCE", 0.2)
        began = monotonic()
        try:
            with pytest.raises(error, match="cannot be opened: database is locked"):
                kind(path)
        finally:
            holder.execute("ROLLBACK")
            holder.close()
        assert 0.2 <= monotonic() - began < 2
        kind(path).close()


def test_a_file_is_prepared_again_only_while_others_hold_it() -> None:
    tried: list[int] = []

    def broken() -> None:
        tried.append(1)
        raise sqlite3.DatabaseError("broken")

    with pytest.raises(sqlite3.DatabaseError, match="broken"):
        once_free(broken, 10)
    assert len(tried) == 1
