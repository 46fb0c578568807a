"""Arms: the strict truth table of tags, sets of request sources, experiments, and assigning by a hash."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reflexio_writing import BEGIN, Writer

from evalr import report
from evalr.errors import InputError, LogError
from evalr.inputs import Transcript
from evalr.logs import read
from evalr.measures import success_rate
from evalr.reflexio import (
    ArmCounts,
    Arms,
    AssignmentRule,
    Config,
    Experiment,
    ExperimentArms,
    SessionRecord,
    SourceArms,
    TagArms,
    arm_of_tag,
    arms_of,
    assign_arm,
    assignments,
    impact,
    open_store,
    read_config,
)
from evalr_reflexio.arm_checks import computed_arm
from evalr_reflexio.assigning import rule_of
from evalr_reflexio.rows import NOT_KEPT

KEY = "reflexio_retrieval_enabled"
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def tagged(folder: Path, *metadata: object) -> Path:
    """A log of 0.2.25 with a session for each metadata, as it is stored."""
    writer = Writer(folder / "reflexio.db", "0.2.25")
    for number, stored in enumerate(metadata):
        writer.session(f"s{number}", at=BEGIN + timedelta(hours=number), metadata=stored)
    return writer.done()


def readings(path: Path, arms: Arms) -> list[tuple[str | None, str | None, str | None]]:
    with open_store(path) as store:
        return [tuple(arms.read(record)) for record in store.sessions(store.account())]


# The truth table


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ('{"reflexio_retrieval_enabled": true}', ("treatment", None, None)),
        ('{"reflexio_retrieval_enabled": false}', ("control", None, None)),
        ('{"reflexio_retrieval_enabled": "true"}', (None, "another type", '"true"')),
        ('{"reflexio_retrieval_enabled": "False"}', (None, "another type", '"False"')),
        ('{"reflexio_retrieval_enabled": 1}', (None, "another type", "1")),
        ('{"reflexio_retrieval_enabled": 0}', (None, "another type", "0")),
        ('{"reflexio_retrieval_enabled": 1.0}', (None, "another type", "1.0")),
        ('{"reflexio_retrieval_enabled": null}', (None, "another type", "null")),
        ('{"reflexio_retrieval_enabled": [true]}', (None, "another type", "[true]")),
        ('{"reflexio_retrieval_enabled": {}}', (None, "another type", "{}")),
        ("{}", (None, "key missing", None)),
        ('{"Reflexio_Retrieval_Enabled": true}', (None, "key missing", None)),
        ('{"reflexio_retrieval_enabled ": true}', (None, "key missing", None)),
        ("null", (None, "metadata is no map", "null")),
        ("[true]", (None, "metadata is no map", "[true]")),
        ("true", (None, "metadata is no map", "true")),
        ("", (None, "metadata is no map", "not JSON")),
        ('\ufeff{"reflexio_retrieval_enabled": true}', (None, "metadata is no map", "not JSON")),
        ('{"reflexio_retrieval_enabled": true} and more', (None, "metadata is no map", "not JSON")),
        (r'"{\"a\": true}"', (None, "metadata is no map", r'"{\\"a\\": true}"')),
        ('{"reflexio\\u005fretrieval_enabled": true}', ("treatment", None, None)),
        ('{"reflexio_retrieval_enabled": true, "reflexio_retrieval_enabled": false}', ("control", None, None)),
        (b'{"reflexio_retrieval_enabled": true}', ("treatment", None, None)),
        ('{"reflexio_retrieval_enabled": NaN}', (None, "another type", "NaN")),
        ("[" * 100_000, (None, "metadata is no map", "not JSON")),
        ('{"a":' * 3000 + "1" + "}" * 3000, (None, "metadata is no map", "not JSON")),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_only_a_literal_true_or_false_says_an_arm(stored: object, expected: tuple[Any, ...], tmp_path: Path) -> None:
    assert readings(tagged(tmp_path, stored), TagArms()) == [expected]


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text() | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just(KEY), inner),
        max_leaves=5,
    )
)
def test_whatever_else_is_untagged_with_a_cause(metadata: Any) -> None:
    reading = arm_of_tag(metadata)
    is_tag = isinstance(metadata, dict) and isinstance(metadata.get(KEY), bool)
    assert (reading.arm is not None) == is_tag
    assert (reading.cause is None) == is_tag
    assert reading.seen is None or reading.seen.isprintable()


def test_without_a_column_nothing_is_tagged() -> None:
    assert arm_of_tag(NOT_KEPT) == (None, "no metadata is kept", None)


def test_the_first_request_decides_and_later_ones_need_no_stamp(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db", "0.2.25")
    writer.request("late", "u1", "s1", BEGIN + timedelta(hours=1), metadata='{"reflexio_retrieval_enabled": false}')
    writer.request("early", "u1", "s1", BEGIN, metadata='{"reflexio_retrieval_enabled": true}')
    writer.request("later", "u1", "s1", BEGIN + timedelta(hours=2), metadata="{}")
    assert readings(writer.done(), TagArms()) == [("treatment", None, None)]


def test_untagged_sessions_are_counted_by_cause_with_the_values_seen(tmp_path: Path) -> None:
    yes = '{"reflexio_retrieval_enabled": "yes"}'
    path = tagged(tmp_path, yes, yes, '{"reflexio_retrieval_enabled": 1}', "{}", '{"reflexio_retrieval_enabled": true}')
    log: Any = read(path, arms="tag")
    items = list(log)
    assert Counter(item.arm for item in items if isinstance(item, Transcript)) == {None: 4, "treatment": 1}
    assert log.arms.sessions == {"treatment": 1}
    assert log.arms.untagged == {"another type": 3, "key missing": 1}
    assert log.arms.seen["another type"] == {'"yes"': 2, "1": 1}
    text = "\n".join(log.notes)
    assert 'sessions in no arm: another type 3 ("yes" 2, 1 1), key missing 1' in text
    assert "their difference is an observation" in text


def test_values_of_a_wrong_type_are_told_apart_up_to_twenty() -> None:
    counts = ArmCounts()
    for number in range(50):
        counts.see(arm_of_tag({KEY: number}))
    assert len(counts.seen["another type"]) == 21
    assert counts.seen["another type"]["others"] == 30


# Request sources


def test_sets_of_request_sources(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db")
    for number, source in enumerate(["a", "b", "", "A", "c"]):
        writer.session(f"s{number}", at=BEGIN + timedelta(hours=number), source=source)
    path = writer.done()
    arms = SourceArms({"treatment": ["a", "b"], "control": [""]})
    assert readings(path, arms) == [
        ("treatment", None, None),
        ("treatment", None, None),
        ("control", None, None),
        (None, "request source in no set", "'A'"),
        (None, "request source in no set", "'c'"),
    ]
    assert (arms.name, arms.labels) == ("request-source:treatment=a,b;control=", ("treatment", "control"))


def test_one_set_alone_is_told_of(newest_log: Path) -> None:
    log = read(newest_log, arms="request-source:treatment=prod_with_reflexio")  # what is left of two without quotes
    list(log)
    assert any("one set of request sources has nothing to be compared with" in note for note in log.notes)


def test_an_experiment_of_which_no_configuration_tells_is_told_of(newest_log: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copy(newest_log, tmp_path / "alone.db"))
    for path, told in ((newest_log, False), (alone, True)):
        log = read(path, arms="experiment:exp-a-stopped")
        list(log)
        assert any("no configuration says when the experiment ran" in note for note in log.notes) is told


def test_a_configuration_that_was_found_by_itself_and_is_none_says_the_way_out(
    newest_log: Path, tmp_path: Path
) -> None:
    log, found = Path(shutil.copy(newest_log, tmp_path)), tmp_path / "config_self-host-org.json"
    found.write_text("{broken")
    with pytest.raises(LogError, match=r"is not JSON.*name another with config=FILE \(--config\)"):
        list(read(log))
    with pytest.raises(LogError, match=r"is not JSON [^.]*$"):
        list(read(log, config=found))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({}, "at least one labelled set"),
        ({"a": []}, "needs a label and a list"),
        ({"": ["x"]}, "needs a label and a list"),
        ({"a": "xy"}, "needs a label and a list"),
        ({"a": ["x"], "b": ["x"]}, "is in the sets 'a' and 'b'"),
    ],
)
def test_sets_that_make_no_sense(sets: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SourceArms(sets)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tag", TagArms()),
        ("request-source:A=x,y;B=z", SourceArms({"A": ["x", "y"], "B": ["z"]})),
        ("request-source: A = x , y ; B =", SourceArms({"A": ["x", "y"], "B": [""]})),
        ("experiment:e:1", ExperimentArms(Experiment("e:1"))),
    ],
)
def test_arms_by_name(text: str, expected: Arms) -> None:
    assert arms_of(text) == expected


@pytest.mark.parametrize(
    "text", ["", "tags", "tag:x", "request-source", "request-source:", "experiment:", "request-source:x"]
)
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match=r"must be 'tag'|is no LABEL=SOURCE"):
        arms_of(text)


def test_a_label_comes_once() -> None:
    with pytest.raises(InputError, match="comes twice"):
        arms_of("request-source:A=x;A=y")


# Experiments


def experiment_log(folder: Path, *rows: tuple[str, str, str | None, str | None]) -> Path:
    """Requests of (user, session, experiment, arm), an hour apart."""
    writer = Writer(folder / "reflexio_self-host-org.db")
    for number, (user, session, experiment, arm) in enumerate(rows):
        at = BEGIN + timedelta(hours=number)
        request = writer.request(
            f"r{number}", user, session, at, retrieval_experiment_id=experiment, retrieval_experiment_arm=arm
        )
        writer.turn(request, at, "User")
    return writer.done()


def test_the_first_request_that_carries_the_experiment_decides(tmp_path: Path) -> None:
    path = experiment_log(
        tmp_path,
        ("u1", "s1", None, None),
        ("u1", "s1", "other", "holdout"),
        ("u1", "s1", "e", "treatment"),
        ("u1", "s1", "e", "holdout"),
        ("u2", "s2", "other", "holdout"),
        ("u3", "s3", "e", None),
    )
    arms = ExperimentArms(Experiment("e"))
    assert readings(path, arms) == [
        ("treatment", None, None),
        (None, "not in the experiment", None),
        (None, "experiment without an arm", "''"),
    ]
    with open_store(path) as store:
        record = next(store.sessions(store.account()))
    assert arms.attributed(record) is record.requests[2]


def test_an_experiment_that_no_request_carries_names_those_that_there_are(tmp_path: Path) -> None:
    path = experiment_log(tmp_path, ("u1", "s1", "exp-1", "treatment"))
    with pytest.raises(InputError, match=r"no request carries an experiment 'exp-2'.*exp-1"):
        list(read(path, arms="experiment:exp-2"))


def test_users_in_both_arms_are_two_assignments(tmp_path: Path) -> None:
    path = experiment_log(
        tmp_path, ("u1", "s1", "e", "treatment"), ("u1", "s2", "e", "treatment"), ("u1", "s3", "e", "holdout")
    )
    with open_store(path) as store:
        found = list(assignments(store.sessions(store.account()), ExperimentArms(Experiment("e"))))
    assert [(each.user, each.session, each.arm) for each in found] == [
        ("u1", None, "treatment"),
        ("u1", None, "holdout"),
    ]
    assert found[0].at == BEGIN


def test_assignments_of_tags_are_of_sessions_unless_users_were_assigned(tmp_path: Path) -> None:
    true = '{"reflexio_retrieval_enabled": true}'
    path = tagged(tmp_path, true, true, "{}")
    for arms, expected in (
        (TagArms(), [("u1", "s0"), ("u1", "s1")]),
        (TagArms(unit="user"), [("u1", None)]),
    ):
        with open_store(path) as store:
            found = list(assignments(store.sessions(store.account()), arms))
        assert [(each.user, each.session) for each in found] == expected


def test_logged_arms_are_checked_against_the_hash(tmp_path: Path) -> None:
    (tmp_path / "config_self-host-org.json").write_text(
        '{"window_size": 10, "retrieval_experiment_history": [{"experiment_id": "e", "holdout_percentage": 50, '
        '"started_at": 1788220800}]}'
    )
    users = [f"u{number}" for number in range(20)]
    right = {user: "treatment" if assign_arm(user, holdout=0.5, experiment="e") else "holdout" for user in users}
    rows = [(user, f"s-{user}", "e", right[user]) for user in users]
    wrong = "holdout" if right["u0"] == "treatment" else "treatment"
    path = experiment_log(tmp_path, *rows, ("u0", "again", "e", wrong))
    log: Any = read(path, arms="experiment:e")
    list(log)
    assert (log.arms.checked, log.arms.disagreeing, log.arms.disagreeing_sessions) == (21, 1, [("u0", "again")])
    assert "20 of 21 sessions are in the arm of their user's hash; not so: 'again' of 'u0'" in "\n".join(log.notes)


def test_a_holdout_is_the_control_of_a_lift(newest_log: Path) -> None:
    """Sessions that began before the experiment are not evaluated by Reflexio: 15 and 7 rows, 8.571429 points."""
    log: Any = read(newest_log, arms="experiment:exp-b-active", compat="reflexio")
    outcomes = [item.result for item in log if getattr(item, "measure", "") == "outcome"]
    started = log.config.experiment("exp-b-active").started_at
    results = [each for each in outcomes if each.evaluator != "customer" and each.about.at >= started]
    lift = success_rate.lift(results, mix_versions=True)
    assert (lift.treatment_arm, lift.control_arm) == ("treatment", "holdout")
    assert [lift.arms[arm].n for arm in ("treatment", "holdout")] == [15, 7]
    assert lift.difference.value == pytest.approx(0.08571428571428575)


def test_arms_of_an_experiment_are_not_called_observational(newest_log: Path) -> None:
    """A hash put the users into them; of tags nobody knows who did."""

    def warnings(arms: str) -> str:
        log = read(newest_log, arms=arms)
        return str(report(log, lift=("treatment", "holdout"), now=datetime(2026, 12, 1, tzinfo=UTC)).to_dict())

    assert "observational" not in warnings("experiment:exp-b-active")
    assert "observational" in warnings("request-source:treatment=prod_with_reflexio;holdout=prod_without_reflexio")


# Assigning


def test_assigning_is_sticky_and_of_about_the_share_asked_for() -> None:
    names = [f"session-{number}" for number in range(20_000)]
    treated = [assign_arm(name, holdout=0.1) for name in names]
    assert treated == [assign_arm(name, holdout=0.1) for name in names]
    share = treated.count(False) / len(names)
    assert abs(share - 0.1) < 4 * math.sqrt(0.09 / len(names))


def test_a_larger_holdout_keeps_who_was_held_out_before() -> None:
    for name in (f"u{number}" for number in range(500)):
        assert assign_arm(name, holdout=0.3) <= assign_arm(name, holdout=0.1)


def test_experiments_are_split_independently() -> None:
    both = Counter(
        (assign_arm(f"u{n}", holdout=0.5, experiment="a"), assign_arm(f"u{n}", holdout=0.5, experiment="b"))
        for n in range(4000)
    )
    assert min(both.values()) > 850


@pytest.mark.parametrize("holdout", [0, 1, -0.1, 10, math.nan, True, "0.1"])
def test_a_holdout_is_a_share(holdout: Any) -> None:
    with pytest.raises(InputError, match="must be a share above 0 and below 1"):
        assign_arm("u1", holdout=holdout)


def test_a_percentage_is_told_as_a_share() -> None:
    with pytest.raises(InputError, match=r"10 percent is 0\.1"):
        assign_arm("u1", holdout=10)


@pytest.mark.parametrize("name", ["", None, 7])
def test_somebody_is_assigned(name: Any) -> None:
    with pytest.raises(InputError, match="must be the id"):
        assign_arm(name, holdout=0.5)


@pytest.mark.parametrize("names", [{"experiment": None}, {"org": None}])
def test_an_experiment_and_an_organisation_are_texts(names: Any) -> None:
    with pytest.raises(InputError, match="=None must be a text"):
        assign_arm("ada", holdout=0.1, **names)


def test_a_lone_surrogate_is_no_id() -> None:
    with pytest.raises(InputError, match="lone surrogate"):
        assign_arm("\ud800", holdout=0.5)


@pytest.mark.parametrize("by", ["session", "user"])
def test_an_arm_can_be_computed_anew_where_the_rule_is_known(by: Any) -> None:
    record = SessionRecord("u1", "s1")
    rule = AssignmentRule(by=by, holdout=0.5, org="o")
    treated = assign_arm("u1" if by == "user" else "s1", holdout=0.5, org="o")
    assert computed_arm(record, TagArms(unit=by), org=None, rule=rule) == ("treatment" if treated else "control")
    sources = SourceArms({"old": ["x"], "new": ["y"]}, unit=by)  # the last one is the control, where none is called so
    assert computed_arm(record, sources, org=None, rule=rule) == ("old" if treated else "new")
    assert computed_arm(record, TagArms(), org="o") is None
    assert computed_arm(SessionRecord("", "s1"), TagArms(unit="user"), org="o", rule=replace(rule, by="user")) is None


@pytest.mark.parametrize("how", ["tag", "request-source"])
@pytest.mark.parametrize("by", ["session", "user"])
def test_logged_arms_are_checked_against_the_rule_that_the_caller_names(tmp_path: Path, how: str, by: str) -> None:
    """In each way of reading: two sessions of sixty were stamped wrong, and one has no stamp at all."""
    writer = Writer(tmp_path / "reflexio.db", "0.2.25")
    wrong = {"s5", "s40"}
    for number in range(61):
        user, session = f"u{number % 20}", f"s{number}"
        treated = assign_arm(user if by == "user" else session, holdout=0.3, experiment="spring")
        stamp = treated != (session in wrong)
        row = {"metadata": f'{{"{KEY}": {"true" if stamp else "false"}}}', "source": "with" if stamp else "without"}
        if number == 60:
            row = {"metadata": "{}", "source": ""}
        writer.session(session, user, BEGIN + timedelta(hours=number), **row)
        writer.outcome(session, user, BEGIN + timedelta(hours=number))
    path = writer.done()
    arms = "tag" if how == "tag" else "request-source:treatment=with;control=without"
    assigned = f"{by}:30%,experiment=spring"
    said = f"58 of 60 sessions are in the arm of their {by}'s hash; not so: 's5' of 'u5', 's40' of 'u0'"

    found = impact(path, arms=arms, assigned=assigned, now=NOW)
    assert found.arms is not None
    assert (found.arms.checked, found.arms.disagreeing, found.arms.checked_by) == (60, 2, by)
    assert found.arms.disagreeing_sessions == (("u5", "s5"), ("u0", "s40"))
    assert said in str(found)
    assert found.to_dict()["arms"]["disagreeing_sessions"] == [["u5", "s5"], ["u0", "s40"]]
    # The rule says what was assigned, and how much of it was meant to be held out.
    assert found.arms.unit == by
    allocation = found.arms.pairs[0].allocation
    assert allocation.sample_ratio is not None
    assert sum(allocation.assigned.values()) + allocation.in_several == (60 if by == "session" else 20)

    log: Any = read(path, arms=arms, assigned=assigned)
    list(log)
    assert (log.arms.checked, log.arms.disagreeing) == (60, 2)
    assert said in "\n".join(log.notes)

    # Another rule is not the one by which they were assigned.
    other = impact(path, arms=arms, assigned=f"{by}:30%", now=NOW).arms
    assert other is not None
    assert other.disagreeing > 10


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("user:10%", AssignmentRule(by="user", holdout=0.1)),
        ("session:0.25", AssignmentRule(by="session", holdout=0.25)),
        ("user:10%, org=acme ,experiment=e:1", AssignmentRule(by="user", holdout=0.1, experiment="e:1", org="acme")),
    ],
)
def test_a_rule_of_assignment_as_a_text(text: str, rule: AssignmentRule) -> None:
    assert rule_of(text) == rule


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"assigned": "10%", "arms": "tag"}, "must be 'user:10%' or 'session:10%'"),
        ({"assigned": "user:10%,org=a,org=b", "arms": "tag"}, "must be 'user:10%'"),
        ({"assigned": "user:10%,who=a", "arms": "tag"}, "must be 'user:10%'"),
        ({"assigned": "user:ten", "arms": "tag"}, "'ten' is no share"),
        ({"assigned": "user:100%", "arms": "tag"}, "above 0 and below 1"),
        ({"assigned": "session:10%", "arms": "tag", "unit": "user"}, "that sessions were"),
        ({"assigned": "user:10%", "arms": TagArms()}, "the arms are of sessions, and assigned=... of users"),
        ({"assigned": "user:10%"}, "name those of the log"),
        ({"assigned": "user:10%", "arms": "request-source:a=x;b=y;c=z"}, "there are 3"),
        ({"assigned": "user:10%", "arms": ExperimentArms(Experiment("e"))}, "checked against its own"),
    ],
)
def test_rules_that_these_arms_cannot_have(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    path = tagged(tmp_path, "{}")
    with pytest.raises(InputError, match=message):
        impact(path, now=NOW, **given)
    with pytest.raises(InputError, match=message):
        list(read(path, **given))


# Configuration


def test_the_configuration_that_reflexio_wrote(newest_log: Path) -> None:
    config = read_config(newest_log.parent / "config_self-host-org.json")
    assert [each.id for each in config.experiments] == ["exp-b-active", "exp-a-stopped"]
    assert config.active_experiment is config.experiments[0]
    assert [each.holdout_percentage for each in config.experiments] == [50.0, 40.0]
    assert config.experiments[1].ended_at is not None
    assert (config.org, config.shadow_prompt_version) == ("self-host-org", "v1.1.0")
    assert (config.grades_success, config.success_definition) == (True, "The user's task is done.")
    assert config.rates == (1.0, 1.0, 1.0)
    assert (config.stratum_size, config.concurrency) == (200, 10)


def test_a_configuration_without_grading(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"storage_config": {"db_path": null}, "agent_success_config": null}')
    config = read_config(path)
    assert (config.grades_success, config.sampling_rate, config.experiments) == (False, 0.05, [])


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ("{}", (0.05, 0.05, 0.05)),
        ('{"sampling_rate": 0.2}', (0.2, 0.2, 0.2)),
        ('{"evaluation_only_sampling_rate": 1.0}', (0.05, 1.0, 0.05)),
        ('{"sampling_rate": 0.2, "evaluation_only_sampling_rate": 1.0}', (0.2, 1.0, 0.2)),
        ('{"sampling_rate": 0.2, "retrieved_learning_sampling_rate": 0.0}', (0.2, 0.2, 0.0)),
    ],
)
def test_a_rate_that_is_not_set_is_that_of_sessions_and_never_that_of_evaluation_only(
    settings: str, rates: tuple[float, ...], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(f'{{"agent_success_config": {settings}}}')
    assert read_config(path).rates == rates


def test_a_configuration_made_by_hand_inherits_as_a_file_does() -> None:
    assert Config(sampling_rate=1.0).rates == (1.0, 1.0, 1.0)
    assert replace(Config(), sampling_rate=0.5, evaluation_only_sampling_rate=1.0).rates == (0.5, 1.0, 0.5)


def test_settings_that_no_server_could_have_are_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    rates = '{"sampling_rate": NaN, "evaluation_only_sampling_rate": -3, "retrieved_learning_sampling_rate": 7}'
    rest = '"eval_sample_n_per_stratum": -1, "eval_concurrency_limit": 0'
    path.write_text(f'\ufeff{{"storage_config": {{}}, "agent_success_config": {rates}, {rest}}}', encoding="utf-8")
    config = read_config(path)
    assert config.rates == (0.05, 0, 1)
    assert (config.stratum_size, config.concurrency) == (200, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is not JSON"),
        ("[]", "neither agent_success_config nor storage_config"),
        ('{"a": 1}', "neither agent_success_config nor storage_config"),
        ('{"storage_config": {"type": "supabase"}}', "From Supabase"),
        ('{"storage_config": {"db_url": "postgresql://x"}}', "From Postgres"),
        ('{"storage_config": {"type": "disk"}}', "From the disk layout"),
        ('{"window_size": 1, "retrieval_experiment_history": [{}]}', "without an experiment_id"),
        (
            '{"window_size": 1, "retrieval_experiment_history": [{"experiment_id": "e", "started_at": "x"}]}',
            "unreadable time",
        ),
        (
            '{"window_size": 1, "retrieval_experiment_history": [{"experiment_id": "e", "holdout_percentage": 150}]}',
            "the holdout_percentage of experiment 'e' is 150: no percentage",
        ),
        (
            '{"window_size": 1, "retrieval_experiment_history": [{"experiment_id": "e", "holdout_percentage": NaN}]}',
            "is nan: no percentage",
        ),
    ],
)
def test_a_file_that_is_no_configuration(text: str, message: str, tmp_path: Path) -> None:
    from evalr.errors import LogError

    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(LogError, match=message):
        read_config(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shadow": "both"}, "must be 'served', 'shadow' or 'arm'"),
        ({"compat": "langfuse"}, "must be None or 'reflexio'"),
        ({"shadow": "arm"}, "needs arms"),
        ({"arm": "tag"}, "has no setting 'arm'"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, str], message: str, newest_log: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(newest_log, **settings)


def test_arms_by_source_need_a_control_to_say_whose_answer_had_reflexio(newest_log: Path) -> None:
    with pytest.raises(InputError, match="a set of request sources labelled control"):
        list(read(newest_log, shadow="arm", arms="request-source:A=prod_with_reflexio;B=prod_without_reflexio"))
