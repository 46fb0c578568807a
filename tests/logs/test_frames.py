"""Frames in long form: whatever library made them, the same inputs, and an account of every row."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr import InputError, LogError, RecordError, report
from evalr.inputs import Activity, History, Session, Transcript, Turn
from evalr.logs import Log, read_frame

START = datetime(2026, 9, 28, 9, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
CONNECTION = duckdb.connect()  # which relations need while they are read
CONNECTION.execute("set timezone = 'UTC'")
LIBRARIES = ["rows", "pandas", "polars", "pyarrow", "duckdb"]


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


def rows_of(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def frame_of(library: str, columns: dict[str, list[Any]]) -> Any:
    if library == "rows":
        return iter(rows_of(columns))
    if library == "pandas":
        return pd.DataFrame(columns)
    if library == "polars":
        return pl.DataFrame(columns)
    table = pa.table(columns)
    if library == "pyarrow":
        return table
    return CONNECTION.from_arrow(table)


# Interleaved, by two users who share a session's id.
TICKETS: dict[str, list[Any]] = {
    "ticket": ["t2", "t1", "t2", "t1", "t2", "t1"],
    "customer": ["bo", "ada", "bo", "ada", "ada", "ada"],
    "when": [minute(1), minute(0), minute(3), minute(2), minute(9), minute(5)],
    "who": ["user", "Human", "assistant", "AI", "bot", "tool"],
    "channel": ["mail", "chat", "mail", "chat", None, "chat"],
    "words": ["hi", "help", "yes?", "sure", "…", "{}"],
}
COLUMNS = {"id": "ticket", "user": "customer", "at": "when", "role": "who"}


def sessions(frame: Any, **options: Any) -> list[Session]:
    return [item for item in read_frame(frame, **options) if isinstance(item, Session)]


def simple(**cells: list[Any]) -> dict[str, list[Any]]:
    """A frame of one session with evalr's own names, where `cells` do not say otherwise."""
    length = len(next(iter(cells.values())))
    return {"id": ["s"] * length, "at": [minute(n) for n in range(length)], "role": ["agent"] * length, **cells}


def skipped(frame: Any, **options: Any) -> dict[str, list[str]]:
    log = read_frame(frame, **options)
    list(log)
    assert log.left_out.total <= log.records
    return log.left_out.places


# Every library


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_become_sessions_in_the_order_in_which_these_first_appear(library: str) -> None:
    log = read_frame(frame_of(library, TICKETS), columns=COLUMNS, attributes=["channel"])
    assert list(log) == [
        Session(
            id="t2",
            user="bo",
            attributes={"channel": "mail"},
            activities=[Activity(at=minute(1), role="person"), Activity(at=minute(3), role="agent")],
        ),
        Session(
            id="t1",
            user="ada",
            attributes={"channel": "chat"},
            activities=[
                Activity(at=minute(0), role="person"),
                Activity(at=minute(2), role="agent"),
                Activity(at=minute(5), role="tool"),
            ],
        ),
        Session(id="t2", user="ada", activities=[Activity(at=minute(9), role="agent")]),
    ]
    assert (log.records, log.left_out.total, dict(log.unknown_fields)) == (6, 0, {"words": 6})
    assert log.path == {"rows": "rows"}.get(
        library, {"pyarrow": "pyarrow table", "duckdb": "duckdb relation"}.get(library, f"{library} frame")
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_cells_are_missing_and_never_texts(library: str) -> None:
    columns = {
        "id": ["s", "s", None],
        "user": [None, None, "ada"],
        "at": [minute(0), None, minute(1)],
        "role": ["agent", "person", "person"],
        "ref": ["p1", None, None],
        "weight": [None, 2.5, None],
        "topic": [None, None, None] if library == "rows" else pd.Series([None, None, None], dtype="str").tolist(),
    }
    if library in ("pyarrow", "duckdb", "polars"):
        columns["topic"] = ["x", "x", None]
    log = read_frame(frame_of(library, columns), attributes=["topic"])
    (session,) = log
    assert isinstance(session, Session)
    assert (session.user, session.weight) == (None, None)
    assert session.activities == [Activity(at=minute(0), role="agent", ref="p1")]
    assert log.left_out.places == {"missing field 'id'": ["row 3"], "missing field 'at'": ["row 2"]}
    assert "nan" not in session.model_dump_json()


@pytest.mark.parametrize(
    "missing",
    [
        None,
        float("nan"),
        np.float32("nan"),
        pd.NA,
        pd.NaT,
        np.datetime64("NaT", "s"),
        Decimal("nan"),
        Decimal("snan"),
        "",
    ],
)
def test_whatever_stands_for_nothing_is_missing(missing: Any) -> None:
    cells = dict.fromkeys(("user", "arm", "kind", "ref", "read_at", "weight", "agent"), missing)
    frame = [{"id": "s", "at": START, "role": "agent", **cells}, {"id": missing, "at": START, "role": "agent"}]
    log = read_frame(frame, attributes=["agent"])
    assert list(log) == [Session(id="s", activities=[Activity(at=START, role="agent")])]
    assert log.left_out.counts == {"missing field 'id'": 1}


def test_pandas_columns_of_every_make() -> None:
    columns = pd.DataFrame(simple(user=[7, None], arm=["a", "a"], weight=[1, None]))
    expected = Session(
        id="s", user="7", arm="a", weight=1, activities=[Activity(at=minute(n), role="agent") for n in range(2)]
    )
    frames = [
        columns,
        columns.astype({"user": "Int64", "role": "category", "arm": "category", "weight": "Float64"}),
        columns.astype({"role": "string", "id": "string", "arm": object}),
        columns.convert_dtypes(dtype_backend="pyarrow"),
        columns.astype({"at": "datetime64[ns, Europe/Berlin]"}),
        columns.assign(at=columns["at"].astype(object)),
        columns.assign(at=[time.to_pydatetime() for time in columns["at"]]),
        columns.set_index(pd.Index([5, 5])),
        columns.iloc[::-1],
    ]
    for frame in frames:
        assert sessions(frame) == [expected], frame.dtypes


def test_categories_that_are_not_used_make_nothing() -> None:
    frame = pd.DataFrame(simple(id=pd.Categorical(["s", "s"], categories=["r", "s"])))
    assert [session.id for session in sessions(frame)] == ["s"]


def test_a_frame_is_not_copied_and_few_of_its_cells_are_objects_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the frame: numbers of rows, a block of cells and one input; not a list as long as the frame."""
    monkeypatch.setattr("evalr.logs.frame_inputs.BLOCK", 1_000)
    rows = 40_000
    frame = pd.DataFrame(
        {
            "id": np.arange(rows) % 100,  # as interleaved as can be
            "at": pd.Timestamp(START) + pd.to_timedelta(np.arange(rows), unit="s"),
            "role": pd.Categorical(np.where(np.arange(rows) % 2, "user", "assistant")),
        }
    )
    log = read_frame(frame)
    tracemalloc.start()
    try:
        counts = [len(item.activities) for item in log if isinstance(item, Session)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counts == [400] * 100
    assert peak < 100 * rows  # an activity alone takes several times that


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", None]), st.integers(0, 5)), max_size=40))
def test_grouping_is_that_of_a_dictionary(given_rows: list[tuple[str, str | None, int]]) -> None:
    if not given_rows:
        return
    users = {name: {user for other, user, _ in given_rows if other == name} - {None} for name in "abc"}
    expected: dict[tuple[str | None, str], list[int]] = {}
    for name, user, number in given_rows:
        owner = next(iter(users[name])) if user is None and len(users[name]) == 1 else user
        expected.setdefault((owner, name), []).append(number)
    columns = {
        "id": [name for name, _, _ in given_rows],
        "user": [user for _, user, _ in given_rows],
        "at": [minute(number) for _, _, number in given_rows],
        "role": ["agent"] * len(given_rows),
    }
    for frame in (pd.DataFrame(columns), rows_of(columns)):
        found = sessions(frame)
        assert [(each.user, each.id) for each in found] == list(expected)
        assert [[a.at for a in each.activities] for each in found] == [
            [minute(number) for number in sorted(numbers)] for numbers in expected.values()
        ]


# Columns


def test_a_column_that_is_needed_and_missing_is_named_with_those_there_are_and_what_to_write() -> None:
    with pytest.raises(InputError) as raised:
        read_frame(pd.DataFrame({"ticket": ["t"], "customer": ["ada"], "sent_at": [START], "channel": ["mail"]}))
    assert str(raised.value) == (
        "the pandas frame has no columns 'id', 'at', 'role'; its columns: 'ticket', 'customer', 'sent_at', 'channel'. "
        "Say which is which: columns={'id': 'ticket', 'user': 'customer', 'at': 'sent_at', 'role': '...'}"
    )


def test_the_suggestion_keeps_what_was_said() -> None:
    with pytest.raises(InputError, match=r"columns=\{'id': 'case', 'at': 'when', 'role': 'who'\}$"):
        read_frame([{"case": 1, "when": START, "who": "user"}], columns={"id": "case"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"columns": {"id": "tickt"}},
            r"columns: 'id': the rows has no column 'tickt'; there are: ticket, .*did you mean 'ticket'",
        ),
        ({"columns": {"ids": "ticket"}}, r"evalr has no field 'ids' here; there are: id, .*did you mean 'id'"),
        ({"columns": COLUMNS, "attributes": ["chanel"]}, r"attributes: the rows has no column 'chanel'; .*'channel'"),
        ({"columns": COLUMNS, "roles": {"user": "customer"}}, r"roles: 'user' is 'customer', which must be 'person'"),
        ({"columns": COLUMNS, "kind": "sessions"}, r"kind='sessions' must be 'session'"),
        ({"columns": COLUMNS, "epoch": "minutes"}, r"epoch='minutes' must be 's'"),
        ({"columns": COLUMNS, "tz": "Berlin"}, r"tz='Berlin' is not a known time zone"),
    ],
)
def test_what_cannot_be_asked_for_is_said_at_once(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_frame(rows_of(TICKETS), **options)


def test_a_field_can_be_said_not_to_be_in_the_frame() -> None:
    frame = simple(weight=[-1, -1], kind=["x", "y"])
    assert skipped(rows_of(frame)) == {"wrong value in 'weight'": ["row 1", "row 2"]}
    (session,) = sessions(rows_of(frame), columns={"weight": None, "kind": None})
    assert (session.weight, {activity.kind for activity in session.activities}) == (None, {"message"})
    with pytest.raises(InputError, match="no column 'role'"):
        read_frame(rows_of(frame), columns={"role": None})


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_two_columns_of_one_name_are_refused_where_they_are_used(library: str) -> None:
    names = ["id", "at", "role", "topic", "topic"]
    cells = [["s"], [START], ["agent"], ["a"], ["b"]]
    frame: Any
    if library == "pandas":
        frame = pd.concat([pd.Series(values, name=name) for name, values in zip(names, cells, strict=True)], axis=1)
    else:
        frame = pa.Table.from_arrays([pa.array(values) for values in cells], names=names)
    assert len(sessions(frame)) == 1
    with pytest.raises(InputError, match=r"attributes: the p\w+ \w+ has 2 columns named 'topic': rename all but one"):
        read_frame(frame, attributes=["topic"])


def test_what_is_in_the_index_is_no_column_and_said_to_be_there() -> None:
    frame = pd.DataFrame(simple(user=["ada"])).set_index(["user", "id"])
    with pytest.raises(InputError, match=r"'user', 'id' in its index: frame\.reset_index\(\) makes columns of it"):
        read_frame(frame)
    assert [session.user for session in sessions(frame.reset_index())] == ["ada"]


def test_columns_may_have_names_that_are_no_texts() -> None:
    frame = pd.DataFrame([["s", START, "agent", "x"]], columns=pd.MultiIndex.from_product([["a", "b"], [1, 2]]))
    with pytest.raises(InputError, match=r"its columns: \('a', 1\), \('a', 2\), \('b', 1\), \('b', 2\)"):
        read_frame(frame)
    (session,) = sessions(frame, columns={"id": ("a", 1), "at": ("a", 2), "role": ("b", 1)}, attributes=[("b", 2)])
    assert session.attributes == {"('b', 2)": "x"}
    numbered = pd.DataFrame([["s", START, "agent"]])
    assert len(sessions(numbered, columns={"id": 0, "at": 1, "role": 2})) == 1


@pytest.mark.parametrize(
    "empty", [pd.DataFrame(), pd.DataFrame(columns=["id"]), pl.DataFrame(), [], iter(()), pa.table({"id": []})]
)
def test_a_frame_without_rows_is_an_error_of_its_own(empty: Any) -> None:
    with pytest.raises(LogError, match="there are no rows in it"):
        read_frame(empty)


@pytest.mark.parametrize(
    ("given_frame", "message"),
    [
        ("log.jsonl", r"reads a frame, not a file: pass a path to evalr\.logs\.read"),
        (Path("log.jsonl"), "not a file"),
        ({"id": ["s"]}, r"mappings that are a row each, not builtins\.dict"),
        (3, r"not builtins\.int"),
        (None, r"not builtins\.NoneType"),
        ([("s", START, "agent")], "rows that are mappings from a column's name to its value, and none is"),
        (pl.LazyFrame({"id": ["s"]}), r"reads no polars\.LazyFrame: pass what its \.collect\(\) returns"),
        (pa.table({"id": ["s"]}).to_reader(), r"pass what its \.read_all\(\) returns"),
    ],
    ids=["path", "Path", "dict", "number", "None", "tuples", "lazy frame", "reader"],
)
def test_what_is_no_frame_is_named(given_frame: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_frame(given_frame)


def test_a_row_that_is_no_mapping_is_left_out() -> None:
    frame = [*rows_of(simple(kind=["x"])), None, ("s", START)]
    assert skipped(frame) == {"missing field 'id'": ["row 2", "row 3"]}


def test_rows_need_not_have_the_same_columns() -> None:
    frame = [{"id": "s", "at": START, "role": "agent"}, {"id": "s", "at": START, "role": "user", "ref": "p"}]
    assert [activity.ref for activity in sessions(frame)[0].activities] == [None, "p"]


# Roles


def test_words_for_roles_are_read_in_any_case_and_those_given_come_first() -> None:
    words = ["user", "HUMAN", "Assistant", "ai", "bot", "function", "system", "person", "agent", " tool "]
    (session,) = sessions(rows_of(simple(role=words)))
    assert [activity.role for activity in session.activities] == [
        "person", "person", "agent", "agent", "agent", "tool", "system", "person", "agent", "tool",
    ]  # fmt: skip
    (session,) = sessions(rows_of(simple(role=["agent", "bot"])), roles={"agent": "person"})
    assert [activity.role for activity in session.activities] == ["person", "agent"]


def test_words_for_roles_may_be_numbers_truths_and_choices() -> None:
    class Who(Enum):
        STAFF = "staff"

    for words, roles in (([0, 1], {0: "agent", 1: "person"}), ([False, True], {False: "agent", True: "person"})):
        (session,) = sessions(pd.DataFrame(simple(role=words)), roles=roles)
        assert [activity.role for activity in session.activities] == ["agent", "person"]
    (session,) = sessions(rows_of(simple(role=[Who.STAFF, "user"])), roles={"staff": "agent"})
    assert len(session.activities) == 2


def test_a_word_that_is_no_role_leaves_its_row_out_and_is_named() -> None:
    places = skipped(rows_of(simple(role=["agent", "note", "note", 7, ["x"]])))
    assert places == {
        "unknown role 'note'": ["row 2", "row 3"],
        "unknown role '7'": ["row 4"],
        "unknown role \"['x']\"": ["row 5"],
    }


# Rows that cannot be used


def test_a_bad_row_is_left_out_and_the_rest_of_its_session_kept() -> None:
    log = read_frame(rows_of(simple(at=[minute(0), "soon", minute(2)], id=["s", "s", "s"])))
    (session,) = log
    assert isinstance(session, Session)
    assert len(session.activities) == 2
    assert (log.records, log.left_out.places) == (3, {"unreadable time": ["row 2"]})


def test_strict_stops_at_the_first_with_its_row() -> None:
    log = read_frame(pd.DataFrame(simple(role=["agent", "note"])), strict=True)
    with pytest.raises(RecordError, match=r"pandas frame, row 2: unknown role 'note'"):
        list(log)


def test_a_session_of_bad_rows_only_is_none() -> None:
    log = read_frame(rows_of(simple(role=["note", "note"])))
    assert (list(log), log.left_out.total, log.records) == ([], 2, 2)


def test_ids_and_users_of_a_wrong_type_are_told_apart_from_missing_ones() -> None:
    frame = rows_of(simple(id=["s", ["s"], {}], user=["ada", "ada", "ada"])) + rows_of(simple(user=[["ada"]]))
    assert skipped(frame) == {"wrong type in 'id'": ["row 2", "row 3"], "wrong type in 'user'": ["row 4"]}


def test_types_may_be_mixed_and_whole_numbers_are_written_without_a_point() -> None:
    frame = simple(id=[7, 7.0, "7", np.int64(7), Decimal(7)], user=[1.0, None, 1, "1", np.float64(1)])
    (session,) = sessions(rows_of(frame))
    assert (session.id, session.user, len(session.activities)) == ("7", "1", 5)


def test_ids_of_databases_are_names_too() -> None:
    unique = UUID("12345678-1234-5678-1234-567812345678")
    relation = CONNECTION.sql(f"select '{unique}'::uuid as id, '2026-09-28T09:00Z' as at, 'user' as role")
    for frame in (rows_of(simple(id=[unique])), relation):
        assert [session.id for session in sessions(frame)] == [str(unique)]


@pytest.mark.parametrize(
    ("field", "cells"),
    [("arm", ["treatment", "control"]), ("weight", [1, 2]), ("read_at", [minute(90), minute(91)])],
)
def test_what_one_input_cannot_have_twice_leaves_it_out(field: str, cells: list[Any]) -> None:
    frame = rows_of(simple(**{field: cells})) + rows_of(simple(id=["other"]))
    log = read_frame(frame)
    assert [item.id for item in log if isinstance(item, Session)] == ["other"]
    assert log.left_out.places == {f"several values of '{field}' in one session": ["row 1", "row 2"]}


def test_what_is_said_in_some_rows_only_is_the_input_s() -> None:
    (session,) = sessions(rows_of(simple(arm=[None, "control", None], user=[None, "ada", None])))
    assert (session.arm, session.user, len(session.activities)) == ("control", "ada", 3)


def test_a_row_without_a_user_stays_apart_where_it_could_be_of_several() -> None:
    found = sessions(rows_of(simple(user=["ada", None, "bo"])))
    assert [(session.user, len(session.activities)) for session in found] == [("ada", 1), (None, 1), ("bo", 1)]


# Attributes


def test_attributes_that_differ_put_an_input_into_several_groups_and_say_so() -> None:
    frame = simple(topic=["billing", None, "refunds", "billing"], vip=[True, True, True, True], year=[2026.0] * 4)
    log = read_frame(pd.DataFrame(frame), attributes=["topic", "vip", "year"])
    (session,) = log
    assert isinstance(session, Session)
    assert session.attributes == {"topic": ["billing", "refunds"], "vip": "True", "year": "2026"}
    assert log.notes == ["1 session has several texts for 'topic', and counts in each of those groups"]


@pytest.mark.parametrize("library", ["rows", "pandas", "polars", "pyarrow"])
def test_a_cell_may_hold_several_texts(library: str) -> None:
    frame = frame_of(library, simple(topic=[["billing", "refunds"], ["billing", "refunds"]]))
    log = read_frame(frame, attributes="topic")
    (session,) = log
    assert isinstance(session, Session)
    assert (session.attributes, log.notes) == ({"topic": ["billing", "refunds"]}, [])


def test_an_attribute_that_is_no_text_leaves_its_input_out() -> None:
    assert skipped(rows_of(simple(topic=[{"a": 1}])), attributes=["topic"]) == {
        "wrong type in 'attributes.topic'": ["row 1"]
    }


# Times


def at(frame: Any, **options: Any) -> list[datetime]:
    return [activity.at for session in sessions(frame, **options) for activity in session.activities]


@pytest.mark.parametrize(
    "cell",
    [
        START,
        START.astimezone(BERLIN),
        START.astimezone(timezone(timedelta(hours=-7))),
        pd.Timestamp(START),
        pd.Timestamp(START).tz_convert("Asia/Kolkata"),
        "2026-09-28T09:00:00Z",
        "2026-09-28 11:00:00+02:00",
        " 2026-09-28T09:00:00.000000000Z ",
    ],
    ids=str,
)
def test_times_with_a_zone_are_read_whatever_writes_them(cell: Any) -> None:
    for options in ({}, {"tz": "America/New_York"}):
        (found,) = at([{"id": "s", "at": cell, "role": "agent"}], **options)
        assert (found, type(found), found.tzinfo) == (START, datetime, UTC)


@pytest.mark.parametrize(
    "cell",
    [
        datetime(2026, 9, 28, 11),  # noqa: DTZ001
        pd.Timestamp(2026, 9, 28, 11),
        np.datetime64("2026-09-28T11:00", "ns"),
        np.datetime64("2026-09-28T11:00", "s"),
        "2026-09-28T11:00",
        "2026-09-28 11:00:00",
    ],
    ids=repr,
)
def test_naive_times_need_the_clock_that_wrote_them(cell: Any) -> None:
    frame = [{"id": "s", "at": cell, "role": "agent"}]
    with pytest.raises(
        InputError, match=r"the times in column 'at' have no zone: say by which clock .*tz='Europe/Berlin'"
    ):
        read_frame(frame)
    assert at(frame, tz="Europe/Berlin") == [START]
    assert at(frame, tz=BERLIN) == [START]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_naive_columns_of_every_library_are_localised(library: str) -> None:
    naive = [datetime(2026, 9, 28, 11), datetime(2026, 9, 28, 11, 30)]  # noqa: DTZ001
    with pytest.raises(InputError, match="have no zone"):
        read_frame(frame_of(library, simple(at=naive)))
    assert at(frame_of(library, simple(at=naive)), tz="Europe/Berlin") == [minute(0), minute(30)]


def test_a_naive_time_after_others_with_a_zone_is_left_out() -> None:
    assert skipped(rows_of(simple(at=[START, "2026-09-28T11:00"]))) == {"naive time": ["row 2"]}


def test_a_time_that_the_clock_skipped_leaves_its_row_out() -> None:
    times = ["2026-03-29T01:59:59", "2026-03-29T02:00:00", "2026-03-29T02:59:59", "2026-03-29T03:00:00"]
    frame = pd.DataFrame(simple(at=pd.to_datetime(times)))
    assert skipped(frame, tz="Europe/Berlin") == {"time that the clock skipped": ["row 2", "row 3"]}
    assert at(frame, tz="Europe/Berlin") == [
        datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC),
        datetime(2026, 3, 29, 1, tzinfo=UTC),
    ]


def test_a_time_that_the_clock_showed_twice_is_the_first_and_counted() -> None:
    times = ["2026-10-25T01:59", "2026-10-25T02:30", "2026-10-25T03:00"]
    log = read_frame(pd.DataFrame(simple(at=pd.to_datetime(times))), tz="Europe/Berlin")
    (session,) = log
    assert isinstance(session, Session)
    assert [f"{activity.at:%H:%M}" for activity in session.activities] == ["23:59", "00:30", "02:00"]
    assert log.notes == ["1 time that the clock of Europe/Berlin showed twice, taken as the first"]


def test_a_time_that_says_which_of_two_it_is_is_believed() -> None:
    second = datetime(2026, 10, 25, 2, 30, fold=1)  # noqa: DTZ001
    log = read_frame([{"id": "s", "at": second, "role": "agent"}], tz="Europe/Berlin")
    (session,) = log
    assert isinstance(session, Session)
    assert (session.activities[0].at, log.notes) == (datetime(2026, 10, 25, 1, 30, tzinfo=UTC), [])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_both_hours_of_a_night_that_has_one_twice_survive_every_library(library: str) -> None:
    times = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1)]
    local = pa.array(times, pa.timestamp("us", "Europe/Berlin"))
    frame: Any = pa.table({**simple(role=["agent"] * 2), "at": local})
    if library == "pandas":
        frame = frame.to_pandas()
    elif library == "polars":
        frame = pl.from_arrow(frame)
    elif library == "duckdb":
        connection = duckdb.connect()
        connection.execute("set timezone = 'Europe/Berlin'")
        frame = connection.from_arrow(frame)
    assert at(frame) == times


@given(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2037, 12, 31)))  # noqa: DTZ001
def test_localising_is_that_of_pandas(naive: datetime) -> None:
    stamp = pd.Series([naive]).dt.tz_localize("Europe/Berlin", ambiguous=np.array([True]), nonexistent="NaT")[0]
    frame = [{"id": "s", "at": naive, "role": "agent"}]
    assert at(frame, tz="Europe/Berlin") == ([] if stamp is pd.NaT else [stamp.to_pydatetime().astimezone(UTC)])


@pytest.mark.parametrize(
    ("epoch", "number"),
    [
        ("s", 1790586000),
        ("s", 1790586000.0),
        ("s", Decimal(1790586000)),
        ("ms", 1790586000000),
        ("us", np.int64(1790586000000000)),
        ("ns", 1790586000000000000),
    ],
)
def test_a_number_is_a_time_only_where_somebody_says_what_it_counts(epoch: Any, number: Any) -> None:
    frame = [{"id": "s", "at": number, "role": "agent"}]
    with pytest.raises(InputError, match=r"the times in column 'at' are numbers: .*epoch='s' \(seconds\)"):
        read_frame(frame)
    assert at(frame, epoch=epoch) == [START]


def test_a_number_keeps_its_digits() -> None:
    assert at(rows_of(simple(at=[1790586000123456789])), epoch="ns") == [START.replace(microsecond=123457)]
    assert at(rows_of(simple(at=[1790586000.25, -1.5])), epoch="s") == [
        datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=UTC),
        START.replace(microsecond=250_000),
    ]


def test_nanoseconds_are_cut_without_a_word() -> None:
    stamp = pd.Timestamp("2026-09-28T09:00:00.123456789Z")
    for frame in (
        pd.DataFrame(simple(at=[stamp])),
        pl.DataFrame(simple(at=pl.Series([stamp], dtype=pl.Datetime("ns", "UTC")))),
    ):
        assert at(frame) == [START.replace(microsecond=123456)]
    table = pa.table({**simple(role=["agent"]), "at": pa.array([stamp.value], pa.timestamp("ns", "UTC"))})
    assert at(table) == [START.replace(microsecond=123456)]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (START.date(), "date without a time of day"),
        ("2026-09-28", "date without a time of day"),
        (np.datetime64("2026-09-28", "D"), "date without a time of day"),
        ("1790586000", "unreadable time"),
        ("28.9.2026 11:00", "unreadable time"),
        (True, "unreadable time"),
        ([START], "unreadable time"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "absurd time"),
        (datetime(3000, 1, 1, tzinfo=UTC), "absurd time"),
        (10**30, "absurd time"),
        (float("inf"), "absurd time"),
        (np.datetime64("9999999-01-01T00:00", "s"), "absurd time"),
    ],
    ids=repr,
)
def test_what_is_no_time_leaves_its_row_out(cell: Any, reason: str) -> None:
    frame = [{"id": "s", "at": START, "role": "agent"}, {"id": "s", "at": cell, "role": "agent"}]
    assert skipped(frame, tz="Europe/Berlin", epoch="s") == {reason: ["row 2"]}


# Transcripts and histories


def test_turns_become_transcripts_and_with_times_their_sessions() -> None:
    log = read_frame(
        pd.DataFrame(TICKETS),
        kind="transcript",
        columns={**COLUMNS, "text": "words"},
        attributes=["channel"],
    )
    items = list(log)
    assert items[0] == Transcript(
        id="t2",
        user="bo",
        attributes={"channel": "mail"},
        request="hi",
        turns=[Turn(role="person", text="hi", at=minute(1)), Turn(role="agent", text="yes?", at=minute(3))],
    )
    assert items[1] == items[0].session()  # type: ignore[union-attr]
    assert (len(items), log.records, log.derived) == (4, 6, 2)
    assert log.left_out.places == {"no request, and no turn by a person": ["row 5"]}


def test_what_was_asked_and_what_came_of_it_may_have_columns() -> None:
    frame = rows_of(
        {
            "id": ["t"] * 3,
            "role": ["user", "assistant", "user"],
            "text": ["Hi", None, ""],
            "request": ["Book a table", None, None],
            "result": [None, None, "Booked"],
            "turn_id": [1, 2, 3],
            "tool_calls": [None, [{"name": "book", "arguments": {"seats": 2}}], None],
            "metadata": [None, {"model": "m"}, None],
        }
    )
    (transcript,) = read_frame(frame, kind="transcript")
    assert isinstance(transcript, Transcript)
    assert (transcript.request, transcript.result) == ("Book a table", "Booked")
    assert [(turn.id, turn.text) for turn in transcript.turns] == [("1", "Hi"), ("2", ""), ("3", "")]
    assert transcript.turns[1].tool_calls[0].name == "book"
    assert transcript.turns[1].metadata == {"model": "m"}


def test_turns_are_put_in_the_order_of_their_times_where_all_are_known() -> None:
    columns = {"id": ["t"] * 3, "role": ["user"] * 3, "text": ["c", "a", "b"], "at": [minute(2), minute(0), minute(0)]}
    found = [item for item in read_frame(rows_of(columns), kind="transcript") if isinstance(item, Transcript)]
    assert [turn.text for turn in found[0].turns] == ["a", "b", "c"]
    (kept,) = read_frame(rows_of({**columns, "at": [minute(2), None, minute(0)]}), kind="transcript")
    assert isinstance(kept, Transcript)
    assert [turn.text for turn in kept.turns] == ["c", "a", "b"]


def test_several_requests_in_one_transcript_leave_it_out() -> None:
    columns = {"id": ["t"] * 2, "role": ["user"] * 2, "text": ["a", "b"], "request": ["a", "b"]}
    assert skipped(rows_of(columns), kind="transcript") == {
        "several values of 'request' in one transcript": ["row 1", "row 2"]
    }


def test_revisions_become_histories_and_keep_what_differs_between_them() -> None:
    frame = pd.DataFrame(
        {
            "document": ["d", "d", "d"],
            "at": [minute(5), minute(0), minute(9)],
            "author": ["human", "bot", "bot"],
            "text": ["b", "a", ""],
            "revision_id": [2, 1, 3],
            "agent": [None, "atlas", "birch"],
            "directory": ["docs", "docs", None],
        }
    )
    log = read_frame(
        frame, kind="history", columns={"id": "document", "role": "author"}, attributes=["agent", "directory"]
    )
    (history,) = log
    assert isinstance(history, History)
    assert history.attributes == {"directory": "docs"}
    assert [(r.id, r.role, r.text, r.attributes) for r in history.revisions] == [
        ("1", "agent", "a", {"agent": "atlas"}),
        ("2", "person", "b", {}),
        ("3", "agent", "", {"agent": "birch"}),
    ]
    assert [draft.attributes["agent"] for draft in history.drafts()] == ["atlas", "birch"]
    assert log.notes == []


def test_a_text_that_is_missing_or_no_text_leaves_its_revision_out() -> None:
    columns = {"id": ["d"] * 3, "at": [START] * 3, "role": ["bot"] * 3, "text": ["a", None, 7]}
    assert skipped(rows_of(columns), kind="history") == {
        "missing field 'text'": ["row 2"],
        "wrong type in 'text'": ["row 3"],
    }


# In a report


def test_a_report_tells_what_a_frame_left_out() -> None:
    columns = {**TICKETS, "who": [*TICKETS["who"][:-1], "note"]}
    found = report(read_frame(pd.DataFrame(columns), columns=COLUMNS), now=minute(100), by="words")
    text = " ".join(found.text().split())
    assert found.records == 6
    assert "pandas frame · 3 sessions, 2 users" in text
    assert "1 of 6 rows: 1 unknown role 'note' (row 6)" in text
    assert "'words' is a field that was ignored" in text


def test_a_log_of_a_frame_is_read_once() -> None:
    log = read_frame(pd.DataFrame(TICKETS), columns=COLUMNS)
    assert isinstance(log, Log)
    list(log)
    with pytest.raises(LogError, match="a log is read once"):
        iter(log)


HOSTILE = "<script>\x1b[2J{0}%s\n"


def test_text_of_a_frame_is_quoted_wherever_a_message_shows_it() -> None:
    frame = [{"id": "s", "at": START, "role": HOSTILE, HOSTILE: HOSTILE}]
    log = read_frame(frame)
    list(log)
    shown = [*log.left_out.counts, *log.unknown_fields]
    with pytest.raises(InputError) as raised:
        read_frame([{HOSTILE: 1}])
    with pytest.raises(InputError) as other:
        read_frame(frame, attributes=[HOSTILE + "x"])
    for text in (*shown, str(raised.value), str(other.value)):
        assert text.isprintable(), text


def test_no_library_is_imported_that_nobody_passed() -> None:
    code = """
import sys
from datetime import datetime, UTC
from evalr.logs import read_frame
rows = [{"id": "s", "at": datetime(2026, 9, 28, tzinfo=UTC), "role": "user"}]
assert len(list(read_frame(rows))) == 1
print(sorted({"pandas", "polars", "pyarrow", "duckdb"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_iterables_are_read_once_and_only_once() -> None:
    reads = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal reads
        reads += 1
        yield from rows_of(simple(kind=["x", "y"]))

    make: Callable[[], Iterator[dict[str, Any]]] = rows
    assert len(sessions(make())) == 1
    assert reads == 1
