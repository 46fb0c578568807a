"""Results of retrieval experiments: of a registry's experiment, from a log that Reflexio wrote, and from made ones."""

from __future__ import annotations

import io
import json
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_writing import Writer

from evalr import InputError, LogError
from evalr.cli import main
from evalr.measures import SessionOutcome, success_rate
from evalr.reflexio import ExperimentRegistry
from evalr.verdicts import About, Verdict

NOW = datetime(2026, 12, 1, tzinfo=UTC)
START, STOP = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 8, 12, 0, 5, tzinfo=UTC)


@pytest.fixture
def registry(tmp_path: Path) -> ExperimentRegistry:
    """The two experiments of the log that Reflexio 0.2.32 wrote."""
    kept = ExperimentRegistry(tmp_path / "experiments.db")
    kept.start("exp-a-stopped", holdout_percentage=40, now=datetime(2026, 11, 5, tzinfo=UTC))
    kept.stop("exp-a-stopped", now=datetime(2026, 11, 15, tzinfo=UTC))
    kept.start("exp-b-active", holdout_percentage=50, now=datetime(2026, 11, 16, tzinfo=UTC))
    return kept


def rates(found: Any) -> dict[str, tuple[float | None, int]]:
    return {
        str(arm): (answer.measures["success"].value, answer.coverage.part) for arm, answer in found.arms.by_arm.items()
    }


def test_the_active_experiment_has_the_numbers_that_reflexio_gives(
    registry: ExperimentRegistry, newest_log: Path
) -> None:
    found = registry.results(newest_log, "exp-b-active", now=NOW)
    assert found.arms is not None
    by_arm = rates(found)
    assert by_arm["treatment"] == (pytest.approx(0.8, abs=1e-12), 15)
    assert by_arm["holdout"] == (pytest.approx(5 / 7, abs=1e-12), 7)
    (pair,) = found.arms.pairs
    assert pair.lifts["success"].difference.value == pytest.approx(0.08571428571428572, abs=1e-9)
    assert pair.lifts["success"].relative.value == pytest.approx(0.12, abs=1e-9)
    assert found.arms.attributed.share == pytest.approx(22 / 24, abs=1e-12)
    assert found.arms.attributed.whole - found.arms.attributed.part == 2
    assert found.arms.by_arm["treatment"].measures["output_tokens"].value == pytest.approx(15.3125)
    assert (found.arms.checked, found.arms.disagreeing) == (23, 0)


def test_a_stopped_one_keeps_its_results_with_one_verdict_a_session(
    registry: ExperimentRegistry, newest_log: Path
) -> None:
    found = registry.results(newest_log, "exp-a-stopped", now=NOW)
    by_arm = rates(found)
    assert by_arm["treatment"] == (pytest.approx(5 / 7, abs=1e-12), 7)
    # Reflexio counts nine: a session that was judged under two versions is two there.
    assert by_arm["holdout"] == (pytest.approx(5 / 8, abs=1e-12), 8)


def test_an_unknown_experiment_or_log_is_said(registry: ExperimentRegistry, newest_log: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no experiment 'exp-c'"):
        registry.results(newest_log, "exp-c")
    with pytest.raises(LogError):
        registry.results(tmp_path / "gone.db", "exp-b-active")


def made(tmp_path: Path) -> tuple[ExperimentRegistry, Path, list[Verdict[SessionOutcome]]]:
    """An experiment of a week, its log, and the verdicts that count."""
    registry = ExperimentRegistry(tmp_path / "experiments.db", org="my-org")
    registry.start("exp-1", holdout_percentage=50, now=START)
    verdicts = []
    writer = Writer(tmp_path / "reflexio.db")
    for number in range(60):
        user, session, at = f"u{number % 20}", f"s{number}", START + timedelta(hours=number)
        arm = registry.assign(user)
        assert arm is not None
        success = (number * 7) % 10 < (8 if arm.retrieves else 4)
        writer.session(session, user, at, **arm.stamp)
        writer.outcome(session, user, at, success=int(success))
        about = About("transcript", session, user, at=at, arm=arm.arm)
        verdicts.append(Verdict(SessionOutcome(success=success), "agent_success", about=about))
    for session, at in (("before", START - timedelta(seconds=1)), ("after", STOP + timedelta(seconds=1))):
        writer.session(session, "u1", at, **arm.stamp)
        writer.outcome(session, "u1", at)
    for session, at in (("first", START), ("last", STOP)):  # no stamp: in the period, and in no arm
        writer.session(session, "u2", at)
        writer.outcome(session, "u2", at)
    registry.stop("exp-1", now=STOP + timedelta(milliseconds=400))
    return registry, writer.done(), verdicts


def test_results_are_the_lift_of_the_stored_outcomes(tmp_path: Path) -> None:
    registry, log, verdicts = made(tmp_path)
    found = registry.results(log, "exp-1", now=NOW)
    assert found.arms is not None
    (pair,) = found.arms.pairs
    lift = success_rate.lift(verdicts, cluster="user", treatment="treatment", control="holdout", randomised=True)
    for one, other in (
        (pair.lifts["success"].difference, lift.difference),
        (pair.lifts["success"].relative, lift.relative),
    ):
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)
    assert "observational" not in pair.lifts["success"].flags
    assert sum(pair.allocation.assigned.values()) == 20
    assert pair.allocation.sample_ratio is not None


def test_sessions_count_from_the_second_of_the_start_to_that_of_the_stop(tmp_path: Path) -> None:
    registry, log, _ = made(tmp_path)
    found = registry.results(log, "exp-1", now=NOW)
    assert found.arms is not None
    assert (found.arms.attributed.part, found.arms.attributed.whole) == (60, 62)
    assert found.health.outside_the_period == 2


def test_what_is_later_than_the_reading_time_does_not_exist_yet(tmp_path: Path) -> None:
    registry, log, _ = made(tmp_path)
    found = registry.results(log, "exp-1", now=START + timedelta(hours=9))
    assert found.arms is not None
    assert found.arms.attributed.part == 10


def ran(folder: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = main(["experiment", "results", *arguments])
    return code, out.getvalue(), err.getvalue()


def test_the_command_prints_the_arms_compared(registry: ExperimentRegistry, newest_log: Path, tmp_path: Path) -> None:
    code, out, err = ran(tmp_path, "exp-b-active", str(newest_log), "--now", "2026-12-01")
    assert (code, err) == (0, "")
    assert out.startswith("exp-b-active: active since 2026-11-16 00:00 UTC, 50% held out\n\ntreatment v holdout")
    assert "+8.6pp" in out
    code, out, _ = ran(tmp_path, "exp-b-active", str(newest_log), "--now", "2026-12-01", "--json")
    found = json.loads(out)
    assert found["experiment"]["experiment_id"] == "exp-b-active"
    assert found["evaluated_session_coverage"] == pytest.approx(22 / 24)
    assert found["unattributed_evaluated_session_count"] == 2
    assert found["arms"]["pairs"][0]["lifts"]["success"]["difference"]["value"] == pytest.approx(0.0857142857)


def test_intervals_that_hold_at_every_look_are_wider(
    registry: ExperimentRegistry, newest_log: Path, tmp_path: Path
) -> None:
    ask = ["exp-b-active", str(newest_log), "--now", "2026-12-01"]
    assert ran(tmp_path, *ask, "--always-valid")[1] != ran(tmp_path, *ask)[1]
    code, _, err = ran(tmp_path, "exp-c", str(newest_log))
    assert (code, "no experiment 'exp-c'" in err) == (2, True)
