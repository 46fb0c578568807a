"""`evalr judge` as people run it, with a scripted model behind real HTTP; in a process of its own where it matters."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from evalr.cli import judging, main
from evalr.cli.sample import sample_lines
from evalr.runs.retries import Fault, Retry

sys.path.append(str(Path(__file__).parent.parent / "dspy_judges"))

from model_server import GOOD, Answer, Asked, ModelServer, running

KEY = "sk-nobody-may-see-this"
BAD = '{"completed": false, "quality": 2, "reason": "not there"}'
PRICED = "openai/gpt-4o-mini"
UNPRICED = "openai/a-model-without-a-price"


def every_third_fails(asked: Asked, n: int) -> str:
    return BAD if int(asked.data["request"].split()[-1]) % 3 == 0 else GOOD


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running(ModelServer(every_third_fails)) as serving:
        yield serving


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once, unless the server says when; tests/runs has the waits."""
    own = Retry.delay

    def delay(self: Retry, tried: int, fault: Fault) -> float | None:
        return None if own(self, tried, fault) is None else fault.retry_after or 0.0

    monkeypatch.setattr(Retry, "delay", delay)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a log of thirty transcripts, and one record that is none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    lines = [
        json.dumps({"id": f"t{n}", "user": f"u{n % 7}", "request": f"do {n}", "at": f"2026-11-{1 + n % 28:02}T09:00Z"})
        for n in range(30)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join([*lines, "no JSON", ""]), encoding="utf-8")
    return tmp_path


def command(server: ModelServer | None, *options: str, measure: str = "completion", lm: str = PRICED) -> list[str]:
    base = [] if server is None else ["--api-base", f"http://127.0.0.1:{server.port}/v1"]
    return ["judge", "log.jsonl", "--measure", measure, "--lm", lm, *base, "--now", "2026-11-30", *options]


def begun(arguments: list[str], **options: Any) -> subprocess.Popen[str]:
    """The command in a process of its own, which a signal can end and a terminal can answer."""
    environment = {**os.environ, "DSPY_CACHEDIR": "cache", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    python = [sys.executable, "-m", "evalr.cli", *arguments]
    return subprocess.Popen(python, env=environment, text=True, **{**streams, **options})


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return checked(process.returncode, out, err)


def checked(code: int, out: str, err: str) -> tuple[int, str, str]:
    assert "Traceback" not in err, err
    assert KEY not in out + err
    return code, out, err


def ran(*arguments: str) -> tuple[int, str, str]:
    """The command in this process, which has imported dspy already."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(arguments)
    return checked(code, out.getvalue(), err.getvalue())


def judged(server: ModelServer, *options: str) -> dict[str, Any]:
    code, out, err = ran(*command(server, "--yes", "--json", *options))
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def waited_for(server: ModelServer, calls: int) -> None:
    until = time.monotonic() + 30
    while len(server.asked) < calls:
        assert time.monotonic() < until
        time.sleep(0.02)


# What it comes to, and what comes of it


def test_a_person_sees_the_price_says_yes_and_gets_the_rate(server: ModelServer, folder: Path) -> None:
    before = (folder / "log.jsonl").read_bytes()
    mine, theirs = pty.openpty()
    process = begun(command(server), stdin=theirs)
    os.write(mine, b"yes\n")
    code, out, err = ended(process)
    os.close(mine)
    os.close(theirs)
    assert (code, err) == (0, f"Judge 30 transcripts with {PRICED}, less than $0.01? [y/N] ")
    assert "task completion       66.7% [" in out
    assert "30 results: 30 verdicts · 30 calls · $0.0063" in out
    assert "left out     1 not JSON (line 31)" in out
    assert "to see them again: evalr report log.completion.jsonl" in out
    assert (folder / "log.jsonl").read_bytes() == before
    code, out, _ = ran("report", "log.completion.jsonl", "--by", "user")
    assert (code, "task completion       66.7% [" in out) == (0, True)
    kept = [path.read_bytes() for path in folder.iterdir() if path.is_file()]
    assert not any(KEY.encode() in content for content in kept)


def test_a_no_costs_nothing(server: ModelServer, folder: Path) -> None:
    mine, theirs = pty.openpty()
    process = begun(command(server), stdin=theirs)
    os.write(mine, b"\n")
    assert ended(process)[:2] == (130, "")
    os.close(mine)
    os.close(theirs)
    assert (len(server.asked), sorted(path.suffix for path in folder.iterdir() if path.is_file())) == (0, [".jsonl"])


def test_without_a_terminal_it_says_the_price_and_asks_nobody(server: ModelServer, folder: Path) -> None:
    code, out, err = ran(*command(server, "--sample", "10", "--calls", "8", lm=UNPRICED))
    assert (code, out, len(server.asked)) == (2, "", 0)
    assert f"Judge 10 of 30 transcripts with {UNPRICED}, cost unknown, about " in err
    assert "tokens (at most 8 calls)? There is no terminal to say yes at: add --yes" in err


def test_a_budget_needs_a_price(server: ModelServer, folder: Path) -> None:
    code, _, err = ran(*command(server, "--budget", "1", "--yes", lm=UNPRICED))
    assert (code, len(server.asked)) == (2, 0)
    assert f"--budget needs a price, and none is known of {UNPRICED!r}" in err


def test_a_budget_ends_it_and_the_same_command_goes_on(server: ModelServer, folder: Path) -> None:
    code, out, _ = ran(*command(server, "--yes", "--budget", "0.003", "--concurrency", "1"))
    assert code == 0
    words = " ".join(out.split())
    assert "not done 16: budget of $0.0030 used up; what was judged came first in the log" in words
    assert len(server.asked) == 14  # what the next call was expected to cost was more than was left
    found = judged(server)["judged"]
    assert (found["verdicts"], found["from_journal"], found["calls"], found["not_done"]) == (30, 14, 16, {})


def test_a_sample_stands_for_the_whole_and_what_passes_is_tried_again(server: ModelServer, folder: Path) -> None:
    hiccups = {1: Answer(status=429, headers={"Retry-After": "0"}), 3: Answer(status=500), 5: Answer(cut=True)}
    server.script = lambda asked, n: hiccups.get(n) or every_third_fails(asked, n)
    found = judged(server, "--sample", "12", "--since", "2026-11-03")
    account = found["judged"]
    assert (account["verdicts"], account["failed"], account["retried"], account["inputs_in_log"]) == (12, 0, 3, 26)
    assert account["not_asked"] == {"outside the period": 4}
    lines = (folder / "log.completion.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["about"]["weight"] for line in lines} == {26 / 12}
    assert "sampled" in found["report"]["sections"][0]["rows"][0]["estimate"]["flags"]


def test_what_fails_for_good_is_left_out_and_asked_again_and_nothing_else_is(server: ModelServer, folder: Path) -> None:
    trouble = {0: Answer(status=429, headers={"Retry-After": "0"}), 1: Answer(status=500), 2: Answer(cut=True)}

    def never_for_some(asked: Asked, n: int) -> Answer | str:
        number = int(asked.data["request"].split()[-1])
        return trouble[number] if number in trouble else every_third_fails(asked, n)

    server.script = never_for_some
    options = ("--journal", "mine.db", "--until", "2026-11-07")
    found = judged(server, *options)
    account, completion = found["judged"], found["report"]["sections"][0]["rows"][0]["estimate"]
    assert (account["verdicts"], account["failed"], account["from_journal"]) == (5, 3, 0)
    assert completion["left_out"] == {"failed": 3}
    assert completion["bounds"] == [4 / 8, 7 / 8]
    server.script, before = every_third_fails, len(server.asked)
    account = judged(server, *options)["judged"]
    assert (account["verdicts"], account["from_journal"], len(server.asked) - before) == (8, 5, 3)
    assert (folder / "mine.db").exists()
    assert not (folder / "log.judged.db").exists()


# What a team says of itself, and judges from files


def test_what_success_is_and_the_tools_reach_the_model(server: ModelServer, folder: Path) -> None:
    (folder / "tools.json").write_text('{"search": "Finds orders"}', encoding="utf-8")
    server.script = lambda asked, n: '{"success": true, "corrections": 0, "escalated": false}'
    own = ("--set", "tools=tools.json", "--set", "tools=refund=Pays back", "--set", "success_definition=It is paid.")
    versions = {
        judged(server, "--measure", "outcome", "--sample", "1", *settings)["judged"]["evaluator"]
        for settings in (own, (), own)
    }
    assert (len(versions), len(server.asked)) == (2, 2)
    for words in ("- search: Finds orders", "- refund: Pays back", "It is paid."):
        assert [words in asked.system for asked in server.asked] == [True, False]


@pytest.fixture
def saved(folder: Path) -> str:
    """A judge in a file, as its own model and rubric were saved."""
    import dspy

    from evalr.dspy import completion_judge

    completion_judge(lm=dspy.LM(PRICED, temperature=0.5), instructions="Judge it like an owl.").save("owl.json")
    return "owl.json"


def with_saved(server: ModelServer, saved: str, *options: str, measure: str = "completion") -> list[str]:
    place = f"http://127.0.0.1:{server.port}/v1"
    return ["judge", "log.jsonl", "--measure", measure, "--judge", saved, "--api-base", place, *options]


def test_a_judge_from_a_file_judges_as_it_was_saved(server: ModelServer, folder: Path, saved: str) -> None:
    code, _, err = ran(*with_saved(server, saved, "--sample", "3"))
    assert (code, "Judge 3 of 30 transcripts with owl.json, less than $0.01?" in err) == (2, True)
    code, out, _ = ran(*with_saved(server, saved, "--sample", "3", "--yes", "--budget", "1"))
    assert (code, "with owl.json: 3 results: 3 verdicts" in " ".join(out.split())) == (0, True)
    assert {asked.body["temperature"] for asked in server.asked} == {0.5}
    assert all("Judge it like an owl." in asked.system for asked in server.asked)
    code, out, _ = ran(*with_saved(server, saved, "--sample", "3", "--yes", "--json", "--lm", "openai/gpt-4o"))
    account = json.loads(out)["judged"]
    assert (account["judge"], account["lm"], account["from_journal"]) == ("owl.json", "openai/gpt-4o", 0)
    assert "@openai/gpt-4o#" in account["evaluator"]


def test_a_judge_from_a_file_that_does_not_fit_is_refused(server: ModelServer, folder: Path, saved: str) -> None:
    (folder / "prose.json").write_text("an owl", encoding="utf-8")
    definition = ("--set", "success_definition=It ships.")
    misfits = [
        (with_saved(server, saved, measure="outcome"), "owl.json is no judge of 'outcome': it gives TaskCompletion of"),
        (with_saved(server, saved, measure="shadow"), "owl.json is no judge of pairs"),
        (with_saved(server, "prose.json"), "prose.json is no saved judge"),
        (with_saved(server, "nowhere.json"), "nowhere.json cannot be read: No such file"),
        (with_saved(server, saved, *definition, measure="outcome"), "the judge in owl.json has its own"),
        (["judge", "log.jsonl", "--measure", "completion"], "give a model with --lm, or a saved judge with --judge"),
    ]
    for arguments, message in misfits:
        code, out, err = ran(*arguments, "--yes")
        assert (code, out, err.count("\n"), message in err) == (2, "", 1, True), err
    assert not server.asked


# Single answers


def test_exchanges_and_learnings_of_one_log_are_judged_and_reported(server: ModelServer, folder: Path) -> None:
    answer = {"user": "u", "session": "s", "message": "again?"}
    with (folder / "log.jsonl").open("w", encoding="utf-8") as log:
        for n in range(6):
            served, shadow = ("the ramen?", "what?") if n < 4 else ("what?", "the ramen?")
            log.write(json.dumps({"id": f"e{n}", "served": served, "shadow": shadow, **answer}) + "\n")
            use = {"response": served, "response_id": f"r{n // 2}", "learning_id": f"l{n % 2}", "learning": f"know {n}"}
            log.write(json.dumps({**use, "learning": None if n == 5 else f"know {n}", **answer}) + "\n")
    server.script = lambda asked, n: json.dumps(
        {"better": "first" if "ramen" in asked.data["first"] else "second", "significant": True}
    )
    found = judged(server, "--measure", "shadow", "--set", "orders=both")
    assert (found["judged"]["verdicts"], len(server.asked)) == (6, 12)
    code, out, _ = ran("report", "log.shadow.jsonl")
    assert code == 0
    assert re.search(r"shadow wins +66\.7%", out), out
    assert re.search(r"same winner in both orders +100\.0%", out), out
    server.script = lambda asked, n: json.dumps(
        {"relevant": True, "impact": "positive" if asked.data["learning"] < "know 3" else "negative"}
    )
    found = judged(server, "--measure", "learning")
    assert (found["judged"]["verdicts"], found["judged"]["skipped"], len(server.asked)) == (5, 1, 17)
    code, out, _ = ran("report", "log.learning.jsonl")
    assert code == 0
    assert re.search(r"net learning impact +\+20\.0%", out), out


@pytest.mark.parametrize(("size", "most"), [("40", 45), ("25%", 60), ("1", 8)])
def test_a_sample_of_learnings_takes_whole_responses(size: str, most: int, server: ModelServer, folder: Path) -> None:
    """Of a part of its learnings nobody could tell what they did to a response together."""
    lines, of_each = [], {}
    for response in range(40):
        user, of_each[response] = f"u{response % 20}", 1 + response % 8
        for learning in range(of_each[response]):
            use = {"response_id": f"r{response % 4}", "session": f"s{response}", "learning_id": f"l{learning}"}
            lines.append({"user": user, "message": "m", "response": "r", "learning": "know", **use})
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    server.script = lambda asked, n: '{"relevant": true, "impact": "positive"}'
    account = judged(server, "--measure", "learning", "--sample", size)["judged"]
    abouts = [json.loads(line)["about"] for line in (folder / "log.learning.jsonl").read_text().splitlines()]
    drawn = Counter(int(about["session"][1:]) for about in abouts)
    assert drawn == {response: of_each[response] for response in drawn}
    assert 0 < len(abouts) == account["verdicts"] <= most
    share = 0.25 if size == "25%" else len(drawn) / 40
    assert {about["weight"] for about in abouts} == {1 / share}


# When it is stopped, or nothing works


def test_stopped_or_killed_it_asks_only_the_rest(server: ModelServer, folder: Path) -> None:
    kept = ("--journal", "mine.db")
    server.script = lambda asked, n: Answer(GOOD, delay=0.1)
    stopped = begun(command(server, "--yes", "--concurrency", "1", *kept))
    waited_for(server, 4)
    stopped.send_signal(signal.SIGINT)
    code, out, err = ended(stopped)
    assert (code, out) == (130, "")
    assert err == "evalr: stopped; what was judged is in mine.db, and the same command asks only the rest\n"
    before = len(server.asked)
    killed = begun(command(server, "--yes", "--concurrency", "1", *kept))
    waited_for(server, before + 4)
    killed.kill()
    killed.communicate(timeout=10)
    assert not (folder / "log.completion.jsonl").exists()
    server.script = lambda asked, n: GOOD
    found = judged(server, *kept)["judged"]
    assert (found["verdicts"], found["failed"], found["not_done"]) == (30, 0, {})
    assert found["from_journal"] >= 5
    assert len(server.asked) <= 32  # one call was in flight at each end


def test_an_answer_that_never_ends_is_a_failure_and_holds_up_nothing(
    server: ModelServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = lambda asked, n: Answer(delay=60 if asked.data["request"].endswith(" 7") else 0)
    monkeypatch.setattr(judging, "LONGEST_CALLS", 2.0)
    account = judged(server)["judged"]
    assert (account["verdicts"], account["failed"]) == (29, 1)


def test_a_wrong_key_is_seen_after_a_few_calls(server: ModelServer, folder: Path) -> None:
    server.script = lambda asked, n: Answer(status=401, message="no such key", delay=0.05)
    code, out, err = ran(*command(server, "--yes", "--concurrency", "1"))
    assert (code, out) == (2, "")
    failed = re.search(r"no verdict: all of the first (\d+) answers failed", err)
    assert failed is not None
    assert 10 <= int(failed[1]) <= len(server.asked) < 30
    assert "no such key" in err
    assert not (folder / "log.completion.jsonl").exists()


# What cannot be done


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--measure", "drop_off"], "'drop_off' is computed and needs no judge"),
        (["--measure", "nope"], "no installed measure is named 'nope'"),
        (["--budget", "nan"], "--budget nan: write US dollars, such as 5"),
        (["--user", "u1"], "--user says whose session is meant: name it with --session"),
        (["--session", "t1"], "--session goes by settings that a log's owners have made, and this log has none"),
        (["--again"], "--again goes by settings"),
        (["--sample", "0"], "--sample 0: write how many to judge"),
        (["--sample", "101%"], "--sample 101%: write how many to judge"),
        (["--out", "log.jsonl"], "log.jsonl would be in the log, which is only read"),
        (["--journal", "log.jsonl"], "log.jsonl would be in the log, which is only read"),
        (["--out", "log.jsonl-wal"], "log.jsonl-wal would be in the log, which is only read"),
        (["--out", "mine.txt"], "mine.txt is already there, and holds no results"),
        (["--out", "same", "--journal", "same"], "are both same"),
        (["--out", "nowhere/verdicts.jsonl"], "its folder must exist"),
        ([], "needs 'dspy', which is not installed: pip install 'evalr[dspy]'"),
    ],
)
def test_what_cannot_be_done_needs_no_model(
    options: list[str], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.txt").write_text("my own\n", encoding="utf-8")
    for name in [each for each in sys.modules if each.partition(".")[0] in ("dspy", "evalr_dspy")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dspy", None)
    code, out, err = ran(*command(None), *options)
    assert (code, out, err.count("\n"), message in err) == (2, "", 1, True), err
    assert (folder / "mine.txt").read_text(encoding="utf-8") == "my own\n"


# A judge of somebody else


STRANGER = """
from dataclasses import replace

from pydantic import BaseModel

from evalr import FunctionEvaluator, Rate
from evalr.errors import InputError
from evalr.measures import Measure, ReadyJudge, Session, Wait


class Fair(BaseModel):
    fair: bool


def make(*, lm, api_base, most):
    def ask(wait):
        if lm == "nobody":
            raise RuntimeError("nobody is there")
        return Fair(fair=len(wait.id) < most)

    return FunctionEvaluator("fair", f"{lm}:{most}", ask, Wait, Fair)


measure = Measure(
    name="fair",
    question="was the wait fair?",
    input=Wait,
    verdict=Fair,
    summaries=lambda: (Rate("fair", of=Fair, hits=lambda v: v.fair, title="fair waits", noun="wait"),),
    whole=Session,
    split=lambda session, now: session.waits(now=now),
)
orphan = replace(
    measure,
    name="orphan",
    summaries=lambda: (Rate("orphan", of=Fair, hits=lambda v: v.fair, title="orphans", noun="wait"),),
)
judge = ReadyJudge(name="fair", make=make, settings={"most": 100})
"""


def test_a_strangers_judge_is_found_by_its_entry_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    (folder / "fair_waits.py").write_text(STRANGER, encoding="utf-8")
    package = folder / "fair_waits-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: fair-waits\nVersion: 1.0\n", encoding="utf-8")
    measures = "[evalr.measures]\nfair = fair_waits:measure\norphan = fair_waits:orphan\n"
    points = f"{measures}[evalr.judges]\nfair = fair_waits:judge\n"
    (package / "entry_points.txt").write_text(points, encoding="utf-8")
    (folder / "sample.jsonl").write_text("\n".join(sample_lines(7, people=20)), encoding="utf-8")
    ask = ["judge", "sample.jsonl", "--measure", "fair", "--now", "2026-11-30T09:00Z", "--yes"]
    # This process may have looked for measures already, and looks once.
    code, out, _ = ended(begun([*ask, "--lm", "somebody", "--set", "most=1", "--sample", "50"]))
    assert (code, "fair waits  0.0% [" in out, "sample       50 of " in out) == (0, True, True)
    code, _, err = ran(*ask, "--lm", "nobody")
    assert (code, "RuntimeError: nobody is there" in err) == (2, True)
    code, _, err = ran(*ask, "--lm", "somebody", "--measure", "orphan")
    message = "no judge is installed for a measure named 'orphan'; there are: completion, fair, "
    assert (code, message in err) == (2, True)
    code, out, _ = ran("measures")
    assert (code, "judge     evalr judge LOG --measure fair --lm MODEL" in out) == (0, True)
