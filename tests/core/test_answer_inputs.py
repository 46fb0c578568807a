"""Inputs about one answer: an exchange with its shadow, and the use of a learning."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from evalr.inputs import Exchange, LearningUse, Turn
from evalr.runs import input_hash

AT = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)


def use(**fields: Any) -> LearningUse:
    given: dict[str, Any] = {"message": "Ship it?", "response": "On Monday.", "learning": "Legal signs off first."}
    return LearningUse(**(given | {"learning_id": "l1", "response_id": "r1"} | fields))


def test_an_exchange_is_a_part_of_its_session() -> None:
    exchange = Exchange(id="e1", user="ada", session="s1", message="Ship it?", served="Yes", shadow="No", at=AT)
    assert exchange.treatment == "served"
    assert exchange.about().subject == ("exchange", "ada", "s1", "e1")
    assert exchange.about().at == AT
    assert pickle.loads(pickle.dumps(exchange)) == exchange == Exchange(**exchange.model_dump())


def test_the_treatment_is_one_of_the_two() -> None:
    assert Exchange(message="", served="", shadow="", treatment="shadow").treatment == "shadow"
    with pytest.raises(ValidationError):
        Exchange(message="", served="", shadow="", treatment="control")  # type: ignore[arg-type]


def test_a_use_of_a_learning_can_be_folded_by_response_learning_and_kind() -> None:
    about = use(id="x", user="ada", session="s1", kind="profile", attributes={"agent": "writer"}).about()
    assert about.subject == ("learning", "ada", "s1", "x")
    assert about.attributes == {"agent": "writer", "response": "r1", "learning": "l1", "learning_kind": "profile"}
    assert use().about().attributes == {"response": "r1", "learning": "l1"}


def test_the_kind_of_a_learning_goes_by_either_name() -> None:
    assert use(kind="profile") == use(learning_kind="profile")
    assert use(kind="profile").kind == "learning"
    assert LearningUse(**use(kind="profile").model_dump()) == use(kind="profile")
    assert input_hash(use(kind="profile")) != input_hash(use())


def test_a_response_has_the_time_of_its_turn() -> None:
    turns = [Turn(role="person", text="Ship it?"), Turn(role="agent", text="On Monday.", id="r1", at=AT)]
    assert use(turns=turns).about().at == AT
    assert use(turns=turns, response_id="r2").about().at is None


def test_a_lone_surrogate_is_replaced() -> None:
    assert use(learning="\ud83d").learning == "\ufffd"
    assert Exchange(message="\ud83d", served="", shadow="\ud83d").message == "\ufffd"
