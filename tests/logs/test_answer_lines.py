"""Single answers as lines of a log: what tells them, what is a second one, and what cannot be used."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import evalr
from evalr import bulk
from evalr.inputs import Exchange, Input, LearningUse, Session, Transcript
from evalr.logs import Item, Log, find_reader, read, to_line
from evalr.logs.reasons import NO_TYPE

AT = "2026-11-02T09:00:00Z"
SESSION: dict[str, Any] = {"id": "s", "activities": [{"at": AT, "role": "agent"}]}
EXCHANGE: dict[str, Any] = {"id": "e", "session": "s", "message": "m", "served": "a", "shadow": "b"}
LEARNING: dict[str, Any] = {
    "session": "s",
    "message": "m",
    "response": "r",
    "learning": "know this",
    "learning_id": "7",
    "response_id": "r1",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def found(path: Path, *lines: dict[str, Any]) -> tuple[Log, list[Item]]:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    log = read(path)
    items = list(log)
    assert log.records == len(items) - log.derived + log.left_out.total
    return log, items


def kinds(items: list[Item]) -> list[str]:
    return [item.kind for item in items if isinstance(item, Input)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (EXCHANGE, Exchange),
        ({"type": "exchange", **EXCHANGE}, Exchange),
        (LEARNING, LearningUse),
        ({**LEARNING, "learning": None}, LearningUse),
        ({**LEARNING, "turns": [{"role": "agent", "text": "r", "id": "r1"}]}, LearningUse),
        ({"type": "learning", **LEARNING, "activities": []}, LearningUse),
        # One of two fields tells nothing.
        ({**SESSION, "shadow": "x"}, Session),
        ({"id": "t", "request": "r", "turns": [], "response": "x"}, Transcript),
    ],
)
def test_a_line_says_what_it_is(line: dict[str, Any], expected: type[Input], path: Path) -> None:
    # Whatever came before: lines are first read as the one above them.
    for before in ({**SESSION, "id": "x"}, {"id": "x", "request": "r", "more": 1}, {**EXCHANGE, "id": "x", "more": 1}):
        _, (_, item) = found(path, before, line)
        assert type(item) is expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**EXCHANGE, "served": None}, "wrong type in 'served'"),
        ({"type": "exchange", "id": "e", "message": "m", "served": "a"}, "missing field 'shadow'"),
        ({**EXCHANGE, "treatment": "both"}, "wrong type in 'treatment'"),
        ({**EXCHANGE, "at": "2026-11-02T09:00:00"}, "naive time"),
        ({**LEARNING, "learning_id": ""}, "empty field 'learning_id'"),
        ({name: value for name, value in LEARNING.items() if name != "response_id"}, "missing field 'response_id'"),
        ({**LEARNING, "turns": [{"role": "bot"}]}, "unknown role 'bot'"),
        (
            {"id": "e", "message": "m", "served": "a"},
            NO_TYPE,
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_counted_by_its_reason(line: dict[str, Any], reason: str, path: Path) -> None:
    log, items = found(path, SESSION, line)
    assert (kinds(items), log.left_out.places) == (["session"], {reason: ["line 2"]})


def test_a_subject_is_a_kind_a_user_a_session_and_an_id(path: Path) -> None:
    others = [{**EXCHANGE, "user": "u"}, {**EXCHANGE, "session": "s2"}, {**LEARNING, "id": "e"}, {**SESSION, "id": "e"}]
    log, items = found(path, EXCHANGE, *others, {**EXCHANGE, "message": "another"})
    assert len(items) == 5
    assert log.left_out.places == {"duplicate id": ["line 6"]}


def test_one_learning_of_one_response_counts_once(path: Path) -> None:
    again = {**LEARNING, "cited": True}
    log, items = found(path, LEARNING, again, {**LEARNING, "response_id": "r2"}, {**LEARNING, "session": "s2"})
    assert [(item.response_id, item.session) for item in items if isinstance(item, LearningUse)] == [
        ("r1", "s"),
        ("r2", "s"),
        ("r1", "s2"),
    ]
    assert log.left_out.places == {"duplicate id": ["line 2"]}


def test_exchanges_without_an_id_are_all_kept(path: Path) -> None:
    nameless = {name: value for name, value in EXCHANGE.items() if name != "id"}
    assert len(found(path, nameless, nameless)[1]) == 2


def test_a_learnings_kind_may_have_either_name(path: Path) -> None:
    log, items = found(path, {**LEARNING, "kind": "profile"}, {**LEARNING, "id": "2", "learning_kind": "profile"})
    assert [item.learning_kind for item in items if isinstance(item, LearningUse)] == ["profile", "profile"]
    assert not log.unknown_fields


def test_what_nobody_knows_of_an_answer_is_counted(path: Path) -> None:
    turn = {"role": "agent", "text": "r", "model": "m"}
    log, _ = found(path, {**EXCHANGE, "score": 1}, {**LEARNING, "rank": 1, "turns": [turn, turn]})
    assert log.unknown_fields == {"score": 1, "rank": 1, "turns.model": 2}


@pytest.mark.parametrize("line", [EXCHANGE, LEARNING])
def test_a_file_of_answers_is_known_by_its_first_lines(line: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(line), encoding="utf-8")
    assert find_reader(path).name == "jsonl"


def test_both_lanes_leave_answers_to_their_judges(path: Path) -> None:
    sessions = [{**SESSION, "id": f"s{n}"} for n in range(40)]
    answers = [item for n in range(40) for item in ({**EXCHANGE, "id": f"e{n}"}, {**LEARNING, "learning_id": f"l{n}"})]
    lines = [line for n in range(40) for line in (sessions[n], answers[2 * n], answers[2 * n + 1])]
    found(path, *lines, *lines[-2:])
    now = datetime(2026, 11, 30, tzinfo=UTC)
    rows, objects = bulk.report(path, now=now), evalr.report(path, now=now)
    assert rows.to_dict() == objects.to_dict()
    assert rows.left_out.counts == {"duplicate id": 2}
    assert "40 exchanges" in str(rows)


def test_what_was_written_is_read_again(path: Path) -> None:
    given = [
        Exchange(**EXCHANGE),
        LearningUse(**LEARNING, turns=[{"role": "agent", "text": "r", "id": "r1", "at": AT}]),
    ]
    path.write_text("\n".join(map(to_line, given)), encoding="utf-8")
    assert list(read(path)) == given
