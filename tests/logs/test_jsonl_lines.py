"""One line of a JSON Lines log: what it is, what is wrong with it, and that the others are read all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalr.errors import RecordError
from evalr.inputs import Activity, History, Session, Transcript
from evalr.logs import Item, Log, Stored
from evalr.logs import lines as lines_module
from evalr.logs.jsonl import reader, to_line
from evalr.logs.log import NAMES
from evalr.logs.reasons import NO_TYPE
from evalr.measures import TaskCompletion
from evalr.verdicts import Failure, HandOff, Skip, Verdict

AT = "2026-09-28T09:00:00Z"
ACTIVITY = {"at": AT, "role": "agent"}
GOOD = b'{"id": "good", "activities": []}'


def session(name: str = "s", **fields: Any) -> dict[str, Any]:
    return {"id": name, "activities": [ACTIVITY], **fields}


def read(path: Path, *lines: bytes | dict[str, Any], end: bytes = b"\n") -> tuple[Log, list[Item]]:
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"".join(line + end for line in encoded))
    log = reader.open(path)
    items = list(log)
    assert log.records == len(items) - log.derived + log.left_out.total
    return log, items


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def result(**fields: Any) -> dict[str, Any]:
    value = {"completed": True, "quality": 4}
    return {
        "type": "result",
        "evaluator": "completion",
        "value": value,
        "about": {"kind": "transcript", "id": "t"},
        **fields,
    }


# What cannot be used

BAD: dict[str, tuple[bytes | dict[str, Any], str]] = {
    "naive time": (session(activities=[{"at": "2026-09-28T09:00:00", "role": "agent"}]), "naive time"),
    "naive at": (session(at="2026-09-28 09:00"), "naive time"),
    "date alone": (session(at="2026-09-28"), "naive time"),
    "before 1900": (session(at="0001-01-01T00:00:00Z"), "absurd time"),
    "after 2199": (session(read_at="9999-12-31T00:00:00Z"), "absurd time"),
    "seconds out of range": (session(at=1e300), "unreadable time"),
    "words as a time": (session(at="last Tuesday"), "unreadable time"),
    "impossible time": (session(at="2026-02-30T09:00:00Z"), "unreadable time"),
    "impossible offset": (session(at="2026-09-28T09:00:00+25:00"), "unreadable time"),
    "bool as a time": (session(at=True), "unreadable time"),
    "list as a time": (session(at=[AT]), "unreadable time"),
    "null as an activity's time": (session(activities=[{"at": None, "role": "agent"}]), "unreadable time"),
    "no id": ({"activities": [ACTIVITY]}, "missing field 'id'"),
    "null id": (session(None), "wrong type in 'id'"),  # type: ignore[arg-type]
    "empty id": (session(""), "empty field 'id'"),
    "list as an id": (session(["s"]), "wrong type in 'id'"),  # type: ignore[arg-type]
    "bool as an id": (session(True), "wrong type in 'id'"),  # type: ignore[arg-type]
    "object as a user": (session(user={"id": 1}), "wrong type in 'user'"),
    "no role": (session(activities=[{"at": AT}]), "missing field 'activities.role'"),
    "no time": (session(activities=[{"role": "agent"}]), "missing field 'activities.at'"),
    "unknown role": (session(activities=[{"at": AT, "role": "user"}]), "unknown role 'user'"),
    "number as a role": (session(activities=[{"at": AT, "role": 7}]), "wrong type in 'activities.role'"),
    "activities that are no list": (session(activities={"at": AT}), "wrong type in 'activities'"),
    "null activities": (session(activities=None), "wrong type in 'activities'"),
    "an activity that is no object": (session(activities=[AT]), "wrong type in 'activities'"),
    "a kind that is no text": (session(activities=[{**ACTIVITY, "kind": {}}]), "wrong type in 'activities.kind'"),
    "a text that is no text": ({"id": "h", "revisions": [{**ACTIVITY, "text": 7}]}, "wrong type in 'revisions.text'"),
    "no request": ({"id": "t", "turns": []}, "missing field 'request'"),
    "attributes that are no object": (session(attributes=["a"]), "wrong type in 'attributes'"),
    "an attribute that is no text": (session(attributes={"a": {}}), "wrong type in 'attributes.a'"),
    "weight of nothing": (session(weight=0), "wrong value in 'weight'"),
    "weight NaN": (b'{"id": "s", "weight": NaN, "activities": []}', "wrong value in 'weight'"),
    "weight Infinity": (b'{"id": "s", "weight": Infinity, "activities": []}', "wrong value in 'weight'"),
    "weight out of range": (b'{"id": "s", "weight": 1e999, "activities": []}', "wrong value in 'weight'"),
    "a number of 5,000 digits": (b'{"activities": [], "id": ' + b"9" * 5000 + b"}", "number too large"),
    "a list": (b"[1, 2]", "not a JSON object"),
    "a text": (b'"activities"', "not a JSON object"),
    "null": (b"null", "not a JSON object"),
    "prose": (b"the activities of Tuesday", "not JSON"),
    "single quotes": (b"{'id': 's', 'activities': []}", "not JSON"),
    "trailing comma": (b'{"id": "s", "activities": [],}', "not JSON"),
    "two objects": (GOOD + GOOD, "not JSON"),
    "a raw control character": (b'{"id": "a\x01", "activities": []}', "not JSON"),
    "a block of NUL bytes": (b"\0" * 512, "not JSON"),
    "cut in the middle": (b'{"id": "s", "activities": [{"at": "2026', "not JSON"),
    "Latin-1": (b'{"id": "caf\xe9", "activities": []}', "not UTF-8"),
    "a surrogate in UTF-8": (b'{"id": "\xed\xa0\xbd", "activities": []}', "not UTF-8"),
    "Latin-1 in an unknown field": (b'{"id": "s", "activities": [], "x": "\xe9"}', "not UTF-8"),
    "nested lists": (b'{"activities": [], "id": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
    "nested objects": (b'{"activities": [], "x": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "nested too deeply"),
    "nested for ever": (b'{"activities": ' + b"[" * 100_000, "nested too deeply"),
    "unknown type": (session(type="sesion"), "unknown type 'sesion'"),
    "number as a type": (session(type=1), "wrong type in 'type'"),
    "null as a type": (session(type=None), "wrong type in 'type'"),
    "nothing that says what it is": (
        {"id": "s", "events": []},
        NO_TYPE,
    ),
    "an empty object": ({}, NO_TYPE),
    "the type of another": ({"type": "history", "activities": []}, "missing field 'id'"),
    "a result without a value": ({"type": "result", "evaluator": "completion"}, "missing field 'value'"),
    "a result of nobody": ({"type": "result", "measure": "completion", "value": {}}, "missing field 'evaluator'"),
    "a failure without an error": ({"status": "failed", "evaluator": "completion"}, "missing field 'error'"),
    "a skip without a reason": ({"status": "skipped", "evaluator": "completion"}, "missing field 'reason'"),
    "a failure of nothing": ({"status": "failed", "error": "x"}, "missing field 'measure'"),
    "an unknown status": (result(status="maybe"), "unknown status 'maybe'"),
    "an unknown measure": (result(measure="<b>"), "unknown measure '<b>'"),
    "a value without a field": (result(value={"quality": 4}), "missing field 'value.completed'"),
    "a value out of bounds": (result(value={"completed": True, "quality": 6}), "wrong value in 'value.quality'"),
    "a value of another type": (
        result(value={"completed": "perhaps", "quality": 4}),
        "wrong type in 'value.completed'",
    ),
    "a value that is no object": (result(value=True), "wrong type in 'value'"),
    "a confidence over 1": (result(confidence={"completed": 1.5}), "wrong value in 'confidence.completed'"),
    "a negative cost": (result(cost=-1), "wrong value in 'cost'"),
    "an infinite latency": (
        b'{"type": "result", "evaluator": "completion", "value": {}, "latency": Infinity}',
        "wrong value in 'latency'",
    ),
    "about nothing": (result(about={"id": "t"}), "missing field 'about.kind'"),
    "about a naive time": (result(about={"kind": "transcript", "at": "2026-09-28T09:00:00"}), "naive time"),
}


@pytest.mark.parametrize(("bad", "reason"), BAD.values(), ids=BAD)
def test_a_bad_line_is_left_out_under_its_reason(bad: bytes | dict[str, Any], reason: str, path: Path) -> None:
    log, items = read(path, GOOD, bad, session("last"))
    assert [item.id for item in items if isinstance(item, Session)] == ["good", "last"]
    assert log.left_out.counts == {reason: 1}
    assert log.left_out.places == {reason: ["line 2"]}
    assert not log.repaired


@pytest.mark.parametrize(("bad", "reason"), BAD.values(), ids=BAD)
def test_strict_stops_there(bad: bytes | dict[str, Any], reason: str, path: Path) -> None:
    read(path, GOOD, bad, session("last"))
    items = iter(reader.open(path, strict=True))
    assert isinstance(next(items), Session)
    with pytest.raises(RecordError) as caught:
        next(items)
    assert str(caught.value) == f"{path}, line 2: {reason}; mend it, or read without strict to leave it out"


def test_text_from_a_log_is_quoted_and_cut_in_reasons(path: Path) -> None:
    log, _ = read(path, GOOD, session(type="\x1b[31m{0}\u2028" + "x" * 500))
    ((reason, _),) = log.left_out.counts.items()
    assert reason == r"unknown type '\x1b[31m{0}\u2028" + "x" * 30 + "…'"


def test_a_hostile_log_cannot_fill_the_account(path: Path) -> None:
    types = [session(type=f"type {number}") for number in range(1000)]
    fields = [session(f"s{number}", **{f"field {number}": 1}) for number in range(1000)]
    log, _ = read(path, *types, *fields)
    assert log.left_out.total == 1000
    assert len(log.left_out.counts) == NAMES + 1
    assert log.unknown_fields.total() == 1000
    assert len(log.unknown_fields) == NAMES + 1


def test_a_last_line_that_was_cut_off_says_so(path: Path) -> None:
    for line in (b'{"id": "s", "activities": [{"at": "2026', b'{"id": "s", "activities": []', b'{"id": "caf\xc3', b"{"):
        path.write_bytes(GOOD + b"\n" + line)
        log = reader.open(path)
        assert len(list(log)) == 1
        assert log.left_out.places == {"cut off": ["line 2"]}


def test_a_last_line_without_a_line_end_is_whole(path: Path) -> None:
    path.write_bytes(GOOD + b'\n{"id": "last", "activities": []}')
    assert [item.id for item in reader.open(path) if isinstance(item, Session)] == ["good", "last"]


def test_a_line_over_the_limit_is_left_out_unread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "LINE_LIMIT", 1000)
    fits = session("fits")
    fits["pad"] = "x" * (1000 - 1 - len(json.dumps({**fits, "pad": ""})))
    over = {**fits, "id": "over", "pad": fits["pad"] + "x"}
    assert len(json.dumps(fits)) + 1 == 1000
    log, items = read(path, GOOD, over, fits, session("huge", pad="x" * 300_000), session("last"))
    assert [item.id for item in items if isinstance(item, Session)] == ["good", "fits", "last"]
    assert log.left_out.places == {"line too long": ["line 2", "line 4"]}
    with pytest.raises(RecordError, match="line 2: line too long"):
        list(reader.open(path, strict=True))


def test_a_last_line_over_the_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "LINE_LIMIT", 1000)
    path.write_bytes(GOOD + b"\n" + b'{"id": "' + b"x" * 5000)
    log = reader.open(path)
    assert len(list(log)) == 1
    assert log.left_out.places == {"line too long": ["line 2"]}


# What is ignored, repaired or taken as it is


@pytest.mark.parametrize("end", [b"\r\n", b"\n\n", b"  \n", b"\n \t\r\n"], ids=repr)
def test_line_ends_and_blank_lines_do_not_matter(end: bytes, path: Path) -> None:
    log, items = read(path, GOOD, session("b"), end=end)
    assert len(items) == 2
    assert not log.left_out.total


def test_lines_are_counted_with_the_blank_ones(path: Path) -> None:
    path.write_bytes(b"\n\r\n" + GOOD + b"\n\nnot JSON\n")
    log = reader.open(path)
    list(log)
    assert log.left_out.places == {"not JSON": ["line 5"]}
    assert log.records == 2


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"], ids=repr)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_other_line_ends_of_unicode_do_not_end_a_line(separator: str, ascii_only: bool, path: Path) -> None:
    escaped = ascii_only or separator < " "
    line = json.dumps(session(f"a{separator}b"), ensure_ascii=escaped).encode()
    _, items = read(path, line, GOOD)
    assert [item.id for item in items if isinstance(item, Session)] == [f"a{separator}b", "good"]


def test_a_byte_order_mark_is_no_text(path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    log, items = read(path, mark + GOOD, session("b"), mark + json.dumps(session("c")).encode())
    assert [item.id for item in items if isinstance(item, Session)] == ["good", "b", "c"]
    assert not log.left_out.total


@pytest.mark.parametrize(
    ("escape", "text", "repaired"),
    [
        (r"\ud83d", "\ufffd", 1),
        (r"\uDE00", "\ufffd", 1),
        (r"a\ud83d\u0041", "a\ufffdA", 1),
        (r"\ude00\ud83d", "\ufffd\ufffd", 2),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600", 1),
        (r"\\ud83d\ud83d", "\\ud83d\ufffd", 1),
        (r"\ud83d\ude00", "\U0001f600", 0),
        (r"\\ud83d", "\\ud83d", 0),
        (r"\"\u00e9\n", '"é\n', 0),
    ],
)
def test_lone_surrogates_are_replaced_and_counted(escape: str, text: str, repaired: int, path: Path) -> None:
    line = b'{"id": "s", "user": "' + escape.encode() + b'", "activities": []}'
    log, items = read(path, GOOD, line, session("last"))
    assert [item.user for item in items if isinstance(item, Session)] == [None, text, None]
    assert log.repaired == ({"lone surrogates": repaired} if repaired else {})
    assert not log.left_out.total


def test_what_is_repaired_and_then_left_out_counts_once(path: Path) -> None:
    log, _ = read(path, GOOD, rb'{"id": "\ud83d", "activities": 7}', rb'{"id": "\ud83d", "activities": [}')
    assert log.left_out.counts == {"wrong type in 'activities'": 1, "not JSON": 1}
    assert not log.repaired


def test_of_two_equal_keys_the_last_counts(path: Path) -> None:
    _, items = read(path, b'{"id": "a", "activities": [], "id": "b"}')
    assert [item.id for item in items if isinstance(item, Session)] == ["b"]


def test_numbers_may_stand_for_names(path: Path) -> None:
    big = 10**400
    log, items = read(path, session(7, user=1.5), session(big))  # type: ignore[arg-type]
    assert [(item.id, item.user) for item in items if isinstance(item, Session)] == [("7", "1.5"), (str(big), None)]
    assert not log.left_out.total


def test_unix_seconds_are_a_time(path: Path) -> None:
    _, items = read(path, session(activities=[{"at": 1790586000, "role": "agent"}]), session("z"))
    first, second = items
    assert isinstance(first, Session)
    assert isinstance(second, Session)
    assert first.activities == second.activities


def test_events_are_put_in_the_order_of_time(path: Path) -> None:
    times = [f"2026-09-28T09:00:0{second}Z" for second in (3, 1, 2)]
    (_, items) = read(path, session(activities=[{"at": time, "role": "agent", "ref": time} for time in times]))
    (found,) = items
    assert isinstance(found, Session)
    assert [activity.ref for activity in found.activities] == sorted(times)


# Unknown fields


def test_unknown_fields_are_ignored_and_counted_by_name(path: Path) -> None:
    call = {"name": "grep", "cost": 1, "arguments": {"anything": 1}}
    turn = {"role": "agent", "tool_calls": [call, call], "model": "m", "metadata": {"open": 1}}
    log, items = read(
        path,
        session("a", agent="x", activities=[{**ACTIVITY, "tool": "x"}, {**ACTIVITY, "tool": "y", "accepted": True}]),
        {"id": "h", "path": "x", "revisions": [{**ACTIVITY, "text": "", "commit": "1f"}]},
        {"id": "t", "request": "r", "turns": [turn], "score": 1},
        result(
            judge="m",
            value={"completed": True, "quality": 4, "mood": 1},
            about={"kind": "transcript", "id": "t", "x": 1},
        ),
        {"status": "handed_off", "evaluator": "completion", "reason": "r", "verdict": {**result(), "y": 1}},
    )
    assert len(items) == 5
    assert not log.left_out.total
    assert log.unknown_fields == {
        "agent": 1,
        "activities.tool": 2,
        "activities.accepted": 1,
        "path": 1,
        "revisions.commit": 1,
        "turns.model": 1,
        "turns.tool_calls.cost": 2,
        "score": 1,
        "judge": 1,
        "value.mood": 1,
        "about.x": 1,
        "verdict.y": 1,
    }


def test_the_tool_of_a_turn_is_kept_in_its_metadata(path: Path) -> None:
    call = {"role": "agent", "kind": "tool_call", "text": "{}", "ref": "t1", "tool": "Bash"}
    answer = {"role": "tool", "kind": "tool_result", "text": "done", "ref": "t1", "tool": "Bash", "metadata": {"x": 1}}
    log, items = read(path, {"id": "t", "request": "r", "turns": [call, answer]})
    (found,) = items
    assert isinstance(found, Transcript)
    assert [turn.metadata for turn in found.turns] == [{"tool": "Bash"}, {"x": 1, "tool": "Bash"}]
    assert not log.unknown_fields
    assert reads_back(path, found) == found


def test_a_tool_that_is_no_name_or_is_named_already_is_counted(path: Path) -> None:
    turns = [{"role": "agent", "tool": 1}, {"role": "agent", "tool": "a", "metadata": {"tool": "b"}}]
    log, items = read(path, {"id": "t", "request": "r", "turns": turns})
    (found,) = items
    assert isinstance(found, Transcript)
    assert [turn.metadata for turn in found.turns] == [{}, {"tool": "b"}]
    assert log.unknown_fields == {"turns.tool": 2}


def reads_back(path: Path, item: Item) -> Item:
    path.write_text(to_line(item) + "\n", encoding="utf-8")
    (found,) = reader.open(path)
    return found


def test_what_was_read_with_unknown_fields_equals_what_was_not(path: Path) -> None:
    extra = session(extra=1, activities=[ACTIVITY, {**ACTIVITY, "tool": 1}], type="session", user="u")
    _, items = read(path, extra)
    plain = Session(id="s", user="u", activities=[Activity.model_validate(ACTIVITY)] * 2)
    assert items == [plain]
    assert repr(items) == repr([plain])
    (found,) = items
    assert isinstance(found, Session)
    assert found.model_dump(exclude_unset=True) == plain.model_dump(exclude_unset=True)
    assert found.model_extra is None


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
def test_a_line_reads_the_same_after_any_other(order: tuple[int, ...], path: Path) -> None:
    lines = [session("a"), session("b", x=1), {**session("c"), "type": "session", "turns": []}, result()]
    log, items = read(path, *(lines[index] for index in order))
    assert len(items) == 4
    assert log.unknown_fields == {"x": 1, "turns": 1}


def test_fields_are_named_fit_to_print(path: Path) -> None:
    log, _ = read(path, session(**{"\x1b[31m\u2028": 1, "y" * 500: 1, "'": 1, '"': 1}))
    assert list(log.unknown_fields) == [r"\x1b[31m\u2028", "y" * 39 + "…", "'", '"']


# What a line is


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"id": "x", "activities": []}, Session),
        ({"id": "x", "type": "session"}, Session),
        ({"id": "x", "revisions": []}, History),
        ({"id": "x", "type": "history"}, History),
        ({"request": "r", "turns": []}, Transcript),
        ({"request": "r"}, Transcript),
        ({"request": "r", "type": "transcript"}, Transcript),
        (result(), Stored),
        ({"evaluator": "completion", "value": {"completed": True, "quality": 1}}, Stored),
        ({"status": "skipped", "measure": "completion", "reason": "r"}, Stored),
        (b'{"id": "x", "\\u0061ctivities": []}', Session),
    ],
)
@pytest.mark.parametrize("before", [GOOD, b'{"id": "h", "revisions": [], "x": 1}'])
def test_its_type_or_its_fields_decide(line: dict[str, Any], kind: type, before: bytes, path: Path) -> None:
    log, items = read(path, before, line)
    assert not log.left_out.total
    assert isinstance(items[1], kind)


def test_where_two_fields_decide_the_first_of_the_list_does_whatever_came_before(path: Path) -> None:
    both = {"id": "x", "activities": [], "turns": [], "request": "r"}
    for before in (
        GOOD,
        b'{"id": "y", "activities": [], "x": 1}',
        b'{"request": "r", "turns": []}',
        b'{"request": "r", "turns": [], "x": 1}',
    ):
        log, items = read(path, before, both)
        assert isinstance(items[1], Session)
        assert log.unknown_fields["turns"] == log.unknown_fields["request"] == 1


# Sessions of transcripts


def test_a_transcript_whose_turns_have_times_also_yields_its_session(path: Path) -> None:
    turns = [{"role": "person", "text": "hi", "at": AT}, {"role": "agent", "at": AT, "kind": "proposal", "ref": "p"}]
    log, items = read(path, {"id": "t", "user": "u", "request": "r", "turns": turns, "attributes": {"agent": "a"}})
    transcript, derived = items
    assert isinstance(transcript, Transcript)
    assert derived == transcript.session()
    assert isinstance(derived, Session)
    assert (derived.id, derived.user, len(derived.activities), derived.attributes) == ("t", "u", 2, {"agent": "a"})
    assert (log.records, log.derived) == (1, 1)


@pytest.mark.parametrize(
    "transcript",
    [
        {"id": "t", "request": "r", "turns": []},
        {"id": "t", "request": "r", "turns": [{"role": "agent", "at": AT}, {"role": "person"}]},
        {"request": "r", "turns": [{"role": "agent", "at": AT}]},
    ],
    ids=["no turns", "a turn without a time", "no id"],
)
def test_other_transcripts_yield_themselves_alone(transcript: dict[str, Any], path: Path) -> None:
    log, items = read(path, transcript)
    assert [type(item) for item in items] == [Transcript]
    assert log.derived == 0


def test_a_session_that_the_log_has_already_is_not_derived_again(path: Path) -> None:
    transcript = {"id": "s", "request": "r", "turns": [{"role": "agent", "at": AT}]}
    log, items = read(path, session(), transcript)
    assert [type(item) for item in items] == [Session, Transcript]
    assert (log.derived, log.left_out.total) == (0, 0)


# Duplicates


def test_the_first_of_a_subject_is_kept(path: Path) -> None:
    log, items = read(path, session(weight=1), session("b"), session(weight=2), session())
    assert [item.weight for item in items if isinstance(item, Session)] == [1, None]
    assert log.left_out.places == {"duplicate id": ["line 3", "line 4"]}


def test_ids_repeat_across_users_and_kinds(path: Path) -> None:
    log, items = read(
        path,
        session(),
        session(user="u"),
        session(user="v"),
        {"id": "s", "revisions": []},
        {"id": "s", "request": "r"},
        {"request": "r"},
        {"request": "r"},
        session("u", user="s"),
    )
    assert len(items) == 8
    assert not log.left_out.total


def test_one_result_of_one_evaluator_version_for_each_subject(path: Path) -> None:
    log, items = read(
        path,
        result(),
        result(value={"completed": False, "quality": 1}),
        result(status="failed", error="x"),
        result(version="2"),
        result(evaluator="people", measure="completion"),
        result(about={"kind": "transcript", "id": "t", "user": "u"}),
        result(about=None),
        result(about=None),
        result(about={"kind": "transcript"}),
    )
    assert len(items) == 7
    assert log.left_out.places == {"duplicate id": ["line 2", "line 3"]}


# Results


def test_the_four_kinds_of_result(path: Path) -> None:
    about = {
        "kind": "session",
        "id": "s",
        "user": "u",
        "session": "p",
        "at": AT,
        "read_at": AT,
        "arm": "control",
        "weight": 2,
    }
    shared = {
        "type": "result",
        "evaluator": "judge",
        "measure": "completion",
        "latency": 1.5,
        "cost": 0.01,
        "as_of": AT,
    }
    verdict = {
        **shared,
        "value": {"completed": True, "quality": 5},
        "about": {**about, "attributes": {"a": ["x", "y"]}},
    }
    _, items = read(
        path,
        {**verdict, "confidence": {"completed": 0.9}, "flags": ["truncated"], "version": "7"},
        {**shared, "status": "failed", "error": "e"},
        {**shared, "status": "skipped", "reason": "r"},
        {**shared, "status": "handed_off", "reason": "r", "verdict": verdict},
    )
    assert all(isinstance(item, Stored) and item.measure == "completion" for item in items)
    first, *rest = [item.result for item in items if isinstance(item, Stored)]
    assert isinstance(first, Verdict)
    assert first.value == TaskCompletion(completed=True, quality=5)
    assert (first.evaluator, first.version, first.flags, first.confidence) == (
        "judge",
        "7",
        ("truncated",),
        {"completed": 0.9},
    )
    assert first.about is not None
    assert (first.about.subject, first.about.arm, first.about.weight) == (("session", "u", "p", "s"), "control", 2)
    assert first.about.attributes == {"a": ["x", "y"]}
    failure, skip, hand_off = rest
    assert isinstance(failure, Failure)
    assert isinstance(skip, Skip)
    assert isinstance(hand_off, HandOff)
    assert (failure.error, skip.reason, hand_off.reason) == ("e", "r", "r")
    assert {each.latency for each in (first, *rest)} == {1.5}
    assert {each.cost for each in (first, *rest)} == {0.01}
    assert len({each.as_of for each in (first, *rest)} - {None}) == 1
    assert hand_off.verdict is not None
    assert hand_off.verdict.value == first.value


def test_a_persons_feedback_is_a_verdict_of_people(path: Path) -> None:
    _, items = read(path, {"evaluator": "people", "measure": "completion", "value": {"completed": False, "quality": 2}})
    (stored,) = items
    assert isinstance(stored, Stored)
    assert isinstance(stored.result, Verdict)
    assert (stored.measure, stored.result.evaluator, stored.result.version) == ("completion", "people", "1")
