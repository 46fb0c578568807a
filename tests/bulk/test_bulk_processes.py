"""Several processes find what one finds; where something goes wrong, it is said, and all of them end."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import evalr
from evalr import bulk
from evalr.bulk.spans import lines_before, spans_of
from evalr.errors import EvalrError, InputError, LogError, RecordError
from evalr.measures import installed_measures

NOW = datetime(2026, 9, 10, tzinfo=UTC)


def session(number: int, user: int = 0, **more: Any) -> str:
    begin = datetime(2026, 9, 1, tzinfo=UTC) + timedelta(minutes=number)
    moments = [begin + timedelta(minutes=17 * step * (1 + number % 5)) for step in range(4)]
    roles = ["person", "agent", "agent" if number % 3 else "person", "person" if number % 2 else "agent"]
    kinds = ["message", "proposal" if number % 7 == 0 else "message", "message", "closed" if number % 11 == 0 else "x"]
    activities = [
        {"at": moment.isoformat(), "role": role, "kind": kind}
        for moment, role, kind in zip(moments, roles, kinds, strict=True)
    ]
    return json.dumps({"id": f"s{number}", "user": f"u{user}", "activities": activities, **more})


def written(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with something of everything, and duplicates across any cut."""
    lines = [session(number, number % 9) for number in range(300)]
    lines[40], lines[250] = "not json", '{"id": "x", "activities": [{"at": "2026-09-01T09:00:00", "role": "agent"}]}'
    lines[120] = session(120, 3, tool="editor")
    lines += [lines[3], session(77, 77 % 9), session(500, 1, weight=2.5), lines[299]]
    lines.append(
        '{"evaluator": "judge", "measure": "completion", "value": {"completed": true}, "about": {"kind": "x"}}'
    )
    return written(tmp_path / "log.jsonl", lines)


@pytest.mark.parametrize("processes", [2, 3])
def test_they_find_what_one_finds(log: Path, processes: int) -> None:
    one = bulk.report(log, now=NOW)
    several = bulk.report(log, now=NOW, processes=processes)
    assert several.to_dict() == one.to_dict() == evalr.report(log, now=NOW).to_dict()
    assert several.left_out.words() == one.left_out.words()
    assert one.left_out.counts["duplicate id"] == 3


def test_their_tallies_are_equal_and_can_be_kept(log: Path, tmp_path: Path) -> None:
    one, two = bulk.tallies(log, now=NOW), bulk.tallies(log, now=NOW, processes=2)
    assert dict(two) == dict(one)
    assert (two.records, two.left_out) == (one.records, one.left_out)
    assert dict(pickle.loads(pickle.dumps(two))) == dict(one)


def test_days_add_up_to_the_whole(tmp_path: Path) -> None:
    lines = [session(number, number % 9) for number in range(60)]
    days = [bulk.tallies(written(tmp_path / f"{day}.jsonl", lines[day::3]), now=NOW) for day in range(3)]
    whole = bulk.tallies(written(tmp_path / "all.jsonl", lines), now=NOW)
    assert dict(sum(days)) == dict(whole)
    assert sum(days).records == whole.records == 60
    waits = installed_measures().loaded["waits"]
    for summary in waits.summaries(**waits.settings):
        assert summary.estimate(sum(days)[summary.name]) == bulk.report(tmp_path / "all.jsonl", now=NOW)[summary.name]


def test_tallies_of_different_measures_do_not_add(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", [session(1)])
    one, other = (bulk.tallies(path, measures=[name], now=NOW) for name in ("waits", "drop_off"))
    with pytest.raises(InputError, match="different summaries"):
        one + other


# ---------------------------------------------------------------------------------------------------------------------
# Where a file is cut
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1}\n' * 7,
        b'{"a": 1}\n' * 7 + b'{"no": "end"}',
        b"\xef\xbb\xbf" + b'{"a": 1}\r\n' * 5,
        b'{"long": "' + b"x" * 3000 + b'"}\n{"a": 1}\n',
        b'{"a": 1}\n{"long": "' + b"x" * 3000 + b'"}',
        b"\n\n\n{}\n\n\n",
        b"{}",
    ],
)
@pytest.mark.parametrize("processes", [2, 3, 5, 20])
def test_parts_are_whole_lines(tmp_path: Path, text: bytes, processes: int) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(text)
    spans = spans_of(path, processes)
    assert spans[0].begin == 0
    assert spans[-1].end == len(text)
    assert all(one.end == other.begin for one, other in pairwise(spans))
    assert all(span.begin < span.end for span in spans)
    assert len(spans) <= processes
    assert all(text[span.end - 1 : span.end] == b"\n" for span in spans[:-1])
    assert [lines_before(path, span.begin) for span in spans] == [text[: span.begin].count(b"\n") for span in spans]


def test_each_part_is_a_little_larger_than_the_one_before_it(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", [session(number) for number in range(2000)])
    sizes = [span.end - span.begin for span in spans_of(path, 4)]
    assert sizes == sorted(sizes)
    assert sizes[-1] < 1.2 * sizes[0]


def test_a_compressed_log_is_read_by_one(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    monkeypatch.setattr(subprocess, "Popen", None)
    found, plain = (bulk.report(path, now=NOW, processes=count).to_dict() for path, count in ((packed, 2), (log, 1)))
    assert {**found, "log": 0} == {**plain, "log": 0}


def test_what_is_no_log_is_told_as_by_one(tmp_path: Path) -> None:
    empty, prose = tmp_path / "empty.jsonl", tmp_path / "prose.jsonl"
    empty.write_text("\n\n\n")
    prose.write_text("Dear reader,\nthis is no log.\n" * 3)
    for path in (empty, prose):
        with pytest.raises(LogError) as one:
            bulk.report(path, kind="jsonl")
        with pytest.raises(LogError) as two:
            bulk.report(path, kind="jsonl", processes=2)
        assert str(two.value) == str(one.value)


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [None, 5])
def test_strict_stops_at_the_first_record_of_the_file(tmp_path: Path, again: int | None) -> None:
    lines = [session(number) for number in range(200)]
    lines[150], lines[180] = "not json", "nor this"
    if again is not None:
        lines[120] = lines[again]  # which only one who knows the first part can tell
    path = written(tmp_path / "log.jsonl", lines)
    with pytest.raises(RecordError) as two:
        bulk.report(path, now=NOW, strict=True, processes=2)
    with pytest.raises(RecordError) as one:
        evalr.report(path, now=NOW, strict=True)
    assert str(two.value) == str(one.value)
    assert f"line {151 if again is None else 121}" in str(two.value)


MODULE = """
import sys

from evalr import FunctionEvaluator, Rate
from evalr.measures import DropOff, Measure, Session


class Refused(Exception):
    def __init__(self, one, other):
        super().__init__(one)


def read(session, now):
    print("what a measure prints")
    return DropOff(outcome="continued")


def summaries():
    if "evalr.bulk.worker" in sys.modules and PROCESS_FAILS:
        raise Refused("odd", "settings")
    return (Rate("mine", of=DropOff, hits=lambda v: 0),)


def evaluator(*, now):
    if DIES and sys.argv == ["-c"]:
        __import__("os")._exit(7)
    return FunctionEvaluator("mine", "1", read, Session, DropOff, now=now, inline=True)


PROCESS_FAILS = DIES = False
measure = Measure(
    name="mine", question="?", input=Session, verdict=DropOff, summaries=summaries, evaluator=evaluator
)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of somebody's own, with a measure that is not installed."""
    folder = tmp_path / "modules"
    folder.mkdir()
    path = folder / "somebodys_measures.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    found = __import__("somebodys_measures")
    yield found, path
    del sys.modules["somebodys_measures"]


def test_a_measure_of_a_module_is_found_there(log: Path, module: Any, capfd: pytest.CaptureFixture[str]) -> None:
    found = bulk.report(log, now=NOW, measures=[module[0].measure], processes=2)
    told = capfd.readouterr()
    assert "what a measure prints" in told.err
    assert not told.out
    assert found.to_dict() == evalr.report(log, now=NOW, measures=[module[0].measure]).to_dict()


def ended(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started from now on."""
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    return started


def test_an_error_comes_back_clear_and_the_others_end(log: Path, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found, path = module
    path.write_text(MODULE.replace("PROCESS_FAILS = DIES = False", "PROCESS_FAILS, DIES = True, False"))
    started = ended(monkeypatch)
    with pytest.raises(EvalrError, match="Refused: odd") as raised:
        bulk.report(log, now=NOW, measures=[found.measure], processes=3)
    assert "somebodys_measures.py" in "".join(raised.value.__notes__)
    assert len(started) == 3
    assert all(child.returncode is not None for child in started)


def test_a_process_that_dies_is_told_of(log: Path, module: Any) -> None:
    found, path = module
    path.write_text(MODULE.replace("PROCESS_FAILS = DIES = False", "PROCESS_FAILS, DIES = False, True"))
    with pytest.raises(EvalrError, match="ended with code 7"):
        bulk.report(log, now=NOW, measures=[found.measure], processes=2)


def test_an_interruption_ends_them_all(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = ended(monkeypatch)

    def interrupted(records: int, share: float | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bulk.report(log, now=NOW, processes=2, progress=interrupted)
    assert len(started) == 2
    assert all(child.returncode is not None for child in started)


def test_progress_is_told_of_the_whole(log: Path) -> None:
    told: list[tuple[int, float | None]] = []
    found = bulk.report(log, now=NOW, processes=2, progress=lambda records, share: told.append((records, share)))
    assert told[-1] == (found.records, 1.0)


def test_what_cannot_be_sent_is_refused_before_anything_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = evalr.measures.Measure(**vars(installed_measures().loaded["drop_off"]))
    monkeypatch.setattr(subprocess, "Popen", None)
    for asked in ({"by": lambda about: about.user}, {"measures": [nameless]}):
        with pytest.raises(InputError, match="cannot be sent to other processes"):
            bulk.report(log, now=NOW, processes=2, **asked)  # type: ignore[arg-type]


def test_where_no_python_can_be_started_it_says_so(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(InputError, match="use processes=1"):
        bulk.report(log, now=NOW, processes=2)
    assert bulk.report(log, now=NOW).records


@pytest.mark.parametrize("processes", [0, -1, True, 2.0, "2"])
def test_processes_are_a_whole_number(log: Path, processes: Any) -> None:
    with pytest.raises(InputError, match="whole number from 1"):
        bulk.report(log, processes=processes)


@pytest.mark.parametrize("options", [[], ["-W", "error"]])
def test_a_program_needs_no_guard(log: Path, tmp_path: Path, options: list[str]) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("pickle", "signal"):  # nobody asked for what lies where a program is run
        (folder / f"{name}.py").write_text("raise SystemExit('a module of the working directory')")
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            from evalr import bulk
            print(bulk.report({str(log)!r}, processes=2).records)
            """
        )
    )
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, *options, program],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "305\n"
    assert not ran.stderr


ASLEEP = """
import sys, time

class Asleep:
    answers = 2
    def read(self, say, file):
        say("asleep" + sys.stdin.read())  # who asks for input meets its end
        time.sleep(60)
"""
WAITING = """
from asleep import Asleep
from evalr.bulk.processes import Processes

with Processes() as processes:
    processes.start(Asleep(), 0)
    print(processes.answer(0), flush=True)
    processes.answer(0)
"""


def test_who_is_killed_leaves_no_process_at_work(tmp_path: Path) -> None:
    (tmp_path / "asleep.py").write_text(ASLEEP)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", WAITING],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"asleep\n"
        program.kill()
        _, told = program.communicate(timeout=20)  # until nobody has them open any more
    assert not told


def test_all_of_one_pass_hash_alike_and_no_two_passes_do(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[str] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            seeds.append(more["env"]["PYTHONHASHSEED"])
            super().__init__(*given, **more)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    for _ in range(2):
        bulk.tallies(log, now=NOW, processes=2)
    assert seeds[0] == seeds[1] != seeds[-1] == seeds[-2]


# ---------------------------------------------------------------------------------------------------------------------
# Names that fill a list, which depends on what came before
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [90, 150, 250])
def test_names_beyond_two_hundred_are_put_together_as_by_one(tmp_path: Path, fields: int) -> None:
    first = [session(number, **{f"field{number}": 1}) for number in range(fields)]
    second = [session(1000 + number, **{f"other{number}": 1, f"field{number}": 1}) for number in range(fields)]
    odd = [json.dumps({"id": "x", "activities": [], "type": f"type{number}"}) for number in range(fields)]
    path = written(tmp_path / "log.jsonl", [*first, *odd[::2], *second, *odd])
    one = bulk.report(path, now=NOW)
    two = bulk.report(path, now=NOW, processes=2)
    assert two.to_dict() == one.to_dict() == evalr.report(path, now=NOW).to_dict()
    assert ("others" in one.unknown_fields) is (fields > 100)
