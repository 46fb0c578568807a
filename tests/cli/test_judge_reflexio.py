"""`evalr judge reflexio.db`: by its own settings, with a scripted model behind real HTTP."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from evalr.cli import main

sys.path += [str(Path(__file__).parent.parent / name) for name in ("dspy_judges", "reflexio_logs")]

from model_server import Answer, Asked, ModelServer, running
from reflexio_writing import HERE, stored_log

LM = "openai/gpt-4o-mini"
DEFINITION = "The user's task is done."


def family_of(asked: Asked) -> str:
    names = set(asked.data)
    return "shadow" if "first" in names else "learning" if "learning" in names else "outcome"


def judged_by(asked: Asked, n: int) -> str:
    return {
        "outcome": '{"success": true, "corrections": 0, "escalated": false}',
        "shadow": '{"better": "first", "significant": false, "reason": "fuller"}',
        "learning": '{"relevant": true, "relevance_reason": "r", "impact": "positive", "impact_reason": "i"}',
    }[family_of(asked)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running(ModelServer(judged_by)) as serving:
        yield serving


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    shutil.copyfile(HERE / "config_self-host-org.json", folder / "config_self-host-org.json")
    return stored_log(folder, "release_0_2_32")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "cache"))


def addressed(server: ModelServer | None, arguments: Sequence[str]) -> list[str]:
    base = [] if server is None else ["--api-base", f"http://127.0.0.1:{server.port}/v1"]
    return ["judge", *arguments, *base]


def ran(server: ModelServer | None, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The command in this process: most tests need none of their own."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = main(addressed(server, arguments))
    return code, out.getvalue(), err.getvalue()


def ran_alone(server: ModelServer, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The command in a process of its own."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "evalr.cli", *addressed(server, arguments)]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | path, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


def asked_by_family(server: ModelServer) -> Counter[str]:
    return Counter(family_of(each) for each in server.asked)


def test_one_session_is_graded_now_and_kept_for_a_day(server: ModelServer, kept: Path, tmp_path: Path) -> None:
    before = hashlib.sha256(kept.read_bytes()).hexdigest()
    ask = [str(kept), "--lm", LM, "--session", "s02", "--now", "2026-12-01T09:00Z", "--yes"]
    code, out, err = ran_alone(server, tmp_path, *ask)
    assert (code, err) == (0, "")
    assert "outcome: graded, success=True" in out
    asked = asked_by_family(server)
    assert asked["outcome"] == 1
    assert asked["shadow"] >= 1
    assert any(DEFINITION in each.system for each in server.asked if family_of(each) == "outcome")
    code, out, _ = ran(server, tmp_path, *ask, "--json")
    found = json.loads(out)
    assert {grade["cached"] for grade in found["grades"].values()} == {True}
    assert asked_by_family(server) == asked
    ran(server, tmp_path, *ask, "--again", "--measure", "outcome")
    assert asked_by_family(server) - asked == Counter(outcome=1)
    server.asked.pop()
    ran(server, tmp_path, *ask, "--now", "2026-12-02T09:00:01Z")
    assert asked_by_family(server) == Counter({name: 2 * count for name, count in asked.items()})
    assert sorted(each.name for each in kept.parent.iterdir()) == ["config_self-host-org.json", kept.name]
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == before


@pytest.mark.parametrize("how", [["--session", "s02"], ["--since", "2026-11-01"], []])
def test_nothing_but_failures_is_no_success_however_it_is_asked(
    server: ModelServer, kept: Path, tmp_path: Path, how: list[str]
) -> None:
    server.script = lambda asked, n: Answer(status=401, message="no such key")
    code, out, err = ran(server, tmp_path, str(kept), "--lm", LM, "--now", "2026-12-01", "--yes", *how)
    assert code == 2
    assert "evalr: no verdict: all " in err, err
    assert "no such key" in err
    assert ("outcome: failed" in out) is ("--session" in how)


def test_a_session_of_which_one_family_failed_is_graded_by_the_others(
    server: ModelServer, kept: Path, tmp_path: Path
) -> None:
    server.script = lambda asked, n: (
        Answer(status=401, message="no such key") if family_of(asked) == "outcome" else judged_by(asked, n)
    )
    code, out, err = ran(server, tmp_path, str(kept), "--lm", LM, "--session", "s02", "--now", "2026-12-01", "--yes")
    assert (code, err, "outcome: failed" in out, "shadow: graded" in out) == (0, "", True, True)


def test_a_session_of_several_users_needs_one(server: ModelServer, kept: Path, tmp_path: Path) -> None:
    ask = [str(kept), "--lm", LM, "--session", "s-shared-1", "--yes"]
    code, _, err = ran(server, tmp_path, *ask)
    assert (code, "2 users have a session 's-shared-1': say whose, of 'u01', 'u05'" in err) == (2, True)
    assert server.asked == []
    code, out, _ = ran(server, tmp_path, *ask, "--user", "u05", "--measure", "outcome")
    assert (code, "of user 'u05'" in out, asked_by_family(server)) == (0, True, Counter(outcome=1))


def test_a_period_is_judged_in_strata_and_reported(server: ModelServer, kept: Path, tmp_path: Path) -> None:
    ask = [str(kept), "--lm", LM, "--since", "2026-11-22", "--until", "2026-11-29", "--now", "2026-12-01"]
    code, _, err = ran(server, tmp_path, *ask)
    assert (code, "There is no terminal to say yes at" in err, server.asked) == (2, True, [])
    code, out, err = ran(server, tmp_path, *ask, "--yes", "--json")
    assert code == 0
    found = json.loads(out)
    status = found["judged"]["status"]
    assert status["state"] == "finished"
    assert {stratum["name"][0][:8] for stratum in status["strata"]} == {"2026-11-"}
    assert asked_by_family(server)["outcome"] == status["families"]["outcome"]["graded"] > 5
    assert {section["measure"] for section in found["report"]["sections"]} == {"outcome", "shadow", "learning"}
    lines = (tmp_path / "reflexio_self-host-org.graded.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == status["done"] == len(server.asked)
    asked = len(server.asked)
    code, out, err = ran(server, tmp_path, *ask)  # there is nothing left to pay for, so nobody is asked to say yes
    assert (code, err, len(server.asked)) == (0, "", asked)
    code, _, err = ran(server, tmp_path, *ask, "--again")
    assert (code, f"Judge {status['families']['outcome']['graded']} of outcome, " in err) == (2, True)
    versions = {json.loads(line)["version"] for line in lines if json.loads(line)["measure"] == "shadow"}
    assert [version.endswith(":pin=v1.1.0") for version in versions] == [True]


def test_what_is_due_is_judged_at_the_rates_of_the_configuration(
    server: ModelServer, kept: Path, tmp_path: Path
) -> None:
    config = json.loads((kept.parent / "config_self-host-org.json").read_text(encoding="utf-8"))
    config["agent_success_config"] |= {"sampling_rate": 0.2, "retrieved_learning_sampling_rate": 0.0}
    config["agent_success_config"]["evaluation_only_sampling_rate"] = 0.0
    place = tmp_path / "config_other.json"
    place.write_text(json.dumps(config), encoding="utf-8")
    ask = [str(kept), "--lm", LM, "--now", "2026-12-01", "--yes", "--json", "--config", str(place)]
    code, out, _ = ran(server, tmp_path, *ask)
    assert code == 0
    asked = asked_by_family(server)
    assert (asked["shadow"], asked["learning"]) == (48, 0)
    assert 0 < asked["outcome"] < 15
    reasons = json.loads(out)["judged"]["not_asked"]["outcome"]
    assert sum(reasons.values()) == 44 - asked["outcome"]
    assert set(reasons) == {"not in the sample of 0.2 of all sessions", "not in the sample of 0 of all sessions"}


def test_what_is_judged_in_arms_is_compared_in_arms(server: ModelServer, kept: Path, tmp_path: Path) -> None:
    ask = [str(kept), "--lm", LM, "--since", "2026-11-16", "--now", "2026-12-01", "--yes"]
    code, out, _ = ran(server, tmp_path, *ask, "--arms", "experiment:exp-b-active", "--out", "arms.jsonl")
    assert (code, "holdout: all " in out, "treatment: all " in out) == (0, True, True)
    shown = io.StringIO()
    with chdir(tmp_path), redirect_stdout(shown):
        code = main(["report", "arms.jsonl", "--measure", "outcome", "--lift", "treatment:holdout", "--randomised"])
    assert (code, "treatment v holdout  0.0pp" in shown.getvalue()) == (0, True), shown.getvalue()


def test_without_a_success_definition_only_shadow_answers_are_judged(
    server: ModelServer, kept: Path, tmp_path: Path
) -> None:
    shutil.copyfile(kept, tmp_path / "log.db")
    ask = ["log.db", "--lm", LM, "--since", "2026-11-22", "--now", "2026-12-01", "--yes"]
    code, out, _ = ran(server, tmp_path, *ask)
    assert (code, set(asked_by_family(server))) == (0, {"shadow"})
    assert "outcome: the configuration has no agent_success_config" in out
    code, out, _ = ran(
        server, tmp_path, "log.db", "--lm", LM, "--session", "s02", "--yes", "--set", "success_definition=Solved, all."
    )
    assert (code, "outcome: graded, success=True" in out, "not graded" in out) == (0, True, False)
    assert any("Solved, all." in each.system for each in server.asked)


def test_one_measure_of_the_whole_log_is_judged_by_the_same_definition(
    server: ModelServer, kept: Path, tmp_path: Path
) -> None:
    ask = [str(kept), "--lm", LM, "--measure", "outcome", "--now", "2026-12-01", "--yes"]
    code, out, _ = ran(server, tmp_path, *ask)
    assert (code, asked_by_family(server)) == (0, Counter(outcome=44))
    assert {DEFINITION in each.system for each in server.asked} == {True}
    assert "as the log's owners have set it: success_definition" in out
    server.asked.clear()
    code, out, _ = ran(server, tmp_path, *ask, "--set", "success_definition=Solved.")
    assert (code, {DEFINITION in each.system for each in server.asked}, "owners" in out) == (0, {False}, False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--session", "s02", "--since", "2026-11-01"], "leave one of them out"),
        (["--user", "u01"], "name it with --session"),
        (["--session", "s99"], "has no session 's99'"),
        (["--bucket", "week"], "bucket bears on a report alone"),
        (["--again"], "--again is for --session, or a period"),
        (["--session", "s02", "--out", "x.jsonl"], "--json prints a session's grades"),
        (["--sample", "3"], "--judge and --sample go with --measure"),
        (["--session", "s02", "--measure", "completion"], "there are: outcome, shadow, learning"),
    ],
)
def test_what_makes_no_sense_is_said(kept: Path, tmp_path: Path, options: list[str], why: str) -> None:
    code, _, err = ran(None, tmp_path, str(kept), "--lm", LM, "--yes", *options)
    assert (code, why in err) == (2, True), err


def test_a_log_without_settings_of_its_own_needs_a_measure(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"id": "t1", "request": "x"}\n', encoding="utf-8")
    for options in ([], ["--session", "t1"]):
        code, _, err = ran(None, tmp_path, "log.jsonl", "--lm", LM, *options)
        assert (code, "--measure says what is judged; there are: completion" in err) == (2, True), err


def test_a_wrong_key_is_seen_early(kept: Path, tmp_path: Path) -> None:
    with running(ModelServer(lambda asked, n: Answer(status=401))) as server:
        code, _, err = ran(server, tmp_path, str(kept), "--lm", LM, "--now", "2026-12-01", "--yes")
    assert (code, "evalr: no verdict: all of the first" in err, len(server.asked) < 60) == (2, True, True), err
    assert not list(tmp_path.glob("*.jsonl"))


def test_who_names_no_model_is_told_how(kept: Path, tmp_path: Path) -> None:
    code, _, err = ran(None, tmp_path, str(kept), "--yes")
    assert (code, "--lm openai/gpt-5-mini" in err, "OPENAI_API_KEY" in err) == (2, True, True)
    code, _, err = ran(None, tmp_path, str(kept), "--yes", "--sample", "3")
    assert (code, "--judge and --sample go with --measure" in err) == (2, True)
