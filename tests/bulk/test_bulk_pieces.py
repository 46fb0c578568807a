"""The pieces of the batch lane: rows, columns, numbers of clusters, and what is merged."""

from __future__ import annotations

import json
import os
import pickle
from array import array
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import evalr
from evalr import bulk
from evalr.bulk import rows as fast_path
from evalr.errors import InputError, RecordError
from evalr.inputs import Activity, Session
from evalr.logs.log import Log
from evalr.logs.seen import Seen
from evalr.measures import installed_measures
from evalr.measures.rows import ROW_FORMS, ActivityRow, OpenSince, SessionRow
from evalr.reports.lane import Lane
from evalr.reports.reading import Reading, Track
from evalr.summaries.columns import Columns, Hits, Times
from evalr.tallies.counts import Counts
from evalr.tallies.durations import EVENT, Durations
from evalr.tallies.numbering import Clusters, Numbering
from evalr.tallies.tally import Entry

NOW = datetime(2026, 9, 10, tzinfo=UTC)


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "row"), [(Session, SessionRow), (Activity, ActivityRow)])
def test_a_row_has_the_fields_of_its_input(model: Any, row: Any) -> None:
    assert set(row.__annotations__) == set(model.model_fields)
    own = get_type_hints(model, include_extras=True)
    for name, hint in get_type_hints(row, include_extras=True).items():
        inner = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        if name not in ("activities", "kind"):
            (one,), (other,) = ([TypeAdapter(each).core_schema] for each in (inner, own[name]))
            if name != "weight":
                assert json.dumps(one, default=str) == json.dumps(other, default=str)


def test_each_row_form_is_of_an_input_with_a_line_of_its_own() -> None:
    for model, form in ROW_FORMS.items():
        assert form.model is model
        assert form.events in form.row.__annotations__


def test_a_line_leaves_nothing_behind_that_the_collector_of_cycles_follows(tmp_path: Path) -> None:
    import gc

    path = tmp_path / "log.jsonl"
    activities = [{"at": "2026-09-01T09:00:00Z", "role": role} for role in ("agent", "person")]
    lines = [json.dumps({"id": number, "user": "u", "activities": activities}) for number in range(400)]
    path.write_text("\n".join(lines))
    track = [Track(measure, {}, now=NOW, by=None, cluster=None) for measure in installed_measures().loaded.values()]
    reading = Reading(track, now=NOW, since=None, until=None)
    rows = fast_path.row_pass(reading, Log(str(path), "jsonl", lambda log: iter(())), Seen(), Numbering(), None)
    assert rows is not None
    rows.take(lines[0].encode())
    gc.collect()
    before = len(gc.get_objects())
    for line in lines[1:]:
        rows.take(line.encode())
    gc.collect()
    assert len(gc.get_objects()) - before < 20


def test_few_long_lines_are_held(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    reading = Reading(
        [Track(installed_measures().loaded["waits"], {}, now=NOW, by=None, cluster=None)],
        now=NOW,
        since=None,
        until=None,
    )
    rows = fast_path.row_pass(reading, Log(str(path), "jsonl", lambda log: iter(())), Seen(), Numbering(), None)
    assert rows is not None
    long = json.dumps({"id": "s", "user": "x" * fast_path.LONG, "activities": []}).encode()
    assert rows.take(long)
    assert reading.kinds["session"] == 1
    assert rows.take(b'{"id": "s", "activities": []}')
    assert reading.kinds["session"] == 1
    rows.flush()
    assert reading.kinds["session"] == 2


def test_open_since_sees_what_open_proposals_see() -> None:
    proposals = OpenSince()
    times = [datetime(2026, 9, 1, hour, tzinfo=UTC) for hour in range(6)]

    def see(hour: int, kind: str, **more: Any) -> datetime | None:
        return proposals.see({"at": times[hour], "role": "agent", "kind": kind, **more})  # type: ignore[typeddict-item]

    assert see(0, "proposal", role="person") is None
    assert proposals.oldest() is None
    see(1, "proposal", ref="r")
    see(2, "proposal")
    see(3, "proposal", ref=None)
    see(4, "proposal", ref="r")
    assert proposals.oldest() == times[1]
    assert see(5, "resolution", ref="r") == times[1]
    assert see(5, "resolution", ref="r") is None
    assert proposals.oldest() == times[2]
    assert see(5, "resolution") == times[2]
    see(5, "proposal", ref="q")
    assert proposals.oldest() == times[3]
    assert proposals.close() == [times[5], times[3]]
    assert proposals.oldest() is None
    assert see(5, "resolution") is None


# ---------------------------------------------------------------------------------------------------------------------
# Numbers of clusters
# ---------------------------------------------------------------------------------------------------------------------

clusters = st.sampled_from(["u", "v", ("s",), None])
times = st.lists(st.tuples(st.sampled_from([0.0, 1.5, 2.0]), st.sampled_from([0, 1, 2]), clusters))
counts = st.lists(st.tuples(st.integers(0, 2), st.integers(2, 3), clusters))
how = st.sampled_from(["own", "shared", "late"])


@given(parts=st.lists(st.tuples(times, counts, how), max_size=4))
def test_rows_by_number_are_the_rows_one_by_one(parts: Any) -> None:
    numbering = Numbering()
    durations, sums = Durations(), Counts()
    durations.share(numbering)
    sums.share(numbering)
    plain_durations, plain_sums = Durations(), Counts()
    for some_times, some_counts, numbered in parts:
        by = numbering if numbered == "shared" else Numbering()
        numbers = [by.number(cluster) for _, _, cluster in some_times]
        after, end = array("d", [row[0] for row in some_times]), array("b", [row[1] for row in some_times])
        durations.extend(after, end, Clusters(numbers, by))
        numbers = [by.number(cluster) for _, _, cluster in some_counts]
        sums.extend([row[:2] for row in some_counts], Clusters(numbers, by))
        for row in some_times:
            plain_durations.add(*row)
        for row in some_counts:
            plain_sums.add(*row)
    assert durations == plain_durations
    assert sums == plain_sums
    assert set(durations.clusters) == set(plain_durations.clusters)
    assert sums.clusters == plain_sums.clusters
    assert pickle.loads(pickle.dumps((durations, sums))) == (durations, sums)


def test_tallies_that_counted_other_rows_are_not_equal() -> None:
    one, other = Durations(), Durations()
    one.add(1.0, EVENT, "u")
    other.add(1.0, EVENT, "v")
    assert one != other
    other = Durations()
    other.add(1.0, EVENT, "u")
    assert one == other
    other.add(1.0, EVENT, "u")
    assert one != other
    counts, others = Counts(), Counts()
    counts.add(1, 1, None)
    assert counts != others
    entry, another = Entry(counts), Entry(counts)
    another.flags["sampled"] += 1
    assert entry != another


def test_hashes_make_the_set_again() -> None:
    seen = Seen()
    subjects = [("session", str(number)) for number in range(5000)]
    for subject in subjects:
        seen.add(subject)
    again = Seen.of(seen.hashes())
    assert len(again) == len(seen) == 5000
    assert not any(again.add(subject) for subject in subjects)
    assert again.add("another")
    assert sorted(Seen.of(array("q")).hashes()) == []


# ---------------------------------------------------------------------------------------------------------------------
# What is wrong with columns
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("summary", "columns"),
    [
        (evalr.measures.drop_off_rate, Hits([(1, 1)])),
        (evalr.measures.drop_off_rate, Hits([(2, 1), (1, 1)])),
        (evalr.measures.drop_off_rate, Hits([(0.5, 1), (1, 1)])),  # type: ignore[list-item]
        (evalr.measures.back_within, Times([1.0, 2.0], ["returned"])),
        (evalr.measures.back_within, Times([1.0, -1.0], ["returned", None])),
        (evalr.measures.back_within, Times([1.0, float("nan")], ["returned", None])),
        (evalr.measures.back_within, Times([1.0, float("inf")], ["returned", None])),
    ],
)
def test_what_cannot_be_counted_is_refused_before_anything_is(summary: Any, columns: Columns) -> None:
    tally, _ = summary.collector()
    numbering = Numbering()
    two = Clusters([numbering.number("u"), 0], numbering)
    with pytest.raises((InputError, TypeError, ValueError)):
        summary.batch(tally, None, columns, two, ("e", "1"))
    assert not tally.entries


def test_summaries_that_fold_take_no_columns() -> None:
    folded = evalr.Rate("r", of=evalr.measures.DropOff, hits=lambda v: 0, per="task", fold="any")
    assert folded.columns() is None
    tally, _ = folded.collector()
    with pytest.raises(InputError, match="one verdict at a time"):
        evalr.Mean("m", of=evalr.measures.DropOff, value=lambda v: 0).batch(
            tally, None, Hits([]), Clusters([], Numbering()), ("e", "1")
        )


# ---------------------------------------------------------------------------------------------------------------------
# Merging is complete
# ---------------------------------------------------------------------------------------------------------------------


def test_a_merge_forgets_no_field() -> None:
    """A field that is added to one of these must be merged, or named here as what is not counted."""
    track = Track(installed_measures().loaded["drop_off"], {}, now=NOW, by=None, cluster=None)
    reading = Reading([track], now=NOW, since=None, until=None)
    log = Log("log", "jsonl", lambda log: iter(()))
    not_counted = {
        Reading: {"now", "since", "until", "_all_times"},
        Track: {"unsure"},
        Lane: set(),
        Log: {
            "path",
            "kind",
            "items",
            "strict",
            "noun",
            "cluster",
            "settings",
            "holds_results",
            "titles",
            "bytes_read",
            "bytes_total",
            "randomised",
            "_begun",
        },
    }
    merged = {
        Reading: {
            "tracks",
            "kinds",
            "results",
            "unread",
            "left_out",
            "users",
            "attributes",
            "first",
            "last",
            "read_earlier",
        },
        Track: {"inputs", "userless", "marked", "computed", "_stored"},
        Lane: {"results", "failed", "failure", "broken", "_tallies", "_ranks"},
        Log: {"records", "derived", "left_out", "refused", "unknown_fields", "repaired", "notes"},
    }
    states = {each: each.__getstate__() for each in (reading, track, track.computed)}
    for thing, state in [*states.items(), (log, [field.name for field in fields(log)])]:
        assert set(state) == merged[type(thing)] | not_counted[type(thing)]


def test_every_real_log_is_the_same_in_both_lanes(real_logs: Path) -> None:
    paths = [path for path in real_logs.glob("*/*.jsonl") if path.stat().st_size]
    assert paths
    asked: list[dict[str, Any]] = [{}, {"by": "agent"}, {"processes": 2}, {"by": "wait", "processes": 2}]
    for path in paths:
        for each in asked:
            options = {**each, "now": datetime(2026, 11, 30, tzinfo=UTC), "kind": "jsonl"}
            processes = options.pop("processes", 1)
            slow = evalr.report(path, **options).to_dict()
            assert bulk.report(path, processes=processes, **options).to_dict() == slow


# Processes


SESSION = (
    '{"id":"s%d","activities":[{"at":"2026-01-01T00:00:00Z","role":"agent"},'
    '{"at":"2026-01-01T00:10:00Z","role":"person"}]}\n'
)


def test_sessions_without_a_user_are_known_again_in_every_process(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(SESSION % number for _ in range(2) for number in range(60)))
    now = datetime(2026, 9, 10, tzinfo=UTC)
    found = [bulk.report(path, now=now, processes=count) for count in (1, 2, 3)]
    assert [report["waits"].n for report in found] == [60, 60, 60]
    assert [report.left_out.counts for report in found] == [{"duplicate id": 60}] * 3
    with pytest.raises(RecordError, match="line 61"):
        bulk.report(path, now=now, processes=2, strict=True)


def test_what_is_printed_as_python_begins_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('customised')")
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), before])))
    path = tmp_path / "log.jsonl"
    path.write_text("".join(SESSION % number for number in range(60)))
    assert bulk.report(path, now=datetime(2026, 9, 10, tzinfo=UTC), processes=2)["waits"].n == 60


@pytest.mark.parametrize("processes", [0, -1, 129, True, 1.5])
def test_so_many_processes_there_are_none(tmp_path: Path, processes: Any) -> None:
    with pytest.raises(InputError, match="from 1 to 128"):
        bulk.report(tmp_path / "log.jsonl", processes=processes)
