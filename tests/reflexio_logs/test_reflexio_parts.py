"""What several processes find in a log is what one finds, field by field, whatever happens to them or to the log."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from reflexio_odd import odd_log
from reflexio_writing import BEGIN, Writer

from evalr import report
from evalr.bulk.processes import Processes
from evalr.bulk.worker import Part
from evalr.errors import InputError, LogError, RecordError
from evalr.reflexio import ArmReading, open_store
from evalr_reflexio import parts
from evalr_reflexio.ids import Ids
from evalr_reflexio.rows import SessionRecord

NOW = BEGIN + timedelta(days=12)


def plain(path: Path, **asked: Any) -> dict[str, Any]:
    """A report as JSON has it, but for how it was read, and which of the places that were left out it names.

    Rows are read some sessions at a time, table by table: which of them come first depends on which these are.
    """
    found = json.loads(json.dumps(report(path, now=NOW, kind="reflexio", **asked).to_dict(), default=str))
    del found["log"]["settings"]
    for each in found["left_out"]["by_the_reader"].values():
        each["places"] = len(each["places"])
    return found


class InThisProcess:
    """What `Processes` does, without processes: what is sent is pickled, and read back."""

    started = 0

    def __init__(self, heard: Callable[[Any], Any]) -> None:
        self._heard = heard
        self._answers: list[list[bytes]] = []

    def start(self, part: Part, place: Hashable) -> int:
        type(self).started += 1
        answers: list[bytes] = []

        def say(answer: object) -> None:
            answers.append(pickle.dumps(self._heard(pickle.loads(pickle.dumps(answer)))))

        pickle.loads(pickle.dumps(part)).read(say, io.BytesIO())
        self._answers.append(answers)
        return len(self._answers) - 1

    def answer(self, number: int) -> Any:
        return pickle.loads(self._answers[number].pop(0))

    def stop(self, number: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("seed", range(11))
def test_parts_make_the_whole(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = [
        {},
        {"arms": "experiment:exp", "compat": "reflexio"},
        {"since": BEGIN + timedelta(days=2), "until": BEGIN + timedelta(days=9)},
        {"arms": "request-source:treatment=prod;control=beta", "shadow": "shadow"},
        {"measures": ["learning", "waits"], "shadow_version": "v2"},
        {"by": "request_source", "compat": "reflexio"},
        {"cluster": "session", "by": "day"},
        {"details": True},
        {"details": True, "arms": "experiment:exp"},
    ][seed % 9]
    odd, release = 0.05 * (seed % 2), "0.2.25" if seed == 9 else "0.2.32"
    path = odd_log(tmp_path / "reflexio.db", seed, odd=odd, release=release, shared=seed % 3 == 0)
    whole = plain(path, processes=1, **asked)
    monkeypatch.setattr(parts, "Processes", InThisProcess)
    for processes in (2, 5):
        assert plain(path, processes=processes, **asked) == whole


@pytest.mark.parametrize("processes", [2, 3])
def test_real_processes_find_what_one_finds(processes: int, newest_log: Path, tagged_log: Path) -> None:
    for path, asked in ((newest_log, {"compat": "reflexio"}), (tagged_log, {"arms": "tag", "details": True})):
        assert plain(path, processes=processes, **asked) == plain(path, processes=1, **asked)


def test_a_large_log_is_read_by_two_and_a_small_one_by_one(newest_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "Processes", InThisProcess)
    monkeypatch.setattr(InThisProcess, "started", 0)
    monkeypatch.setattr(parts, "_cores", lambda: 2)
    whole = plain(newest_log)
    assert InThisProcess.started == 0
    monkeypatch.setattr(parts, "LARGE", 0)
    assert plain(newest_log) == whole
    assert InThisProcess.started == 1
    monkeypatch.setattr(parts, "_cores", lambda: 1)
    assert plain(newest_log) == whole
    assert InThisProcess.started == 1


@pytest.mark.parametrize("processes", [0, 129, True, 2.0, "2"])
def test_what_is_no_number_of_processes(processes: Any, newest_log: Path) -> None:
    with pytest.raises(InputError, match=r"must be a whole number from 1 to 128"):
        report(newest_log, now=NOW, processes=processes)


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def living(tmp_path: Path) -> Writer:
    """A log in WAL mode that its writer has open."""
    writer = Writer(tmp_path / "reflexio.db", wal=True)
    for number in range(30):
        writer.session(f"s{number}", f"u{number % 7}", BEGIN + timedelta(hours=number))
        writer.outcome(f"s{number}", f"u{number % 7}", success=number % 3 != 0)
    writer.connection.commit()
    return writer


def test_a_part_of_another_state_is_read_again(living: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    class AfterAWrite(InThisProcess):
        def start(self, part: Part, place: Hashable) -> int:
            living.session("late", "u1", BEGIN + timedelta(days=3))
            living.connection.commit()
            return super().start(part, place)

    before = plain(living.path, processes=1)
    with monkeypatch.context() as patch:
        patch.setattr(parts, "Processes", AfterAWrite)
        during = plain(living.path, processes=2)
    assert during == before
    assert plain(living.path, processes=2)["log"]["inputs"]["session"] == 31
    living.done()


@pytest.mark.parametrize("wal", [True, False])
def test_whether_somebody_writes_is_known(wal: bool, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db", wal=wal)
    writer.session("s1")
    writer.connection.commit()
    with open_store(writer.path, watched=True) as store, open_store(writer.path) as unwatched:
        assert store.is_newest()
        assert not unwatched.is_newest()
        writer.session("s2")
        assert store.is_newest()
        if wal:
            writer.connection.commit()
            assert not store.is_newest()
        with open_store(writer.path, watched=True) as later:
            assert later.is_newest()
    writer.done()
    with open_store(writer.path, watched=True) as store:
        assert store.is_newest()


@pytest.mark.parametrize("wal", [True, False])
def test_whether_the_file_was_replaced_is_known(wal: bool, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db", wal=wal)
    writer.session("s1")
    writer.connection.commit()
    other = Writer(tmp_path / "other.db")
    other.session("s2")
    with open_store(writer.path, watched=True) as store:
        assert store.is_newest()
        other.done().replace(writer.path)
        assert not store.is_newest()
    writer.connection.close()


def test_a_log_that_is_written_all_the_time_is_read_in_one_state(tmp_path: Path) -> None:
    path = tmp_path / "reflexio.db"
    program = "import sys; sys.path.insert(0, sys.argv[1]); from reflexio_at_work import work; work(sys.argv[2])"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(Path(__file__).parent), str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        for _ in range(3):
            found = report(path, now=NOW, processes=2)
            health = found.to_dict()["further"]["health"]
            assert health["published"] == health["evaluated"] == found.inputs["session"] == found.results >= 300
            assert not found.left_out.counts
        writer.kill()


def test_a_process_that_dies_leaves_its_part_to_be_read_here(newest_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Processes):
        def start(self, part: Part, place: Hashable) -> int:
            number = super().start(part, place)
            os.kill(self._children[number].pid, signal.SIGKILL)
            return number

    monkeypatch.setattr(parts, "Processes", Killed)
    for asked in ({}, {"compat": "reflexio"}):
        assert plain(newest_log, processes=2, **asked) == plain(newest_log, processes=1, **asked)


def test_whatever_a_process_runs_out_of_its_part_is_read_here(
    newest_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OutOf(InThisProcess):
        def answer(self, number: int) -> Any:
            raise MemoryError

    whole = plain(newest_log, processes=1, compat="reflexio")
    monkeypatch.setattr(parts, "Processes", OutOf)
    assert plain(newest_log, processes=2, compat="reflexio") == whole


@pytest.mark.parametrize("row", [{"at": "no time at all"}, {"tags": "[no list"}])
def test_a_row_of_a_session_id_of_two_users_far_apart_is_counted_once(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    for number in range(300):
        name = "shared" if number in (0, 299) else f"s{number}"
        writer.session(name, f"u{number}", BEGIN + timedelta(minutes=number))
    writer.outcome("shared", "u0", **row)
    path = writer.done()
    whole = plain(path, processes=1)
    assert sum(each["count"] for each in whole["left_out"]["by_the_reader"].values()) == 1
    monkeypatch.setattr(parts, "Processes", InThisProcess)
    assert plain(path, processes=2) == whole


def test_texts_that_are_no_utf_8_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    for number in range(300):
        writer.session(f"s{number}", "u1", BEGIN + timedelta(minutes=number * 7 % 300))
    writer.connection.execute("UPDATE requests SET source = CAST('of ' || rowid || x'ff' AS TEXT) WHERE rowid % 5 = 0")
    path = writer.done()
    monkeypatch.setattr(parts, "Processes", InThisProcess)
    for processes in (1, 2, 5):
        assert plain(path, processes=processes)["left_out"]["repaired"] == {"texts that are no UTF-8": 60}


def test_many_reasons_of_one_part_are_put_together_as_in_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(tmp_path / "reflexio.db", "0.2.25")
    for number in range(80):
        tag = json.dumps({"reflexio_retrieval_enabled": f"maybe {number % 33}"})
        writer.session(f"s{number}", f"u{number}", BEGIN + timedelta(hours=number), metadata=tag)
    path = writer.done()
    whole = plain(path, processes=1, arms="tag")
    monkeypatch.setattr(parts, "Processes", InThisProcess)
    assert plain(path, processes=2, arms="tag") == whole


def test_a_log_that_cannot_be_read_is_told_by_the_process_that_asked(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    for number in range(20):
        writer.session(f"s{number}", f"u{number}", BEGIN + timedelta(hours=number))
    writer.outcome("s15", "u15", "no time at all")
    path = writer.done()
    with pytest.raises(RecordError, match="unreadable time"):
        report(path, now=NOW, strict=True, processes=2)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(LogError, match="cut off"):
        report(path, now=NOW, processes=2)


@dataclass
class OfLambda:
    """Arms that cannot be sent."""

    read_one: Any
    name: str = "mine"
    labels: tuple[str, ...] = ("treatment", "control")
    unit: str = "session"
    randomised: bool = False

    def read(self, record: SessionRecord) -> ArmReading:
        return ArmReading(self.read_one(record))


ARMS = OfLambda(lambda record: "treatment" if record.user < "u05" else "control")


@pytest.mark.parametrize("asked", [{"arms": ARMS}, {"by": lambda about: str(about.user)[:1]}], ids=["arms", "key"])
def test_what_cannot_be_sent(asked: dict[str, Any], newest_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plain(newest_log, processes=1, **asked)
    monkeypatch.setattr(parts, "LARGE", 0)
    monkeypatch.setattr(parts, "_cores", lambda: 2)
    assert plain(newest_log, **asked) == whole
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        report(newest_log, now=NOW, processes=2, **asked)


def test_ids_of_two_sets() -> None:
    one, other = Ids(b"key"), Ids(b"key")
    names = [0, 5, 70_000, -1, 1 << 40, "5", "05", None, 2.5, b"5", "\ud800"]
    assert all(one.add(name) for name in names[::2])
    assert all(other.add(name) for name in names[1::2])
    assert one.has_none_of(other)
    assert other.has_none_of(one)
    one.merge(other)
    assert len(one) == len(names)
    assert not any(one.add(name) for name in names)
    for name in names:
        again = Ids(b"key")
        assert again.add(name)
        assert not one.has_none_of(again)
