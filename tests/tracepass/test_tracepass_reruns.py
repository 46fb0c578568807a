"""What happens around a run on the command line: it asks before it reads again, looks live, and goes on when killed."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from reflex_service import KEY, FakeReflex
from tracepass_command import begun, conversation, parsed, ran, write_lines

from evalr.tracepass import Account, JudgeQuestion, open_store, save_question

sys.path.append(str(Path(__file__).parent.parent / "dspy_judges"))

from model_server import Asked, ModelServer, running

ME = Account("local")
NEGATIVE = ["--signal", "heuristic-negative-tone"]
RUDE = ["run", "traces.jsonl", "--signal", "rude", "--yes"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [conversation(f"c{n}", f"{'bad' if n % 3 == 0 else 'good'} {n}", user=f"u{n}") for n in range(6)]
    write_lines(tmp_path / "traces.jsonl", *lines)
    return tmp_path


# The dialog -----------------------------------------------------------------------------------------------------------


@contextmanager
def at_a_terminal(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """The command whose stdin is a terminal, and what types there."""
    ours, theirs = pty.openpty()
    with begun(folder, *arguments, stdin=theirs) as child:
        os.close(theirs)
        try:
            yield child, lambda text: os.write(ours, text.encode())
        finally:
            os.close(ours)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize(
    ("typed", "code", "read"),
    [("c\n", 130, None), ("\x04", 130, None), ("n\n", 1, 2), ("x\nall\n", 1, 8)],
)
def test_B9_a_terminal_is_asked_whether_to_read_again(folder: Path, typed: str, code: int, read: int | None) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    write_lines(folder / "traces.jsonl", conversation("new", "good"), conversation("newer", "good"))
    with at_a_terminal(folder, "run", "traces.jsonl", *NEGATIVE) as (child, write):
        write(typed)
        out, err = child.communicate(timeout=60)
    assert child.returncode == code, err
    assert "Rerun existing Reflex results?\n6 of 8 selected conversations already have labels.\n" in err
    assert "[C]ancel, run only [n]ew, rerun [a]ll: " in err
    found = parsed(folder, "passes")["passes"]
    if read is None:
        assert (len(found), out) == (1, "")
    else:
        assert (len(found), found[0]["total_inputs"]) == (2, read)


def test_B9_without_a_terminal_nobody_is_asked_and_it_is_said(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE)
    with begun(folder, "run", "traces.jsonl", *NEGATIVE) as child:
        _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "6 of 6 selected conversations already have labels, and are read again: --only-new spares them" in err
    for option, read in (("--only-new", 0), ("--rerun-all", 6)):
        code, _, err = ran(folder, "run", "traces.jsonl", *NEGATIVE, option)
        assert (code, "already" in err) == (1, False)
        assert parsed(folder, "passes")["passes"][0]["total_inputs"] == read


def test_B9_what_nobody_has_read_is_not_asked_about(folder: Path) -> None:
    ran(folder, "run", "traces.jsonl", *NEGATIVE, "--convo", "c1")
    for options in ([*NEGATIVE, "--convo", "c2"], ["--signal", "heuristic-no-answer", "--convo", "c1"]):
        _, _, err = ran(folder, "run", "traces.jsonl", *options)
        assert "already" not in err


# The live preview -----------------------------------------------------------------------------------------------------


def test_B6_a_live_preview_asks_at_once_and_says_its_caps(folder: Path, fake: FakeReflex) -> None:
    write_lines(folder / "traces.jsonl", *(conversation(f"more{n}", f"good more {n}") for n in range(24)))
    code, out, err = ran(folder, *RUDE, "--by", "live")
    assert code == 0
    assert "Live preview: at most 25 conversations, 200 inputs of each transform, 1,000 predictions" in err
    assert out.splitlines()[:3] == ["Pass complete", "2 conversations flagged", "2 selected labels"]
    assert "5 inputs beyond what a live preview sends: --by batch reads all" in out.splitlines()
    assert (fake.requests["predict"], fake.requests["upload"]) == (25, 0)
    (found,) = parsed(folder, "passes")["passes"]
    assert (found["total_inputs"], found["completed_inputs"]) == (25, 25)
    assert sorted(ran(folder, "results")[1].splitlines()) == ["c0  [bad 90%]", "c3  [bad 90%]"]


def test_B6_a_text_that_the_service_refuses_fails_alone(folder: Path, fake: FakeReflex) -> None:
    fake.fail_row = lambda text: text == "good 1"
    code, out, _ = ran(folder, *RUDE, "--by", "live")
    assert (code, out.splitlines()[:3]) == (0, ["Pass complete with failed rows", "5 completed", "1 failed"])
    fake.fail_row = lambda text: False
    assert ran(folder, "retry", "latest", "traces.jsonl", "--by", "live")[1].startswith("Pass complete\n")
    assert fake.requests["predict"] == 7


def test_B6_a_refused_key_says_how_the_pass_goes_on(
    folder: Path, fake: FakeReflex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MORPH_API_KEY", "sk-wrong-but-secret")
    for by in ("live", "batch"):
        code, out, err = ran(folder, *RUDE, "--by", by)
        assert (code, out) == (2, "")
        assert "the service refuses the key (status 401): set MORPH_API_KEY" in err
        assert "sk-wrong-but-secret" not in err
        found = parsed(folder, "passes")["passes"][0]
        assert found["status"] == "failed"
        assert f"evalr tracepass resume {found['id']} traces.jsonl --by {by}" in err
    monkeypatch.setenv("MORPH_API_KEY", KEY)
    resume = re.findall(r"evalr tracepass (resume .*)", err)[-1].split()
    assert ran(folder, *resume)[1].splitlines()[:2] == ["Pass complete", "2 conversations flagged"]


# Killed ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["before upload", "after upload", "after results"])
def test_B5_a_killed_command_is_resumed_and_pays_once(folder: Path, fake: FakeReflex, stage: str) -> None:
    children: list[subprocess.Popen[str]] = []

    def kill(what: str) -> None:
        if what == stage:
            children[0].send_signal(signal.SIGKILL)
            children[0].wait(timeout=20)

    fake.watch = kill
    with begun(folder, *RUDE, "--by", "batch") as child:
        children.append(child)
        child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    fake.watch = None
    (found,) = parsed(folder, "passes")["passes"]
    assert found["status"] == "running"
    # Nobody has to say that it was a service's: none of its classifiers is here.
    lines = ran(folder, "resume", "latest", "traces.jsonl")[1].splitlines()
    assert lines[:2] == ["Pass complete", "2 conversations flagged"]
    assert set(fake.billed.values()) == {1}
    assert len(fake.billed) == 6
    assert set(fake.uploads) == {f"trace-pass:{found['id']}"}
    assert len(read_results(folder)) == 6


def test_B5_a_killed_judge_asks_no_more_than_a_batch_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dspy")
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "cache"))
    write_lines(
        folder / "many.jsonl", *(conversation(f"m{n}", f"{'bad' if n % 50 == 0 else 'good'}") for n in range(150))
    )
    save_question(folder / "mood.json", JudgeQuestion(labels=("bad", "good"), question="Is it bad?", lm="openai/m"))
    ran(folder, "signals", "save", "mood", "--fires-on", "bad")
    children: list[subprocess.Popen[str]] = []

    def answer(asked: Asked, n: int) -> str:
        if n == 120:
            children[0].send_signal(signal.SIGKILL)
        return json.dumps({"label": "bad" if "bad" in asked.data["request"] else "good"})

    with running(ModelServer(answer)) as server:
        judge = ["--reflex", "mood=mood.json", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        with begun(folder, "run", "many.jsonl", "--signal", "mood", *judge, "--yes") as child:
            children.append(child)
            child.communicate(timeout=120)
        assert child.returncode == -signal.SIGKILL
        # Its texts are sent to no service because nobody named the judge.
        monkeypatch.setenv("MORPH_API_KEY", KEY)
        code, _, err = ran(folder, "resume", "latest", "many.jsonl")
        assert (code, "name each classifier with --reflex NAME=FILE" in err) == (2, True)
        lines = ran(folder, "resume", "latest", "many.jsonl", *judge)[1].splitlines()
        assert lines[:2] == ["Pass complete", "3 conversations flagged"]
        assert 150 < len(server.asked) <= 150 + 50
    assert len(read_results(folder)) == 150


def read_results(folder: Path) -> list[Any]:
    store = open_store(folder / "tracepass.db")
    found = list(store.results(ME, passes="latest", history=True))
    store.close()
    return found
