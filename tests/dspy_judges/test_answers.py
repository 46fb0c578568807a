"""Reading a model's answer: one verdict, or none at all."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr.dspy import UnclearAnswerError
from evalr.measures import TaskCompletion
from evalr_dspy.parsing import read_answer

NAMES = ["completed", "quality", "reason"]
YES = {"completed": True, "quality": 5}
NO = {"completed": False, "quality": 1, "reason": "missing"}


def read(text: str | None) -> TaskCompletion:
    return read_answer(text, TaskCompletion, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(NO),
        json.dumps(NO, indent=2),
        f"```json\n{json.dumps(NO)}\n```",
        f"```\n{json.dumps(NO)}```\n",
        f"The agent stopped early, so:\n\n{json.dumps(NO)}\n\nI am quite sure.",
        f"[{json.dumps(NO)}]",
        f"{json.dumps(NO)} and once more: {json.dumps(NO)}",
        f"It used {{braces}} and called search({{'q': 1}}), so {json.dumps(NO)}",
        f'It called {{"q": "brief"}}. {json.dumps(NO)}',
        json.dumps(NO | {"confidence": 0.9}),
        f"Not achieved (completed: false), hence quality: 1.\n{json.dumps(NO)}",
        json.dumps(NO | {"again": {"completed": False}}),
        f"quality: 01/05, quality: \u0661.\n{json.dumps(NO)}",
    ],
)
def test_one_verdict_is_read_whatever_stands_around_it(text: str) -> None:
    assert read(text) == TaskCompletion(**NO)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "empty"),
        ("  \n", "empty"),
        ("It went well.", "no JSON object with a verdict"),
        ("{}", "no JSON object with a verdict"),
        ('{"verdict": {"completed": true, "quality": 5}}', "no JSON object with a verdict"),
        (f"{json.dumps(YES)} {json.dumps(NO)}", "2 answers that differ"),
        (f"{json.dumps(NO)} {json.dumps(YES)}", "2 answers that differ"),
        (f'The transcript says {{"completed": true}}. {json.dumps(NO)}', "2 answers that differ"),
        (f"[{json.dumps(YES)}, {json.dumps(NO)}]", "2 answers that differ"),
        ('{"completed": true, "completed": false, "quality": 3}', "two values for 'completed'"),
        ('{"completed": true, "quality": 3', "'completed' outside of whole JSON objects"),
        (f'{{"completed": true, "quality": oops}} {json.dumps(NO)}', "'completed' outside of whole JSON objects"),
        (f"{{'completed': True}} {json.dumps(NO)}", "'completed' outside of whole JSON objects"),
        ('{"completed": true, "quality": NaN}', "'completed' outside of whole JSON objects"),
        ('{"completed": "true", "quality": 3}', "completed: Input should be a valid boolean"),
        ('{"completed": 1, "quality": 3}', "completed: Input should be a valid boolean"),
        ('{"completed": true, "quality": "3"}', "quality: Input should be a valid integer"),
        ('{"completed": true, "quality": 3.5}', "quality: Input should be a valid integer"),
        ('{"completed": true, "quality": 0}', "greater than or equal to 1"),
        ('{"completed": null, "quality": 3}', "completed: Input should be a valid boolean"),
        ('{"completed": true}', "quality: Field required"),
        (f'{json.dumps(YES)} {{"final": {json.dumps(NO)}}}', "holds another one that differs"),
        (f'{{"final": {json.dumps(NO)}}} {json.dumps(YES)}', "holds another one that differs"),
        (json.dumps(YES | {"correction": {"completed": False}}), "holds another one that differs"),
        (json.dumps(YES | {"drafts": [[{"quality": 1}]]}), "holds another one that differs"),
        (f"completed: false, quality: 1. {json.dumps(YES)}", "'completed' another value in words"),
        (f"{json.dumps(YES)} Final answer: **completed**: FALSE", "'completed' another value in words"),
        (f"{json.dumps(YES)} quality = 2", "'quality' another value in words"),
        (f"quality: {'9' * 5000}. {json.dumps(YES)}", "'quality' another value in words"),
        (f'{{"Completed": false, "Quality": 1}} {json.dumps(YES)}', "2 answers that differ"),
        (json.dumps(YES | {"Completed": False}), "two values for 'Completed'"),
        ('{"completed": true, "quality": 5, "x": ' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply|broken"),
        ("so " * 200_000 + json.dumps(YES), "longer than 400,000 characters"),
        ("{" * 100_000, "full of braces"),
        ('{"a":' * 50_000, "full of braces"),
    ],
)
def test_what_is_ambiguous_broken_or_no_verdict_is_refused(text: str | None, why: str) -> None:
    with pytest.raises(UnclearAnswerError, match=why):
        read(text)


class Score(BaseModel):
    score: float
    better: Literal["first", "second", "tie"] = "tie"


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400, "NaN", "Infinity"])
def test_a_number_that_is_not_finite_is_no_answer(number: str) -> None:
    with pytest.raises(UnclearAnswerError, match="broken"):
        read_answer(f'{{"score": {number}}}', Score, ["score"])


@pytest.mark.parametrize("said", ["better: first", "**better** = `tie`", 'better: "First"'])
def test_words_that_choose_otherwise_make_an_answer_unclear(said: str) -> None:
    names = ["score", "better"]
    with pytest.raises(UnclearAnswerError, match="'better' another value in words"):
        read_answer(f'{said}. {{"score": 1, "better": "second"}}', Score, names)
    assert read_answer('better: second. {"score": 1, "better": "second"}', Score, names).better == "second"


class Odd(BaseModel):
    how: Literal["", "a", "a b", "v1", 1]


def test_odd_choices_in_words_are_read_whole() -> None:
    assert read_answer('how: a b. {"how": "a b"}', Odd, ["how"]).how == "a b"
    assert read_answer('how: why not? {"how": "a b"}', Odd, ["how"]).how == "a b"
    with pytest.raises(UnclearAnswerError, match="in words"):
        read_answer('how: v1. {"how": 1}', Odd, ["how"])


def test_an_answer_of_very_many_keys_is_read_at_once() -> None:
    begun = perf_counter()
    keys = ", ".join(f'"{key}": 1' for key in range(25_000))
    assert read(f'{{"completed": true, "quality": 5, {keys}}}').completed
    assert perf_counter() - begun < 5


def test_a_text_that_quotes_a_verdict_is_a_text() -> None:
    reason = f"They wrote {json.dumps(YES)}, which is no evidence"
    assert read(json.dumps(NO | {"reason": reason})).reason == reason


def test_a_lone_surrogate_is_replaced() -> None:
    assert read(r'{"completed": true, "quality": 5, "reason": "\ud83d"}').reason == "�"


def test_null_is_none_and_the_text_null_is_a_text() -> None:
    assert read('{"completed": true, "quality": 5, "reason": null}').reason is None
    assert read('{"completed": true, "quality": 5, "reason": "null"}').reason == "null"


@given(st.text(), st.text())
def test_prose_without_braces_never_changes_an_answer(before: str, after: str) -> None:
    before, after = (text.replace("{", "").replace('"', "").replace("'", "") for text in (before, after))
    assert read(before + json.dumps(NO) + after) == TaskCompletion(**NO)


verdicts = st.fixed_dictionaries({"completed": st.booleans(), "quality": st.integers(1, 5), "reason": st.text()})


@given(st.lists(verdicts, min_size=1, max_size=3), st.text(alphabet="a {}\n`"))
def test_several_answers_are_read_only_where_they_agree(answers: list[dict[str, Any]], between: str) -> None:
    text = between.replace("{", "").join(json.dumps(answer) for answer in answers)
    if all(answer == answers[0] for answer in answers):
        assert read(text).model_dump()["quality"] == answers[0]["quality"]
    else:
        with pytest.raises(UnclearAnswerError):
            read(text)
