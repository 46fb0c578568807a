"""The command as people and scripts use it: what it prints, where, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from evalr.cli import main
from evalr.cli.sample import sample_lines

NOW = "2026-11-30T09:00Z"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("logs") / "sample.jsonl"
    path.write_text("".join(f"{line}\n" for line in sample_lines(7, people=40)), encoding="utf-8")
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


# Report


def test_a_report(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "report", log, "--now", NOW)
    assert (code, err) == (0, "")
    assert "came back within 1h" in out
    assert "\x1b" not in out


def test_a_window_is_a_setting_like_any_other(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["report", log, "--now", NOW, "--json"]
    as_option, as_setting = run(capsys, *asked, "--window", "30m"), run(capsys, *asked, "--set", "window=30m")
    assert as_setting == as_option
    code, _, err = run(capsys, *asked, "--window", "30m", "--set", "window=1h")
    assert code == 2
    assert "--window and --set window=" in err


def test_options_reach_the_report(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--now", NOW, "--window", "30m", "--since", "2026-11-01", "--until", "2026-11-20T00:00+01:00"]
    options += ["--by", "agent", "--cluster", "user", "--level", "0.9", "--measure", "waits", "--log", "jsonl"]
    code, out, _ = run(capsys, "report", log, *options, "--json")
    found = json.loads(out)
    assert code == 0
    assert [section["measure"] for section in found["sections"]] == ["waits"]
    assert found["sections"][0]["settings"] == {"window": "30m"}
    asked = ("now", "since", "until", "by", "cluster", "level")
    assert [found[name] for name in asked] == [
        "2026-11-30T09:00:00Z",
        "2026-11-01T00:00:00Z",
        "2026-11-19T23:00:00Z",
        "agent",
        "user",
        0.9,
    ]
    row = found["sections"][0]["rows"][0]
    assert [group["group"] for group in row["groups"]] == ["atlas", "birch"]


def test_other_settings(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "report", log, "--now", NOW, "--set", "threshold=0.9", "--measure", "rewrites", "--json")
    assert json.loads(out)["sections"][0]["settings"]["threshold"] == 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "no-such-file"], "no-such-file: there is no such file"),
        (["report", "LOG", "--window", "5x"], "'5x' is not a length of time"),
        (["report", "LOG", "--now", "2026-01-01T00:00"], "has no time zone"),
        (["report", "LOG", "--measure", "nope"], "no installed measure is named 'nope'"),
        (["report", "LOG", "--level", "95"], "level must lie between 0 and 1"),
        (["report", "LOG", "--set", "nope=1"], "--set nope=1"),
        (["report", "LOG", "--log", "nope"], "no reader is named 'nope'"),
        (["report", "LOG", "--strict"], "line 41"),
        (["gate", "drop_off", "LOG"], "is not a condition"),
        (["gate", "dropoff<0.2", "LOG"], "no summary is named 'dropoff'; there are: "),
        (["gate", "drop_off<20", "LOG"], "write the bar from 0 to 1"),
        (["gate", "waits_median<300", "LOG"], "is not a length of time"),
        (["gate", "drop_off<0.2", "LOG", "--by", "agent"], "leave --by out"),
        (["gate", "dropoff<0.2", "LOG"], "did you mean 'drop_off'?"),
        (["gate", "drop_off<0.2"], "a gate needs a LOG after 'drop_off<0.2'"),
        (["gate", "LOG"], "a gate needs a CONDITION before "),
        (["report", "LOG", "--measure", "waits_median"], "it is a summary of the measure 'waits'"),
        (["schema", "nope"], "no type of line and no measure is named 'nope'"),
    ],
)
def test_what_cannot_be_done_is_one_line_on_stderr(
    arguments: list[str], message: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *(log if each == "LOG" else each for each in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("evalr: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["report"], ["nope"], ["report", "a", "b"], ["report", "--nope", "x"]])
def test_misuse_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert "Usage: evalr" in out + err
    assert "Traceback" not in err


def test_a_hostile_name_is_harmless_in_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "report", "a\x1b[31m\u202eb")
    assert "\x1b" not in err
    assert "\u202e" not in err


def test_a_file_that_no_reader_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("hello\n", encoding="utf-8")
    code, _, err = run(capsys, "report", str(tmp_path / "notes.txt"))
    assert code == 2
    assert "--log KIND" in err


def test_a_directory_that_no_reader_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "report", str(tmp_path))
    assert code == 2
    assert "is a directory, which needs a reader for directories of its kind" in err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_log_of_which_nothing_could_be_counted(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    bad = '{"type": "session", "id": "a", "activities": [{"at": "2026-11-02T10:00:00", "role": "agent"}]}\n'
    good = bad.replace("10:00:00", "10:00:00Z")
    path.write_text(2 * bad, encoding="utf-8")
    code, out, err = run(capsys, "report", str(path), "--now", NOW, *options)
    assert code == 2
    assert "naive time" in out
    assert err == f"evalr: {path}: nothing could be counted, all of its 2 records left out\n"
    path.write_text(bad.replace('"id": "a", ', ""), encoding="utf-8")
    lacking = run(capsys, "report", str(path), "--now", NOW, *options)[2]
    assert lacking.endswith("all of its 1 record left out; `evalr schema` says what a line of JSON has to have\n")
    path.write_text(bad + good, encoding="utf-8")
    assert run(capsys, "report", str(path), "--now", NOW, *options)[0] == 0
    # Nothing in a period is an answer, and no fault of the log.
    assert run(capsys, "report", str(path), "--now", NOW, "--since", "2026-11-20", *options)[0] == 0


# Gates


@pytest.mark.parametrize(
    ("conditions", "code", "verdicts"),
    [
        (["drop_off<0.9"], 0, ["passed"]),
        (["drop_off<1%"], 1, ["not cleared"]),
        (["waits_median<3h", "waits>10%"], 0, ["passed", "passed"]),
        (["drop_off<0.9", "waits>99%"], 1, ["passed", "not cleared"]),
        (["outcome>0.1"], 2, ["undefined"]),
        (["outcome>0.1", "waits>99%", "waits>1%"], 2, ["undefined", "not cleared", "passed"]),
    ],
)
def test_a_gate(
    conditions: list[str], code: int, verdicts: list[str], log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(capsys, "gate", *conditions, log, "--now", NOW)
    assert (found, err) == (code, "")
    lines = out.splitlines()
    assert [line[: len(verdict)] for line, verdict in zip(lines, verdicts, strict=True)] == verdicts


def test_a_gate_says_the_interval_that_the_report_prints(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, shown, _ = run(capsys, "report", log, "--now", NOW, "--level", "0.8")
    _, ruled, _ = run(capsys, "gate", "drop_off<0.9", log, "--now", NOW, "--level", "0.8")
    interval = ruled[ruled.index("[") : ruled.index("]")]
    (line,) = (line for line in shown.splitlines() if line.startswith("  drop-off after"))
    assert interval in line


# The others


def test_measures_lists_every_summary_that_a_report_has(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "measures")
    assert code == 0
    for text in (
        "waits_median",
        "drop_off_decided",
        "completion_quality",
        "window=14d, threshold=0.2",
        "drop_off@1:3600s",
        "verdict   completed: bool; quality: integer from 1 to 5; reason: text, optional",
        "outcome: dropped | continued | pending",
    ):
        assert text in out
    assert "verdicts in the log, by a judge or by people, of transcripts" in out
    assert "histories, for the drafts in them" in out
    assert "jsonl" in out[out.index("\nreaders") :]


def test_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "schema")
    assert set(json.loads(out)) == {"session", "history", "exchange", "learning", "transcript", "result"}
    _, out, _ = run(capsys, "schema", "session")
    assert "activities" in json.loads(out)["properties"]


def test_the_schema_of_a_measure_is_that_of_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schema", "completion")
    assert code == 0
    assert json.loads(out)["required"] == ["completed", "quality"]


def test_a_line_and_a_value_of_one_name_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    _, line, _ = run(capsys, "schema", "learning")
    _, value, _ = run(capsys, "schema", "learning", "--value")
    assert {"response", "learning", "learning_kind"} <= set(json.loads(line)["properties"])
    assert {"relevant", "impact", "diagnosis"} <= set(json.loads(value)["properties"])
    assert run(capsys, "schema", "session", "--value")[0] == 2


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"evalr {metadata.version('evalr')}\n", "")
    for command in ([], ["report"], ["gate"]):
        code, out, _ = run(capsys, *command, "--help")
        assert code == 0
        assert "1 a gate was not cleared" in " ".join(out.split())


def test_a_demo_prints_the_truth_beside_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.process_time()
    code, out, err = run(capsys, "demo")
    assert (code, err) == (0, "")
    assert time.process_time() - began < 30
    assert out.startswith("sample.jsonl")
    assert "intervals hold the truth" in out
    assert "evalr report LOG" in out


def test_a_demo_keeps_its_log_and_writes_over_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.jsonl"
    assert run(capsys, "demo", "--write", str(path), "--seed", "3")[0] == 0
    kept = path.read_bytes()
    code, _, err = run(capsys, "demo", "--write", str(path))
    assert (code, path.read_bytes()) == (2, kept)
    assert "already there" in err
    assert run(capsys, "demo", "--write", str(tmp_path / "no" / "folder"))[0] == 2


# As a process


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "evalr.cli", *arguments]
    return subprocess.Popen(command, text=True, env=environment, **options)  # type: ignore[call-overload,no-any-return]


def test_a_reader_that_goes_away_is_no_error(log: str) -> None:
    process = start("report", log, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
@pytest.mark.parametrize("what", ["report", "gate", "help"])
def test_a_disk_that_is_full_is_one_line_and_no_gate_that_was_not_cleared(log: str, what: str) -> None:
    arguments = {"report": ["report", log], "gate": ["gate", "drop_off<1%", log], "help": ["--help"]}[what]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = start(*arguments, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (2, "evalr: the output cannot be written: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of another kind")
def test_streams_that_are_closed_change_no_exit_code(log: str) -> None:
    command = [sys.executable, "-m", "evalr.cli"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for arguments, code in ((["report", log], 0), (["gate", "drop_off<0.1%", log], 1), (["report", "missing"], 2)):
        shell = ["sh", "-c", 'exec "$0" "$@" >&- 2>&-', *command, *arguments]
        assert subprocess.run(shell, env=environment, check=False).returncode == code


def test_a_terminal_that_cannot_show_a_character_shows_its_escape(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    process = start("report", log, "--now", NOW, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "\\xb7" in out


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_an_interrupt_ends_quietly(tmp_path: Path) -> None:
    fifo = tmp_path / "endless"
    os.mkfifo(fifo)
    process = start("report", str(fifo), "--log", "jsonl", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with fifo.open("w", encoding="utf-8"):  # opens when the command reads, which then waits for a line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


def test_nothing_heavy_is_imported_for_help() -> None:
    probe = (
        "import sys; from evalr.cli import main; main(['--help']); print(sorted(m for m in sys.modules if m in HEAVY))"
    )
    heavy = "{'pydantic', 'numpy', 'scipy', 'rich', 'pandas', 'anyio'}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", probe.replace("HEAVY", heavy)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "['pydantic']"  # `import evalr` itself needs it


def test_several_processes_say_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{line}\n" for line in sample_lines(7)), encoding="utf-8")
    shown = [run(capsys, "report", str(path), "--now", NOW, "--processes", count) for count in ("1", "2")]
    assert shown[0] == shown[1]
    assert shown[0][0] == 0
    assert run(capsys, "report", str(path), "--processes", "0")[0] == 2
