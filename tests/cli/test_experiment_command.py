"""`evalr experiment`: starting, stopping, listing and assigning, as people type it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from evalr.cli import main
from evalr.reflexio import ExperimentRegistry, assign_arm

BEGUN = "2026-08-01T00:00:00+00:00"


def ran(folder: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = main(["experiment", *arguments])
    return code, out.getvalue(), err.getvalue()


def parsed(folder: Path, *arguments: str) -> Any:
    code, out, err = ran(folder, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize(("holdout", "percentage"), [("10", 10.0), ("12.5%", 12.5), ("0.5%", 0.5)])
def test_start_says_what_was_begun(tmp_path: Path, holdout: str, percentage: float) -> None:
    found = parsed(tmp_path, "start", "exp-1", "--holdout", holdout, "--now", "2026-08-01")
    assert found == {
        "experiment_id": "exp-1", "holdout_percentage": percentage, "started_at": BEGUN, "ended_at": None
    }  # fmt: skip
    assert parsed(tmp_path, "list") == {"active_experiment": found, "experiments": [found]}


@pytest.mark.parametrize("holdout", ["0", "100", "-3", "nan", "ten", ""])
def test_a_holdout_that_is_none_makes_no_file(tmp_path: Path, holdout: str) -> None:
    code, _, err = ran(tmp_path, "start", "exp-1", f"--holdout={holdout}")
    assert (code, err.startswith("evalr: ")) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_share_is_not_taken_for_a_percentage(tmp_path: Path) -> None:
    code, _, err = ran(tmp_path, "start", "exp-1", "--holdout", "0.1")
    assert (code, "write 10% for that share of users, or 0.1% for less than 1 percent" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_results_of_an_experiment_that_reflexio_keeps_are_in_the_report(tmp_path: Path) -> None:
    ran(tmp_path, "start", "exp-1", "--holdout", "10")
    code, _, err = ran(tmp_path, "results", "exp-9", "reflexio.db")
    assert (code, "there are: exp-1" in err, "evalr report LOG --arms experiment:ID" in err) == (2, True, True)


def test_the_list_marks_the_active_one_and_is_newest_first(tmp_path: Path) -> None:
    for number in (1, 2):
        ran(tmp_path, "start", f"exp-{number}", "--holdout", "10", "--now", f"2026-08-0{number}")
        if number == 1:
            assert ran(tmp_path, "stop", "exp-1", "--now", "2026-08-02T06:00Z")[0] == 0
    code, out, _ = ran(tmp_path, "list")
    assert (code, out) == (
        0,
        (
            "* exp-2: active since 2026-08-02 00:00 UTC, 10% held out\n"
            "  exp-1: 2026-08-01 00:00 to 2026-08-02 06:00 UTC, 10% held out\n"
        ),
    )


def test_a_conflict_ends_with_2_and_says_what_to_do(tmp_path: Path) -> None:
    ran(tmp_path, "start", "exp-1", "--holdout", "10", "--now", "2026-08-01")
    code, out, err = ran(tmp_path, "start", "exp-2", "--holdout", "10")
    assert (code, out) == (2, "")
    assert err == (
        "evalr: experiment 'exp-1' is active, started at 2026-08-01 00:00:00 UTC, and only one can be: stop it first\n"
    )


def test_assign_prints_the_arm_alone(tmp_path: Path) -> None:
    ran(tmp_path, "start", "exp-1", "--holdout", "50")
    for user in ("ada", "bo", "cy", "di"):
        arm = "treatment" if assign_arm(user, holdout=0.5, experiment="exp-1") else "holdout"
        assert ran(tmp_path, "assign", user) == (0, f"{arm}\n", "")
        assert parsed(tmp_path, "assign", user) == {
            "user": user, "experiment_id": "exp-1", "arm": arm, "retrieves": arm == "treatment"
        }  # fmt: skip


def test_assigning_in_another_organisation_names_those_that_have_an_active_experiment(tmp_path: Path) -> None:
    for org in ("one", "two", "over"):
        ran(tmp_path, "start", "exp-1", "--holdout", "50", "--org", org)
    ran(tmp_path, "stop", "exp-1", "--org", "over")
    code, out, err = ran(tmp_path, "assign", "ada", "--org", "onne")
    assert (code, out) == (2, "")
    assert "no experiment of organisation 'onne' is active" in err
    assert err.endswith("everybody retrieves; --org names another one: 'one', 'two'\n")


def test_without_an_active_experiment_there_is_no_arm(tmp_path: Path) -> None:
    ran(tmp_path, "start", "exp-1", "--holdout", "50")
    ran(tmp_path, "stop", "exp-1")
    code, out, err = ran(tmp_path, "assign", "ada")
    assert (code, out, "no experiment of organisation 'self-host-org' is active" in err) == (2, "", True)
    assert "--org" not in err
    code, out, err = ran(tmp_path, "assign", "ada", "--experiment", "exp-1")
    assert (code, out, "nobody is assigned to it any more" in err) == (2, "", True)


def test_organisations_and_files_are_apart(tmp_path: Path) -> None:
    ran(tmp_path, "start", "exp-1", "--holdout", "10", "--org", "a", "--registry", "kept.db")
    assert parsed(tmp_path, "list", "--org", "b", "--registry", "kept.db")["experiments"] == []
    assert ran(tmp_path, "list", "--org", "b", "--registry", "kept.db")[1] == (
        "no experiments of this organisation; --org names another one: 'a'\n"
    )
    registry = ExperimentRegistry(tmp_path / "kept.db", org="a")
    assert registry.active is not None
    code, _, err = ran(tmp_path, "list")
    assert (code, "experiments.db: there is no registry of experiments" in err) == (2, True)


def test_a_hostile_user_cannot_steer_a_terminal(tmp_path: Path) -> None:
    ran(tmp_path, "start", "exp-1", "--holdout", "10")
    code, _, err = ran(tmp_path, "assign", "ada", "--experiment", "\x1b[2J")
    assert (code, "\x1b" in err) == (2, False)


def test_it_is_a_command_of_the_installed_evalr(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evalr.cli", "experiment", "-h"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("start", "stop", "list", "assign", "results"):
        assert f"\n  {name} " in done.stdout
