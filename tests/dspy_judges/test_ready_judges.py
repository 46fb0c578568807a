"""The ready judges: what their rubrics say, what they are shown, and what their versions cover."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from evalr import InputError, Skip, Verdict
from evalr.dspy import (
    SUCCESS_DEFINITION,
    DspyJudge,
    completion_judge,
    learning_judge,
    outcome_judge,
    pairwise_judge,
)
from evalr.inputs import Exchange, LearningUse, Pair, ToolCall, Transcript, Turn
from evalr.measures import LearningImpact, Preference, SessionOutcome, shadow_evaluator

TOOLS = {"search_docs": "Search product documentation.", "create_ticket": "Create a ticket {for} follow-up."}

TURNS = [
    Turn(role="person", text="Reset my password", id="r1"),
    Turn(role="agent", id="r2", tool_calls=[ToolCall(name="search_docs", status="error", error="timed out")]),
    Turn(role="agent", text="Open the settings.", id="r3"),
]
TRANSCRIPT = Transcript(id="t1", request="Reset my password", turns=TURNS)
USE = LearningUse(
    id="u1",
    message="Reset my password",
    response="Open the settings.",
    learning="Name the menu in full.",
    kind="user_playbook",
    learning_id="l1",
    response_id="r3",
    cited=False,
    turns=TURNS,
)


def scripted(*answers: dict[str, Any]) -> DummyLM:
    return DummyLM(list(answers), adapter=dspy.JSONAdapter())


def prompt(judge: DspyJudge[Any, Any], given: Any) -> tuple[str, str]:
    """What the model is told and what it is shown, each with single blanks between words."""
    system, user = (message["content"] for message in judge.prompt(given))
    return " ".join(system.split()), user


def test_success_is_the_four_conditions_unless_a_team_says_otherwise() -> None:
    assert SUCCESS_DEFINITION.splitlines() == [
        "Success means:",
        "- The agent understood the user's goal.",
        "- The answer or action directly addressed that goal.",
        "- Any required next step was clear.",
        "- The user did not need to correct, repeat, or escalate the request.",
    ]


@pytest.mark.parametrize(("ready", "given"), [(outcome_judge, TRANSCRIPT), (learning_judge, USE)])
class TestSuccessAndTools:
    def test_both_are_in_the_rubric(self, ready: Callable[..., DspyJudge[Any, Any]], given: Any) -> None:
        system, _ = prompt(ready(lm=scripted()), given)
        assert " ".join(SUCCESS_DEFINITION.split()) in system
        assert "The agent's tools" not in system
        system, _ = prompt(ready(lm=scripted(), success_definition="It {shipped}.", tools=TOOLS), given)
        assert "It {shipped}." in system
        assert (
            "- search_docs: Search product documentation. - create_ticket: Create a ticket {for} follow-up." in system
        )

    def test_the_version_covers_both(self, ready: Callable[..., DspyJudge[Any, Any]], given: Any) -> None:
        lm = scripted()
        options: list[dict[str, Any]] = [
            {},
            {"success_definition": "It shipped."},
            {"tools": {"search_docs": "Search."}},
            {"tools": {"search_docs": "Search the web."}},
            {"tools": {"search": "Search."}},
        ]
        versions = {ready(lm=lm, **each).version for each in options}
        assert len(versions) == 5

    def test_tool_calls_are_shown_with_their_status(
        self, ready: Callable[..., DspyJudge[Any, Any]], given: Any
    ) -> None:
        _, user = prompt(ready(lm=scripted()), given)
        assert '"tool_calls": [{"name": "search_docs", "status": "error", "error": "timed out"}]' in user

    def test_an_empty_definition_is_refused(self, ready: Callable[..., DspyJudge[Any, Any]], given: Any) -> None:
        with pytest.raises(InputError, match="success_definition is empty"):
            ready(lm=scripted(), success_definition=" ")


def test_corrections_are_counted_as_they_are_defined() -> None:
    system, _ = prompt(outcome_judge(lm=scripted()), TRANSCRIPT)
    for rule in (
        "incorrect, incomplete, insufficient",
        "steers a revision",
        "a new question, another thing to be done, an ordinary follow-up, or an answer to a question of the agent's",
        "Several complaints in one turn count once",
        "Count without regard to success",
    ):
        assert rule in system


def test_a_success_with_a_reason_for_failure_is_no_verdict() -> None:
    answer = {"success": True, "failure_type": "tool error", "failure_reason": "it broke"}
    result = asyncio.run(outcome_judge(lm=scripted(answer)).evaluate(TRANSCRIPT))
    assert result.status == "failed"


def test_an_outcome() -> None:
    answer = {"success": False, "corrections": 0, "escalated": False, "user_turns": 1, "failure_type": "tool error"}
    result = asyncio.run(outcome_judge(lm=scripted(answer)).evaluate(TRANSCRIPT))
    assert isinstance(result, Verdict)
    assert result.value == SessionOutcome(**answer)  # type: ignore[arg-type]
    assert result.evaluator == "outcome"


def test_relevance_impact_and_diagnosis_are_one_call() -> None:
    answer = {"relevant": True, "impact": "neutral", "diagnosis": "unknown", "diagnosis_reason": "no trace of it"}
    lm = scripted(answer)
    result = asyncio.run(learning_judge(lm=lm).evaluate(USE))
    assert isinstance(result, Verdict)
    assert result.value == LearningImpact(**answer)  # type: ignore[arg-type]
    assert next(lm.answers, None) is None
    assert result.about is not None
    assert result.about.attributes == {"response": "r3", "learning": "l1", "learning_kind": "user_playbook"}


def test_a_learning_whose_text_is_gone_costs_no_call() -> None:
    lm = scripted()
    result = asyncio.run(learning_judge(lm=lm).evaluate(USE.model_copy(update={"learning": None})))
    assert isinstance(result, Skip)
    assert result.reason == "the text of the learning is gone"
    assert lm.history == []


def test_both_orders_of_an_exchange_are_two_calls_of_the_pairwise_judge() -> None:
    exchange = Exchange(
        id="e1", user="ada", message="The usual?", served="A pizza again?", shadow="What would you like?"
    )
    answers = (
        {"better": "first", "reason": "it knows"},
        {"better": "second", "significant": True, "reason": "it knows"},
    )
    evaluator = shadow_evaluator(pairwise_judge(lm=scripted(*answers)), orders="both")
    assert evaluator.expected_tokens(exchange) > 600
    result = asyncio.run(evaluator.evaluate(exchange))
    assert isinstance(result, Verdict)
    assert (result.value.winner, result.value.significant, result.value.consistent) == ("served", False, True)
    assert result.version.startswith("preference@dummy#")


def test_what_cannot_be_told_is_none() -> None:
    result = asyncio.run(learning_judge(lm=scripted({"relevant": None, "impact": None})).evaluate(USE))
    assert isinstance(result, Verdict)
    assert (result.value.relevant, result.value.impact, result.value.diagnosis) == (None, None, None)


def test_the_diagnosis_claims_no_more_than_can_be_known() -> None:
    system, _ = prompt(learning_judge(lm=scripted()), USE)
    for rule in (
        "was not used proves nothing by itself",
        "does not tell whether it was missing from what the agent was shown, or was there and ignored",
        "or whether it was applied, say unknown",
        "null for a profile",
        'one of "content_defect", "application_failure", "external_failure", "no_issue", "unknown", or null',
    ):
        assert rule in system


def test_the_learning_judge_is_shown_the_response_as_target_and_not_what_the_agent_cited() -> None:
    judge = learning_judge(lm=scripted())
    _, user = prompt(judge, USE)
    assert '{"number": 3, "target": true, "role": "agent", "text": "Open the settings."}' in user
    assert "cited" not in user
    assert "l1" not in user


def test_the_pairwise_judge_sees_two_answers_and_nothing_of_where_they_come_from() -> None:
    exchange = Exchange(id="e1", session="s1", user="ada", message="Again?", served="Pizza?", shadow="What?")
    pair = Pair(id=exchange.id, session="s1", message=exchange.message, first=exchange.shadow, second=exchange.served)
    judge = pairwise_judge(lm=scripted({"better": "second", "significant": True, "reason": "it knows the order"}))
    system, user = prompt(judge, pair)
    assert "served" not in user
    assert "shadow" not in system + user
    assert "were the two exchanged, your verdict must be exchanged with them" in system
    result = asyncio.run(judge.evaluate(pair))
    assert isinstance(result, Verdict)
    assert result.value == Preference(better="second", significant=True, reason="it knows the order")
    assert judge.name == "preference"


def test_a_significant_tie_is_no_verdict() -> None:
    pair = Pair(message="", first="", second="")
    result = asyncio.run(pairwise_judge(lm=scripted({"better": "tie", "significant": True})).evaluate(pair))
    assert result.status == "failed"


def test_tools_are_named_and_described() -> None:
    with pytest.raises(InputError, match="tools is a list: pass names and descriptions"):
        outcome_judge(lm=DummyLM([]), tools=["search"])  # type: ignore[arg-type]


def test_options_of_the_judge_go_through() -> None:
    judge = completion_judge(lm=scripted(), name="done", budget=999)
    assert (judge.name, judge.budget) == ("done", 999)
    assert learning_judge(lm=scripted(), target=None).target is None
