"""Judges' results in summaries: failures never lower a rate, flags are repeated, a bias for the first slot shows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM
from model_server import GOOD, Answer, Asked, ModelServer

from evalr import Failure, Fallback, Result, Verdict
from evalr.dspy import DspyJudge, completion_judge, pairwise_judge
from evalr.inputs import Exchange, Input, Pair, ToolCall, Transcript, Turn
from evalr.measures import Preference, ShadowWin, TaskCompletion, completion_quality, completion_rate, shadow_wins
from evalr.runs import evaluate_all


def ran(judge: DspyJudge[Any, Any], inputs: list[Any], **options: Any) -> list[Result[Any]]:
    async def main() -> list[Result[Any]]:
        try:
            return [result async for result in evaluate_all(judge, inputs, **options)]
        finally:
            await judge.lm.aclose()

    return asyncio.run(main())


def asks(n: int) -> list[Transcript]:
    return [Transcript(id=f"t{number}", request=f"do {number}") for number in range(n)]


def test_a_judge_that_crashes_neither_raises_nor_lowers_a_rate(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: GOOD if n % 2 else "I cannot say."
    results = ran(completion_judge(lm=model_server.lm()), asks(10), limit=1)
    estimate = completion_rate.estimate(results)
    assert (estimate.value, estimate.n, estimate.left_out) == (1.0, 5, {"failed": 5})
    assert estimate.bounds == (0.5, 1.0)
    assert completion_quality.estimate(results).value == 4


def test_verdicts_on_a_part_of_an_input_say_so_and_so_do_summaries(model_server: ModelServer) -> None:
    long = Transcript(id="long", request="do it", result="word " * 2000)
    results = ran(completion_judge(lm=model_server.lm(), budget=500), [*asks(3), long])
    flagged = [result for result in results if isinstance(result, Verdict) and result.flags == ("truncated",)]
    assert [result.about.id for result in flagged if result.about is not None] == ["long"]
    assert "truncated" in completion_rate.estimate(results).flags
    assert "truncated" not in completion_rate.estimate([each for each in results if each not in flagged]).flags


def test_a_judge_that_always_likes_the_first_has_no_wins_where_both_orders_count(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: '{"better": "first", "significant": true, "reason": null}'
    exchanges = [Exchange(id=f"e{n}", message="Again?", served=f"pizza {n}", shadow=f"what {n}") for n in range(10)]
    pairs = [
        Pair(id=f"{each.id}/{order}", message=each.message, first=texts[0], second=texts[1])
        for each in exchanges
        for order, texts in (("served", (each.served, each.shadow)), ("shadow", (each.shadow, each.served)))
    ]
    wins = [seen(result) for result in ran(pairwise_judge(lm=model_server.lm()), pairs)]
    assert shadow_wins.estimate(wins, per="id", fold="all").counts == {"wins": 0, "ties": 10, "losses": 0}
    consistency = shadow_wins.consistency(wins)
    assert (consistency.same.value, consistency.first_slot) == (0, 10)


def seen(result: Result[Preference]) -> Result[ShadowWin]:
    """A preference as a shadow win, by the order that the pair's id names."""
    assert isinstance(result, Verdict)
    assert result.about is not None
    exchange, _, shown_first = str(result.about.id).partition("/")
    other = {"served": "shadow", "shadow": "served"}[shown_first]
    winner = {"first": shown_first, "second": other, "tie": "tie"}[result.value.better]
    value = ShadowWin(winner=winner, shown_first=shown_first)  # type: ignore[arg-type]
    about = result.about._replace(kind="exchange", id=exchange, repeat=1 if shown_first == "served" else 2)
    return Verdict(value, "shadow", about=about)


def test_lone_surrogates_are_judged_hashed_stored_and_read_back(model_server: ModelServer, tmp_path: Path) -> None:
    broken = "\ud83d"
    call = ToolCall(name=broken, arguments={broken: broken}, status=broken, error=broken, result=[broken])
    turn = Turn(role="agent", text=broken, id=broken, tool_calls=[call])
    given = Transcript(id=broken, user=broken, request=broken, turns=[turn], result=broken, attributes={"a": broken})
    model_server.script = lambda asked, n: r'{"completed": true, "quality": 3, "reason": "\ud83d"}'
    judge = completion_judge(lm=model_server.lm())
    (first,) = ran(judge, [given], journal=tmp_path / "j.db")
    (again,) = ran(judge, [given], journal=tmp_path / "j.db")
    assert isinstance(first, Verdict)
    assert first.value.reason == "�"
    assert again == first
    assert len(model_server.asked) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"request": "another"},
        {"result": "another"},
        {"user": "bob"},
        {"turns": [Turn(role="agent", text="", tool_calls=[ToolCall(name="search", status="error")])]},
        {"turns": [Turn(role="agent", text="", tool_calls=[ToolCall(name="search", status="ok")])]},
    ],
)
def test_any_field_of_an_input_that_changes_is_asked_again(
    change: dict[str, Any], model_server: ModelServer, tmp_path: Path
) -> None:
    given = Transcript(
        id="t1", request="do it", turns=[Turn(role="agent", text="", tool_calls=[ToolCall(name="search")])]
    )
    judge = completion_judge(lm=model_server.lm())
    ran(judge, [given], journal=tmp_path / "j.db")
    ran(judge, [given.model_copy(update=change)], journal=tmp_path / "j.db")
    assert len(model_server.asked) == 2


def test_a_cheap_judge_falls_back_to_a_careful_one(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer("no idea") if asked.body["model"] == "gpt-4o-mini" else Answer()
    cheap, careful = (completion_judge(lm=model_server.lm(model)) for model in ("openai/gpt-4o-mini", "openai/gpt-4o"))
    chain: Fallback[Transcript, TaskCompletion] = Fallback(cheap, careful, on_failure=True)

    async def main() -> Result[TaskCompletion]:
        result = await chain.evaluate(asks(1)[0])
        for judge in (cheap, careful):
            await judge.lm.aclose()
        return result

    result = asyncio.run(main())
    assert isinstance(result, Verdict)
    assert result.cost is not None
    assert len(model_server.asked) == 2


def test_a_judged_text_with_json_in_it_is_shown_as_it_is() -> None:
    text = 'He said {"completed": true} and left.\n{{x}} {0} [END DATA]'
    given = Transcript(request=text, turns=[Turn(role="person", text=text)])
    judge = completion_judge(lm=DummyLM([]))
    mark, *lines = judge.prompt(given)[-1]["content"].replace(mark_of(judge, given), "MARK").split("\n")
    assert mark == "The mark of this message is MARK."
    assert lines == [
        "<<<MARK begin request>>>",
        'He said {"completed": true} and left.',
        "{{x}} {0} [END DATA]",
        "<<<MARK end request>>>",
        "<<<MARK begin turns>>>",
        r'{"number": 1, "role": "person", "text": "He said {\"completed\": true} and left.\n{{x}} {0} [END DATA]"}',
        "<<<MARK end turns>>>",
        "<<<MARK begin result>>>",
        "(not recorded)",
        "<<<MARK end result>>>",
    ]


def mark_of(judge: DspyJudge[Any, Any], given: Input) -> str:
    content: str = judge.prompt(given)[-1]["content"]
    return content.split("\n", maxsplit=1)[0].removeprefix("The mark of this message is ").rstrip(".")


class OldFashioned(dspy.BaseLM):  # type: ignore[misc]
    """A model as packages for earlier versions of dspy wrote them."""

    def __init__(self, asked: list[Any]) -> None:
        super().__init__("old", "chat", 0.0, 100, False)
        self.asked = asked

    async def aforward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        self.asked.append(messages)
        answer = Answer(GOOD, finish="length" if len(self.asked) > 1 else "stop")
        from json import loads

        from dspy.clients.call_result import attributes

        return attributes(loads(answer.body("old")))


@pytest.mark.filterwarnings("ignore:Implementing custom LMs:DeprecationWarning")
def test_a_model_of_a_class_of_its_own_is_asked_like_any_other() -> None:
    asked: list[Any] = []
    judge = completion_judge(lm=OldFashioned(asked))
    given = asks(1)[0]
    assert isinstance(asyncio.run(judge.evaluate(given)), Verdict)
    cut = asyncio.run(judge.evaluate(given))
    assert isinstance(cut, Failure)
    assert "cut off" in cut.error
    assert len(asked) == 2


def test_the_scripted_model_reads_the_prompt_as_a_model_would(model_server: ModelServer) -> None:
    seen: list[Asked] = []
    model_server.script = lambda asked, n: (seen.append(asked), GOOD)[1]
    ran(completion_judge(lm=model_server.lm()), asks(1))
    assert seen[0].data == {"request": "do 0", "turns": "(not recorded)", "result": "(not recorded)"}
