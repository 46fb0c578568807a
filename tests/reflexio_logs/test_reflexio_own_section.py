"""`evalr report --compat reflexio --json`: every figure of Reflexio's is in it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reflexio_writing import BEGIN, Writer
from test_reflexio_compat import NOW, SETS, SINCE, UNTIL, equal, given, take_rules

from evalr.reports.report import report

ARMS = "request-source:Control=prod_without_reflexio;Reflexio=prod_with_reflexio"


def own(path: Path, **settings: Any) -> dict[str, Any]:
    found = report(path, since=SINCE, until=UNTIL, now=NOW, compat="reflexio", **settings).to_dict()
    figures: dict[str, Any] = found["further"]["reflexio"]
    json.dumps(figures, allow_nan=False)
    return figures


def test_the_lists_of_a_period(newest_log: Path) -> None:
    days = datetime(2026, 11, 10, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC)
    found = report(newest_log, since=days[0], until=days[1], now=NOW, compat="reflexio").to_dict()["further"][
        "reflexio"
    ]
    assert len(found["get_retrieved_learning_evaluation_results_of_the_period"]["results"]) == 21
    equal(found["get_retrieved_learning_evaluation_results"], given("learning_results"))


def test_the_command_prints_every_figure_as_json(newest_log: Path) -> None:
    before = hashlib.sha256(newest_log.read_bytes()).hexdigest()
    asked = ["--since", SINCE.isoformat(), "--until", UNTIL.isoformat(), "--now", NOW.isoformat(), "--json"]
    command = [sys.executable, "-m", "evalr.cli", "report", str(newest_log), "--compat", "reflexio", "--arms", ARMS]
    answer = subprocess.run([*command, *asked], capture_output=True, check=True, text=True)
    found = json.loads(answer.stdout)["further"]["reflexio"]
    week, day, wanted = (
        found["get_evaluation_overview"]["week"],
        found["get_evaluation_overview"]["day"],
        given("overview_day_sets"),
    )
    assert [part["label"] for part in week["source_set_comparison"]["sets"]] == list(SETS)
    del wanted["source_set_comparison"]["sets"][2]
    wanted["source_set_comparison"]["unmatched_session_count"] = 6  # the four without a source, too
    for each in (week, day, wanted):
        take_rules(each)
    equal(day, wanted)
    equal(week["hero"], given("overview_week")["hero"])
    equal(found["retrieval_experiments"], given("experiments"))
    for name in ("exp-a-stopped", "exp-b-active"):
        equal(found["retrieval_experiment_results"][name], given(f"experiment_{name}"))
    equal(found["recent_shadow_comparisons"], given("shadow_recent_100"))
    assert found["significant_shadow_comparisons"] == {"wins": 11, "losses": 7, "ties": 3}
    equal(found["learning_counts"], given("learning_counts"))
    equal(found["get_session_outcomes"], given("session_outcomes"))
    equal(found["get_agent_success_evaluation_results"], given("success_results"))
    equal(found["get_retrieved_learning_evaluation_results"], given("learning_results"))
    of_period = found["get_agent_success_evaluation_results_of_the_period"]
    assert len(of_period["agent_success_evaluation_results"]) == 44
    equal(found["get_dashboard_stats"], given("dashboard_stats"))
    assert found["regenerate"]["regen_candidates"] == 45
    assert found["session_counts"]["sessions_by_id"] == 42
    assert found["session_counts"]["sessions_by_user_and_id"] == 44
    assert found["session_counts"]["results_by_agent_version"]["support-agent@2.1.0"] == 25
    assert found["session_counts"]["learning_results_by_user"]["u01"] == 11
    assert found["skipped"] == {}
    assert hashlib.sha256(newest_log.read_bytes()).hexdigest() == before


def test_groups_by_tag_are_in_it_where_there_are_tags(tagged_log: Path) -> None:
    found, wanted = own(tagged_log), given("f2_0.2.25")
    for bucket in ("day", "week"):
        equal(found[f"get_evaluation_overview_0_2_25_{bucket}"], wanted[bucket])
    equal(found["groups_by_tag_joined_by_session"]["totals"], wanted["totals"])
    user_scoped = given("f2_user_scoped_expected")
    equal(found["groups_by_tag_joined_by_user"]["totals"], {k: user_scoped[k] for k in wanted["totals"]})


def test_the_screen_shows_some_of_them(newest_log: Path) -> None:
    text = str(report(newest_log, since=SINCE, until=UNTIL, now=NOW, compat="reflexio", arms=ARMS))
    section = text[text.index("Reflexio's own figures") :]
    for words in ("70.5%", "44 results", "51.3%", "20 wins, 8 ties, 11 losses", "success, Control", "+8.6 pp"):
        assert words in section


def test_reflexios_figures_stand_beside_the_others(newest_log: Path) -> None:
    asked: dict[str, Any] = {"since": SINCE, "until": UNTIL, "now": NOW, "arms": ARMS}
    without = {*report(newest_log, **asked).to_dict()["further"]}
    assert "arms" in without
    assert {*report(newest_log, compat="reflexio", **asked).to_dict()["further"]} == {*without, "reflexio"}


def test_arms_that_nobody_asked_for_are_said_to_be_the_logs_own(newest_log: Path) -> None:
    text = " ".join(str(report(newest_log, now=NOW)).split())
    assert "no arms were asked for, and these are the ones that sessions carry" in text
    others = text[text.index("sessions could also be compared by") :]
    assert "--arms experiment:exp-a-stopped" in others
    assert "experiment:exp-b-active" not in others


def test_without_compat_there_is_no_such_section(newest_log: Path) -> None:
    assert "reflexio" not in report(newest_log, now=NOW).to_dict()["further"]


def test_answers_of_the_api_are_its_own_figures_already(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(given("success_results")), encoding="utf-8")
    found = report(tmp_path / "results.json", now=NOW, compat="reflexio")
    assert "reflexio" not in found.to_dict()["further"]
    assert any("answers of the HTTP API are Reflexio's own figures" in note for note in found.notes)


def test_what_would_break_an_answer_is_counted_under_its_route(tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db")
    log.session("s1", "ada", BEGIN)
    log.outcome("s1", "ada", BEGIN)
    log.outcome("s1", "ada", BEGIN, number_of_correction_per_session=-1)
    found = report(log.done(), now=NOW, compat="reflexio").to_dict()["further"]["reflexio"]
    reason = "wrong value in 'number_of_correction_per_session'"
    assert found["skipped"]["get_evaluation_overview"] == {reason: {"count": 1, "places": ["result 2"]}}
    assert found["get_evaluation_overview"]["week"]["hero"]["regular_success_rate_pp"] == 100.0


@pytest.mark.parametrize("release", ["0.2.24", "0.2.26", "0.2.29"])
def test_older_releases_have_what_they_have(release: str, tmp_path: Path) -> None:
    log = Writer(tmp_path / "reflexio_x.db", release, indexes=False)
    log.session("s1", "ada", BEGIN)
    log.outcome("s1", "ada", BEGIN)
    found = report(log.done(), now=NOW, compat="reflexio").to_dict()["further"]["reflexio"]
    assert found["get_evaluation_overview"]["week"]["hero"]["regular_success_rate_pp"] == 100.0
    assert found["learning_counts"]["rows"] == 0
    # Before 0.2.27 results keep no user, so that Reflexio finds no request of theirs.
    sources = [
        each["sessions"]
        for each in found["get_evaluation_overview"]["week"]["source_set_comparison"]["source_sessions"]
    ]
    assert sources == [[{"user_id": "ada" if release > "0.2.26" else "", "session_id": "s1"}]]


def test_a_verdict_on_a_whole_session_spoils_no_measure_of_learnings(newest_log: Path) -> None:
    """Older releases wrote some: the measures are of answers, and leave it out; Reflexio's own figures have it."""
    found = report(newest_log, now=NOW, compat="reflexio")
    assert "every result needs one" not in found.text()
    assert "1 learning verdict that names no answer" in " ".join(found.text().split())


def test_only_request_sources_that_an_option_can_name_are_offered(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db")
    for number, source in enumerate(["a,b", "a,b", "x;y", "x;y", "web", "mobile_" + "x" * 60, ""]):
        writer.session(f"s{number}", source=source)
    notes = " ".join(report(writer.done(), now=NOW).to_dict()["log"]["notes"])
    assert f"--arms 'request-source:A=mobile_{'x' * 60};B=web'" in notes


def test_without_a_configuration_the_experiment_of_the_newest_requests_is_taken(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio_org.db")
    for day, name in enumerate(("first", "a-second")):
        arm = {"retrieval_experiment_id": name, "retrieval_experiment_arm": "holdout"}
        writer.session(f"s{day}", f"u{day}", BEGIN + timedelta(days=day), **arm)
        writer.outcome(f"s{day}", f"u{day}", BEGIN + timedelta(days=day))
    writer.session("s2", "u2", BEGIN - timedelta(days=1), retrieval_experiment_id="z-oldest")
    assert report(writer.done(), now=NOW).to_dict()["further"]["arms"]["name"] == "experiment:a-second"
