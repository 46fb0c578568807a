"""Judging a Reflexio log: what its configuration says, which sessions are in a sample, and where verdicts go."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_writing import BEGIN, Writer

from evalr import FunctionEvaluator, InputError, JournalError
from evalr.inputs import Exchange, LearningUse, Transcript
from evalr.measures import LearningImpact, SessionOutcome, ShadowWin, positive_rate, success_rate
from evalr.reflexio import Config, Conversation, LogGrading, grading_of, reader
from evalr.runs import Readiness
from evalr.verdicts import Failure, Result
from evalr_reflexio.assigning import sampling_fraction
from evalr_reflexio.pinning import pinned_to

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
FIRST, LAST = datetime(2026, 11, 3, tzinfo=UTC), datetime(2026, 11, 27, tzinfo=UTC)
GRADED = Config(
    org="my-org", grades_success=True, sampling_rate=1, evaluation_only_sampling_rate=1, learning_sampling_rate=1
)


class Judges(dict[str, FunctionEvaluator[Any, Any]]):
    """The three families, each counting whom it was asked about."""

    def __init__(self, version: str = "1") -> None:
        self.asked: Counter[str] = Counter()

        def counted(name: str, value: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def judge(given: Any) -> Any:
                self.asked[name] += 1
                return value(given)

            return judge

        win = {"winner": "served", "shown_first": "served"}
        made: dict[str, tuple[type, type, Callable[[Any], Any]]] = {
            "outcome": (Transcript, SessionOutcome, lambda given: SessionOutcome(success=len(given.turns) > 2)),
            "shadow": (Exchange, ShadowWin, lambda given: ShadowWin(**win, treatment=given.treatment)),
            "learning": (LearningUse, LearningImpact, lambda given: LearningImpact(relevant=True, impact="positive")),
        }
        super().__init__(
            {
                name: FunctionEvaluator(f"my_{name}", version, counted(name, value), reads, gives, inline=True)
                for name, (reads, gives, value) in made.items()
            }
        )


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "judged.db"


@pytest.fixture
def grading(newest_log: Path) -> LogGrading:
    return grading_of(newest_log)


def log_of(tmp_path: Path, sessions: int = 40, **row: Any) -> Path:
    """Sessions of two turns, one an hour, each with a shadow answer and a learning."""
    writer = Writer(tmp_path / "reflexio_my-org.db")
    for number in range(sessions):
        at = BEGIN + timedelta(hours=number)
        request = writer.request(f"r{number}", f"u{number % 7}", f"s{number}", at, **row)
        writer.turn(request, at, "User", "please")
        learnings = json.dumps([{"kind": "profile", "learning_id": "p1"}])
        writer.turn(
            request, at + timedelta(minutes=1), "Agent", "done", shadow_content="no", retrieved_learnings=learnings
        )
    writer.connection.execute("CREATE TABLE profiles (profile_id TEXT, content TEXT)")
    writer.connection.execute("INSERT INTO profiles VALUES ('p1', 'likes short answers')")
    return writer.done()


# What the configuration says


def config_file(tmp_path: Path, **success: Any) -> Path:
    path = tmp_path / "config_my-org.json"
    config = {
        "storage_config": {},
        "agent_success_config": {"success_definition_prompt": "It is solved.", **success},
        "tool_can_use": [{"tool_name": "search_docs", "tool_description": "Search."}],
        "eval_sample_n_per_stratum": 3,
        "eval_concurrency_limit": 2,
        "shadow_comparison_judge_prompt_version": "v1.1.0",
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def test_judges_are_set_as_the_configuration_says(tmp_path: Path) -> None:
    grading = grading_of(log_of(tmp_path), config=config_file(tmp_path))
    team = {"success_definition": "It is solved.", "tools": ("search_docs=Search.",)}
    assert grading.settings == {"outcome": team, "shadow": {}, "learning": team}
    assert (grading.config.stratum_size, grading.config.concurrency) == (3, 2)
    assert grading.not_graded == {}
    assert grading_of(tmp_path / "reflexio_my-org.db").config == grading.config  # it lies beside the log


def test_without_a_success_definition_sessions_and_learnings_are_not_graded(tmp_path: Path, journal: Path) -> None:
    grading = grading_of(log_of(tmp_path, 3))
    why = "the configuration has no agent_success_config"
    assert grading.not_graded == {"outcome": why, "learning": why}
    judges = Judges()
    grades = grading.grade_sync("s1", judges, journal=journal)
    assert {name: (grade.status, grade.reason) for name, grade in grades.items()} == {
        "outcome": ("skipped", why),
        "shadow": ("graded", None),
        "learning": ("skipped", why),
    }
    assert judges.asked == {"shadow": 1}


def test_a_definition_that_is_given_stands_for_the_configurations(tmp_path: Path) -> None:
    grading = grading_of(log_of(tmp_path, 1), success_definition="Done.")
    assert grading.not_graded == {}
    assert grading.settings["outcome"] == {"success_definition": "Done."}


def test_only_the_enabled_request_sources_are_graded(tmp_path: Path, journal: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    for number, source in enumerate(("prod", "beta", "")):
        writer.session(f"s{number}", source=source)
    path = writer.done()
    grading = grading_of(path, config=replace(GRADED, request_sources=["prod", ""]))
    results = list(grading.regenerate_sync(Judges(), since=None, until=None, journal=journal))
    assert {result.about.session or result.about.id for result in results} == {"s0", "s2"}
    grade = grading.grade_sync("s1", Judges(), journal=journal)["outcome"]
    assert (grade.status, grade.reason) == ("skipped", "request source 'beta' is not graded")


# Samples


def in_sample(grading: LogGrading, family: str) -> set[str]:
    judges = grading.judges(Judges(), sampled=True)[family]
    return {given.id for given in grading.conversations() if isinstance(judges.parts(given), list)}


def test_each_family_has_a_sample_of_its_own_that_never_changes(tmp_path: Path) -> None:
    config = replace(GRADED, sampling_rate=0.5, learning_sampling_rate=0.5)
    path = log_of(tmp_path, 400)
    grading = grading_of(path, config=config)
    success, learning = in_sample(grading, "outcome"), in_sample(grading, "learning")
    assert (success, learning) == (in_sample(grading, "outcome"), in_sample(grading, "learning"))
    # 400 at 50%, and a quarter in both: five standard deviations either way.
    assert 150 <= len(success) <= 250
    assert 150 <= len(learning) <= 250
    assert 57 <= len(success & learning) <= 143
    higher = in_sample(grading_of(path, config=replace(config, sampling_rate=0.8)), "outcome")
    assert success < higher


def test_in_compat_the_samples_are_reflexios_and_nested(tmp_path: Path) -> None:
    config = replace(GRADED, sampling_rate=0.5, learning_sampling_rate=0.2)
    grading = grading_of(log_of(tmp_path, 200), config=config, compat="reflexio")
    success, learning = in_sample(grading, "outcome"), in_sample(grading, "learning")
    fractions = {f"s{n}": sampling_fraction("my-org", f"u{n % 7}", f"s{n}") for n in range(200)}
    assert success == {name for name, fraction in fractions.items() if fraction < 0.5}
    assert learning == {name for name, fraction in fractions.items() if fraction < 0.2}
    assert learning < success


def test_sessions_for_evaluation_only_have_a_rate_of_their_own(tmp_path: Path) -> None:
    config = replace(GRADED, sampling_rate=0, evaluation_only_sampling_rate=1, learning_sampling_rate=0)
    grading = grading_of(log_of(tmp_path, 5, evaluation_only=1), config=config)
    assert len(in_sample(grading, "outcome")) == 5
    assert in_sample(grading, "learning") == set()
    assert (
        in_sample(grading_of(grading.path, config=replace(config, evaluation_only_sampling_rate=0)), "outcome") == set()
    )


@pytest.mark.parametrize(("usual", "only"), [(0.0, 1.0), (1.0, 0.0)])
def test_learnings_of_sessions_for_evaluation_only_follow_the_rate_of_all_sessions(
    tmp_path: Path, usual: float, only: float
) -> None:
    config = Config(grades_success=True, sampling_rate=usual, evaluation_only_sampling_rate=only)
    grading = grading_of(log_of(tmp_path, 5, evaluation_only=1), config=config)
    assert len(in_sample(grading, "learning")) == 5 * usual
    assert len(in_sample(grading, "outcome")) == 5 * only


@pytest.mark.parametrize("compat", [None, "reflexio"])
@pytest.mark.parametrize(("rate", "judged"), [(0.0, 0), (-1.0, 0), (1.0, 8), (7.0, 8)])
def test_rates_beyond_the_ends_are_none_or_all(tmp_path: Path, compat: Any, rate: float, judged: int) -> None:
    grading = grading_of(log_of(tmp_path, 8), config=replace(GRADED, sampling_rate=rate), compat=compat)
    assert len(in_sample(grading, "outcome")) == judged


def test_what_is_sampled_stands_for_the_others(tmp_path: Path, journal: Path) -> None:
    config = replace(GRADED, sampling_rate=0.5, learning_sampling_rate=0.25)
    results = list(grading_of(log_of(tmp_path, 100), config=config).catch_up_sync(Judges(), journal=journal))
    weights = Counter((result.evaluator, result.about.weight) for result in results if result.about)
    assert dict(weights.keys()) == {"my_outcome": 2.0, "my_learning": 4.0, "my_shadow": None}
    assert weights["my_shadow", None] == 100


# What is due


def test_a_session_is_judged_once_it_has_been_quiet_for_ten_minutes(tmp_path: Path, journal: Path) -> None:
    grading = grading_of(log_of(tmp_path, 3), config=GRADED)
    last = BEGIN + timedelta(hours=2, minutes=1)  # of the third session
    for now, judged in ((last + timedelta(minutes=9, seconds=59), 2), (last + timedelta(minutes=10), 1)):
        judges = Judges()
        list(grading.catch_up_sync(judges, journal=journal, now=now))
        assert judges.asked == {"outcome": judged, "shadow": judged, "learning": judged}
    judges = Judges()
    assert len(list(grading.catch_up_sync(judges, journal=journal, now=NOW))) == 9
    assert judges.asked == {}
    early = list(grading.quiet(now=last, ready=Readiness(timedelta(0))))
    assert [given.id for given in early] == ["s0", "s1", "s2"]


def test_one_that_goes_on_is_judged_anew(tmp_path: Path, journal: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    writer.session("s1")
    path = writer.done()
    list(grading_of(path, config=GRADED).catch_up_sync(Judges(), journal=journal))
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO interactions (request_id, created_at, role, content) VALUES ('r-u1-s1', ?, 'User', 'thanks')",
            ((BEGIN + timedelta(minutes=30)).isoformat(),),
        )
    connection.close()
    judges = Judges()
    (result,) = grading_of(path, config=GRADED).catch_up_sync(judges, journal=journal)
    assert (judges.asked, result.value.success) == ({"outcome": 1}, True)


# One session


def test_a_session_is_graded_on_demand_and_kept_for_a_day(grading: LogGrading, journal: Path) -> None:
    judges = Judges()
    first = grading.grade_sync("s02", judges, journal=journal, now=NOW)
    assert {name: grade.status for name, grade in first.items()} == dict.fromkeys(
        ("outcome", "shadow", "learning"), "graded"
    )
    asked = dict(judges.asked)
    assert first["outcome"].expires_at == NOW + timedelta(hours=24)
    again = grading.grade_sync("s02", judges, journal=journal, now=NOW + timedelta(hours=23, minutes=59))
    assert (all(grade.cached for grade in again.values()), judges.asked) == (True, asked)
    later = grading.grade_sync("s02", judges, journal=journal, now=NOW + timedelta(hours=24))
    assert (later["outcome"].cached, judges.asked["outcome"]) == (False, 2)
    grading.grade_sync("s02", Judges("2"), journal=journal, now=NOW)
    once_more = grading.grade_sync("s02", judges, journal=journal, now=NOW + timedelta(hours=25), again=True)
    assert not once_more["outcome"].cached


def test_it_is_graded_although_it_is_in_no_sample(newest_log: Path, journal: Path) -> None:
    config = replace(GRADED, sampling_rate=0, evaluation_only_sampling_rate=0, learning_sampling_rate=0)
    assert (
        grading_of(newest_log, config=config).grade_sync("s02", Judges(), journal=journal)["outcome"].status == "graded"
    )


def test_of_an_id_that_several_users_use_one_says_whose(grading: LogGrading, journal: Path) -> None:
    with pytest.raises(InputError, match="2 users have a session 's-shared-1': say whose, of 'u01', 'u05'"):
        grading.grade_sync("s-shared-1", Judges(), journal=journal)
    grades = grading.grade_sync("s-shared-1", Judges(), journal=journal, user="u05")
    assert (grades.about.user, grades["outcome"].status) == ("u05", "graded")
    for options, why in (({"user": "u99"}, "has no session 's-shared-1' of user 'u99'"), ({}, "2 users have")):
        with pytest.raises(InputError, match=why):
            grading.grade_sync("s-shared-1", Judges(), journal=journal, **options)
    with pytest.raises(InputError, match="has no session 's99'"):
        grading.grade_sync("s99", Judges(), journal=journal)
    assert not (journal.parent / "s99").exists()


def test_it_works_where_a_loop_is_running(grading: LogGrading, journal: Path) -> None:
    async def within() -> tuple[str, str]:
        awaited = await grading.grade("s02", Judges(), journal=journal, now=NOW)
        return awaited["outcome"].status, grading.grade_sync("s04", Judges(), journal=journal, now=NOW)[
            "outcome"
        ].status

    assert asyncio.run(within()) == ("graded", "graded")


def test_a_session_found_by_its_id_is_the_one_of_the_whole_reading(grading: LogGrading) -> None:
    every = {(given.user, given.id): given for given in grading.conversations()}
    assert len(every) == 44
    for (user, session), given in every.items():
        assert grading.find(session, user=user) == given


# A period


def test_a_period_is_sampled_by_day_and_request_source(grading: LogGrading, journal: Path) -> None:
    run = grading.regenerate_sync(Judges(), since=FIRST, until=LAST, journal=journal, n=1)
    results = list(run)
    sessions = [given for given in grading.conversations() if given.at and FIRST <= given.at < LAST]
    strata = Counter((f"{given.at:%Y-%m-%d}", given.attributes["request_source"]) for given in sessions if given.at)
    assert {stratum.name: (stratum.seen, stratum.taken) for stratum in run.status.strata} == {
        name: (seen, 1) for name, seen in strata.items()
    }
    outcomes = [result for result in results if result.evaluator == "my_outcome"]
    assert sum(result.about.weight or 1 for result in outcomes if result.about) == len(sessions)


def test_with_arms_it_is_sampled_by_day_and_arm(newest_log: Path, journal: Path) -> None:
    grading = grading_of(newest_log, arms="experiment:exp-b-active")
    run = grading.regenerate_sync(Judges(), since=FIRST, until=LAST, journal=journal)
    results = list(run)
    assert {stratum.name[1] for stratum in run.status.strata} == {"treatment", "holdout", None}
    outcomes = [result for result in results if result.evaluator == "my_outcome"]
    lift = success_rate.lift(outcomes, cluster="user", control="holdout")
    assert set(lift.arms) >= {"treatment", "holdout"}


def test_it_goes_on_where_it_was_and_serves_grades(grading: LogGrading, journal: Path) -> None:
    judges = Judges()
    list(grading.regenerate_sync(judges, since=FIRST, until=LAST, journal=journal))
    asked = Counter(judges.asked)
    assert asked["outcome"] > 30
    list(grading.regenerate_sync(judges, since=FIRST, until=LAST, journal=journal))
    assert judges.asked == asked
    assert grading.grade_sync("s02", judges, journal=journal)["outcome"].cached
    list(grading.regenerate_sync(judges, since=FIRST, until=LAST, journal=journal, again=True))
    assert judges.asked == {name: 2 * count for name, count in asked.items()}


def test_the_configurations_stratum_size_stands_unless_another_is_given(tmp_path: Path, journal: Path) -> None:
    grading = grading_of(log_of(tmp_path, 48), config=replace(GRADED, stratum_size=3))
    run = grading.regenerate_sync({"outcome": Judges()["outcome"]}, since=None, until=None, journal=journal)
    assert len(list(run)) == 6
    assert [(stratum.seen, stratum.taken) for stratum in run.status.strata] == [(24, 3), (24, 3)]


# Versions


def test_another_pin_begins_another_epoch_of_shadow_verdicts(tmp_path: Path, journal: Path) -> None:
    path = log_of(tmp_path, 2)
    judges = {"shadow": Judges()["shadow"]}
    for pin, version in (("v1.1.0", "1:pin=v1.1.0"), ("v2", "1:pin=v2"), (None, "1")):
        grading = grading_of(path, config=replace(GRADED, shadow_prompt_version=pin))
        results = list(grading.regenerate_sync(judges, since=None, until=None, journal=journal))
        assert [result.version for result in results] == [version] * 2
        assert len(list(grading.regenerate_sync(judges, since=None, until=None, journal=journal))) == 2


def test_a_family_that_there_is_not_is_refused(grading: LogGrading, journal: Path) -> None:
    with pytest.raises(
        InputError, match="no family of judges is named 'success'; there are: outcome, shadow, learning"
    ):
        grading.grade_sync("s02", {"success": Judges()["outcome"]}, journal=journal)


@pytest.mark.parametrize(("given", "pin"), [("v9", "v9"), ("all", None), (None, "v1.1.0")])
def test_the_command_may_pin_another_version(newest_log: Path, given: str | None, pin: str | None) -> None:
    assert reader.grading(newest_log, shadow_version=given).config.shadow_prompt_version == pin


def test_a_pin_leaves_everything_else_of_a_judge_as_it_is() -> None:
    asked = []

    @dataclass(frozen=True)
    class Priced:
        name: str = "priced"
        version: str = "3"
        verdict_type: type = ShadowWin
        input_type: type = Exchange

        def expected_cost(self, given: Exchange) -> float:
            return 0.25

        def expected_tokens(self, given: Exchange) -> int:
            return 7

        def expected_calls(self, given: Exchange) -> int:
            return 2

        async def evaluate(self, given: Exchange) -> Result[ShadowWin]:
            asked.append(given)
            return Failure("nobody is there", "priced", "3", given.about())

    pinned = pinned_to(Priced(), "v2")
    exchange = Exchange(id="1", session="s", message="m", served="a", shadow="b")
    assert (pinned.name, pinned.version, pinned.verdict_type, pinned.input_type) == (
        "priced", "3:pin=v2", ShadowWin, Exchange
    )  # fmt: skip
    assert (pinned.expected_cost(exchange), pinned.expected_tokens(exchange), pinned.expected_calls(exchange)) == (
        0.25, 7, 2
    )  # fmt: skip
    assert (pinned.as_of(exchange), pinned.pinned()) == (None, pinned)
    result = asyncio.run(pinned.evaluate(exchange))
    assert isinstance(result, Failure)
    assert (result.error, result.version, asked) == ("nobody is there", "3:pin=v2", [exchange])


def test_a_setting_that_no_judge_has_is_refused(tmp_path: Path) -> None:
    grading = grading_of(log_of(tmp_path, 1), config=config_file(tmp_path))
    with pytest.raises(InputError, match="no judge has a setting 'definition'; there are: "):
        grading.evaluators("openai/some-model", definition="x")
    made = grading.evaluators("openai/some-model")
    other = grading.evaluators("openai/some-model", success_definition="Something else.")
    assert list(made) == ["outcome", "shadow", "learning"]
    assert [made[name].version == other[name].version for name in made] == [False, True, False]


# The log


@pytest.mark.parametrize(("compat", "why"), [("other", "compat='other'"), (None, "shadow='arm' needs arms")])
def test_settings_that_make_no_sense_are_refused(newest_log: Path, compat: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        grading_of(newest_log, compat=compat, shadow="arm")


def test_where_only_the_arm_says_which_answer_had_reflexio_exchanges_without_one_are_left_out(newest_log: Path) -> None:
    grading = grading_of(newest_log, arms="experiment:exp-b-active", shadow="arm")
    sides = Counter((given.arm, each.treatment) for given in grading.conversations() for each in given.exchanges)
    assert set(sides) == {("treatment", "served"), ("holdout", "shadow")}


def test_a_control_by_another_spelling_is_the_control_of_judges_as_it_is_of_reports(newest_log: Path) -> None:
    split = "request-source:Reflexio=prod_with_reflexio;Control=prod_without_reflexio"
    given = [each for each in reader.open(newest_log, arms=split, shadow="arm") if isinstance(each, Exchange)]
    reported = {(each.arm, each.treatment) for each in given}
    grading = grading_of(newest_log, arms=split, shadow="arm")
    judged = {(given.arm, each.treatment) for given in grading.conversations() for each in given.exchanges}
    assert judged == reported == {("Reflexio", "served"), ("Control", "shadow")}


def test_where_no_set_is_the_control_nobody_knows_whose_answers_had_reflexio(newest_log: Path) -> None:
    with pytest.raises(InputError, match="needs a set of request sources labelled control"):
        grading_of(newest_log, arms="request-source:a=prod_with_reflexio;b=prod_without_reflexio", shadow="arm")


def test_answers_and_learnings_that_nobody_can_judge_are_counted(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_my-org.db")
    known, gone = ({"kind": "profile", "learning_id": name} for name in ("p1", "p2"))
    request = writer.request("r1", "u1", "s1")
    first = writer.turn(request, BEGIN, "Agent", "Hello.", shadow_content="Hi.")
    writer.turn(request, BEGIN, "User", "please")
    writer.turn(
        request, BEGIN, "Agent", "done", shadow_content="no", retrieved_learnings=json.dumps([known, gone])
    )  # fmt: skip
    writer.connection.execute("CREATE TABLE profiles (profile_id TEXT, content TEXT)")
    writer.connection.execute("INSERT INTO profiles VALUES ('p1', 'likes short answers')")
    grading = grading_of(writer.done(), config=GRADED)
    for conversation in (grading.find("s1"), *grading.conversations()):
        assert (len(conversation.exchanges), len(conversation.learnings), conversation.gone) == (1, 1, 1)
        assert grading.account is not None
        assert dict(grading.account.left_out.counts) == {
            "answer with a shadow, and no message before it": 1,
            "learning whose text is gone": 1,
        }
        assert str(first) in str(grading.account.left_out)


def test_tags_of_an_older_release_are_arms(tagged_log: Path) -> None:
    grading = grading_of(tagged_log, arms="tag")
    assert {given.arm for given in grading.conversations()} == {"treatment", "control", None}
    assert grading.stratum == ("day", "arm")


def test_a_log_that_somebody_writes_to_is_judged_as_it_is(tmp_path: Path, journal: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db", wal=True)
    writer.session("s1")
    writer.connection.commit()
    grading = grading_of(writer.path, config=GRADED)
    assert grading.grade_sync("s1", Judges(), journal=journal)["outcome"].status == "graded"
    writer.session("s2", at=BEGIN + timedelta(days=1))
    with pytest.raises(InputError, match="has no session 's2'"):
        grading.find("s2")  # not committed yet
    writer.connection.commit()
    assert [given.id for given in grading.conversations()] == ["s1", "s2"]
    writer.done()


def test_nothing_is_ever_written_to_the_log(newest_log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    path = folder / newest_log.name
    shutil.copyfile(newest_log, path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    folder.chmod(0o555)
    try:
        grading = grading_of(path, config=GRADED)
        judges = Judges()
        grading.grade_sync("s02", judges, journal=tmp_path / "j.db")
        list(grading.regenerate_sync(judges, since=FIRST, until=LAST, journal=tmp_path / "j.db"))
        list(grading.catch_up_sync(judges, journal=tmp_path / "j.db"))
        for place in (path, str(path)):
            with pytest.raises(InputError, match="would be in the log, which is only read"):
                grading.grade_sync("s02", judges, journal=place)
    finally:
        folder.chmod(0o755)
    assert [each.name for each in folder.iterdir()] == [path.name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm", "linked"])
def test_a_journal_that_sqlite_would_take_for_a_part_of_the_log_is_refused(
    end: str, newest_log: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copyfile(newest_log, tmp_path / "reflexio.db"))
    place = tmp_path / "reflexio.db"
    if end == "linked":
        place = tmp_path / "journal.db"
        place.hardlink_to(path)
    else:
        place = place.with_name(place.name + end)
    before = sorted(each.name for each in tmp_path.iterdir())
    with pytest.raises(InputError, match="would be in the log, which is only read"):
        grading_of(path, config=GRADED).grade_sync("s02", Judges(), journal=place)
    assert sorted(each.name for each in tmp_path.iterdir()) == before


def test_a_journal_that_is_another_file_is_refused(newest_log: Path, tmp_path: Path) -> None:
    other = tmp_path / "reflexio_other.db"
    shutil.copyfile(newest_log, other)
    before = other.read_bytes()
    with pytest.raises(JournalError):
        grading_of(newest_log, config=GRADED).grade_sync("s02", Judges(), journal=other)
    assert other.read_bytes() == before


def test_what_nobody_can_judge_is_said(tmp_path: Path, journal: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db")
    writer.request("r1", "u1", "silent")
    request = writer.request("r2", "u1", "gone")
    writer.turn(request, BEGIN, "User")
    writer.turn(request, BEGIN, "Agent", retrieved_learnings='[{"kind": "profile", "learning_id": "p9"}]')
    grading = grading_of(writer.done(), config=GRADED)
    silent, gone = (grading.grade_sync(name, Judges(), journal=journal) for name in ("silent", "gone"))
    assert {name: grade.reason for name, grade in silent.items()} == {
        "outcome": "nothing was said",
        "shadow": "no answer with a shadow answer, after a message",
        "learning": "no learning attached to an answer",
    }
    assert gone["learning"].reason == "the texts of its learnings are gone"


def test_results_are_read_by_the_same_summaries(grading: LogGrading, journal: Path) -> None:
    results = list(grading.regenerate_sync(Judges(), since=FIRST, until=LAST, journal=journal))
    learnings = [result for result in results if result.evaluator == "my_learning"]
    assert positive_rate.estimate(learnings).value == 1.0
    assert isinstance(next(grading.conversations()), Conversation)
