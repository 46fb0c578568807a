"""One bad row, or part of one, is left out by its name, and the rest is read; many of these break Reflexio itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reflexio_writing import BEGIN, Writer

from evalr.errors import RecordError
from evalr.inputs import Exchange, LearningUse, Session, Transcript
from evalr.logs import Log, Stored, read
from evalr.reflexio import SessionRecord, TagArms, open_store


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "reflexio_org.db")


def read_one(writer: Writer) -> tuple[SessionRecord, Log]:
    with open_store(writer.done()) as store:
        account = store.account()
        (record,) = store.sessions(account)
    return record, account


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("tools_used", "{", "unreadable tools_used"),
        ("tools_used", '{"tool_name": "x"}', "unreadable tools_used"),
        ("tools_used", '[{"name": "x"}]', "unreadable tools_used"),
        ("tools_used", "[7]", "unreadable tools_used"),
        ("tools_used", "[" * 5000, "unreadable tools_used"),
        ("tools_used", '[{"tool_name": "x", "tool_data": NaN}]', "unreadable tools_used"),
        ("citations", "[{}]", "unreadable citations"),
        ("citations", '[{"kind": "rumour", "real_id": "1"}]', "unreadable citations"),
        ("citations", '[{"kind": ["profile"], "real_id": "1"}]', "unreadable citations"),
        ("retrieved_learnings", '[{"kind": "playbook", "learning_id": "1"}]', "unreadable retrieved_learnings"),
        ("retrieved_learnings", '[{"kind": "profile", "learning_id": ""}]', "no learning_id"),
        ("token_count", -1, "wrong value in 'token_count'"),
        ("token_count", "many", "wrong type in 'token_count'"),
    ],
)
def test_a_bad_part_of_a_turn_loses_no_more_than_itself(
    column: str, value: object, reason: str, writer: Writer
) -> None:
    request = writer.request("r1", "u1", "s1")
    name = writer.turn(request, BEGIN, "Agent", "an answer", **{column: value})
    record, account = read_one(writer)
    assert [turn.content for turn in record.interactions] == ["an answer"]
    assert account.left_out.counts == {reason: 1}
    assert account.left_out.places == {reason: [f"interaction {name}"]}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"at": "yesterday"}, "unreadable time"),
        ({"at": "0001-01-01T00:00:00Z"}, "absurd time"),
        ({"at": "9999-12-31T23:59:59+00:00"}, "absurd time"),
        ({"at": ""}, "unreadable time"),
    ],
)
def test_a_turn_without_a_time_is_left_out(row: dict[str, Any], reason: str, writer: Writer) -> None:
    request = writer.request("r1", "u1", "s1")
    writer.turn(request, role="User", **row)
    writer.turn(request, BEGIN, "Agent")
    record, account = read_one(writer)
    assert len(record.interactions) == 1
    assert account.left_out.counts == {reason: 1}


def test_a_request_without_a_time_is_left_out_with_its_turns(writer: Writer) -> None:
    writer.session("s1")
    writer.request("bad", "u1", "s1", "yesterday")
    writer.turn("bad", BEGIN, "User")
    record, account = read_one(writer)
    assert (len(record.requests), len(record.interactions)) == (1, 2)
    assert account.left_out.counts == {"unreadable time": 1, "interaction of a request that is left out": 1}
    assert account.left_out.places["unreadable time"] == ["request 'bad'"]


@pytest.mark.parametrize("session", [None, "", "  "])
def test_requests_without_a_session_id_are_counted(session: str | None, writer: Writer) -> None:
    writer.session("s1")
    writer.request("alone", "u1", session)
    writer.turn("alone", BEGIN, "User")
    record, account = read_one(writer)
    assert record.session == "s1"
    assert account.left_out.counts == {
        "request without a session id": 1,
        "interaction of a request that is left out": 1,
    }


def test_turns_without_their_request_are_counted(writer: Writer) -> None:
    writer.session("s1")
    name = writer.turn("nowhere", BEGIN, "User")
    _, account = read_one(writer)
    assert account.left_out.places == {"interaction without its request": [f"interaction {name}"]}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"number_of_correction_per_session": -1}, "wrong value in 'number_of_correction_per_session'"),
        ({"success": 7}, "wrong value in 'is_success'"),
        ({"at": "never"}, "unreadable time"),
        ({"user_turns_to_resolution": "two"}, "wrong type in 'user_turns_to_resolution'"),
    ],
)
def test_a_bad_verdict_on_a_session_is_left_out(row: dict[str, Any], reason: str, writer: Writer) -> None:
    writer.session("s1")
    writer.outcome("s1", success=0, failure_type="wrong_answer") if "success" in row else writer.outcome("s1")
    writer.outcome("s1", **row)
    record, account = read_one(writer)
    assert len(record.outcomes) == 1
    assert account.left_out.counts == {reason: 1}
    assert account.left_out.places == {reason: ["result 2"]}


@pytest.mark.parametrize("tags", ["{", '{"a": 1}', "[1]", '[""]'])
def test_bad_tags_lose_the_tags_alone(tags: str, writer: Writer) -> None:
    writer.session("s1")
    writer.outcome("s1", tags=tags)
    record, account = read_one(writer)
    assert record.outcomes[0].tags is None
    assert account.left_out.counts == {"unreadable tags": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"better_request": "3"}, "wrong value in 'better_request'"),
        ({"reflexio_is_request_1": "yes"}, "wrong value in 'reflexio_is_request_1'"),
        ({"at": "when?"}, "unreadable time"),
    ],
)
def test_a_bad_shadow_verdict_is_left_out(row: dict[str, Any], reason: str, writer: Writer) -> None:
    turns = writer.session("s1")
    writer.shadow(turns[1], "s1", **{"at": BEGIN, **row})
    record, account = read_one(writer)
    assert record.shadow_verdicts == []
    assert account.left_out.places == {reason: ["shadow verdict 1"]}


@pytest.mark.parametrize("interaction", ["", "no number", "1.5", "-1", "99999999999999999999", "٣"])
def test_a_shadow_verdict_of_an_interaction_that_is_none_keeps_its_session(interaction: str, writer: Writer) -> None:
    writer.session("s1")
    writer.shadow(interaction, "s1")
    record, account = read_one(writer)
    assert [verdict.interaction for verdict in record.shadow_verdicts] == [None]
    assert account.left_out.total == 0


@pytest.mark.parametrize(
    ("row", "reason", "kept"),
    [
        ({"kind": "rumour"}, "wrong value in 'kind'", 0),
        ({"impact": "huge"}, "wrong value in 'impact'", 0),
        ({"created_at": "x"}, "unreadable time", 0),
        ({"diagnosis": "{"}, "unreadable diagnosis", 1),
        ({"diagnosis": '{"category": "bad luck"}'}, "unreadable diagnosis", 1),
        ({"diagnosis": '{"category": "no_issue", "evidence_interaction_ids": ["1"]}'}, "unreadable diagnosis", 1),
    ],
)
def test_bad_verdicts_on_learnings(row: dict[str, Any], reason: str, kept: int, writer: Writer) -> None:
    turns = writer.session("s1")
    given = {"kind": "profile", "learning_id": "p", "created_at": 1_788_220_800, **row}
    writer.add("retrieved_learning_evaluation", user_id="u1", session_id="s1", interaction_id=turns[1], **given)
    record, account = read_one(writer)
    assert len(record.learning_verdicts) == kept
    assert account.left_out.places == {reason: ["learning result 1"]}


def test_a_bad_customer_outcome_is_left_out(writer: Writer) -> None:
    writer.session("s1")
    writer.add("session_outcomes", outcome_id="o", user_id="u1", session_id="s1", outcome="great", occurred_at=1)
    record, account = read_one(writer)
    assert record.customer_outcome is None
    assert account.left_out.places == {"wrong value in 'outcome'": ["customer outcome o"]}


@pytest.mark.parametrize("state", ["{", "[]", "{}"])
def test_a_grading_of_which_nobody_can_tell_how_far_it_got_is_counted(state: str, writer: Writer) -> None:
    writer.session("s1")
    writer.connection.execute("CREATE TABLE _operation_state (service_name TEXT, operation_state TEXT)")
    name = "retrieved_learning_eval::2:u1::2:s1"
    writer.connection.execute("INSERT INTO _operation_state VALUES (?, ?)", (name, state))
    record, account = read_one(writer)
    assert record.grading is None
    assert account.left_out.places == {"unreadable operation_state": ["grading of session 's1'"]}


def test_texts_that_are_no_utf_8_are_mended_and_counted(writer: Writer) -> None:
    request = writer.request("r1", "u1", "s1")
    writer.turn(request, BEGIN, "User", "good")
    writer.connection.execute("UPDATE interactions SET content = CAST(x'67ff' AS TEXT)")
    writer.session("s2", at=BEGIN + timedelta(days=1))
    with open_store(writer.done()) as store:
        account = store.account()
        records = list(store.sessions(account))
    assert records[0].interactions[0].content == "g\ufffd"
    assert account.repaired == {"texts that are no UTF-8": 1}
    assert len(records) == 2


@pytest.mark.parametrize("apart", [1, 1000])
def test_sessions_whose_names_are_no_utf_8_are_read(writer: Writer, apart: int) -> None:
    for number, user in enumerate(["u1", "u1", "u2"]):
        name = writer.request(f"r{number}", user, f"s{number}", BEGIN + timedelta(minutes=number))
        writer.turn(name, BEGIN + timedelta(minutes=number), "User", "good")
    change = writer.connection.execute
    change("UPDATE requests SET session_id = CAST(CASE rowid WHEN 1 THEN x'73ff' ELSE x'73fe' END AS TEXT)")
    change("UPDATE requests SET user_id = CAST(x'75ff' AS TEXT) WHERE rowid = 3")
    change("UPDATE requests SET rowid = rowid * ?", [apart])
    with open_store(writer.done()) as store:
        account = store.account()
        found = [(each.user, each.session, len(each.interactions)) for each in store.sessions(account)]
    assert found == [("u1", "s\ufffd", 1), ("u1", "s\ufffd", 1), ("u\ufffd", "s\ufffd", 1)]
    assert account.repaired == {"texts that are no UTF-8": 3}


@pytest.mark.parametrize("name", ["CAST(x'72ff' AS TEXT)", "x'72'"])
def test_interactions_whose_request_id_is_no_text_are_counted(name: str, writer: Writer) -> None:
    for number in range(2):
        writer.turn(writer.request(f"r{number}", "u1", f"s{number}"), BEGIN, "User", "good")
    for table in ("requests", "interactions"):
        writer.connection.execute(f"UPDATE {table} SET request_id = {name} WHERE rowid = 2")
    with open_store(writer.done()) as store:
        account = store.account()
        records = list(store.sessions(account))
    assert sum(len(record.interactions) for record in records) == 1
    assert account.left_out.places["interaction whose request id is no text"] == ["interaction 2"]


def test_strict_stops_at_the_first_fault_and_names_it(writer: Writer) -> None:
    request = writer.request("r1", "u1", "s1")
    writer.turn(request, BEGIN, "User", tools_used="{")
    path = writer.done()
    with pytest.raises(RecordError, match=r"reflexio_org\.db, interaction 1: unreadable tools_used"):
        list(read(path, strict=True))


def test_roles_and_actions(writer: Writer) -> None:
    request = writer.request("r1", "u1", "s1")
    roles = ["User", " USER ", "human", "Agent", "assistant", "Tool", "system", "internal", "narrator", ""]
    for number, role in enumerate(roles):
        writer.turn(request, BEGIN + timedelta(seconds=number), role)
    writer.turn(request, BEGIN + timedelta(seconds=20), "User", "", user_action="click")
    writer.turn(request, BEGIN + timedelta(seconds=21), "User", "", user_action="closed")
    record, account = read_one(writer)
    assert [turn.role for turn in record.interactions[:10]] == [
        *["person"] * 3, *["agent"] * 2, "tool", "system", "system", "system", "system",
    ]  # fmt: skip
    assert [turn.action for turn in record.interactions[-2:]] == ["click", "action"]  # a log must not close sessions
    assert account.repaired == {"unknown roles, taken for the system's": 2}


def test_what_a_person_did_is_told_in_the_transcript(writer: Writer) -> None:
    request = writer.request("r1", "u1", "s1")
    for number, row in enumerate(
        [
            {"content": "", "user_action": "click", "user_action_description": "opened the invoice"},
            {"content": "typed", "user_action": "type", "user_action_description": "typed into the form"},
            {"content": "", "user_action_description": "of no action"},
        ]
    ):
        writer.turn(request, BEGIN + timedelta(seconds=number), "User", **row)
    (transcript,) = [item for item in read(writer.done()) if isinstance(item, Transcript)]
    assert [(turn.kind, turn.text) for turn in transcript.turns] == [
        ("click", "opened the invoice"),
        ("type", "typed"),
        ("message", ""),
    ]


def test_times_as_releases_write_them(writer: Writer) -> None:
    writer.session("s1")
    written = [
        "2026-11-03T00:30:00+02:00",
        "2026-11-02T22:30:01.5Z",
        "2026-11-02 22:30:02",
        "1793658603",
        1_793_658_604,
    ]
    for at in written:
        writer.turn("r-u1-s1", at, "User")
    record, account = read_one(writer)
    late = [turn.at.isoformat() for turn in record.interactions][2:]
    assert late == [f"2026-11-02T22:30:0{end}+00:00" for end in ("0", "1.500000", "2", "3", "4")]
    assert account.left_out.total == 0


def test_turns_of_one_second_are_in_the_order_of_their_ids(writer: Writer) -> None:
    writer.session("s1", roles=[])
    ids = [writer.turn("r-u1-s1", BEGIN, "User", str(number)) for number in range(9)]
    record, _ = read_one(writer)
    assert [turn.interaction_id for turn in record.interactions] == ids


def test_requests_of_one_second_are_in_the_order_of_their_ids(writer: Writer) -> None:
    for name in ("c", "a", "b"):
        writer.request(name, "u1", "s1")
    record, _ = read_one(writer)
    assert [request.request_id for request in record.requests] == ["a", "b", "c"]


def test_a_success_has_no_failure_type(writer: Writer) -> None:
    writer.session("s1")
    writer.outcome("s1", success=1, failure_type="wrong_answer", failure_reason="why")
    (stored,) = [item for item in read(writer.done()) if isinstance(item, Stored)]
    assert stored.result.value.failure_type is None  # type: ignore[union-attr]


def test_irregular_sessions_are_counted_and_listed(writer: Writer) -> None:
    for number in range(5):
        later = BEGIN + timedelta(minutes=number)
        name = f"s{number}"
        writer.request(
            f"a{number}",
            "u1",
            name,
            later,
            source="a",
            retrieval_experiment_id="e",
            retrieval_experiment_arm="treatment",
        )
        writer.request(
            f"b{number}", "u1", name, later + timedelta(seconds=9), source="b", evaluation_only=1,
            retrieval_experiment_id="e", retrieval_experiment_arm="holdout",
        )  # fmt: skip
        writer.turn(f"a{number}", later, "User")
        writer.outcome(name, at=later, trajectory_through_request_id=f"a{number}")
    log: Any = read(writer.done())
    items = list(log)
    assert set(log.noticed.counts.values()) == {5}
    assert set(log.noticed.counts) == {
        "request sources differ between requests",
        "evaluation_only differs between requests",
        "experiment arms differ between requests",
        "requests came after the last one that was judged",
    }
    assert log.noticed.sessions["evaluation_only differs between requests"] == [("u1", f"s{n}") for n in range(5)]
    assert "5 sessions ('s0' of 'u1', 's1' of 'u1', 's2' of 'u1', …)" in "\n".join(log.notes)
    assert all(item.result.flags == ("prefix",) for item in items if isinstance(item, Stored))  # type: ignore[union-attr]


@pytest.mark.parametrize("later", ["false", '"true"', "1"])
def test_tags_that_differ_are_listed(later: str, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "reflexio.db", "0.2.25")
    for number, tag in enumerate(["true", later]):
        at = BEGIN + timedelta(minutes=number)
        writer.request(f"r{number}", "u1", "s1", at, metadata=f'{{"reflexio_retrieval_enabled": {tag}}}')
        writer.turn(f"r{number}", at, "User")
    writer.request("r9", "u1", "s1", BEGIN + timedelta(hours=1))  # only the first one must be stamped
    log: Any = read(writer.done(), arms="tag")
    assert {item.arm for item in log if isinstance(item, Session | Transcript)} == {"treatment"}
    assert log.noticed.counts == {"tags differ between requests": 1}


def test_which_answer_had_reflexio(tmp_path: Path) -> None:
    def items(**options: Any) -> tuple[list[Exchange], list[Any], Log]:
        writer = Writer(tmp_path / "reflexio_org.db")
        for name, source in (("t", "with"), ("c", "without"), ("n", "else")):
            request = writer.request(name, "u1", name, source=source)
            writer.turn(request, BEGIN, "User", "question")
            turn = writer.turn(request, BEGIN + timedelta(seconds=1), "Agent", "served", shadow_content="other")
            writer.shadow(turn, name, reflexio_is_request_1=0, better_request="2")
        log = read(writer.done(), **options)
        found = list(log)
        exchanges = [item for item in found if isinstance(item, Exchange)]
        return exchanges, [item.result.value for item in found if isinstance(item, Stored)], log  # type: ignore[union-attr]

    exchanges, verdicts, _ = items()
    assert {each.treatment for each in exchanges} == {"served"}
    assert {(each.winner, each.shown_first, each.treatment) for each in verdicts} == {("served", "shadow", "served")}
    exchanges, verdicts, log = items(shadow="shadow")
    assert {each.treatment for each in (*exchanges, *verdicts)} == {"shadow"}
    assert "the shadow is taken for the one with Reflexio" in "\n".join(log.notes)
    exchanges, verdicts, log = items(shadow="arm", arms="request-source:treatment=with;control=without")
    assert [each.treatment for each in exchanges] == ["shadow", "served"]  # the control's session comes first
    assert [each.treatment for each in verdicts] == ["shadow", "served"]
    assert log.left_out.counts == {
        "answer with a shadow in a session without an arm": 1,
        "shadow verdict of a session without an arm": 1,
    }


def test_a_learning_on_two_answers_is_two_uses_and_one_named_twice_is_one(writer: Writer) -> None:
    writer.connection.execute("CREATE TABLE profiles (profile_id TEXT PRIMARY KEY, content TEXT)")
    writer.connection.execute("INSERT INTO profiles VALUES ('p', 'likes short answers')")
    writer.connection.execute(
        "CREATE TABLE user_playbooks (user_playbook_id INTEGER PRIMARY KEY, content TEXT, trigger TEXT)"
    )
    writer.connection.execute("INSERT INTO user_playbooks VALUES (7, 'be brief', 'asked twice')")
    profile, playbook = {"kind": "profile", "learning_id": "p"}, {"kind": "user_playbook", "learning_id": "7"}
    request = writer.request("r1", "u1", "s1")
    writer.turn(request, BEGIN, "User", "question")
    writer.turn(
        request, BEGIN + timedelta(seconds=1), "Agent", "one",
        retrieved_learnings=json.dumps([profile, profile, playbook]),
        citations=json.dumps([{"kind": "playbook", "real_id": "7"}]),
    )  # fmt: skip
    writer.turn(request, BEGIN + timedelta(seconds=2), "Agent", "two", retrieved_learnings=json.dumps([profile]))
    uses = [item for item in read(writer.done()) if isinstance(item, LearningUse)]
    assert [(use.response, use.learning_id, use.cited) for use in uses] == [
        ("one", "p", False),
        ("one", "7", True),  # cited under the older name of its kind
        ("two", "p", None),  # nobody recorded citations
    ]
    assert uses[1].learning == "When: asked twice\nbe brief"
    assert [use.attributes.get("use") for use in uses] == ["supplied only", "cited", None]


ANY = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=20))
TABLES: list[tuple[str, Callable[[Writer], dict[str, Any]]]] = [
    ("requests", lambda _: {"request_id": "r2", "user_id": "u1", "session_id": "s1", "created_at": "2026-09-01"}),
    ("interactions", lambda _: {"request_id": "r-u1-s1", "created_at": "2026-09-01"}),
    ("agent_success_evaluation_result", lambda _: {"session_id": "s1", "created_at": "2026-09-01", "is_success": 1}),
    (
        "shadow_comparison_verdicts",
        lambda _: {
            "interaction_id": "1", "session_id": "s1", "created_at": "2026-09-01", "reflexio_is_request_1": 1,
            "better_request": "tie", "judge_prompt_version": "v",
        },
    ),
    (
        "retrieved_learning_evaluation",
        lambda _: {"user_id": "u1", "session_id": "s1", "kind": "profile", "learning_id": "p", "created_at": 1},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("table", "row"), TABLES, ids=[table for table, _ in TABLES])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_cell_whatever_it_holds_stops_the_reading(
    table: str, row: Callable[[Writer], dict[str, Any]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The session beside it is read all the same, and the account adds up."""
    import sqlite3

    from reflexio_writing import columns_of

    writer = Writer(tmp_path_factory.mktemp("any") / "reflexio_org.db")
    writer.session("s1")
    writer.session("s2", at=BEGIN + timedelta(days=1))
    cells = row(writer)
    column = data.draw(st.sampled_from([*columns_of(table, "0.2.32")]))
    cells[column] = data.draw(ANY)
    try:
        writer.add(table, **cells)
    except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError):
        writer.done()
        return  # SQLite itself keeps it out
    log = read(writer.done())
    items = list(log)
    assert {item.id for item in items if isinstance(item, Transcript)} >= {"s2"}
    assert log.records == len(items) - log.derived + log.left_out.total
    assert log.left_out.words().isprintable()


def test_half_an_emoji_loses_nothing_but_itself(tmp_path: Path) -> None:
    half = r"\ud83d"
    writer = Writer(tmp_path / "reflexio_org.db", release="0.2.25")
    metadata = f'{{"title": "{half}", "reflexio_retrieval_enabled": true}}'
    request = writer.request("r1", "u1", "s1", metadata=metadata)
    writer.turn(request, BEGIN, "Agent", tools_used=f'[{{"tool_name": "x", "tool_data": "{half}"}}]')
    record, account = read_one(writer)
    assert TagArms().read(record).arm == "treatment"
    assert record.interactions[0].tools[0].arguments == "\ufffd"
    assert not account.left_out.counts
