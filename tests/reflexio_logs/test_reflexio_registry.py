"""The registry of retrieval experiments: its rules, also between processes."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from reflexio_writing import HERE, Writer

from evalr import EvalrError, ExperimentConflictError, InputError, RegistryError
from evalr.reflexio import ExperimentRegistry, UserArm, assign_arm

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture
def registry(tmp_path: Path) -> ExperimentRegistry:
    return ExperimentRegistry(tmp_path / "experiments.db", org="my-org")


def test_one_is_active_from_its_start_to_its_stop(registry: ExperimentRegistry) -> None:
    begun = registry.start("exp-1", holdout_percentage=10, now=NOON + timedelta(microseconds=7))
    assert (begun.id, begun.holdout_percentage, begun.started_at, begun.ended_at) == ("exp-1", 10.0, NOON, None)
    assert registry.active == begun
    ended = registry.stop("exp-1", now=NOON + timedelta(days=3))
    assert ended.ended_at == NOON + timedelta(days=3)
    assert registry.active is None
    assert registry.get("exp-1") == ended


def test_all_are_listed_newest_first_and_none_is_lost(registry: ExperimentRegistry) -> None:
    for number in range(4):
        registry.start(f"exp-{number}", holdout_percentage=10 + number, now=NOON)  # all in one second
        if number < 3:
            registry.stop(f"exp-{number}", now=NOON)
    assert [each.id for each in registry.experiments] == ["exp-3", "exp-2", "exp-1", "exp-0"]
    assert registry.active == registry.experiments[0]


def test_a_second_one_waits_for_the_first_to_be_stopped(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10, now=NOON)
    with pytest.raises(
        ExperimentConflictError, match="'exp-1' is active, started at 2026-11-02 12:00:00 UTC, and only"
    ):
        registry.start("exp-2", holdout_percentage=10)
    assert [each.id for each in registry.experiments] == ["exp-1"]


def test_an_id_is_never_used_again(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10, now=NOON)
    for _ in range(2):
        with pytest.raises(ExperimentConflictError, match=r"'exp-1' was started at .*, and an id is never used again"):
            registry.start("exp-1", holdout_percentage=20)
        if registry.active is not None:
            registry.stop("exp-1", now=NOON)
    assert [each.holdout_percentage for each in registry.experiments] == [10.0]


@pytest.mark.parametrize("percentage", [0, 100, -1, 100.5, float("nan"), float("inf"), True, "10", None])
def test_the_holdout_is_strictly_between_0_and_100(registry: ExperimentRegistry, percentage: float) -> None:
    with pytest.raises(InputError, match=r"holdout_percentage=.* must be above 0 and below 100"):
        registry.start("exp-1", holdout_percentage=percentage)
    assert not Path(registry.path).exists()


@pytest.mark.parametrize("percentage", [0.01, 0.1, 50, 99.99])
def test_any_percentage_between_is_kept_as_it_is(registry: ExperimentRegistry, percentage: float) -> None:
    registry.start("exp-1", holdout_percentage=percentage)
    assert registry.get("exp-1").holdout_percentage == percentage


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "..", "-a", "é", "a\n", "a\0", "x" * 129, "\ud800", None, 3])
def test_an_id_that_could_not_stand_in_a_path_or_a_command_is_refused(registry: ExperimentRegistry, name: str) -> None:
    with pytest.raises(InputError, match="experiment id"):
        registry.start(name, holdout_percentage=10)


def test_stopping_what_is_not_there_or_is_over_says_so(registry: ExperimentRegistry) -> None:
    with pytest.raises(RegistryError, match="there is no registry of experiments; starting an experiment makes it"):
        registry.stop("exp-1")
    registry.start("exp-1", holdout_percentage=10, now=NOON)
    with pytest.raises(InputError, match="no experiment 'exp-2' of organisation 'my-org'; there are: exp-1"):
        registry.stop("exp-2")
    registry.stop("exp-1", now=NOON)
    with pytest.raises(ExperimentConflictError, match="'exp-1' was stopped before"):
        registry.stop("exp-1")
    assert registry.get("exp-1").ended_at == NOON


def test_a_clock_that_was_put_back_does_not_keep_one_from_being_stopped(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10, now=NOON)
    assert registry.stop("exp-1", now=NOON - timedelta(hours=1)).ended_at == NOON


def test_users_are_assigned_as_by_reflexios_hash_and_stay_where_they_are(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=40)
    users = [f"u{number}" for number in range(300)]
    arms = [registry.assign(user) for user in users]
    assert arms == [registry.assign(user) for user in users]
    assert [arm.retrieves for arm in arms if arm] == [
        assign_arm(user, holdout=0.4, experiment="exp-1", org="my-org") for user in users
    ]
    held_out = sum(arm is not None and not arm.retrieves for arm in arms)
    assert 85 <= held_out <= 155  # 40% of 300, five standard deviations either way


@pytest.mark.parametrize(("experiment", "percentage"), [("exp-a-stopped", 40), ("exp-b-active", 50)])
def test_the_arms_are_those_that_reflexio_itself_gave(tmp_path: Path, experiment: str, percentage: float) -> None:
    given: dict[str, str] = json.loads((HERE / "functions.json").read_text(encoding="utf-8"))["arms"][experiment]
    registry = ExperimentRegistry(tmp_path / "experiments.db")
    registry.start(experiment, holdout_percentage=percentage)
    assert {user: arm.arm for user in given if (arm := registry.assign(user))} == given


def test_an_assignment_says_what_to_publish(registry: ExperimentRegistry) -> None:
    arm = UserArm("ada", "exp-1", "holdout")
    assert not arm.retrieves
    assert arm.stamp == {"retrieval_experiment_id": "exp-1", "retrieval_experiment_arm": "holdout"}


def test_nobody_is_assigned_after_a_stop(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10, now=NOON)
    assert registry.assign("ada") is not None
    registry.stop("exp-1", now=NOON + timedelta(days=1))
    assert registry.assign("ada") is None
    with pytest.raises(ExperimentConflictError, match=r"'exp-1' was started at .*: nobody is assigned to it any more"):
        registry.assign("ada", experiment="exp-1")
    registry.start("exp-2", holdout_percentage=10)
    assert registry.assign("ada", experiment="exp-2") == registry.assign("ada")
    with pytest.raises(ExperimentConflictError, match=r"'exp-1' was started at .*: nobody is assigned to it any more"):
        registry.assign("ada", experiment="exp-1")
    with pytest.raises(InputError, match="no experiment 'exp-3'"):
        registry.assign("ada", experiment="exp-3")


@pytest.mark.parametrize("user", ["", None, 3])
def test_a_user_without_an_id_cannot_be_assigned(registry: ExperimentRegistry, user: str) -> None:
    with pytest.raises(InputError, match="must be the id of a user"):
        registry.assign(user)


def test_organisations_in_one_file_know_nothing_of_each_other(registry: ExperimentRegistry) -> None:
    other = ExperimentRegistry(registry.path, org="other-org")
    registry.start("exp-1", holdout_percentage=50)
    assert (other.active, list(other.experiments), other.assign("ada")) == (None, [], None)
    other.start("exp-1", holdout_percentage=50)
    users = [f"u{number}" for number in range(60)]
    assert [registry.assign(user) for user in users] != [other.assign(user) for user in users]
    registry.stop("exp-1")
    assert other.active is not None


@pytest.mark.parametrize("org", ["", None, "a\0b", "a\ud800"])
def test_an_organisation_needs_a_name(tmp_path: Path, org: str) -> None:
    with pytest.raises(InputError, match=r"must be the name of an organisation|lone surrogate"):
        ExperimentRegistry(tmp_path / "experiments.db", org=org)


RACER = """
import sys
from evalr import ExperimentConflictError
from evalr.reflexio import ExperimentRegistry

registry = ExperimentRegistry(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    print(getattr(registry, sys.argv[3])(sys.argv[2], **eval(sys.argv[4])).id)
except ExperimentConflictError as error:
    print("conflict:", error)
"""


def raced(path: Path, what: str, names: list[str], options: str) -> list[str]:
    """What several processes print that do the same at once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), name, what, options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for each in running:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in running:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    return [each.communicate(timeout=60)[0].strip() for each in running]


def test_of_several_processes_that_start_at_once_one_does(tmp_path: Path) -> None:
    path = tmp_path / "experiments.db"
    told = raced(path, "start", [f"exp-{n}" for n in range(4)], "{'holdout_percentage': 10}")
    (winner,) = [line for line in told if not line.startswith("conflict:")]
    assert all(f"{winner!r} is active" in line for line in told if line != winner)
    registry = ExperimentRegistry(path)
    assert [each.id for each in registry.experiments] == [winner]
    told = raced(path, "stop", [winner] * 3, "{}")
    assert sorted(line == winner for line in told) == [False, False, True]
    assert all("was stopped before" in line for line in told if line != winner)


def test_the_file_itself_keeps_the_history(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10, now=NOON)
    registry.stop("exp-1", now=NOON)
    with sqlite3.connect(registry.path) as connection:
        for change in (
            "DELETE FROM experiments",
            "UPDATE experiments SET ended_at = NULL",
            "UPDATE experiments SET holdout_percentage = 20",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(change)
    connection.close()
    assert len(registry.experiments) == 1


def test_a_file_of_another_kind_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    database, text = tmp_path / "other.db", tmp_path / "text.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    text.write_text("no database, but a text that is long enough to be told from one" * 20, encoding="utf-8")
    for path, why in ((database, "is no registry of experiments"), (text, "file is not a database")):
        before = path.read_bytes()
        with pytest.raises(RegistryError, match=why):
            ExperimentRegistry(path).start("exp-1", holdout_percentage=10)
        with pytest.raises(RegistryError, match=why):
            ExperimentRegistry(path).assign("ada")
        assert path.read_bytes() == before


def test_a_log_of_reflexios_that_is_named_for_a_registry_is_left_as_it_is(tmp_path: Path) -> None:
    """With a -wal that a program left behind, which SQLite would put into the database as soon as it could write."""
    writer = Writer(tmp_path / "written.db", wal=True)
    writer.session("s1")
    writer.connection.commit()
    folder = tmp_path / "left"
    folder.mkdir()
    for each in tmp_path.glob("written.db*"):
        shutil.copyfile(each, folder / each.name)
    writer.done()
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    assert "written.db-wal" in before
    registry = ExperimentRegistry(folder / "written.db")
    for ask in (
        lambda: registry.start("exp-1", holdout_percentage=10),
        lambda: registry.stop("exp-1"),
        lambda: registry.assign("ada"),
    ):
        with pytest.raises(RegistryError, match="is no registry of experiments: name another file"):
            ask()
        assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


KILLED = """
import os, signal, sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE experiments SET ended_at = '2030-01-01T00:00:00+00:00'")
connection.execute("CREATE TABLE large (x)")
for _ in range(500):
    connection.execute("INSERT INTO large VALUES (zeroblob(3000))")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_process_was_writing_that_was_killed_is_undone_by_whoever_asks_next(
    registry: ExperimentRegistry,
) -> None:
    begun = registry.start("exp-1", holdout_percentage=10)
    subprocess.run([sys.executable, "-c", KILLED, str(registry.path)], check=False)
    assert Path(f"{registry.path}-journal").exists()
    assert registry.assign("ada") is not None
    assert registry.active == begun


def test_a_path_that_no_system_takes_is_said() -> None:
    with pytest.raises(RegistryError):
        ExperimentRegistry("x" * 5_000).assign("ada")


def test_asking_makes_no_file(registry: ExperimentRegistry) -> None:
    for ask in (lambda: registry.active, lambda: registry.experiments, lambda: registry.assign("ada")):
        with pytest.raises(RegistryError, match="there is no registry"):
            ask()
    assert list(Path(registry.path).parent.iterdir()) == []


def test_one_made_by_a_later_evalr_is_left_alone(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10)
    with sqlite3.connect(registry.path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(RegistryError, match="made by a later evalr"):
        registry.stop("exp-1")


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_says_so(seed: int, registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10)
    path = Path(registry.path)
    content, chance = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(200):
        content[chance.randrange(100, len(content))] = chance.randrange(128, 256)
    path.write_bytes(bytes(content))
    with pytest.raises(RegistryError, match=r"cannot be used|is no registry"):
        registry.experiments  # noqa: B018  it is read


@pytest.mark.parametrize("text", ["yesterday", "2026-08-01", "2026-08-01T00:00:00"])
def test_a_time_that_was_written_by_hand_says_so(text: str, registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10)
    with sqlite3.connect(registry.path) as connection:
        connection.execute("DROP TRIGGER ended_once")
        connection.execute("UPDATE experiments SET started_at = ?", (text,))
    connection.close()
    with pytest.raises(RegistryError, match="a time of experiment 'exp-1' cannot be read"):
        registry.assign("ada")


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(RegistryError, match="is no path"):
        ExperimentRegistry("experiments\0.db").start("exp-1", holdout_percentage=10)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(EvalrError, match="unable to open"):
        ExperimentRegistry(tmp_path / "gone" / "experiments.db").start("exp-1", holdout_percentage=10)


def test_assigning_only_reads(registry: ExperimentRegistry) -> None:
    registry.start("exp-1", holdout_percentage=10)
    path = Path(registry.path)
    before = path.read_bytes()
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        assert registry.assign("ada") is not None
        assert [each.name for each in path.parent.iterdir()] == [path.name]
    finally:
        path.parent.chmod(0o755)
    assert path.read_bytes() == before
