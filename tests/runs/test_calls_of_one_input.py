"""Evaluators that make several calls for one input: budgets count the calls, and not the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import Failure, Fallback, FunctionEvaluator, HandOff, Result, Verdict
from evalr.evaluators import calls_of
from evalr.inputs import Exchange, Pair
from evalr.labels import DecisionEvaluator, agreement, feedback
from evalr.measures import Preference, ShadowWin, TaskCompletion, Transcript, shadow_evaluator
from evalr.runs import Budget, Retry, RunSummary, evaluate_all_sync
from evalr.runs.outlook import outlook


@dataclass
class Judge:
    """Likes the first, for a price, and counts what it is asked."""

    cost: float | None = 0.1
    broken_every: int = 0
    name: str = "preference"
    version: str = "1"
    verdict_type: type[Preference] = Preference
    made_with: frozenset[Any] = frozenset()
    asked: list[Pair] = field(default_factory=list)

    async def evaluate(self, given: Pair, /) -> Result[Preference]:
        self.asked.append(given)
        if self.broken_every and len(self.asked) % self.broken_every == 0:
            return Failure("reset", self.name, self.version, cost=self.cost, exception=ConnectionResetError())
        return Verdict(Preference(better="first", significant=False), self.name, self.version, cost=self.cost)

    def expected_cost(self, given: Pair, /) -> float | None:
        return self.cost


def exchanges(n: int) -> list[Exchange]:
    return [Exchange(id=f"e{number}", message="Hi", served="Hello", shadow="Good day") for number in range(n)]


def ran(evaluator: Any, inputs: list[Any], **options: Any) -> tuple[list[Result[Any]], RunSummary]:
    run = evaluate_all_sync(evaluator, inputs, **options)
    return list(run), run.summary


@pytest.mark.parametrize(("calls", "judged"), [(10, 5), (11, 5), (1, 0), (100, 20)])
def test_a_judge_of_both_orders_makes_no_more_calls_than_the_budget_has(calls: int, judged: int) -> None:
    judge = Judge()
    results, summary = ran(shadow_evaluator(judge, orders="both"), exchanges(20), budget=Budget(calls=calls), limit=8)
    assert len(results) == judged
    assert len(judge.asked) == summary.calls == 2 * judged
    assert summary.not_done == ({f"budget of {calls} calls used up": 20 - judged} if judged < 20 else {})
    assert summary.cost == pytest.approx(0.1 * len(judge.asked))


def test_tries_again_are_counted_in_full() -> None:
    judge = Judge(broken_every=3)
    _, summary = ran(
        shadow_evaluator(judge, orders="both"),
        exchanges(40),
        budget=Budget(calls=30),
        limit=4,
        retry=Retry(first=0.0),
    )
    assert summary.retried >= 2
    assert len(judge.asked) <= summary.calls <= 30


def test_the_ceiling_of_every_call_is_set_aside() -> None:
    for cost in (0.1, None):  # what remains unknown counts as the ceiling
        judge = Judge(cost=cost)
        results, summary = ran(
            shadow_evaluator(judge, orders="both"), exchanges(40), budget=Budget(cost=1.0, ceiling=0.1), limit=16
        )
        assert (len(judge.asked), len(results), summary.over_ceiling) == (10, 5, 0)
        assert summary.unknown_costs == (0 if cost else 10)
    assert "cost unknown" in str(summary)


def test_a_price_in_advance_says_what_one_call_costs_at_most() -> None:
    ahead = outlook(shadow_evaluator(Judge(), orders="both"), exchanges(10), journal=None)
    assert (ahead.cost, ahead.dearest) == (pytest.approx(2.0), pytest.approx(0.1))


def test_a_chain_sets_aside_the_calls_of_all_that_it_may_ask() -> None:
    asked: list[str] = []

    def said(name: str, answer: Any, **options: Any) -> FunctionEvaluator[Any, Any]:
        def ask(given: Transcript) -> Any:
            asked.append(name)
            return answer

        return FunctionEvaluator(name, "1", ask, Transcript, TaskCompletion, **options)

    done = TaskCompletion(completed=True, quality=4)
    cheap, careful = said("cheap", HandOff("unsure")), said("careful", done)
    inputs = [Transcript(id=f"t{n}", request="?") for n in range(20)]
    results, summary = ran(Fallback(cheap, careful), inputs, budget=Budget(calls=9), limit=4)
    assert (len(results), len(asked), summary.calls) == (4, 8, 8)
    # What only computes is no call, so that a chain of it and a judge makes one.
    computed = Fallback(said("rule", HandOff("unsure"), inline=True), careful)
    assert calls_of(computed, inputs[0]) == 1
    assert len(ran(computed, inputs, budget=Budget(calls=9))[0]) == 9
    # By itself it is counted by how often it is asked.
    assert len(ran(said("rule", done, inline=True), inputs, budget=Budget(calls=9))[0]) == 9


@pytest.mark.parametrize(("cost", "calls"), [(0.0, 0), (0.01, 1), (None, 1)])
def test_classifiers_that_cost_something_are_called(cost: float | None, calls: int) -> None:
    class Classifier:
        labels = ("false", "true")
        version = "1"
        cost_per_text = cost

        def classify(self, texts: Any) -> Any:
            return [{"true": 1.0, "false": 0.0} for _ in texts]

    classifiers = {"completed": Classifier()}
    given = Transcript(id="t", request="?")

    class Done(BaseModel):
        completed: bool

    assert calls_of(DecisionEvaluator(Done, classifiers, name="done"), given) == calls


def test_exchanges_that_trained_a_judge_of_pairs_are_known_though_pairs_have_no_id() -> None:
    given = exchanges(4)
    made_with = {given[0].about().subject, ("pair", None, None, "e1")}
    judge = Judge(made_with=frozenset(made_with))
    labels = [feedback(each, ShadowWin(winner="tie")) for each in given]
    for asked in (judge, Fallback(judge), Fallback(Judge(name="cheap"), judge)):
        results, _ = ran(shadow_evaluator(asked, orders="both"), given)
        found = agreement(results, labels)
        assert (found.pairs, found.trained_on) == (2, 2)
