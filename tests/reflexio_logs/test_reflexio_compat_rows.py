"""Rows of odd forms, in Reflexio's own numbers: counted as it counts, and those that break its answers skipped."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_writing import BEGIN, Writer

from evalr.errors import InputError, LogError, RecordError
from evalr.reflexio import (
    Config,
    Experiment,
    compat_figures,
    get_agent_success_evaluation_results,
    get_all_interactions,
    get_dashboard_stats,
    get_playbook_application_stats,
    get_requests,
    get_retrieved_learning_evaluation_results,
    healthz_eval,
    lift_tile,
    metadata_groups,
    open_store,
    overview,
    overview_with_groups,
    recent_shadow_comparisons,
    regeneration_candidates,
    regeneration_sample,
    retrieval_experiment_results,
)

DAY = 86_400
FROM = int(BEGIN.timestamp())
NOW = BEGIN + timedelta(days=20)


@pytest.fixture
def log(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "reflexio_x.db")


def page(path: Path, **options: Any) -> dict[str, Any]:
    with open_store(path) as store:
        return overview(store, **{"since": FROM, "until": FROM + 10 * DAY, "now": NOW, **options})


def answered(path: Path, answer: Callable[..., Any], *given: Any, **options: Any) -> tuple[Any, dict[str, int]]:
    with open_store(path) as store:
        account = store.account()
        found = answer(store, *given, account=account, **options)
        return found, dict(account.left_out.counts)


# -- one bad row -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"number_of_correction_per_session": -1}, "wrong value in 'number_of_correction_per_session'"),
        ({"number_of_correction_per_session": "many"}, "wrong type in 'number_of_correction_per_session'"),
        ({"tags": "{"}, "unreadable tags"),
        ({"tags": '{"a": 1}'}, "unreadable tags"),
        ({"tags": "[1]"}, "unreadable tags"),
        ({"user_turns_to_resolution": "soon"}, "wrong type in 'user_turns_to_resolution'"),
        ({"at": "2026-09-01Tbefore"}, "unreadable time"),
    ],
    ids=str,
)
def test_a_result_that_breaks_its_answers(row: dict[str, Any], reason: str, log: Writer) -> None:
    log.session("s1", "ada")
    log.outcome("s1", "ada", success=1)
    log.outcome("s1", "ada", success=0, **row)
    path = log.done()
    found, left_out = answered(path, overview, since=FROM, until=FROM + 10 * DAY, now=NOW)
    assert (found["hero"]["regular_success_rate_pp"], left_out) == (100.0, {reason: 1})
    config = Config(experiments=[Experiment("e", 50.0, BEGIN)])
    found, left_out = answered(path, retrieval_experiment_results, "e", config=config, now=NOW)
    assert (found["unattributed_evaluated_session_count"], left_out) == (1, {reason: 1})
    found, left_out = answered(path, get_agent_success_evaluation_results)
    assert (len(found["agent_success_evaluation_results"]), left_out) == (1, {reason: 1})
    with open_store(path) as store, pytest.raises(RecordError, match="result 2"):
        overview(store, since=FROM, until=FROM + 10 * DAY, account=store.account(strict=True))


def test_a_bad_result_outside_of_the_period_breaks_nothing(log: Writer) -> None:
    log.outcome("s1", "ada", BEGIN)
    log.outcome("s1", "ada", BEGIN + timedelta(days=15), number_of_correction_per_session=-1)
    found, left_out = answered(log.done(), overview, since=FROM, until=FROM + 10 * DAY, now=NOW)
    assert (found["hero"]["regular_success_rate_pp"], left_out) == (100.0, {})


def test_citations_that_break_its_page(log: Writer) -> None:
    good = json.dumps([{"kind": "playbook", "real_id": 7, "title": "a"}, {"kind": "thought", "real_id": "1"}, 3])
    request = log.request("r1", "ada", "s1")
    log.turn(request, BEGIN, "Agent", citations=good)
    log.turn(request, BEGIN, "Agent", citations="[{")
    log.outcome("s1", "ada")
    path = log.done()
    found, left_out = answered(path, overview, since=FROM, until=FROM + DAY, now=NOW)
    assert [(rule["kind"], rule["rule_id"], rule["title"]) for rule in found["rule_attribution"]] == [
        ("playbook", "7", "a")
    ]
    assert left_out == {"unreadable citations": 1}
    found, left_out = answered(path, get_playbook_application_stats, now=NOW)
    assert [stat["applied_count"] for stat in found["stats"]] == [1]
    assert left_out == {"unreadable citations": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"at": "yesterday"}, "unreadable time"),
        ({"better_request": "3"}, "wrong value in 'better_request'"),
    ],
)
def test_a_shadow_verdict_that_breaks_its_page(row: dict[str, Any], reason: str, log: Writer) -> None:
    log.shadow(1, "s1")
    # Times are compared as texts, so that this one is in every period that ends late enough.
    log.shadow(2, "s1", **{"at": BEGIN, **row})
    path = log.done()
    found, left_out = answered(path, overview, since=FROM, until=10**12, now=NOW)
    assert found["shadow_win_rate_trend"]["window_total"]["n"] == 1
    assert left_out == ({} if "at" in row else {reason: 1})


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ({"citations": '[{"kind": "thought", "real_id": "1"}]'}, "unreadable citations"),
        ({"retrieved_learnings": '[{"kind": "thought", "learning_id": "1"}]'}, "unreadable retrieved_learnings"),
        ({"tools_used": "[{"}, "unreadable tools_used"),
        ({"tools_used": '[{"tool_data": {}}]'}, "unreadable tools_used"),
        ({"token_count": -1}, "wrong value in 'token_count'"),
        ({"user_action": "dance"}, "wrong value in 'user_action'"),
    ],
    ids=str,
)
def test_an_interaction_that_breaks_its_lists(turn: dict[str, Any], reason: str, log: Writer) -> None:
    request = log.request("r1", "ada", "s1")
    log.turn(request, BEGIN, "User")
    log.turn(request, BEGIN, "Agent", **turn)
    path = log.done()
    for answer in (get_all_interactions, get_requests):
        found, left_out = answered(path, answer)
        assert left_out == {reason: 1}
        turns = found.get("interactions") or found["sessions"][0]["requests"][0]["interactions"]
        assert [each["role"] for each in turns] == ["User"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"kind": "thought"}, "wrong value in 'kind'"),
        ({"impact": "huge"}, "wrong value in 'impact'"),
        ({"diagnosis": "{"}, "unreadable diagnosis"),
        ({"diagnosis": '{"category": "none", "reason": ""}'}, "unreadable diagnosis"),
    ],
)
def test_a_learning_result_that_breaks_its_list(row: dict[str, Any], reason: str, log: Writer) -> None:
    kept = {"user_id": "ada", "session_id": "s1", "learning_id": "1", "created_at": FROM, "kind": "profile"}
    log.add("retrieved_learning_evaluation", **kept)
    log.add("retrieved_learning_evaluation", **{**kept, **row})
    found, left_out = answered(log.done(), get_retrieved_learning_evaluation_results)
    assert (len(found["results"]), left_out) == (1, {reason: 1})


# -- as it counts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "is_counted"),
    [
        ("2026-09-10T23:59:59+00:00", True),
        ("2026-09-10T23:59:59Z", False),
        ("2026-09-10T23:59:59.000Z", False),
        ("2026-09-10T23:59:59.500000+00:00", False),
        ("2026-09-11T00:00:00+00:00", False),
        ("2026-09-01T00:00:00+00:00", True),
        ("2026-08-31T23:59:59Z", False),
    ],
)
def test_times_are_compared_as_texts_at_the_end_and_then_as_instants(at: str, is_counted: bool, log: Writer) -> None:
    log.outcome("s1", "ada", at)
    assert (page(log.done(), until=FROM + 10 * DAY - 1)["hero"]["state"] == "shadow_off") is is_counted


def test_shadow_verdicts_are_counted_by_the_text_of_their_time(log: Writer) -> None:
    """An instant of the evening before is in the period, and one without a T is not."""
    log.shadow(1, "s1", "2026-09-01T00:30:00+02:00")
    log.shadow(2, "s1", "2026-09-01 05:00:00")
    trend = page(log.done())["shadow_win_rate_trend"]
    assert [(day["date"], day["n"]) for day in trend["daily"]] == [("2026-08-31", 1)]


def test_milliseconds_are_a_period_for_its_database_alone(log: Writer) -> None:
    log.outcome("s1", "ada")
    log.shadow(1, "s1")
    found = page(log.done(), since=FROM * 1000, until=(FROM + DAY) * 1000)
    assert found["hero"]["state"] == "empty"
    assert found["context_tiles"]["success"] == {"current": 0.0, "delta_pp": 0.0}
    assert found["shadow_win_rate_trend"]["window_total"]["n"] == 1


def test_an_open_end_leaves_the_tiles_empty(log: Writer) -> None:
    log.outcome("s1", "ada")
    found = page(log.done(), until=10**12)
    assert found["hero"]["regular_success_rate_pp"] == 100.0
    assert found["context_tiles"]["success"]["current"] == 0.0


def test_the_last_row_of_a_session_decides_for_its_rules(log: Writer) -> None:
    cited = json.dumps([{"kind": "profile", "real_id": "p", "title": ""}])
    log.turn(log.request("r1", "ada", "s1"), BEGIN, "Agent", citations=cited)
    for success in (1, 1, 0):
        log.outcome("s1", "ada", success=success)
    (rule,) = page(log.done())["rule_attribution"]
    assert (rule["successes_with"], rule["failures_with"], rule["net_sessions"]) == (0, 1, -1)


def test_only_five_rules_and_only_sessions_with_a_result(log: Writer) -> None:
    for number in range(7):
        for user in ("ada", "bo"):
            cited = json.dumps([{"kind": "profile", "real_id": f"p{n}", "title": "t"} for n in range(number, 7)])
            log.turn(log.request(f"r{number}{user}", user, f"s{number}"), BEGIN, "Agent", citations=cited)
        log.outcome(f"s{number}", "ada", success=number != 3)
    rules = page(log.done())["rule_attribution"]
    assert [(rule["rule_id"], rule["net_sessions"]) for rule in rules] == [
        ("p6", 5), ("p5", 4), ("p4", 3), ("p2", 3), ("p3", 2),
    ]  # fmt: skip
    assert rules[0]["cited_session_ids"] == [f"s{number}" for number in range(7)]


def test_scores_of_a_set_are_joined_by_the_session_alone(log: Writer) -> None:
    log.connection.execute(
        "CREATE TABLE imported_score (org_id TEXT, source TEXT, source_run_id TEXT, session_id TEXT, scorer_name TEXT, "
        "value REAL, ts INTEGER)"
    )
    end = FROM + 10 * DAY
    for user, source in (("ada", "a"), ("bo", "b")):
        log.session("shared", user, source=source)
        log.outcome("shared", user)
    for value, ts in ((0.5, end), (1.0, end - 1), (0.25, end - 7 * DAY), (0.75, end - 7 * DAY - 1)):
        row = ("x", "braintrust", "run", "shared", "factual", value, ts)
        log.connection.execute("INSERT INTO imported_score VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    log.connection.execute("INSERT INTO imported_score VALUES ('y', 'b', 'r', 's', 'other', 1.0, ?)", [end])
    found = page(log.done(), source_sets={"A": ["a"], "B": ["b"]})
    tile = {
        "scorer_name": "factual",
        "current": pytest.approx(1.75 / 3),
        "n": 3,
        "delta": pytest.approx(1.75 / 3 - 0.5),
    }
    assert found["braintrust_tiles"] == [tile]
    assert [part["braintrust_tiles"] for part in found["source_set_comparison"]["sets"]] == [[tile], [tile]]


def test_recent_comparisons_are_at_least_one_and_of_thirty_days(log: Writer) -> None:
    for number in range(3):
        log.shadow(number, "s1", BEGIN + timedelta(hours=number))
    log.shadow(9, "s1", BEGIN - timedelta(days=12))
    path = log.done()
    found, _ = answered(path, recent_shadow_comparisons, limit=0, now=NOW)
    assert [each["interaction_id"] for each in found["verdicts"]] == ["2"]
    found, _ = answered(path, recent_shadow_comparisons, now=NOW)
    assert len(found["verdicts"]) == 3


def experiment(log: Writer, arms: dict[str, tuple[str, int]]) -> dict[str, Any]:
    for session, (arm, success) in arms.items():
        user = session.partition("/")[0]
        log.session(session, user, retrieval_experiment_id="e", retrieval_experiment_arm=arm)
        log.outcome(session, user, success=success)
    config = Config(experiments=[Experiment("e", 50.0, BEGIN - timedelta(days=1))])
    found, _ = answered(log.done(), retrieval_experiment_results, "e", config=config, now=NOW)
    return dict(found)


def test_an_experiment_without_results_in_an_arm_has_no_lift(log: Writer) -> None:
    found = experiment(log, {"u1/a": ("treatment", 1), "u2/a": ("treatment", 0)})
    assert "success_rate_lift_percentage_points" not in found
    assert found["holdout"] == {
        "arm": "holdout", "assigned_user_count": 0, "published_session_count": 0, "evaluated_user_count": 0,
        "evaluated_session_count": 0, "output_token_session_count": 0,
    }  # fmt: skip


def test_an_arm_of_one_user_has_no_interval_and_a_rate_of_zero_no_relative_lift(log: Writer) -> None:
    found = experiment(log, {"u1/a": ("treatment", 1), "u1/b": ("treatment", 0), "u2/a": ("holdout", 0)})
    assert found["success_rate_lift_percentage_points"] == 50.0
    assert "confidence_interval_95_percentage_points" not in found
    assert "relative_success_lift" not in found


def test_outcomes_that_are_all_the_same_have_an_interval_of_no_width(log: Writer) -> None:
    arms = {f"{user}/a": (arm, int(arm == "treatment")) for user, arm in
            zip(("u1", "u2", "u3", "u4"), ("treatment", "treatment", "holdout", "holdout"), strict=True)}  # fmt: skip
    assert experiment(log, arms)["confidence_interval_95_percentage_points"] == [100.0, 100.0]


@pytest.mark.parametrize(
    ("role", "is_output"),
    [(" USER\t", False), ("user", False), ("USER\u00a0", True), ("human", True), ("", True), ("tool", True)],
)
def test_what_counts_as_output(role: str, is_output: bool, log: Writer) -> None:
    request = log.request("r", "u", "s", retrieval_experiment_id="e", retrieval_experiment_arm="treatment")
    log.turn(request, BEGIN, role, token_count=7)
    config = Config(experiments=[Experiment("e", 50.0, BEGIN)])
    found, _ = answered(log.done(), retrieval_experiment_results, "e", config=config, now=NOW)
    assert found["treatment"]["average_output_tokens"] == (7.0 if is_output else 0.0)


def test_a_session_with_output_that_was_not_counted_has_no_tokens(log: Writer) -> None:
    arm = {"retrieval_experiment_id": "e", "retrieval_experiment_arm": "holdout"}
    log.turn(log.request("r1", "u", "s1", **arm), BEGIN, "Agent", token_count=None)
    log.turn(log.request("r2", "u", "s2", **arm), BEGIN, "Agent", token_count=5)
    log.request("r3", "u", "s3", **arm)
    config = Config(experiments=[Experiment("e", 50.0, BEGIN)])
    found, _ = answered(log.done(), retrieval_experiment_results, "e", config=config, now=NOW)
    holdout = found["holdout"]
    assert (holdout["output_token_session_count"], holdout["average_output_tokens"]) == (2, 2.5)


@pytest.mark.parametrize("indexes", [True, False])
def test_the_first_request_of_one_second_is_that_of_the_lower_id(indexes: bool, tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db", indexes=indexes)
    log.request("r2", "ada", "s1", source="second")
    log.request("r1", "ada", "s1", source="first")
    log.outcome("s1", "ada")
    assert page(log.done())["source_set_comparison"]["available_sources"] == ["first"]


def test_the_first_tag_of_one_second_is_that_of_the_first_row(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db", "0.2.25")
    log.request("r2", "ada", "s1", metadata='{"reflexio_retrieval_enabled": true}')
    log.request("r1", "ada", "s1", metadata='{"reflexio_retrieval_enabled": false}')
    log.outcome("s1")
    found, _ = answered(log.done(), metadata_groups, since=FROM, until=FROM + DAY)
    assert found["totals"] == {"treatment": [1, 1.0], "control": [0, 0.0], "untagged": [0, 0.0]}
    assert found["lift"]["shown"] == "no estimate"


@pytest.mark.parametrize(
    ("metadata", "group"),
    [
        (b'{"reflexio_retrieval_enabled": true}', "treatment"),
        ('{"reflexio_retrieval_enable\\u0064": true}', "treatment"),
        ('{"reflexio_retrieval_enabled": true, "reflexio_retrieval_enabled": false}', "control"),
        ('{"x": "\\ud800", "reflexio_retrieval_enabled": true}', "treatment"),
        ('\ufeff{"reflexio_retrieval_enabled": true}', "untagged"),
        ('{"reflexio_retrieval_enabled": true} ;', "untagged"),
        ('"{\\"reflexio_retrieval_enabled\\": true}"', "untagged"),
        ('{"reflexio_retrieval_enabled": 1}', "untagged"),
        ("[" * 100_000, "untagged"),
    ],
    ids=range(9),
)
def test_forms_of_metadata(metadata: Any, group: str, tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db", "0.2.25")
    log.request("r1", "ada", "s1", metadata=metadata)
    log.outcome("s1")
    found, _ = answered(log.done(), metadata_groups, since=FROM, until=FROM + DAY)
    assert found["totals"][group] == [1, 1.0]


def test_a_session_of_two_users_that_nothing_tells_apart_is_untagged_by_user(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db", "0.2.25")
    for user in ("ada", "bo"):
        log.request(f"r{user}", user, "s1", metadata='{"reflexio_retrieval_enabled": true}')
    log.outcome("s1")
    path = log.done()
    assert answered(path, metadata_groups, since=FROM, until=FROM + DAY)[0]["totals"]["treatment"][0] == 1
    found, _ = answered(path, metadata_groups, since=FROM, until=FROM + DAY, join="user")
    assert found["totals"]["untagged"][0] == 1


def test_the_dashboard_counts_days_however_times_are_written(log: Writer) -> None:
    request = log.request("r", "u", "s")
    for at in ("2026-09-02T10:00:00+00:00", "2026-09-02T10:00:00Z", "2026-09-02 23:00:00", "2026-09-03T00:30:00+01:00"):
        log.turn(request, at, "User")
    for at in ("2026-02-30T10:00:00+00:00", "2026-09-02T24:00:01+00:00", "2026-09-02Tnoon"):
        log.turn(request, at, "User")
    found, left_out = answered(log.done(), get_dashboard_stats, now=NOW)
    day = int(datetime(2026, 9, 2, tzinfo=UTC).timestamp())
    assert found["stats"]["interactions_time_series"] == [{"timestamp": day, "value": 4.0}]
    assert found["stats"]["current_period"]["total_interactions"] == 6
    assert left_out == {"unreadable time": 2}


def test_states_that_cannot_be_read_are_counted(log: Writer) -> None:
    log.connection.execute("CREATE TABLE _operation_state (service_name TEXT, operation_state TEXT)")
    for name, state in (("a", '{"status": "complete", "failed_impact_chunks": 2}'), ("b", "{")):
        log.connection.execute(
            "INSERT INTO _operation_state VALUES (?, ?)", [f"retrieved_learning_eval::{name}", state]
        )
    found, left_out = answered(log.done(), healthz_eval)
    assert found["retrieved_learning"]["outcome_counts"] == {"complete": 1}
    assert found["retrieved_learning"]["failed_impact_chunks"] == 2
    assert left_out == {"unreadable operation_state": 1}


# -- what makes no sense -----------------------------------------------------------------------------------------------


def test_settings_that_make_no_sense(log: Writer, tmp_path: Path) -> None:
    log.session("s1", "ada")
    with open_store(log.done()) as store:
        wrong: list[dict[str, Any]] = [
            {"bucket": "month"},
            {"since": -1},
            {"since": datetime(2026, 9, 1)},  # noqa: DTZ001  a naive one is what is wrong
            {"since": FROM, "until": FROM - 1},
            {"source_sets": {"A": ["x"], "B": ["x"]}},
            {"source_sets": {"A": []}},
            {"source_sets": {"A": "x"}},
        ]
        for options in wrong:
            with pytest.raises(InputError):
                overview(store, **options)
        with pytest.raises(InputError, match=r"only Reflexio 0\.2\.24 and 0\.2\.25"):
            metadata_groups(store)
        with pytest.raises(InputError):
            overview_with_groups(store, bucket="month")  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"4 sessions has no 5 successes: give \(sessions, successes\)"):
            lift_tile((5, 2), (4, 5))
        with pytest.raises(InputError):
            regeneration_sample(regeneration_candidates(store), size=0)
    (tmp_path / "answers.json").write_text('{"agent_success_evaluation_results": []}', encoding="utf-8")
    with pytest.raises(LogError), open_store(tmp_path / "answers.json") as store:
        overview(store)


def test_lists_can_be_cut(log: Writer) -> None:
    for number in range(5):
        log.session(f"s{number}", "ada", source="a")
        log.outcome(f"s{number}", "ada")
    found = page(log.done(), listed=2, source_sets={"A": ["a"]})["source_set_comparison"]
    assert found["source_sessions"][0]["session_ids"] == found["sets"][0]["session_ids"] == ["s0", "s1"]
    assert found["sets"][0]["session_count"] == 5


@pytest.mark.parametrize("lacking", ["agent_success_evaluation_result", "shadow_comparison_verdicts", None])
def test_an_empty_log_has_figures(lacking: str | None, log: Writer) -> None:
    if lacking is not None:
        log.connection.execute(f"DROP TABLE {lacking}")
    with open_store(log.done()) as store:
        found = compat_figures(store, now=NOW)
    assert found["get_evaluation_overview"]["week"]["hero"] == {
        "state": "empty",
        "regular_success_rate_pp": 0.0,
        "buckets": [],
    }
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("others", [0, 40])
def test_rules_are_the_same_however_much_of_the_log_the_period_is(others: int, log: Writer) -> None:
    for number in range(2 + others):
        at = BEGIN if number < 2 else BEGIN + timedelta(days=15)
        cited = json.dumps([{"kind": "profile", "real_id": "p", "title": f"title {number}"}])
        for user in ("ada", "bo"):
            log.turn(log.request(f"r{number}{user}", user, f"s{number}", at), at, "Agent", citations=cited)
        log.outcome(f"s{number}", "ada", at)
    (rule,) = page(log.done())["rule_attribution"]
    assert (rule["title"], rule["successes_with"], rule["cited_session_ids"]) == ("title 0", 2, ["s0", "s1"])
