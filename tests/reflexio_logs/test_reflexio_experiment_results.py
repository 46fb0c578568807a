"""Results of retrieval experiments: of a registry's experiment, from a log that Reflexio wrote, and from made ones."""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_writing import Writer

from evalr import InputError, LogError, RegistryError
from evalr.cli import main
from evalr.measures import SessionOutcome, success_rate
from evalr.reflexio import Config, ExperimentRegistry, grading_of, impact
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


# ---------------------------------------------------------------------------------------------------------------------
# Arms of a registry, in every way of reading
# ---------------------------------------------------------------------------------------------------------------------


def unstamped(folder: Path, *, file: str = "reflexio.db", org: str = "my-org") -> tuple[Path, dict[str, str]]:
    """A log of 0.2.26, which has no place for an experiment, and a registry beside it; and the arm of each user."""
    registry = ExperimentRegistry(folder / "experiments.db", org=org)
    registry.start("exp-1", holdout_percentage=40, now=START)
    writer = Writer(folder / file, "0.2.26")
    arms = {}
    for number in range(40):
        user, at = f"u{number % 20}", START + timedelta(hours=number)
        arm = registry.assign(user)
        assert arm is not None
        arms[user] = arm.arm
        writer.session(f"s{number}", user, at)
        writer.outcome(f"s{number}", user, at, success=int(number % 3 > 0))
    for session, at in (("before", START - timedelta(seconds=1)), ("after", STOP + timedelta(seconds=1))):
        writer.session(session, "u1", at)
        writer.outcome(session, "u1", at)
    registry.stop("exp-1", now=STOP)
    return writer.done(), arms


def test_arms_of_a_registry_are_those_of_a_log_that_carries_none(tmp_path: Path) -> None:
    path, arms = unstamped(tmp_path)
    found = impact(path, arms="experiment:exp-1", now=NOW).arms
    assert found is not None
    sessions = Counter(arms[f"u{number % 20}"] for number in range(40))
    assert set(sessions) == {"treatment", "holdout"}
    assert {arm: answer.coverage.whole for arm, answer in found.by_arm.items()} == {**sessions, None: 2}
    assert found.untagged == {"began while the experiment did not run": 2}
    assert (found.unit, found.randomised) == ("user", True)
    assert (found.attributed.part, found.attributed.whole) == (40, 40)
    assert found.pairs[0].control == "holdout"
    assert found.pairs[0].allocation.assigned == Counter(arms.values())
    assert found.pairs[0].allocation.sample_ratio is not None
    assert found.checked == 0  # against itself it would always agree
    assert "no request carries the experiment" in found.notes[0]
    assert found.notes[0] in str(impact(path, arms="experiment:exp-1", now=NOW))
    results = ExperimentRegistry(tmp_path / "experiments.db", org="my-org").results(path, "exp-1", now=NOW).arms
    assert results is not None
    assert results.pairs[0].allocation == found.pairs[0].allocation
    mine, theirs = (each.pairs[0].lifts["success"].difference for each in (found, results))
    assert (mine.value, mine.low, mine.high) == (theirs.value, theirs.low, theirs.high)


def test_what_began_within_the_second_of_the_stop_is_in_it_whoever_counts(tmp_path: Path) -> None:
    registry = ExperimentRegistry(tmp_path / "experiments.db")
    registry.start("exp-1", holdout_percentage=40, now=START)
    registry.stop("exp-1", now=STOP)
    writer = Writer(tmp_path / "reflexio.db")
    stamp = {"retrieval_experiment_id": "exp-1", "retrieval_experiment_arm": "treatment"}
    for number, after in enumerate((0.5, 1.0)):
        at = STOP + timedelta(seconds=after)
        writer.session(f"s{number}", "u1", at, **stamp)
        writer.outcome(f"s{number}", "u1", at)
    path = writer.done()
    found, all_of_it = (registry.results(path, "exp-1", now=NOW), impact(path, arms="experiment:exp-1", now=NOW))
    assert found.arms is not None
    assert all_of_it.arms is not None
    assert found.success.n == 1
    assert found.arms.notes == ()
    assert found.arms.attributed == all_of_it.arms.attributed == (1, 1)
    (note,) = all_of_it.arms.notes
    assert note.startswith("1 judged session of these arms began while the experiment did not run")


def test_arms_that_the_log_carries_are_read_and_checked_by_a_registrys_percentage(tmp_path: Path) -> None:
    _, log, _ = made(tmp_path)
    found = impact(log, arms="experiment:exp-1", now=NOW).arms
    assert found is not None
    ran = f"{START:%Y-%m-%d %H:%M} to {STOP:%Y-%m-%d %H:%M} UTC"
    (note,) = found.notes
    assert note == (
        f"2 judged sessions of these arms began while the experiment did not run ({ran}): "
        "--since and --until leave such out"
    )
    # Two that were stamped outside its time have another user's arm.
    assert (found.checked, found.disagreeing) == (62, 2)
    assert found.disagreeing_sessions == (("u1", "before"), ("u1", "after"))
    assert found.pairs[0].allocation.sample_ratio is not None
    assert (found.attributed.part, found.attributed.whole) == (60, 62)


@pytest.mark.parametrize("where", ["beside", "elsewhere"])
def test_the_report_reads_a_registry(tmp_path: Path, where: str) -> None:
    path, arms = unstamped(tmp_path)
    extra = []
    if where == "elsewhere":
        kept = tmp_path / "elsewhere.db"
        (tmp_path / "experiments.db").rename(kept)
        extra = ["--registry", str(kept)]
        code, _, err = evalr(tmp_path, "report", str(path), "--arms", "experiment:exp-1")
        assert (code, "no request carries an experiment 'exp-1'; there are none" in err) == (2, True)
    code, out, err = evalr(
        tmp_path, "report", str(path), "--arms", "experiment:exp-1", "--now", "2026-12-01", "--json", *extra
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    by_arm = {each["arm"]: each["coverage"]["whole"] for each in found["further"]["arms"]["by_arm"]}
    assert by_arm == {**Counter(arms[f"u{number % 20}"] for number in range(40)), None: 2}
    code, out, _ = evalr(tmp_path, "report", str(path), "--arms", "experiment:exp-1", "--now", "2026-12-01", *extra)
    assert "treatment v holdout · experiment:exp-1" in out
    assert "no request carries the experiment" in " ".join(out.split())


def test_a_named_registry_goes_before_the_configuration_and_has_to_know_the_experiment(
    newest_log: Path, tmp_path: Path
) -> None:
    kept = ExperimentRegistry(tmp_path / "mine.db")
    kept.start("exp-b-active", holdout_percentage=10, now=datetime(2026, 11, 16, tzinfo=UTC))
    usual = impact(newest_log, arms="experiment:exp-b-active", now=NOW).arms
    mine = impact(newest_log, arms="experiment:exp-b-active", registry=kept.path, now=NOW).arms
    assert usual is not None
    assert mine is not None
    assert (usual.disagreeing, mine.disagreeing > 0) == (0, True)  # which 10% would have given other arms
    with pytest.raises(InputError, match=r"no experiment 'exp-a-stopped'.*exp-b-active"):
        impact(newest_log, arms="experiment:exp-a-stopped", registry=kept.path, now=NOW)


def test_a_file_beside_the_log_that_is_no_registry_is_left_alone(tmp_path: Path) -> None:
    path, _ = unstamped(tmp_path)
    (tmp_path / "experiments.db").write_bytes(b"my own")
    with pytest.raises(InputError, match="no request carries an experiment 'exp-1'"):
        impact(path, arms="experiment:exp-1", now=NOW)
    with pytest.raises(RegistryError):
        impact(path, arms="experiment:exp-1", registry=tmp_path / "experiments.db", now=NOW)


def test_the_judge_command_puts_sessions_into_a_registrys_arms(tmp_path: Path) -> None:
    path, arms = unstamped(tmp_path)
    found = grading_of(path, arms="experiment:exp-1", config=Config(grades_success=True))
    assert {each.user: each.arm for each in found.conversations() if each.arm} == arms


def test_a_session_of_nobody_is_in_no_arm_of_a_registry(tmp_path: Path) -> None:
    ExperimentRegistry(tmp_path / "experiments.db").start("exp-1", holdout_percentage=40, now=START)
    writer = Writer(tmp_path / "reflexio.db", "0.2.26")
    writer.session("s1", "", START)
    writer.outcome("gone", "u9", START)
    found = impact(writer.done(), arms="experiment:exp-1", now=NOW).arms
    assert found is not None
    assert found.untagged == {"no user": 1, "no request": 1}


# ---------------------------------------------------------------------------------------------------------------------
# Organisations
# ---------------------------------------------------------------------------------------------------------------------


def test_a_registry_of_another_organisation_than_the_logs_is_noted(tmp_path: Path) -> None:
    path, _ = unstamped(tmp_path, file="reflexio_acme.db")
    found = ExperimentRegistry(tmp_path / "experiments.db", org="my-org").results(path, "exp-1", now=NOW)
    assert found.arms is not None
    assert "one of organisation 'my-org' in " in found.arms.notes[0]
    assert "and the log is of 'acme'" in found.arms.notes[0]
    by_report = impact(path, arms="experiment:exp-1", now=NOW).arms
    assert by_report is not None
    assert by_report.notes == found.arms.notes
    code, out, _ = ran(
        tmp_path, "exp-1", path.name, "--org", "my-org", "--registry", "experiments.db", "--now", "2026-12-01"
    )
    assert code == 0
    assert "and the log is of 'acme'" in " ".join(out.split())
    code, out, _ = ran(tmp_path, "exp-1", path.name, "--org", "my-org", "--now", "2026-12-01", "--json")
    assert any("and the log is of 'acme'" in note for note in json.loads(out)["arms"]["notes"])


def test_the_same_organisation_is_not_worth_a_word(tmp_path: Path) -> None:
    path, _ = unstamped(tmp_path, file="reflexio_my-org.db")
    found = impact(path, arms="experiment:exp-1", now=NOW).arms
    assert found is not None
    assert not any("organisation" in note for note in found.notes)


def test_an_experiment_of_another_organisation_is_said_to_be_there(tmp_path: Path) -> None:
    path, _ = unstamped(tmp_path, file="reflexio_acme.db")
    with pytest.raises(InputError, match=r"no experiment 'exp-1' of organisation 'acme'; it is one of 'my-org'"):
        ExperimentRegistry(tmp_path / "experiments.db", org="acme").results(path, "exp-1", now=NOW)


def test_of_several_organisations_with_an_id_it_is_the_logs(tmp_path: Path) -> None:
    path, _ = unstamped(tmp_path, file="reflexio_acme.db")
    kept = tmp_path / "experiments.db"
    ExperimentRegistry(kept, org="other").start("exp-1", holdout_percentage=10, now=START)
    with pytest.raises(InputError, match=r"of 2 organisations \('my-org', 'other'\), and the log is of none"):
        impact(path, arms="experiment:exp-1", now=NOW)
    ExperimentRegistry(kept, org="acme").start("exp-1", holdout_percentage=25, now=START)
    assert ExperimentRegistry(kept).organisations == ["acme", "my-org", "other"]
    found = impact(path, arms="experiment:exp-1", now=NOW).arms
    assert found is not None
    assert not any("organisation" in note for note in found.notes)


def evalr(folder: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return code, out.getvalue(), err.getvalue()


def ran(folder: Path, *arguments: str) -> tuple[int, str, str]:
    return evalr(folder, "experiment", "results", *arguments)


def test_the_command_prints_the_arms_compared(registry: ExperimentRegistry, newest_log: Path, tmp_path: Path) -> None:
    code, out, err = ran(tmp_path, "exp-b-active", str(newest_log), "--now", "2026-12-01")
    assert (code, err) == (0, "")
    assert out.startswith(
        "exp-b-active: active since 2026-11-16 00:00 UTC, 50% held out\n\nimpact of Reflexio: treatment v holdout"
    )
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
