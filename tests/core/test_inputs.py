"""Inputs: what is let in, what it becomes, and the parts that are cut from it."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from evalr import InputError
from evalr.inputs import (
    About,
    Activity,
    Draft,
    History,
    Input,
    Revision,
    Session,
    ToolCall,
    Transcript,
    Turn,
    Wait,
    check_window,
    reading_time,
    resolve_now,
    utc_now,
)

START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
LONE = "\ud83d"


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def session(*events: str, **fields: Any) -> Session:
    """A session from words such as `3 agent proposal p1`: minutes, role, kind, ref."""
    activities = []
    for event in events:
        minutes, *words = event.split()
        named = dict(zip(("role", "kind", "ref"), words, strict=False))
        activities.append({"at": at(float(minutes)), **named})
    return Session(**{"id": "s", "activities": activities, **fields})


def seen(waits: list[Wait]) -> set[tuple[str, float, float | None, str | None]]:
    """What waits say, in minutes: for what, since, until, how it ended."""

    def minutes(time: datetime | None) -> float | None:
        return None if time is None else (time - START) / timedelta(minutes=1)

    return {(wait.of, minutes(wait.since) or 0.0, minutes(wait.until), wait.ended) for wait in waits}


# ---------------------------------------------------------------------------------------------------------------------
# Times
# ---------------------------------------------------------------------------------------------------------------------

NO_TIMES = [
    datetime(2026, 9, 28, 9, 0),  # noqa: DTZ001
    "2026-09-28T09:00:00",
    "2026-09-28",
    date(2026, 9, 28),
    "yesterday",
    "",
    True,
    math.nan,
    math.inf,
    None,
    [],
]
ABSURD_TIMES = [
    datetime(1899, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2200, 1, 1, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    10**30,
    -5e15,
]
PLACES: list[Callable[[Any], Any]] = [
    lambda time: Activity(at=time, role="agent").at,
    lambda time: Revision(at=time, role="agent", text="").at,
    lambda time: Session(id="s", activities=[{"at": time, "role": "agent"}]).activities[0].at,
    lambda time: Session(id="s", read_at=time if time is not None else "").read_at,
    lambda time: Turn(role="agent", at=time if time is not None else "").at,
    lambda time: Wait(session="s", since=time).since,
    lambda time: Draft(history="h", written=time, text="").written,
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("time", [*NO_TIMES, *ABSURD_TIMES], ids=repr)
def test_a_time_without_a_zone_or_out_of_all_reason_is_refused_and_told_what_to_do(
    time: object, place: Callable[[Any], Any]
) -> None:
    with pytest.raises(ValidationError, match=r"needs its zone and a year .* 2026-09-28T09:00:00Z .*tzinfo=UTC"):
        place(time)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "time",
    [
        START,
        "2026-09-28T09:00:00Z",
        "2026-09-28 11:00:00+02:00",
        START.astimezone(ZoneInfo("Asia/Shanghai")),
        START.timestamp(),
        int(START.timestamp() * 1000),
    ],
    ids=repr,
)
def test_a_time_is_the_same_moment_however_it_was_written(time: object, place: Callable[[Any], Any]) -> None:
    assert place(time) == START


@pytest.mark.parametrize("edge", ["1900-01-01T00:00:00Z", "2199-12-31T23:59:59.999999Z"])
def test_the_edges_of_reason_are_within(edge: str) -> None:
    assert Activity(at=edge, role="agent").at == datetime.fromisoformat(edge)


def test_an_hour_is_an_hour_when_the_clocks_go_back() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    asked = datetime(2026, 10, 25, 2, 50, tzinfo=berlin)
    answered = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=berlin)
    given_backwards = Session(
        id="s", activities=[Activity(at=answered, role="person"), Activity(at=asked, role="agent")]
    )
    assert [activity.role for activity in given_backwards.activities] == ["agent", "person"]
    [wait] = given_backwards.waits(now=datetime(2026, 10, 25, 2, 40, fold=1, tzinfo=berlin))
    assert wait.until is not None
    assert wait.until - wait.since == timedelta(minutes=20)


# ---------------------------------------------------------------------------------------------------------------------
# Texts, names, attributes, weights
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["user", "assistant", "AGENT", "", None, 1])
def test_a_role_is_person_agent_tool_or_system(role: object) -> None:
    for model in (Activity, Turn):
        with pytest.raises(ValidationError, match="'person', 'agent', 'tool' or 'system'"):
            model(at=START, role=role)


@pytest.mark.parametrize(
    ("number", "text"), [(7, "7"), (0, "0"), (1.5, "1.5"), (10**40, "1" + 40 * "0"), (Decimal(7), "7")]
)
def test_a_number_in_a_log_is_a_name(number: object, text: str) -> None:
    found = Session(id=number, user=number, arm=number, attributes={number: [number], "x": number})
    assert (found.id, found.user, found.arm, found.attributes) == (text, text, text, {text: [text], "x": text})
    assert Activity(at=START, role="agent", kind=number, ref=number).ref == text


def test_a_number_from_json_is_a_name() -> None:
    found = Session.model_validate_json('{"id": 7, "user": 1.5, "attributes": {"team": 3}}')
    assert (found.id, found.user, found.attributes) == ("7", "1.5", {"team": "3"})


@pytest.mark.parametrize("name", ["", math.nan, math.inf, Decimal("NaN"), True, [], {}, b"", Ellipsis], ids=repr)
def test_what_is_no_name_is_refused(name: object) -> None:
    for fields in (
        {"id": name},
        {"id": "s", "user": name},
        {"id": "s", "arm": name},
        {"id": "s", "attributes": {"a": [name]}},
        {"id": "s", "activities": [{"at": START, "role": "agent", "ref": name}]},
    ):
        with pytest.raises(ValidationError, match="must be a text"):
            Session.model_validate(fields)


@pytest.mark.parametrize("model", [Session, History])
def test_a_session_and_a_history_have_an_id(model: type[Session | History]) -> None:
    with pytest.raises(ValidationError, match="id\n"):
        model()  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="must be a text that is not empty"):
        model(id=None)


def test_an_attribute_is_a_text_or_several() -> None:
    assert Session(id="s", attributes={"agent": "a", "rules": ["x", "y"], "none": []}).attributes == {
        "agent": "a",
        "rules": ["x", "y"],
        "none": [],
    }
    for wrong in ("", None, True, {"a": 1}, [["a"]], [""]):
        with pytest.raises(ValidationError, match=r"attributes\.x\n +must be a text, a number or a list of them"):
            Session(id="s", attributes={"x": wrong})
    with pytest.raises(ValidationError, match="must be a text that is not empty"):
        Session(id="s", attributes={"": "x"})


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, "many"])
def test_a_weight_is_positive_and_finite(weight: object) -> None:
    with pytest.raises(ValidationError, match="weight\n"):
        Session(id="s", weight=weight)


def test_an_agent_that_only_called_tools_said_nothing() -> None:
    assert Turn.model_validate_json('{"role": "agent", "text": null}').text == ""
    assert Turn(role="agent").text == ""
    for wrong in (1, [], {}):
        with pytest.raises(ValidationError, match="must be a text or null"):
            Turn(role="agent", text=wrong)


def test_a_misspelt_keyword_is_refused() -> None:
    for make in (
        lambda: Session(id="s", activites=[]),
        lambda: Activity(at=START, role="agent", text="hello"),
        lambda: History(id="h", users="u"),
        lambda: Revision(at=START, role="agent", text="", author="me"),
        lambda: Transcript(request="", turn=[]),
        lambda: Turn(role="agent", content="hello"),
        lambda: ToolCall(name="t", args={}),
    ):
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            make()


def test_a_reader_may_ignore_what_it_does_not_know() -> None:
    line = {"id": "s", "new": 1, "activities": [{"at": START, "role": "agent", "tool": "grep"}]}
    assert Session.model_validate(line, extra="ignore") == session("0 agent")


# ---------------------------------------------------------------------------------------------------------------------
# Whatever a log holds can be stored and read back
# ---------------------------------------------------------------------------------------------------------------------

hostile = st.text(st.characters(exclude_categories=()) | st.sampled_from(["\ud83d", "\udc00", "\0", "{", "\u2028"]))
names = hostile.filter(bool)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3),
    max_leaves=8,
)
times = st.datetimes(
    datetime(1900, 1, 2),  # noqa: DTZ001
    datetime(2199, 12, 30),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=8)), ZoneInfo("Europe/Berlin")]),
)
roles = st.sampled_from(["person", "agent", "tool", "system"])
maybe = st.none() | names
attributes = st.dictionaries(names, names | st.lists(names, max_size=2), max_size=2)
shared = {
    "user": maybe,
    "arm": maybe,
    "at": st.none() | times,
    "read_at": st.none() | times,
    "attributes": attributes,
    "weight": st.none() | st.floats(min_value=0, exclude_min=True, allow_infinity=False),
}
activities = st.builds(dict, at=times, role=roles, kind=names, ref=maybe)
revisions = st.builds(dict, at=times, role=roles, text=hostile, id=maybe | st.sampled_from("12"), attributes=attributes)
tool_calls = st.builds(
    dict, name=names, id=maybe, arguments=anything, status=maybe, error=st.none() | hostile, result=anything
)
turns = st.builds(
    dict,
    role=roles,
    text=st.none() | hostile,
    id=maybe,
    at=st.none() | times,
    kind=names,
    ref=maybe,
    tool_calls=st.lists(tool_calls, max_size=2),
    metadata=st.dictionaries(hostile, anything, max_size=3),
)
inputs = (
    st.builds(Session, id=names, activities=st.lists(activities, max_size=4), **shared)
    | st.builds(History, id=names, revisions=st.lists(revisions, max_size=4), **shared)
    | st.builds(
        Transcript, id=maybe, request=hostile, turns=st.lists(turns, max_size=3), result=st.none() | hostile, **shared
    )
)


@given(inputs)
def test_no_lone_surrogate_or_odd_number_in_any_field_keeps_an_input_from_being_stored_and_read_back(
    found: Input,
) -> None:
    line = found.model_dump_json()
    line.encode()
    json.dumps(json.loads(line), allow_nan=False)  # raises where a number is none
    assert type(found).model_validate_json(line) == found
    assert type(found).model_validate(json.loads(line)) == found
    assert type(found).model_validate(found.model_dump()) == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert copy.deepcopy(found) == found


@given(inputs)
def test_an_input_fits_its_json_schema(found: Input) -> None:
    schema = type(found).model_json_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(found.model_dump_json()))


@given(inputs)
def test_the_parts_of_an_input_are_stored_and_read_back_and_have_ids_of_their_own(found: Input) -> None:
    parts: list[Wait] | list[Draft] = []
    if isinstance(found, Session):
        parts = found.waits(now=datetime(2199, 12, 31, tzinfo=UTC))
    if isinstance(found, History):
        parts = found.drafts()
    for part in parts:
        assert type(part).model_validate_json(part.model_dump_json()) == part
        assert type(part).model_validate(part.model_dump()) == part
        assert pickle.loads(pickle.dumps(part)) == part
        assert part.about().session == found.id
    assert len({part.about().subject for part in parts}) == len(parts)


def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_stays() -> None:
    call = ToolCall(
        name=LONE, id=LONE, arguments={LONE: [LONE]}, status=LONE, error=f"a{LONE}b", result=f"{LONE}\N{GRINNING FACE}"
    )
    assert call.model_dump() == {
        "name": "\ufffd",
        "id": "\ufffd",
        "arguments": {"\ufffd": ["\ufffd"]},
        "status": "\ufffd",
        "error": "a\ufffdb",
        "result": "\ufffd\N{GRINNING FACE}",
    }
    turn = Turn(role="agent", text=LONE, metadata={"x": {"y": LONE}})
    assert (turn.text, turn.metadata) == ("\ufffd", {"x": {"y": "\ufffd"}})
    assert Session(id="s", attributes={LONE: [LONE]}).attributes == {"\ufffd": ["\ufffd"]}


def test_open_values_become_what_json_holds() -> None:
    metadata = Turn(
        role="agent", metadata={"cost": math.nan, "most": math.inf, "at": START, "pair": (1, 2), "n": 10**30}
    ).metadata
    assert metadata == {"cost": None, "most": None, "at": "2026-09-28T09:00:00Z", "pair": [1, 2], "n": 10**30}
    assert ToolCall(name="t", arguments={1: 2}).arguments == {"1": 2}
    assert ToolCall(name="t", arguments={1: LONE, "at": START}).arguments == {
        "1": "\ufffd",
        "at": START.isoformat()[:-6] + "Z",
    }


def test_open_values_are_the_inputs_own() -> None:
    arguments: dict[str, Any] = {"path": ["a"]}
    call = ToolCall(name="t", arguments=arguments)
    arguments["path"].append("b")
    assert call.arguments == {"path": ["a"]}


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def deep() -> list[Any]:
    nest: list[Any] = []
    for _ in range(100_000):
        nest = [nest]
    return nest


@pytest.mark.parametrize("make", [object, endless, deep, lambda: b"\xff", lambda: {(1,): [object()]}])
def test_an_open_value_that_no_file_could_hold_is_refused(make: Callable[[], object]) -> None:
    value = make()
    for fields in ({"arguments": value}, {"result": value}):
        with pytest.raises(ValidationError, match="must be made of what JSON holds"):
            ToolCall(name="t", **fields)
    with pytest.raises(ValidationError, match="must be made of what JSON holds"):
        Turn(role="agent", metadata={"x": value})


def test_inputs_are_frozen() -> None:
    for found, name in (
        (session("0 agent"), "id"),
        (session("0 agent").activities[0], "at"),
        (History(id="h"), "revisions"),
        (Transcript(request=""), "request"),
        (Turn(role="agent"), "text"),
        (ToolCall(name="t"), "result"),
        (session("0 agent").waits(now=at(1))[0], "until"),
    ):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(found, name, None)


# ---------------------------------------------------------------------------------------------------------------------
# Order
# ---------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), roles)))
def test_events_are_kept_in_the_order_of_time_and_ties_in_the_order_given(events: list[tuple[int, str]]) -> None:
    expected = [str(place) for place, _ in sorted(enumerate(events), key=lambda event: event[1][0])]
    found = Session(
        id="s", activities=[{"at": at(m), "role": role, "kind": str(n)} for n, (m, role) in enumerate(events)]
    )
    assert [activity.kind for activity in found.activities] == expected
    history = History(
        id="h", revisions=[{"at": at(m), "role": role, "text": str(n)} for n, (m, role) in enumerate(events)]
    )
    assert [revision.text for revision in history.revisions] == expected


def test_two_offsets_are_ordered_by_the_moment() -> None:
    line = """{"id": "s", "activities": [
        {"at": "2026-09-28T10:30:00+02:00", "role": "person"}, {"at": "2026-09-28T08:00:00Z", "role": "agent"}]}"""
    assert [activity.role for activity in Session.model_validate_json(line).activities] == ["agent", "person"]


# ---------------------------------------------------------------------------------------------------------------------
# What a result is about
# ---------------------------------------------------------------------------------------------------------------------


def test_about_carries_what_groups_clusters_and_trends_go_by() -> None:
    found = session("5 agent", "0 person", user="u", arm="control", read_at=at(60), attributes={"agent": "a"}, weight=2)
    assert found.about() == About("session", "s", "u", None, at(0), at(60), "control", 2.0, {"agent": "a"})
    assert found.model_copy(update={"at": at(-5)}).about().at == at(-5)


@pytest.mark.parametrize(
    ("found", "first"),
    [
        (session("3 agent", "1 person"), at(1)),
        (Session(id="s"), None),
        (History(id="h", revisions=[Revision(at=at(2), role="agent", text="")]), at(2)),
        (History(id="h"), None),
        (
            Transcript(
                request="", turns=[Turn(role="agent", at=at(4)), Turn(role="person"), Turn(role="tool", at=at(2))]
            ),
            at(2),
        ),
        (Transcript(request="", turns=[Turn(role="agent")]), None),
        (Wait(session="s", since=at(7)), at(7)),
        (Draft(history="h", written=at(8), text=""), at(8)),
        (Input(id="x"), None),
    ],
)
def test_an_input_happened_at_its_first_event_unless_it_says_when(found: Input, first: datetime | None) -> None:
    assert found.about().at == first
    assert found.model_copy(update={"at": at(99)}).about().at == at(99)


def test_a_session_id_that_two_users_share_is_two_subjects() -> None:
    mine, yours = (session("0 agent", user=user) for user in ("me", "you"))
    assert mine.about().subject == ("session", "me", None, "s")
    assert mine.about().subject != yours.about().subject
    assert mine.waits(now=at(1))[0].about().subject == ("wait", "me", "s", "reply:1")
    assert mine.waits(now=at(1))[0].about().subject != yours.waits(now=at(1))[0].about().subject


def test_one_id_of_several_kinds_is_several_subjects() -> None:
    kinds = [Session(id="x"), History(id="x"), Transcript(id="x", request=""), Input(id="x")]
    assert len({each.about().subject for each in kinds}) == len(kinds)


def test_without_an_id_there_is_no_subject() -> None:
    assert Transcript(request="", user="u").about().subject is None
    assert About("session").subject is None


# ---------------------------------------------------------------------------------------------------------------------
# The reading time
# ---------------------------------------------------------------------------------------------------------------------


def test_now_is_a_time_or_a_clock_and_comes_in_utc() -> None:
    assert resolve_now(START) == resolve_now(lambda: START) == START
    assert resolve_now(START.astimezone(ZoneInfo("Asia/Tokyo"))).tzinfo is UTC
    assert utc_now().tzinfo is UTC


@pytest.mark.parametrize("now", [datetime(2026, 9, 28), lambda: datetime(2026, 9, 28)])  # noqa: DTZ001
def test_a_naive_now_is_refused_and_told_what_to_do(now: Any) -> None:
    with pytest.raises(InputError, match=r"2026-09-28T00:00:00 has no time zone: .*datetime\.now\(UTC\)"):
        resolve_now(now)
    with pytest.raises(InputError, match="no time zone"):
        session("0 agent").waits(now=now)
    with pytest.raises(InputError, match="no time zone"):
        History(id="h").drafts(now=now)


@pytest.mark.parametrize("now", ["2026-09-28T09:00:00Z", 0, None, lambda: None, lambda: "now"])
def test_a_now_that_is_no_time_is_refused(now: Any) -> None:
    with pytest.raises(InputError, match="is not a time"):
        resolve_now(now)


@pytest.mark.parametrize(
    "now", [datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), datetime.min.replace(tzinfo=UTC)]
)
def test_an_absurd_now_is_refused(now: datetime) -> None:
    with pytest.raises(InputError, match="from 1900 to 2199"):
        resolve_now(now)


def test_a_log_read_earlier_knows_nothing_later() -> None:
    assert reading_time(Session(id="s", read_at=at(5)), at(9)) == at(5)
    assert reading_time(Session(id="s", read_at=at(9)), at(5)) == at(5)
    assert reading_time(Session(id="s"), at(5)) == at(5)


@pytest.mark.parametrize("window", [timedelta(0), timedelta(seconds=-1), 3600, None, "1h"])
def test_a_window_is_a_positive_length_of_time(window: Any) -> None:
    assert check_window(timedelta(hours=1)) == timedelta(hours=1)
    with pytest.raises(InputError, match="positive timedelta"):
        check_window(window)


# ---------------------------------------------------------------------------------------------------------------------
# Waits
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((), set(), id="nothing happened"),
        pytest.param(("0 person", "5 person", "6 tool", "7 system"), set(), id="no agent"),
        pytest.param(("0 agent",), {("reply", 0, None, None)}, id="still open"),
        pytest.param(("0 agent", "5 person"), {("reply", 0, 5, "returned")}, id="returned"),
        pytest.param(
            ("0 agent", "1 agent", "5 person"), {("reply", 1, 5, "returned")}, id="a run is one wait, from its last"
        ),
        pytest.param(
            ("0 agent", "1 tool", "2 system", "3 agent", "4 tool", "9 person"),
            {("reply", 3, 9, "returned")},
            id="tools and the system neither end a run nor return",
        ),
        pytest.param(
            ("0 agent", "5 person", "6 person", "7 agent"),
            {("reply", 0, 5, "returned"), ("reply", 7, None, None)},
            id="a wait for each run",
        ),
        pytest.param(("0 agent", "0 person"), {("reply", 0, 0, "returned")}, id="a tie keeps the order given"),
        pytest.param(("0 person", "0 agent"), {("reply", 0, None, None)}, id="a tie the other way"),
        pytest.param(("0 agent", "5 system closed", "9 person"), {("reply", 0, 5, "closed")}, id="closed ends it"),
        pytest.param(("0 agent", "5 person closed"), {("reply", 0, 5, "closed")}, id="a person's close is a close"),
        pytest.param(
            ("0 agent", "5 agent closed"), {("reply", 0, 5, "closed")}, id="an agent's close is no word of its own"
        ),
        pytest.param(
            ("0 agent", "5 system closed", "9 agent", "11 person"),
            {("reply", 0, 5, "closed"), ("reply", 9, 11, "returned")},
            id="reopened",
        ),
        pytest.param(("0 system closed", "1 person"), set(), id="a close of nothing"),
        pytest.param(
            ("0 agent proposal p", "5 person resolution p"),
            {("reply", 0, 5, "returned"), ("proposal", 0, 5, "returned")},
            id="a proposal is an agent's word too",
        ),
        pytest.param(
            ("0 agent proposal p", "5 person", "9 person resolution p"),
            {("reply", 0, 5, "returned"), ("proposal", 0, 9, "returned")},
            id="a reply does not resolve",
        ),
        pytest.param(
            ("0 agent proposal p", "5 person resolution q"),
            {("reply", 0, 5, "returned"), ("proposal", 0, None, None)},
            id="nor does a resolution of another",
        ),
        pytest.param(
            ("0 agent proposal p", "5 person resolution"),
            {("reply", 0, 5, "returned"), ("proposal", 0, None, None)},
            id="nor one without a ref",
        ),
        pytest.param(
            ("0 agent proposal", "5 person resolution p"),
            {("reply", 0, 5, "returned"), ("proposal", 0, None, None)},
            id="nor one with a ref where the proposal has none",
        ),
        pytest.param(
            ("0 person resolution p", "1 agent proposal p"),
            {("reply", 1, None, None), ("proposal", 1, None, None)},
            id="a resolution comes after its proposal",
        ),
        pytest.param(
            ("0 agent proposal", "1 agent proposal", "5 person resolution", "9 person resolution"),
            {("reply", 1, 5, "returned"), ("proposal", 0, 5, "returned"), ("proposal", 1, 9, "returned")},
            id="without refs, one by one and in order",
        ),
        pytest.param(
            ("0 agent proposal p", "1 agent proposal p", "5 person resolution p", "6 person resolution p"),
            {("reply", 1, 5, "returned"), ("proposal", 0, 5, "returned")},
            id="a ref proposed twice is one proposal, open since the first",
        ),
        pytest.param(
            ("0 agent proposal p", "5 person resolution p", "6 agent proposal p"),
            {
                ("reply", 0, 5, "returned"),
                ("proposal", 0, 5, "returned"),
                ("reply", 6, None, None),
                ("proposal", 6, None, None),
            },
            id="a ref used again is another proposal",
        ),
        pytest.param(
            ("0 person proposal p", "1 system proposal q", "2 tool proposal"), set(), id="proposals are the agent's"
        ),
        pytest.param(
            ("0 agent proposal p", "1 agent proposal", "5 person", "7 system closed", "9 person resolution p"),
            {("reply", 1, 5, "returned"), ("proposal", 0, 7, "closed"), ("proposal", 1, 7, "closed")},
            id="a close ends every wait that is open",
        ),
        pytest.param(
            ("0 agent proposal p", "5 tool resolution p", "9 person"),
            {("reply", 0, 9, "returned"), ("proposal", 0, 5, "closed")},
            id="a resolution by nobody brings nobody back",
        ),
    ],
)
def test_waits(events: tuple[str, ...], expected: set[Any]) -> None:
    assert seen(session(*events).waits(now=at(60))) == expected


def test_what_happens_after_now_does_not_exist_yet() -> None:
    found = session("0 agent proposal p", "5 person resolution p", "6 agent", "8 system closed")
    open_reply, open_proposal = ("reply", 0, None, None), ("proposal", 0, None, None)
    ended = {("reply", 0, 5, "returned"), ("proposal", 0, 5, "returned")}
    assert seen(found.waits(now=at(-1))) == set()
    assert seen(found.waits(now=at(0))) == {open_reply, open_proposal}
    assert seen(found.waits(now=at(4.99))) == {open_reply, open_proposal}
    assert seen(found.waits(now=at(5))) == ended
    assert seen(found.waits(now=lambda: at(7))) == {*ended, ("reply", 6, None, None)}
    assert seen(found.model_copy(update={"read_at": at(7)}).waits(now=at(60))) == {*ended, ("reply", 6, None, None)}
    assert seen(found.waits(now=at(8))) == {*ended, ("reply", 6, 8, "closed")}


def test_a_wait_carries_its_session() -> None:
    found = session("3 agent", user="u", arm="treatment", read_at=at(9), attributes={"agent": "a"}, weight=3)
    [wait] = found.waits(now=at(60))
    assert wait.about() == About(
        "wait", "reply:1", "u", "s", at(3), at(9), "treatment", 3.0, {"agent": "a", "wait": "reply"}
    )
    assert found.attributes == {"agent": "a"}


events = st.lists(
    st.builds(
        lambda minute, role, kind, ref: f"{minute} {role} {kind}" + (f" {ref}" if ref else ""),
        st.integers(0, 8),
        roles,
        st.sampled_from(["message", "message", "proposal", "resolution", "closed"]),
        st.sampled_from(["", "p", "q"]),
    ),
    max_size=12,
)


@given(events)
def test_the_waits_for_a_reply_are_those_after_which_the_agent_did_not_speak_first(events: list[str]) -> None:
    found = session(*events)
    expected = []
    for place, activity in enumerate(found.activities):
        if activity.role != "agent" or activity.kind == "closed":
            continue
        turning = [
            later
            for later in found.activities[place + 1 :]
            if later.role in ("agent", "person") or later.kind == "closed"
        ]
        following = turning[0] if turning else None
        if following is None:
            expected.append((activity.at, None, None))
        elif following.kind == "closed":
            expected.append((activity.at, following.at, "closed"))
        elif following.role == "person":
            expected.append((activity.at, following.at, "returned"))
    replies = [wait for wait in found.waits(now=at(60)) if wait.of == "reply"]
    assert [(wait.since, wait.until, wait.ended) for wait in replies] == expected


@given(events, st.integers(0, 8), st.integers(0, 8))
def test_a_later_reading_finds_the_same_waits_under_the_same_ids(events: list[str], one: int, other: int) -> None:
    found = session(*events)
    earlier = {wait.id: wait for wait in found.waits(now=at(min(one, other)))}
    later = {wait.id: wait for wait in found.waits(now=at(max(one, other)))}
    for name, wait in earlier.items():
        if wait.of == "proposal" or wait.ended is not None:
            assert (later[name].of, later[name].since) == (wait.of, wait.since)
        if wait.ended is not None:
            assert later[name] == wait


@given(events)
def test_each_wait_is_found_once_and_ends_no_sooner_than_it_began(events: list[str]) -> None:
    waits = session(*events).waits(now=at(60))
    assert len({wait.id for wait in waits}) == len(waits)
    for wait in waits:
        assert (wait.until is None) == (wait.ended is None)
        assert wait.until is None or wait.until >= wait.since
    open_replies = [wait for wait in waits if wait.of == "reply" and wait.ended is None]
    assert len(open_replies) <= 1


# ---------------------------------------------------------------------------------------------------------------------
# Drafts
# ---------------------------------------------------------------------------------------------------------------------


def history(*revisions: str, **fields: Any) -> History:
    """A history from words such as `3 agent two`: minutes, role, text."""
    found = []
    for revision in revisions:
        minutes, role, text = revision.split()
        found.append(Revision(at=at(float(minutes)), role=role, text=text))
    return History(id="h", revisions=found, **fields)


def told(drafts: list[Draft]) -> list[tuple[str | None, str, list[str], datetime | None]]:
    return [
        (draft.before, draft.text, [revision.text for revision in draft.people], draft.superseded) for draft in drafts
    ]


def test_a_draft_is_what_an_agent_wrote_with_what_stood_before_and_what_people_made_of_it() -> None:
    found = history("0 agent one", "1 person two", "2 person three", "5 agent four", "6 agent five", "9 person six")
    assert told(found.drafts()) == [
        (None, "one", ["two", "three"], at(5)),
        ("three", "four", [], at(6)),
        ("four", "five", ["six"], None),
    ]


def test_what_tools_and_the_system_write_is_stood_upon_but_is_no_persons_edit() -> None:
    found = history("0 person one", "1 system two", "2 agent three", "3 tool four", "4 person five")
    assert told(found.drafts()) == [("two", "three", ["five"], None)]


def test_an_empty_text_is_an_edit_and_a_beginning() -> None:
    emptied = History(
        id="h",
        revisions=[
            Revision(at=at(0), role="person", text=""),
            Revision(at=at(1), role="agent", text="a"),
            Revision(at=at(2), role="person", text=""),
        ],
    )
    assert told(emptied.drafts()) == [("", "a", [""], None)]


def test_drafts_without_an_agent_are_none() -> None:
    assert history("0 person one", "1 tool two").drafts() == []
    assert History(id="h").drafts(now=at(9)) == []


def test_drafts_as_seen_at_now_or_when_the_log_was_read() -> None:
    found = history("0 agent one", "1 person two", "5 agent three")
    assert told(found.drafts(now=at(-1))) == []
    assert told(found.drafts(now=at(0.5))) == [(None, "one", [], None)]
    assert told(found.drafts(now=at(1))) == [(None, "one", ["two"], None)]
    for now in (None, at(60)):
        assert told(found.model_copy(update={"read_at": at(1)}).drafts(now=now)) == [(None, "one", ["two"], None)]
    assert len(found.model_copy(update={"read_at": at(60)}).drafts(now=at(1))) == 1


def test_a_draft_carries_its_history_and_its_own_attributes() -> None:
    found = History(
        id="h",
        user="u",
        arm="control",
        read_at=at(60),
        attributes={"agent": "a", "directory": "docs"},
        weight=2,
        revisions=[Revision(at=at(3), role="agent", text="x", id="c0ffee", attributes={"agent": "b"})],
    )
    [draft] = found.drafts()
    assert draft.about() == About(
        "draft", "c0ffee", "u", "h", at(3), at(60), "control", 2.0, {"agent": "b", "directory": "docs"}
    )


def test_a_draft_without_an_id_of_its_own_is_named_by_its_place() -> None:
    ids = ["1", None, "2", "2", None]
    found = History(
        id="h", revisions=[Revision(at=at(n), role="agent", text="", id=name) for n, name in enumerate(ids)]
    )
    assert [draft.id for draft in found.drafts()] == ["1", "draft:2", "2", "draft:4", "draft:5"]
    assert [draft.id for draft in found.drafts(now=at(2))] == ["1", "draft:2", "2"]


@given(st.lists(st.tuples(st.integers(0, 5), roles), max_size=12))
def test_every_persons_edit_after_an_agents_belongs_to_exactly_one_draft(events: list[tuple[int, str]]) -> None:
    found = History(
        id="h", revisions=[{"at": at(m), "role": role, "text": str(n)} for n, (m, role) in enumerate(events)]
    )
    drafts = found.drafts()
    texts = [revision.text for revision in found.revisions]
    authors = [revision.role for revision in found.revisions]
    assert [draft.text for draft in drafts] == [t for t, role in zip(texts, authors, strict=True) if role == "agent"]
    first = authors.index("agent") if "agent" in authors else len(authors)
    after = [t for t, role in zip(texts[first:], authors[first:], strict=True) if role == "person"]
    assert [revision.text for draft in drafts for revision in draft.people] == after
    for draft, following in pairwise(drafts):
        assert draft.superseded == following.written
    for draft in drafts:
        place = texts.index(draft.text)
        assert draft.before == (texts[place - 1] if place else None)


# ---------------------------------------------------------------------------------------------------------------------
# A transcript's session
# ---------------------------------------------------------------------------------------------------------------------


def test_a_transcript_whose_turns_all_have_times_is_a_session_too() -> None:
    transcript = Transcript(
        id="t",
        user="u",
        arm="control",
        read_at=at(60),
        attributes={"agent": "a", "rules": ["x", "y"]},
        weight=2,
        request="do",
        turns=[
            Turn(role="agent", at=at(1), kind="proposal", ref="p", text="shall I?"),
            Turn(role="person", at=at(0), text="do"),
        ],
    )
    found = transcript.session()
    assert found == session(
        "0 person",
        "1 agent proposal p",
        id="t",
        user="u",
        arm="control",
        read_at=at(60),
        attributes={"agent": "a", "rules": ["x", "y"]},
        weight=2,
    )
    assert transcript.model_copy(update={"at": at(-5)}).session().about().at == at(-5)  # type: ignore[union-attr]


def test_a_transcript_without_an_id_turns_or_times_is_no_session() -> None:
    timed = Turn(role="agent", at=at(0))
    assert Transcript(request="", turns=[timed]).session() is None
    assert Transcript(id="t", request="").session() is None
    assert Transcript(id="t", request="", turns=[timed, Turn(role="person")]).session() is None
