"""Stored results: what is read is what was written, whatever it holds."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from evalr import About, Failure, HandOff, JournalError, Result, Skip, Verdict
from evalr.logs.log import Stored
from evalr.logs.results import ResultLine, to_result, to_result_line
from evalr.runs.lines import from_text, to_text

NINE = datetime(2026, 9, 28, 9, tzinfo=UTC)


class Mood(Enum):
    GOOD = "good"
    BAD = 2


class Everything(BaseModel):
    yes: bool
    choice: Literal["a", "b", 3]
    mood: Mood
    moods: list[Mood]
    whole: int
    number: float
    text: str
    maybe: str | None = None
    short: str = Field(default="", alias="s")

    model_config = ConfigDict(populate_by_name=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def length(self) -> int:
        return len(self.text)


any_text = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates, controls, everything
names = any_text.filter(bool)
numbers = st.floats(allow_nan=False)
amounts = st.none() | st.floats(0, 1e300)
times = st.none() | st.integers(-(2**31), 2**32).map(
    lambda seconds: datetime.fromtimestamp(seconds + 0.125, timezone(timedelta(hours=seconds % 9 - 4)))
)
values = st.builds(
    Everything,
    yes=st.booleans(),
    choice=st.sampled_from(["a", "b", 3]),
    mood=st.sampled_from(Mood),
    moods=st.lists(st.sampled_from(Mood), max_size=3),
    whole=st.integers() | st.integers(10**30, 10**40),
    number=numbers | st.sampled_from([math.inf, -math.inf, -0.0, 5e-324, 1e308]),
    text=any_text,
    maybe=st.none() | any_text,
    short=any_text,
)
attributes = st.dictionaries(names, names | st.lists(names, max_size=3), max_size=3)
weights = st.none() | st.floats(1e-9, 1e9)
abouts = st.none() | st.builds(
    About,
    names,
    st.none() | names,
    st.none() | names,
    st.none() | names,
    times,
    times,
    st.none() | names,
    weights,
    st.none() | attributes,
    st.none(),
)
verdicts = st.builds(
    Verdict,
    values,
    names,
    names,
    abouts,
    st.none() | st.dictionaries(names, st.floats(0, 1), max_size=2),
    amounts,
    amounts,
    times,
    st.lists(names, max_size=2).map(tuple),
)
stamps = (st.none() | names, st.none() | names, abouts, amounts, amounts, times)
results: st.SearchStrategy[Result[Any]] = st.one_of(
    verdicts,
    st.builds(Failure, any_text, *stamps),
    st.builds(Skip, any_text, *stamps),
    st.builds(HandOff, any_text, *stamps, st.none() | verdicts),
)
HOSTILE = "\ud83d {x} {{ %s \0 \x1b[2J </script> \u2028 'DROP TABLE"


@settings(max_examples=300)
@given(results)
@example(
    Verdict(
        Everything(
            yes=True,
            choice=3,
            mood=Mood.BAD,
            moods=[Mood.BAD],
            whole=10**4000,
            number=-0.0,
            text=HOSTILE,
            short=HOSTILE,
        ),
        HOSTILE,
        HOSTILE,
        About(HOSTILE, HOSTILE, attributes={HOSTILE: HOSTILE}),
    )
)
def test_a_result_reads_back_as_it_was(result: Result[Any]) -> None:
    text = to_text(result, Everything)
    again = from_text(text, Everything)
    assert again == result
    assert text.isascii()  # so that any database, and any terminal, can hold it
    assert to_text(again, Everything) == text


@given(results)
def test_the_repeat_is_put_in_when_it_is_read(result: Result[Any]) -> None:
    again = from_text(to_text(result, Everything), Everything, 3)
    assert again.about == (None if result.about is None else result.about._replace(repeat=3))


class Plain(BaseModel):
    done: bool
    why: str


def test_a_line_is_a_line_of_a_log_of_results() -> None:
    about = About("session", "s", "u", None, NINE, NINE, "control", 2.0, {"agent": ["a", "b"]})
    value = Plain(done=True, why="because")
    verdict = Verdict(value, "judge", "1", about, {"done": 0.5}, 1.5, 0.25, NINE, ("truncated",))
    for result in (
        verdict,
        Failure("broken", "judge", "1", about, 1.0, 2.0, NINE),
        Skip("no question", "judge", "1", about),
        HandOff("unsure", "judge", "1", about, verdict=verdict),
    ):
        line = json.loads(to_text(result, Plain))
        assert to_result(ResultLine.model_validate(line), Plain.model_validate) == result
        written = json.loads(to_result_line(Stored("judge", result)).model_dump_json(exclude_none=True))
        assert normal(line) == normal(written)


def normal(line: dict[str, Any]) -> dict[str, Any]:
    """Without what two spellings of one line differ in: times, and fields that say nothing."""
    found = {name: value for name, value in line.items() if name not in ("measure", "as_of", "about") and value != []}
    if "verdict" in found:
        found["verdict"] = normal(found["verdict"])
    return found


def test_numbers_of_other_libraries_are_numbers() -> None:
    result = Verdict(
        Plain(done=True, why=""), "judge", "1", None, None, np.float64(1.5), np.float32(0.5)  # type: ignore[arg-type]
    )  # fmt: skip
    again = from_text(to_text(result, Plain), Plain)
    assert (again.latency, again.cost) == (1.5, 0.5)


class More(Plain):
    more: int = 0


class Twice(BaseModel):
    done: bool
    number: int

    @field_validator("number")
    @classmethod
    def _doubled(cls, number: int) -> int:
        return 2 * number


class Apart(BaseModel):
    done: bool


def test_a_value_of_a_subclass_reads_back_as_one() -> None:
    more = Verdict(More(done=True, why="", more=3), "judge", "1", About("session", "s"))
    for result in (more, HandOff("unsure", verdict=more)):
        again = from_text(to_text(result, Plain), Plain)
        assert again == result
    with pytest.raises(JournalError, match=r"is a \S*More, which is not defined here: import it first"):
        from_text(to_text(more, Plain), Twice)


def test_what_would_not_read_back_is_refused_before_it_is_lost() -> None:
    apart = Verdict(Apart(done=True), "judge", "1", About("session", "s"))
    with pytest.raises(JournalError, match=r"of session 's' by 'judge' cannot be written.*Apart") as raised:
        to_text(apart, Plain)
    assert raised.value.unsaved == (apart,)
    with pytest.raises(JournalError, match="changed when they are validated once more"):
        to_text(Verdict(Twice(done=True, number=1), "judge"), Twice)
    with pytest.raises(JournalError, match="cannot be written"):
        to_text(Verdict(Plain(done=True, why=""), "judge", object()), Plain)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"status": "verdict"}',
        '{"status": "other"}',
        '{"status": "failed"}',
        '"text"',
        "1",
    ],
)
def test_a_line_that_is_damaged_is_told_of(text: str) -> None:
    with pytest.raises(JournalError, match="cannot be read, and may be damaged"):
        from_text(text, Plain)


def test_a_verdict_of_a_type_that_has_changed_is_told_of() -> None:
    class Changed(BaseModel):
        done: bool
        score: int

    text = to_text(Verdict(Plain(done=True, why="secret"), "judge"), Plain)
    with pytest.raises(JournalError, match=r"is no Changed \(score: Field required\).*another version") as raised:
        from_text(text, Changed)
    assert "secret" not in str(raised.value)
