"""Keys: the same for one question in every process, and another for every other question."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from evalr import InputError
from evalr.inputs import Activity, Draft, History, Input, Revision, Session, StoredRevision, ToolCall, Transcript, Turn
from evalr.runs import input_hash
from evalr.runs.keys import Key
from evalr.runs.places import Places

NINE = datetime(2026, 9, 28, 9, tzinfo=UTC)
SOURCE = str(Path(__file__).resolve().parents[2] / "src")

TRANSCRIPT = Transcript(
    id="t",
    user="u",
    arm="treatment",
    at=NINE,
    read_at=NINE,
    attributes={"agent": "a", "topics": ["x", "y"]},
    weight=2.0,
    request="do it",
    turns=[
        Turn(
            role="agent",
            text="done",
            id="1",
            at=NINE,
            kind="message",
            ref="r",
            tool_calls=[ToolCall(name="f", id="c", arguments={"x": [1]}, status="ok", error="e", result={"y": None})],
            metadata={"model": "m"},
        )
    ],
    result="yes",
)
SESSION = Session(id="s", user="u", activities=[Activity(at=NINE, role="agent", kind="proposal", ref="r")])
HISTORY = History(id="h", revisions=[Revision(at=NINE, role="agent", text="one", id="1", attributes={"agent": "a"})])
DRAFT = Draft(id="d", history="h", written=NINE, before="a", text="b", people=HISTORY.revisions, superseded=NINE)


def changes(value: Any) -> list[Any]:
    """The value with each of its fields, however deep, changed on its own."""
    if isinstance(value, BaseModel):
        return [
            value.model_copy(update={name: changed})
            for name in type(value).model_fields
            for changed in changes(getattr(value, name))
        ]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [value + "x", value.upper() + "y"]
    if isinstance(value, int | float):
        return [value + 1]
    if isinstance(value, datetime):
        return [value + timedelta(microseconds=1)]
    if isinstance(value, list):
        each = [[*value[:n], changed, *value[n + 1 :]] for n, item in enumerate(value) for changed in changes(item)]
        return [*each, [*value, *value[:1]], []]
    if isinstance(value, dict):
        each = [{**value, name: changed} for name, item in value.items() for changed in changes(item)]
        return [*each, {**value, "new": 1}, {}]
    return [1] if value is None else []


@pytest.mark.parametrize("whole", [TRANSCRIPT, SESSION, HISTORY, DRAFT], ids=lambda given: given.kind)
def test_every_field_counts_however_deep(whole: Input) -> None:
    variants = [variant for variant in changes(whole) if variant != whole]
    assert len(variants) > 5
    hashes = {input_hash(variant) for variant in [whole, *variants]}
    distinct = []
    for variant in [whole, *variants]:
        if variant not in distinct:
            distinct.append(variant)
    assert len(hashes) == len(distinct)


def test_an_input_that_is_read_again_has_the_same_hash() -> None:
    for whole in (TRANSCRIPT, SESSION, HISTORY, DRAFT):
        again = type(whole).model_validate_json(whole.model_dump_json())
        assert input_hash(again) == input_hash(whole)


PROBE = """
from datetime import UTC, datetime
from enum import Enum
from evalr.inputs import Input, Transcript, Turn
from evalr.runs import input_hash

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

class Own(Input):
    names: set[str]
    colours: frozenset[Colour]
    data: bytes

at = datetime(2026, 9, 28, 9, tzinfo=UTC)
names = {f"name {n}" for n in range(50)}
print(input_hash(Own(id="o", names=names, colours={Colour.RED, Colour.BLUE}, data=b"x")).hex())
turns = [Turn(role="agent", at=at, metadata={"b": 1.5, "a": None})]
print(input_hash(Transcript(id="t", request="é", turns=turns)).hex())
"""


def test_it_is_the_same_in_every_process() -> None:
    found = set()
    for seed in ("0", "1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": SOURCE}
        found.add(subprocess.run([sys.executable, "-c", PROBE], env=env, capture_output=True, check=True).stdout)
    assert len(found) == 1
    # And in every version of Python and of evalr: a change here makes every journal ask everything again.
    assert found.pop().split() == [
        b"ce581d0774ab25c5a40a5ebe845e800654daa574",
        b"ef62ea9bf9b9c3768e195ae1e925d594e9e5c2f1",
    ]


def test_the_order_of_a_map_and_of_zones_does_not_count() -> None:
    one = Transcript(id="t", request="r", attributes={"a": "1", "b": "2"})
    assert input_hash(one) == input_hash(Transcript(id="t", request="r", attributes={"b": "2", "a": "1"}))

    class At(Input):
        when: datetime

    paris = NINE.astimezone(timezone(timedelta(hours=2)))
    assert input_hash(At(when=NINE)) == input_hash(At(when=paris))


def test_what_a_dump_leaves_out_counts() -> None:
    class Secret(Input):
        secret: str = Field(exclude=True)

    class More(Turn):
        more: str

    assert input_hash(Secret(secret="a")) != input_hash(Secret(secret="b"))
    one, other = (TRANSCRIPT.model_copy(update={"turns": [More(role="agent", more=text)]}) for text in "ab")
    assert input_hash(one) != input_hash(other)

    class Extra(Input):
        model_config = ConfigDict(extra="allow")

    assert input_hash(Extra.model_validate({"new": 1})) != input_hash(Extra.model_validate({"new": 2}))


def test_a_text_that_is_read_when_it_is_needed_counts_as_itself() -> None:
    stored = StoredRevision.of(lambda: "one", id="1", at=NINE, role="agent", attributes={"agent": "a"})
    read_late = HISTORY.model_copy(update={"revisions": [stored]})
    assert input_hash(read_late) == input_hash(HISTORY)


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


class Holder(Input):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    held: Any


DIFFERENT: list[Any] = [
    1,
    1.5,
    "1",
    True,
    "true",
    [1],
    (1,),
    {1},
    {"1": 1},
    {1: 1},
    b"1",
    Decimal(1),
    Colour.RED,
    "red",
    Point(1),
    NINE,
    NINE.date(),
    timedelta(1),
    Path("1"),
    float("nan"),
    float("inf"),
    10**400,
    "\ud83d",
    "\ufffd",
]


def test_values_of_different_types_are_different() -> None:
    hashes = {input_hash(Holder.model_construct(held=value)) for value in DIFFERENT}
    assert len(hashes) == len(DIFFERENT)


def test_what_has_no_content_to_read_is_refused() -> None:
    with pytest.raises(InputError, match="holds a object, whose content cannot be hashed"):
        input_hash(Holder.model_construct(held=object()))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputError, match="holds itself"):
        input_hash(Holder.model_construct(held=endless))


def test_a_key_is_spelled_alike_in_every_version_of_python() -> None:
    """Texts of hostile logs too: quotes, a lone surrogate, and a letter that a later Unicode may call printable."""
    subject = ("session", "ü€\U0001f600\u0378\ud83d'\"\\", None, "s\n")
    key = Key(subject, "judge", "1:3600s", b"\x01" * 20, repeat=2, as_of=datetime(2026, 9, 28, 9, tzinfo=UTC), place=3)
    assert key.digest().hex() == "6623b9c5cbb67de2e86b8385cecdb1f511cc269a"


def test_every_part_of_a_key_counts() -> None:
    key = Key(("transcript", "u", "s", "i"), "judge", "1", b"hash")
    others = [
        key._replace(subject=("session", "u", "s", "i")),
        key._replace(subject=("transcript", None, "s", "i")),
        key._replace(subject=("transcript", "u", None, "i")),
        key._replace(subject=("transcript", "u", "s", None)),
        key._replace(evaluator="other"),
        key._replace(version="2"),
        key._replace(input=b"other"),
        key._replace(repeat=2),
        key._replace(as_of=NINE),
        key._replace(as_of=NINE + timedelta(seconds=1)),
        key._replace(place=2),
    ]
    assert len({each.digest() for each in [key, *others]}) == len(others) + 1
    assert (
        key._replace(as_of=NINE).digest() == key._replace(as_of=NINE.astimezone(timezone(timedelta(hours=5)))).digest()
    )


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=200))
def test_places_are_as_a_plain_map_has_them(steps: list[tuple[int, int]]) -> None:
    places, model = Places(), {}
    for position, (subject, content) in enumerate(steps):
        text = bytes([content]) * 8
        found = places.add(("kind", subject), position, text)
        if subject in model:
            first, before = model[subject]
            assert found == (first, before == text)
        else:
            assert found is None
            model[subject] = (position, text)
    assert len(places) == len(model)


def test_places_grow() -> None:
    places = Places()
    for number in range(5000):
        assert places.add(number + 1, number, b"12345") is None
    assert all(places.add(number + 1, 0, b"12345") == (number, True) for number in range(5000))
    assert places.add(1, 0, b"other") == (0, False)
