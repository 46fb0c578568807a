"""A report compares two groups of each number where it is asked to."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalr import InputError, report
from evalr.bulk import report as bulk_report
from evalr.cli import main
from evalr.measures import Activity, Session

NINE = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
NOW = NINE + timedelta(days=1)


def session(number: int, arm: str | None) -> Session:
    """One in three of the treatment is left waiting, half of the others."""
    left = number % 3 == 0 if arm == "treatment" else number % 2 == 0
    came_back = [] if left else [Activity(at=NINE + timedelta(minutes=5), role="person")]
    return Session(
        id=f"s{number}", user=f"u{number}", arm=arm, activities=[Activity(at=NINE, role="agent"), *came_back]
    )


def sessions() -> list[Session]:
    arms = ["treatment"] * 180 + ["holdout"] * 60 + [None] * 4
    return [session(number, arm) for number, arm in enumerate(arms)]


def test_two_arms_are_compared_below_each_number() -> None:
    found = report(sessions(), now=NOW, lift=("treatment", "holdout"), measures=["drop_off"])
    (row, *_) = found.rows
    assert row.lift is not None
    assert row.lift.difference.value == pytest.approx(1 / 3 - 1 / 2)
    assert row.groups is not None
    assert row.groups["holdout"] == row.lift.control
    text = str(found)
    assert "treatment v holdout" in text
    assert "-16.7pp" in text
    assert "observational: arms are not known to be assigned at random" in " ".join(text.split())
    assert "treatment v holdout" in found._repr_html_()
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["lift"] == ["treatment", "holdout"]
    assert plain["sections"][0]["rows"][0]["lift"]["difference"]["value"] == row.lift.difference.value


def test_a_caller_says_that_arms_were_assigned_at_random() -> None:
    found = report(sessions(), now=NOW, lift=("treatment", "holdout"), randomised=True)
    lifts = [row.lift for row in found.rows]
    assert all(lift is not None and "observational" not in lift.flags for lift in lifts)


def test_any_groups_can_be_compared() -> None:
    given = [each.model_copy(update={"attributes": {"version": f"v{n % 2}"}}) for n, each in enumerate(sessions())]
    found = report(given, now=NOW, by="version", lift=("v1", "v0"), measures=["drop_off"])
    assert found.rows[0].lift is not None
    assert found.rows[0].lift.treatment.n == 122


def test_a_number_that_cannot_be_compared_says_why_and_keeps_its_row() -> None:
    found = report(sessions(), now=NOW, lift=("treatment", "holdout"), measures=["waits"])
    median = next(row for row in found.rows if row.estimate.name == "waits_median")
    assert median.estimate.value is not None
    assert median.lift is not None
    assert median.lift.difference.value is None
    assert "typical times are not subtracted" in " ".join(str(median.lift).split())


def test_a_mistyped_arm_is_said_by_the_command_which_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sessions.jsonl"
    path.write_text("".join(f"{each.model_dump_json()}\n" for each in sessions()))
    arguments = ["report", str(path), "--now", NOW.isoformat(), "--measure", "drop_off", "--lift"]
    assert main([*arguments, "treatment:control"]) == 2
    shown = capsys.readouterr()
    assert "no result is in the control arm 'control': there are: holdout, treatment" in shown.err
    assert main([*arguments, "treatment:holdout", "--randomised"]) == 0
    shown = capsys.readouterr()
    assert "treatment v holdout" in shown.out
    assert "observational" not in shown.out
    assert main([*arguments, "treatment"]) == 2
    assert "write treatment:control" in capsys.readouterr().err


def test_both_lanes_compare_alike(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    path.write_text("".join(f"{each.model_dump_json()}\n" for each in sessions()))
    one = report(path, now=NOW, lift=("treatment", "holdout"))
    two = bulk_report(path, now=NOW, lift=("treatment", "holdout"))
    assert one.to_dict() == two.to_dict()


def test_a_lift_is_of_two_groups() -> None:
    with pytest.raises(InputError, match="must be two groups"):
        report(sessions(), now=NOW, lift="treatment:control")  # type: ignore[arg-type]
