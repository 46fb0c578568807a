"""Tags: by the stored outcome alone; not tagged yet is None, and no match is empty."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Literal

import dspy
import pytest
from dspy.utils import DummyLM
from pydantic import BaseModel

from evalr import Failure, InputError, Verdict
from evalr.dspy import DspyJudge, stored_outcomes, tagging_judge, tags_of
from evalr.inputs import Transcript
from evalr.measures import SessionOutcome
from evalr.testing import EvaluatorContract


class Tags(BaseModel):
    tags: list[Literal["billing", "login"]]


class MaybeTags(BaseModel):
    tags: list[Literal["billing", "login"]] | None = None


class Untaggable(BaseModel):
    tag: str


def outcome(number: int, reason: str) -> Verdict[SessionOutcome]:
    given = Transcript(id=f"t{number}", user="ada", arm="control", request="the words of the session")
    value = SessionOutcome(success=False, failure_type="wrong answer", failure_reason=reason)
    return Verdict(value, "outcome", "1", given.about())


OUTCOMES: list[Any] = [outcome(1, "The invoice was wrong"), outcome(2, "It was rude"), outcome(3, "It gave up")]


def judge(*tags: Any) -> DspyJudge[Any, Tags]:
    lm = DummyLM([{"tags": each} for each in tags], adapter=dspy.JSONAdapter())
    return tagging_judge(Tags, lm=lm, definition="billing: invoices and prices. login: passwords and keys.")


def tagged(judge: DspyJudge[Any, Any], outcomes: list[Any]) -> list[Any]:
    async def main() -> list[Any]:
        return [await judge.evaluate(given) for given in stored_outcomes(outcomes)]

    return asyncio.run(main())


def test_the_judge_sees_the_stored_summary_and_nothing_of_the_session() -> None:
    (given, *_) = stored_outcomes(OUTCOMES)
    system, user = (message["content"] for message in judge().prompt(given))
    assert "The invoice was wrong" in user
    assert "the words of the session" not in system + user
    assert "control" not in user
    assert "billing: invoices and prices." in system
    assert 'a list of any of "billing", "login"; [] for none of them' in system


def test_not_tagged_yet_is_none_and_no_match_is_empty() -> None:
    results = tagged(judge(["billing"], []), OUTCOMES[:2])
    assert [tags for _, tags in tags_of(OUTCOMES, results)] == [["billing"], [], None]


@pytest.mark.parametrize("answer", [None, ["rudeness"], "billing"])
def test_what_the_judge_cannot_say_is_not_tagged_yet(answer: Any) -> None:
    results = tagged(judge(answer), OUTCOMES[:1])
    assert isinstance(results[0], Failure)
    assert [tags for _, tags in tags_of(OUTCOMES[:1], results)] == [None]


def test_tags_are_about_the_same_session() -> None:
    (result,) = tagged(judge(["login"]), OUTCOMES[:1])
    assert result.about == OUTCOMES[0].about._replace(kind="outcome")


def test_results_without_an_outcome_are_not_tagged() -> None:
    assert list(stored_outcomes([Failure("broke"), *OUTCOMES])) == list(stored_outcomes(OUTCOMES))


def test_sessions_of_two_users_with_one_id_keep_their_own_tags() -> None:
    other = Verdict(OUTCOMES[0].value, "outcome", "1", OUTCOMES[0].about._replace(user="bob"))
    results = tagged(judge(["login"]), [other])
    assert [tags for _, tags in tags_of([OUTCOMES[0], other], results)] == [None, ["login"]]


@pytest.mark.parametrize("verdict_type", [MaybeTags, Untaggable])
def test_a_type_that_cannot_tell_the_two_apart_is_refused(verdict_type: type[BaseModel]) -> None:
    with pytest.raises(InputError, match="needs one list of choices that is never None"):
        tagging_judge(verdict_type, lm=DummyLM([]), definition="all")


def test_tags_without_a_meaning_are_refused() -> None:
    with pytest.raises(InputError, match="definition is empty"):
        tagging_judge(Tags, lm=DummyLM([]), definition="")


class TestContract(EvaluatorContract):
    evaluator: ClassVar[Any] = judge(*[["billing"]] * 100)
    inputs: ClassVar[Any] = list(stored_outcomes(OUTCOMES))
