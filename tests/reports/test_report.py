"""What a report says of inputs and results: which measures, in which order, over what, and what it left out."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import Failure, InputError, PluginError, Rate, Report, Skip, Verdict, report
from evalr.evaluators import FunctionEvaluator
from evalr.logs import Stored, to_line
from evalr.measures import (
    Activity,
    History,
    Marker,
    Measure,
    Revision,
    Session,
    SessionOutcome,
    TaskCompletion,
    Transcript,
)
from evalr.measures.drop_off import drop_off_evaluator, drop_off_rate, drop_off_share
from evalr.measures.waits import measure as waits_measure
from evalr.plugins import Plugins
from evalr.reports.lane import Lane

NOW = datetime(2026, 9, 28, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def session(
    name: str, *, minutes_ago: float = 300, reply: float | None = 5, user: str | None = None, **more: Any
) -> Session:
    """A person asks, the agent answers, and the person is back after `reply` minutes, or not."""
    begin = NOW - minutes_ago * MINUTE
    activities = [Activity(at=begin, role="person"), Activity(at=begin + MINUTE, role="agent")]
    if reply is not None:
        activities.append(Activity(at=begin + MINUTE + reply * MINUTE, role="person"))
    return Session(id=name, user=user, activities=activities, **more)


def closed(name: str, **more: Any) -> Session:
    given = session(name, reply=None, **more)
    end = Activity(at=given.activities[-1].at + MINUTE, role="person", kind="closed")
    return given.model_copy(update={"activities": [*given.activities, end]})


def completion(name: str, completed: bool, **more: Any) -> Verdict[TaskCompletion]:
    about = Transcript(id=name, request="help", at=NOW - 9 * MINUTE).about()
    return Verdict(
        TaskCompletion(completed=completed, quality=4 if completed else 2), "completion", about=about, **more
    )


def labels(found: Report) -> list[str]:
    return [row.title for row in found.rows]


# Which measures, and in which order


def test_every_measure_that_reads_what_was_given_is_there_and_says_what_its_summaries_say() -> None:
    sessions = [session(f"s{n}", reply=None if n % 3 == 0 else n, user=f"u{n % 4}") for n in range(12)]
    found = report(sessions, now=NOW)
    verdicts = [drop_off_evaluator(now=NOW).evaluate_inline(each) for each in sessions]
    assert found["drop_off_decided"] == drop_off_rate.estimate(verdicts)
    assert found["drop_off"] == replace(drop_off_share, within=timedelta(hours=1)).estimate(verdicts)
    assert found["waits"].n == 12
    assert [section.measure for section in found.sections if section.rows] == ["waits", "drop_off"]


def test_settings_reach_the_measures_that_have_them() -> None:
    found = report([session("s", reply=10)], now=NOW, window=timedelta(minutes=5))
    assert "came back within 5m" in labels(found)
    assert found["waits"].value == 0
    assert report([session("s", reply=10)], now=NOW)["waits"].value == 1


def test_a_setting_that_no_measure_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"'treshold'; there are: .*threshold.*window"):
        report([], treshold=0.3)


def test_a_measure_whose_marker_is_missing_comes_last_and_says_what_that_means() -> None:
    without = report([session(f"s{n}") for n in range(3)], now=NOW)
    (drop_off,) = (section for section in without.sections if section.measure == "drop_off")
    assert [section.measure for section in without.sections if section.rows][-1] == "drop_off"
    assert any("no session in this log is marked as closed" in note for note in drop_off.notes)
    marked = report([session("a"), closed("b")], now=NOW)
    assert not any(section.notes for section in marked.sections)


def test_a_marker_is_looked_for_until_it_is_seen_once() -> None:
    looked: list[str] = []

    def seen(given: Session) -> bool:
        looked.append(given.id)
        return given.id == "b"

    measure = replace(waits_measure, marker=Marker(seen=seen, without="never marked"))
    found = report([session(name) for name in "abcd"], now=NOW, measures=[measure])
    assert looked == ["a", "b"]
    assert "never marked" not in found.text()


def test_judged_measures_without_verdicts_say_so_and_computed_ones_without_inputs_are_silent() -> None:
    found = report([session("s")], now=NOW)
    empty = {section.measure: section.reason for section in found.sections if not section.rows}
    assert set(empty) == {"completion", "outcome"}
    assert all("no verdicts in this log" in (reason or "") for reason in empty.values())


def test_where_nothing_applies_every_measure_says_what_it_needs() -> None:
    found = report([], now=NOW)
    reasons = {section.measure: section.reason for section in found.sections}
    assert reasons["drop_off"] == "needs sessions; this log has none"
    assert reasons["rewrites"] == "needs histories; this log has none"


def test_a_measure_that_was_asked_for_says_why_it_has_nothing() -> None:
    found = report([session("s")], now=NOW, measures=["rewrites"])
    assert [section.reason for section in found.sections] == ["needs histories; this log has 1 session"]


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(InputError, match="no installed measure is named 'waitz'; there are: chains, completion"):
        report([], measures=["waitz"])


# Streams


def test_no_input_is_held() -> None:
    alive: list[weakref.ref[Session]] = []

    def stream() -> Iterator[Session]:
        for number in range(10):  # each collection walks over all that the tests have imported
            given = session(f"s{number}")
            alive.append(weakref.ref(given))
            yield given
            del given
            gc.collect()
            assert sum(ref() is not None for ref in alive) <= 1

    assert report(stream(), now=NOW)["drop_off"].n == 10


def test_summaries_that_read_alike_share_a_tally() -> None:
    lane = Lane(waits_measure, {"window": timedelta(hours=1)}, None, None)
    assert len(lane.summaries) == 2
    assert len(lane._adds) == 1
    assert len(Lane(waits_measure, {"window": timedelta(hours=1)}, "agent", None)._adds) == 2


def test_progress_is_told_and_ends_with_everything() -> None:
    told: list[tuple[int, float | None]] = []
    report((session(f"s{number}") for number in range(1_100)), now=NOW, progress=lambda *at: told.append(at))
    assert told == [(500, None), (1_000, None), (1_100, None)]


# The reading time and the period


def test_a_clock_is_read_once() -> None:
    readings: list[datetime] = []

    def clock() -> datetime:
        readings.append(NOW)
        return NOW

    found = report([session("a"), session("b")], now=clock)
    assert len(readings) == 1
    assert (found.now, found.now_from) == (NOW, "given")
    assert report([]).now_from == "wall clock"


def test_a_reading_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InputError, match="no time zone"):
        report([], now=NOW.replace(tzinfo=None))
    with pytest.raises(InputError, match=r"since=.*with its time zone"):
        report([], since=NOW.replace(tzinfo=None))


def test_what_began_after_the_reading_time_is_counted_apart() -> None:
    found = report([session("past"), session("future", minutes_ago=-10)], now=NOW)
    assert found.inputs == {"session": 1}
    assert found.not_counted == {"after the reading time": 1}


def test_inputs_are_read_at_their_own_time_where_that_is_earlier() -> None:
    given = [session("a", reply=30, read_at=NOW - 290 * MINUTE), session("b", reply=30)]
    found = report(given, now=NOW)
    assert found.read_earlier == 1
    assert found["waits_median"].counts["censored"] == 1
    assert "1 at their own read_at" in found.text()


def test_a_period_selects_whole_inputs_and_counts_the_others() -> None:
    since, until = NOW - 100 * MINUTE, NOW - 50 * MINUTE
    given = [
        session("before", minutes_ago=101),
        session("first", minutes_ago=100, reply=70),  # its reply is after the period, and still its own
        session("last", minutes_ago=51),
        session("after", minutes_ago=50),
        Session(id="timeless", activities=[]),
    ]
    found = report(given, now=NOW, since=since, until=until)
    assert found.inputs == {"session": 2}
    assert found.not_counted == {"outside the period": 2, "without a time": 1}
    assert found["waits_median"].counts["ended"] == 2
    shown = found.text(width=200)
    assert "not counted  2 outside the period, 1 without a time\n" in shown
    assert "only since 28 Sep 2026 10:20 UTC until 28 Sep 2026 11:10 UTC" in shown


def test_without_a_period_what_has_no_time_counts() -> None:
    assert report([Session(id="timeless", activities=[])], now=NOW)["drop_off"].n == 1


# Stored results


def test_stored_results_go_to_their_measure() -> None:
    verdicts = [Stored("completion", completion(f"t{n}", n < 3)) for n in range(4)]
    found = report([*verdicts, Stored("completion", Skip("no answer", "completion", "1"))], now=NOW)
    assert found["completion"].value == 0.75
    assert found["completion"].left_out == {"skipped": 1}
    assert found.results == 5


def test_results_that_name_no_measure_are_placed_by_their_evaluator_or_their_type() -> None:
    by_type = replace(completion("a", True), evaluator="somebody")
    found = report([by_type, Failure("timed out", "completion", "1"), Failure("lost", "unheard of")], now=NOW)
    assert found.unread == {"unheard of": 1}
    assert {row.evaluator for row in found.rows} == {"somebody@1", "completion@1"}
    assert "results of no measure that is installed: unheard of (1)" in found.text(width=200)


def test_several_versions_are_shown_apart_and_never_pooled() -> None:
    verdicts = [completion(f"t{n}", n < 2, version="1") for n in range(4)]
    verdicts += [completion(f"t{n}", True, version="2") for n in range(4)]
    found = report(verdicts, now=NOW)
    values = {row.evaluator: row.estimate.value for row in found.rows if row.estimate.name == "completion"}
    assert values == {"completion@1": 0.5, "completion@2": 1.0}
    assert found["completion"].status == "undefined"
    assert "not pooled: completion@1 (4), completion@2 (4)" in (found["completion"].reason or "")
    assert "task completion · completion@2" in found.text()


def test_a_failure_without_a_version_belongs_to_the_only_version_of_its_evaluator() -> None:
    verdicts = [completion(f"t{n}", n < 3, version="2") for n in range(4)]
    found = report([*verdicts, Failure("crashed", "completion"), Skip("no answer", "completion")], now=NOW)
    assert {row.evaluator for row in found.rows} == {"completion@2"}
    estimate = found["completion"]
    assert (estimate.value, estimate.left_out) == (0.75, {"failed": 1, "skipped": 1})
    assert estimate.bounds == (3 / 6, 5 / 6)
    assert "failed: a value without an id: crashed" in found.text(width=200)


def test_a_failure_without_a_version_stands_apart_where_it_could_be_of_several() -> None:
    verdicts = [completion("t", True, version=version) for version in "12"]
    found = report([*verdicts, Failure("crashed", "completion")], now=NOW)
    assert {row.evaluator for row in found.rows} == {"completion@1", "completion@2", "completion@?"}
    alone = report([Failure("crashed", "completion")], now=NOW)
    assert {row.evaluator for row in alone.rows} == {"completion@?"}


def test_groups_are_merged_too() -> None:
    about = Transcript(id="lost", request="help", at=NOW - MINUTE, attributes={"agent": "a"}).about()
    found = report([completion("t", True), Failure("crashed", "completion", about=about)], now=NOW, by="agent")
    (groups,) = (row.groups for row in found.rows if row.estimate.name == "completion")
    assert groups is not None
    assert groups["a"].left_out == {"failed": 1}


def test_verdicts_that_name_no_user_are_counted_where_the_log_knows_users() -> None:
    verdicts = [completion(f"t{n}", n < 3) for n in range(4)]
    known = session("s", user="ada")
    assert "4 verdicts name no user (about.user), so each counts as independent" in report(
        [*verdicts, known], now=NOW
    ).text(width=200)
    assert "name no user" not in report([*verdicts, session("s")], now=NOW).text(width=200)
    named = replace(verdicts[0], about=Transcript(id="t0", user="ada", request="help", at=NOW - MINUTE).about())
    assert "name no user" not in report([named, known], now=NOW).text(width=200)
    assert "1 verdict names no user" in report([named, verdicts[1], known], now=NOW).text(width=200)


def test_what_is_computed_counts_rather_than_what_was_stored_of_it() -> None:
    given = session("s")
    stored = Stored("drop_off", drop_off_evaluator(now=NOW).evaluate_inline(given))
    found = report([given, stored], now=NOW)
    assert found["drop_off"].n == 1
    assert any("not counted: 1 stored result" in note for section in found.sections for note in section.notes)
    assert report([stored], now=NOW)["drop_off"].n == 1


def test_the_second_of_one_subject_is_left_out_and_counted() -> None:
    found = report([session("s"), session("s", reply=None), completion("t", True), completion("t", False)], now=NOW)
    assert found["drop_off"].n == 1
    assert found["completion"].value == 1
    assert found.not_counted == {"duplicate": 2}


@pytest.mark.parametrize("stored", [True, False])
def test_one_person_may_answer_the_questions_of_several_measures(stored: bool) -> None:
    about = Transcript(id="t", request="help", at=NOW - MINUTE).about()
    values = {"completion": TaskCompletion(completed=True, quality=4), "outcome": SessionOutcome(success=True)}
    verdicts = {name: Verdict(value, "people", about=about) for name, value in values.items()}
    given = [Stored(name, verdict) if stored else verdict for name, verdict in verdicts.items()]
    found = report(given, now=NOW)
    assert (found["completion"].value, found["outcome"].value, found.not_counted) == (1, 1, {})


def test_a_measure_that_cannot_be_used_is_an_error_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalr.reports.report.installed_measures", lambda: Plugins({}, {"lost": "needs 'x'"}))
    with pytest.raises(PluginError, match="the measure 'lost' cannot be used: needs 'x'"):
        report([session("a")], now=NOW, measures=["lost"])


def test_what_is_neither_an_input_nor_a_result_is_refused() -> None:
    with pytest.raises(InputError, match="reads inputs and results, not dict"):
        report([{"id": "s"}], now=NOW)  # type: ignore[list-item]


# What goes wrong in a measure


class Length(BaseModel):
    long: bool


LENGTH = Rate("length", of=Length, hits=lambda v: v.long, noun="session")


def length_measure(function: Any, *, summary: Rate[Length] = LENGTH, **more: Any) -> Measure:
    return Measure(
        name="length",
        question="was it long?",
        input=Session,
        verdict=Length,
        summaries=lambda: (summary,),
        evaluator=lambda *, now: FunctionEvaluator("length", "1", function, Session, Length, inline=True),
        **more,
    )


def fails_on_b(given: Session) -> Length:
    if given.id == "b":
        raise KeyError("no such thing")
    return Length(long=True)


def test_a_failure_is_left_out_widens_the_bounds_and_is_named() -> None:
    found = report([session(name) for name in "abcd"], now=NOW, measures=[length_measure(fails_on_b)])
    estimate = found["length"]
    assert (estimate.value, estimate.n, estimate.left_out) == (1, 3, {"failed": 1})
    assert estimate.bounds == (0.75, 1)
    assert "failed: session 'b': KeyError: 'no such thing'" in found.text()


@pytest.mark.parametrize("broken", ["split", "marker"])
def test_a_split_or_marker_that_raises_is_a_failure_of_that_input(broken: str) -> None:
    def raises(*_: Any) -> Any:
        raise RuntimeError("split hairs")

    parts: dict[str, dict[str, Any]] = {
        "split": {"whole": Session, "split": raises},
        "marker": {"marker": Marker(seen=raises, without="")},
    }
    found = report([session("a"), session("b")], now=NOW, measures=[length_measure(fails_on_b, **parts[broken])])
    assert found["length"].left_out == {"failed": 2}
    assert "session 'a': RuntimeError: split hairs, and 1 more" in found.text(width=200)


@pytest.mark.parametrize(
    ("hits", "reason"),
    [(lambda v: 2, "2 hits of 1"), (lambda v: v.absent, "AttributeError")],
    ids=["more hits than there can be", "an error"],
)
def test_a_summary_that_cannot_count_makes_its_own_row_undefined_and_no_other(hits: Any, reason: str) -> None:
    bad = length_measure(fails_on_b, summary=replace(LENGTH, hits=hits))
    found = report([session("a")], now=NOW, measures=[bad, waits_measure])
    assert found["length"].status == "undefined"
    assert reason in (found["length"].reason or "")
    assert found["waits"].value == 1


def test_a_cluster_that_a_result_does_not_have_makes_that_measure_undefined_with_the_reason() -> None:
    given = [session("a", user="u"), History(id="h", revisions=[Revision(at=NOW - MINUTE, role="agent", text="x")])]
    found = report(given, now=NOW, cluster="user")
    assert found["waits"].value == 1
    assert found["rewrites"].status == "undefined"
    assert "cluster='user'" in (found["rewrites"].reason or "")


# Groups


def test_groups_stand_beneath_every_measure() -> None:
    given = [session(f"s{n}", reply=None if n == 0 else 5, attributes={"agent": "ab"[n % 2]}) for n in range(6)]
    found = report(given, now=NOW, by="agent")
    groups = {row.estimate.name: row.groups for row in found.rows}
    assert groups["drop_off"] is not None
    assert {name: each.n for name, each in groups["drop_off"].items()} == {"a": 3, "b": 3}
    assert found["drop_off"].n == 6
    lines = found.text().splitlines()
    assert sum(line.startswith("    a ") for line in lines) == len([row for row in found.rows if row.groups])


def test_parts_can_be_grouped_by_what_they_are() -> None:
    found = report([session("s")], now=NOW, by="wait")
    assert {row.estimate.name for row in found.rows if row.groups} == {"waits", "waits_median"}


def test_an_attribute_that_nothing_has_is_said_with_those_there_are() -> None:
    found = report([session("s", attributes={"agent": "a"})], now=NOW, by="agnet")
    assert "nothing here has 'agnet' to group by; there are: agent; did you mean 'agent'?" in found.text(width=300)


def test_a_key_that_only_inputs_have_is_not_called_unknown() -> None:
    given = Transcript(id="t", request="help", at=NOW - MINUTE, user="ada", attributes={"task": "x"})
    for key in ("task", "user"):
        shown = report([given, completion("t", True)], now=NOW, by=key).text(width=300)
        assert f"nothing that was counted has '{key}' to group by, but inputs do" in shown
        assert "there are: task" not in shown


def test_a_key_that_is_an_ignored_field_says_where_it_belongs(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"agent": "atlas", **json.loads(to_line(session("s")))}), encoding="utf-8")
    shown = report(path, now=NOW, by="agent").text(width=300)
    assert "'agent' is a field that was ignored: to group by it, put it under attributes" in shown
    assert "was ignored: to group" not in report(path, now=NOW, by="agnet").text(width=300)


def test_only_the_largest_groups_are_shown_and_the_others_are_counted() -> None:
    given = [session(f"s{n}-{m}", user=f"u{n:02d}") for n in range(30) for m in range(2 if n < 5 else 1)]
    found = report(given, now=NOW, by="user", measures=["waits"])
    shown = found.text()
    assert "u04" in shown
    assert "u29" not in shown
    assert "and 10 smaller groups; --json for all" in shown
    assert len([row for row in found.to_dicts() if row["group"] is not None]) == 60


def test_groups_that_overlap_say_so() -> None:
    found = report([session("s", attributes={"tag": ["x", "y"]})], now=NOW, by="tag")
    assert "groups overlap" in found.text()


# What can be taken out of a report


def test_an_unknown_summary_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"no summary of this report is named 'dropoff'; there are: .*drop_off"):
        report([session("s")], now=NOW)["dropoff"]


def test_a_summary_of_a_measure_that_read_nothing_is_undefined_with_the_reason() -> None:
    found = report([session("s")], now=NOW)["completion"]
    assert (found.value, found.status) == (None, "undefined")
    assert "no verdicts in this log" in (found.reason or "")


def test_results_that_the_reader_refused_are_not_called_absent(tmp_path: Path) -> None:
    line = {"type": "result", "measure": "completion", "evaluator": "people", "value": {"completed": True}}
    others = [line | {"value": {"completed": True, "quality": 9}}, line | {"about": 5}, line | {"value": None}]
    path = tmp_path / "log.jsonl"
    lines = [to_line(session("s")), *map(json.dumps, [line, *others])]
    path.write_text("\n".join(lines), encoding="utf-8")
    reasons = {section.measure: section.reason for section in report(path, now=NOW).sections}
    assert reasons["completion"] == "no verdict that could be used: 4 results left out"
    assert "no verdicts in this log" in (reasons["outcome"] or "")


def test_an_unknown_name_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match=r"did you mean 'waits'\?"):
        report([], measures=["wait"])
    with pytest.raises(InputError, match="'waits_median'; it is a summary of the measure 'waits'"):
        report([], measures=["waits_median"])
    with pytest.raises(InputError, match=r"did you mean 'drop_off'\?"):
        report([session("s")], now=NOW)["dropoff"]


def test_the_report_as_json_is_plain_and_whole() -> None:
    given = [session("s", attributes={"agent": "a"}), completion("t", True)]
    found = report(given, now=NOW, by="agent", since=NOW - timedelta(days=1))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["now"] == "2026-09-28T12:00:00Z"
    assert plain["log"]["inputs"] == {"session": 1}
    rows = [row for section in plain["sections"] for row in section["rows"]]
    assert {row["estimate"]["name"] for row in rows} == {row.estimate.name for row in found.rows}
    assert {section["measure"]: section["settings"] for section in plain["sections"]}["waits"] == {"window": "1h"}
    assert any(row["groups"] for row in rows)


def test_tidy_rows_are_one_for_each_summary_and_group() -> None:
    given = [session("s1", attributes={"agent": "a"}), session("s2", attributes={"agent": "b"})]
    rows = report(given, now=NOW, by="agent", measures=["waits"]).to_dicts()
    assert [(row["name"], row["by"], row["group"], row["n"]) for row in rows] == [
        ("waits", None, None, 2),
        ("waits", "agent", "a", 1),
        ("waits", "agent", "b", 1),
        ("waits_median", None, None, 2),
        ("waits_median", "agent", "a", 1),
        ("waits_median", "agent", "b", 1),
    ]
    assert len({tuple(row) for row in rows}) == 1
    assert list(rows[0])[:7] == ["title", "name", "group", "value", "low", "high", "n"]


def test_a_frame_has_the_tidy_rows() -> None:
    pytest.importorskip("pandas")
    found = report([session("s")], now=NOW)
    assert list(found.to_frame()["name"]) == [row["name"] for row in found.to_dicts()]


def test_real_sessions_are_measured_as_their_truth_says(real_logs: Any) -> None:
    found = report(real_logs / "entire_sessions" / "sessions.jsonl", by="wait")
    assert found.inputs == {"session": 136}
    assert found.left_out.total == 0
    (groups,) = (row.groups for row in found.rows if row.estimate.name == "waits_median")
    assert groups is not None
    assert groups["reply"].counts["ended"] == 835  # the rows of gaps.csv
    assert groups["reply"].value == pytest.approx(106, rel=0.25)  # the median of those that ended; some never did


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "2026-01-01"}, "since="),
        ({"since": NOW, "until": NOW}, "the period is empty"),
        ({"by": ["user", "agent"]}, "is no key"),
        ({"cluster": 5}, "is no key"),
        ({"level": "x"}, "level must be a number"),
        ({"threshold": "x"}, "threshold="),
    ],
)
def test_what_a_report_cannot_be_asked_is_refused_in_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        report([], **options)


def test_one_measure_may_be_named_without_a_list() -> None:
    assert [section.measure for section in report([], now=NOW, measures="drop_off").sections] == ["drop_off"]


def test_a_bare_frame_is_told_how_to_become_a_log() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match=r"read_frame\(frame, columns="):
        report(pandas.DataFrame({"id": ["s1"]}))
