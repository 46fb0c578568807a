"""A package of somebody else adds a reader and a measure: everything shows them without a change here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

READER_AND_MEASURE = '''
"""Desk logs: one line a ticket, as id;desk;asked;answered, with times in seconds since 2026-01-01."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel

from evalr import FunctionEvaluator, Rate
from evalr.logs import Log
from evalr.measures import Activity, Measure, Session

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = b"ticket;desk;asked;answered"


class DeskReader:
    name = "desk"
    describes = "tickets of a help desk"

    def claim(self, path: Path, head: bytes) -> float:
        return 1.0 if head.startswith(HEAD) else 0.0

    def open(self, path: Path, *, strict: bool = False) -> Log:
        def items(log):
            with path.open(newline="") as file:
                for number, row in enumerate(csv.DictReader(file, delimiter=";"), start=2):
                    log.records += 1
                    if not row["answered"].isdigit():
                        log.skip("never answered", f"line {number}")
                        continue
                    asked, answered = (BEGIN + timedelta(seconds=int(row[name])) for name in ("asked", "answered"))
                    yield Session(
                        id=row["ticket"],
                        attributes={"desk": row["desk"]},
                        activities=[Activity(at=asked, role="person"), Activity(at=answered, role="agent")],
                    )

        return Log(str(path), self.name, items, strict)


class Prompt(BaseModel):
    within: bool


def prompt(session: Session) -> Prompt:
    asked, answered = session.activities
    return Prompt(within=answered.at - asked.at <= timedelta(minutes=1))


prompt_rate = Rate("prompt", of=Prompt, hits=lambda v: v.within, title="answered within a minute", noun="ticket")

reader = DeskReader()
measure = Measure(
    name="prompt",
    question="was it answered within a minute?",
    input=Session,
    verdict=Prompt,
    summaries=lambda: (prompt_rate,),
    evaluator=lambda *, now: FunctionEvaluator("prompt", "3", prompt, Session, Prompt, inline=True),
)
'''

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "desk-logs"
version = "1.0"

[tool.hatch.build.targets.wheel]
include = ["desk_logs*.py"]

[project.entry-points."evalr.logs"]
desk = "desk_logs:reader"
lost = "desk_logs_lost:reader"

[project.entry-points."evalr.measures"]
duel = "desk_logs_duel:measure"
prompt = "desk_logs:measure"
needy = "desk_logs_needy:measure"
crashing = "desk_logs_bad:crashing"
greedy = "desk_logs_bad:greedy"
"""

DUEL = """
from dataclasses import replace

from pydantic import BaseModel

from evalr import Contest, FunctionEvaluator
from evalr.measures import Measure, Session


class Duel(BaseModel):
    seconds: float


def duel(session: Session) -> Duel:
    asked, answered = session.activities
    return Duel(seconds=(answered.at - asked.at).total_seconds())


net = Contest("duel", of=Duel, outcome=lambda v: "win" if v.seconds < 60 else "loss", title="beats the minute")
wins = replace(net, name="duel_wins", view="wins", title="is faster")
measure = Measure(
    name="duel",
    question="does it beat the minute?",
    input=Session,
    verdict=Duel,
    summaries=lambda: (net, wins),
    evaluator=lambda *, now: FunctionEvaluator("duel", "1", duel, Session, Duel, inline=True),
)
"""

BAD_MEASURES = """
from dataclasses import replace

from desk_logs import measure, prompt_rate

crashing = replace(measure, name="crashing", summaries=lambda: 1 / 0)
own, taken = replace(prompt_rate, name="greedy"), replace(prompt_rate, name="completion")
greedy = replace(measure, name="greedy", summaries=lambda: (own, taken))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the package, built on the spot and without a network."""
    folder = tmp_path_factory.mktemp("desk_logs")
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "desk_logs.py").write_text(READER_AND_MEASURE, encoding="utf-8")
    (folder / "desk_logs_duel.py").write_text(DUEL, encoding="utf-8")
    (folder / "desk_logs_bad.py").write_text(BAD_MEASURES, encoding="utf-8")
    (folder / "desk_logs_needy.py").write_text("import a_library_that_is_not_there\n", encoding="utf-8")
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(target), str(folder)], check=True, capture_output=True, timeout=120)
    return target


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [f"t{n};{'east' if n % 2 else 'west'};{1000 * n};{1000 * n + (30 if n % 4 else 90)}" for n in range(40)]
    path = tmp_path_factory.mktemp("logs") / "its.csv"
    path.write_text("\n".join(["ticket;desk;asked;answered", *rows, "t40;east;50000;"]), encoding="utf-8")
    return path


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def evalr(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(site, "-m", "evalr.cli", *arguments)


def test_the_report_shows_its_measure_of_its_log(site: Path, log: Path) -> None:
    done = evalr(site, "report", str(log), "--by", "desk")
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["answered", "within", "a", "minute", "75.0%", "[59.8,", "85.8]", "40", "tickets"] in lines
    assert ["west", "50.0%", "[29.9,", "70.1]", "20", "tickets", "·", "low", "confidence"] in lines
    assert "1 of 41 records: 1 never answered (line 42)" in done.stdout
    assert "drop-off after 1h" in done.stdout


def test_a_gate_holds_it(site: Path, log: Path) -> None:
    assert evalr(site, "gate", "prompt>50%", str(log)).returncode == 0
    assert evalr(site, "gate", "prompt>60%", str(log)).returncode == 1
    assert evalr(site, "gate", "prompt<60s", str(log)).returncode == 2


def test_its_contest_is_shown_and_gated_too(site: Path, log: Path) -> None:
    done = evalr(site, "report", str(log), "--measure", "duel", "--by", "desk")
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert any(line.startswith("beats the minute +50.0% [+21.0, +74.2] 40 comparisons: 30 wins") for line in lines)
    assert any(line.startswith("is faster 75.0% [59.8, 85.8] 40 comparisons") for line in lines)
    assert evalr(site, "gate", "duel>0", str(log)).returncode == 0
    assert evalr(site, "gate", "duel>-5%", str(log)).returncode == 0
    assert evalr(site, "gate", "duel>50%", str(log)).returncode == 1
    assert evalr(site, "gate", "duel>-200%", str(log)).returncode == 2


def test_it_is_listed_and_so_is_what_cannot_be_loaded(site: Path) -> None:
    done = evalr(site, "measures")
    assert done.returncode == 0
    for text in (
        "prompt  was it answered within a minute?",
        "evaluator prompt@3",
        "desk       tickets of a help desk",
        "needy  cannot be used: needs 'a_library_that_is_not_there', which is not installed",
        "lost  cannot be used: needs 'desk_logs_lost', which is not installed",
        "crashing  cannot be used: ZeroDivisionError: division by zero",
        "greedy  cannot be used: its summaries need names of their own: 'completion' is one of 'completion'",
    ):
        assert text in done.stdout


def test_what_cannot_be_loaded_stops_no_report_and_is_said(site: Path, log: Path) -> None:
    done = evalr(site, "report", str(log))
    assert done.returncode == 0
    assert "the measure crashing: ZeroDivisionError" in done.stdout
    assert "the measure needy: needs 'a_library_that_is_not_there', which is not installed" in " ".join(
        done.stdout.split()
    )
    assert evalr(site, "report", str(log), "--measure", "needy").returncode == 2


def test_what_is_installed_is_what_a_report_can_use(site: Path) -> None:
    done = run(site, "-c", "from evalr.measures import installed_measures; print(*map(sorted, installed_measures()))")
    loaded, broken = done.stdout.split("] [")
    assert "prompt" in loaded
    assert all(name in broken and name not in loaded for name in ("crashing", "greedy", "needy"))


def test_a_notebook_shows_it(site: Path, log: Path) -> None:
    done = run(site, "-c", f"from evalr import report; print(report({str(log)!r})._repr_html_())")
    assert "<td>answered within a minute</td><td>75.0%</td>" in done.stdout
