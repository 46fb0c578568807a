"""The judge: one call for one input, and a failure for whatever is no verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from enum import Enum
from typing import Any, ClassVar, Literal, TypeVar

import dspy
import pytest
from dspy.utils import DummyLM
from model_server import GOOD, Answer, ModelServer
from pydantic import BaseModel, Field

from evalr import Failure, FieldTypeError, InputError, Result, Verdict, run_sync
from evalr.dspy import DspyJudge, completion_judge
from evalr.inputs import Exchange, Input, Pair, Session, Transcript, Turn
from evalr.labels import Example
from evalr.measures import SessionOutcome, TaskCompletion
from evalr.runs import evaluate_all_sync
from evalr.testing import EvaluatorContract

T = TypeVar("T")

TRANSCRIPT = Transcript(
    id="t1",
    user="ada",
    arm="control",
    request="Draft the launch brief",
    turns=[Turn(role="person", text="Draft it"), Turn(role="agent", text="Here it is.")],
    attributes={"agent": "writer"},
)


def scripted(*answers: dict[str, Any]) -> DummyLM:
    return DummyLM(list(answers), adapter=dspy.JSONAdapter())


def completion(server: ModelServer, **options: Any) -> DspyJudge[Transcript, TaskCompletion]:
    return DspyJudge(TaskCompletion, inputs=Transcript, lm=server.lm(), **options)


def judged(judge: DspyJudge[Any, Any], given: Input = TRANSCRIPT) -> Result[Any]:
    return closing(judge, judge.evaluate(given))


def closing(judge: DspyJudge[Any, Any], asked: Awaitable[T]) -> T:
    """What was asked, and then the connections of this event loop are closed."""

    async def main() -> T:
        try:
            return await asked
        finally:
            if isinstance(judge.lm, dspy.LM):
                await judge.lm.aclose()

    return asyncio.run(main())


def test_a_verdict_says_who_gave_it_of_what_and_at_what_cost(model_server: ModelServer) -> None:
    judge = completion(model_server)
    verdict = judged(judge)
    assert isinstance(verdict, Verdict)
    assert verdict.value == TaskCompletion(completed=True, quality=4, reason="all there")
    assert (verdict.evaluator, verdict.version, verdict.about) == ("completion", judge.version, TRANSCRIPT.about())
    # 1,000 tokens in and 100 out, at the price of the model.
    assert verdict.cost == pytest.approx(1000 * 0.15e-6 + 100 * 0.6e-6)
    assert verdict.latency is not None
    assert verdict.latency > 0
    assert verdict.flags == ()


def test_each_evaluation_is_one_call_and_really_asks_again(model_server: ModelServer) -> None:
    judge = completion(model_server)

    async def several() -> list[Result[TaskCompletion]]:
        return [await judge.evaluate(TRANSCRIPT) for _ in range(3)]

    closing(judge, several())
    assert len(model_server.asked) == 3


def test_dspys_cache_answers_where_it_is_asked_to(model_server: ModelServer) -> None:
    judge = completion(model_server, cache=True)
    given = TRANSCRIPT.model_copy(update={"request": f"Draft it on port {model_server.port}"})
    results = [judged(judge, given) for _ in range(2)]
    assert [result.status for result in results] == ["verdict", "verdict"]
    assert results[0].cost
    assert results[1].cost is None  # what was paid for before is not paid for again
    assert len(model_server.asked) == 1
    assert judge.version != replace(judge, cache=False).version


def test_it_evaluates_where_nothing_can_be_awaited_and_where_a_loop_runs(model_server: ModelServer) -> None:
    judge = completion(model_server)

    async def in_a_loop() -> Result[TaskCompletion]:
        return judge.evaluate_sync(TRANSCRIPT)

    assert judge.evaluate_sync(TRANSCRIPT).status == "verdict"
    assert asyncio.run(in_a_loop()).status == "verdict"
    run_sync(judge.lm.aclose())


def test_it_leaves_nothing_in_the_histories_of_dspy(model_server: ModelServer) -> None:
    from dspy.clients.base_lm import GLOBAL_HISTORY

    lm = model_server.lm()
    before = len(GLOBAL_HISTORY)
    assert judged(DspyJudge(TaskCompletion, inputs=Transcript, lm=lm)).status == "verdict"
    assert (lm.history, len(GLOBAL_HISTORY)) == ([], before)


def test_the_cost_is_known_even_where_dspy_keeps_no_history(model_server: ModelServer) -> None:
    with dspy.context(disable_history=True):
        assert judged(completion(model_server)).cost is not None


# ---------------------------------------------------------------------------------------------------------------------
# Costs
# ---------------------------------------------------------------------------------------------------------------------


def test_no_usage_is_an_unknown_cost_and_not_0(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer(usage=None)
    verdict = judged(completion(model_server))
    assert (verdict.status, verdict.cost) == ("verdict", None)


def test_a_model_without_a_price_has_an_unknown_cost(model_server: ModelServer) -> None:
    lm = model_server.lm("openai/a-model-of-our-own")
    verdict = judged(DspyJudge(TaskCompletion, inputs=Transcript, lm=lm))
    assert (verdict.status, verdict.cost) == ("verdict", None)


def test_an_answer_that_could_not_be_read_has_been_paid_for(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: "I would say that it went well."
    failure = judged(completion(model_server))
    assert isinstance(failure, Failure)
    assert failure.cost is not None
    assert len(model_server.asked) == 1


# ---------------------------------------------------------------------------------------------------------------------
# What is no verdict
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer('{"completed": true, "quality": 4}', finish="length"), "cut off at its limit of tokens"),
        (Answer('{"completed": tr', finish="length"), "cut off at its limit of tokens"),
        (Answer("", finish="content_filter"), "filter kept the model's answer back"),
        (Answer(choices=0), "the model's answer is empty"),
        (Answer(choices=2), "2 choices"),
        (Answer(""), "the model's answer is empty"),
        (Answer(None), "the model's answer is empty"),
        (Answer("It went well."), "no JSON object with a verdict"),
        (Answer('{"completed": true, "quality": '), "it is broken"),
        (Answer('{"completed": true, "quality": 7}'), "quality: Input should be less than or equal to 5"),
        (Answer('{"quality": 4}'), "completed: Field required"),
        (Answer(f'{GOOD} {{"completed": false, "quality": 1}}'), "gave 2 answers that differ"),
    ],
)
def test_what_is_no_verdict_is_a_failure_that_says_why(answer: Answer, why: str, model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: answer
    failure = judged(completion(model_server))
    assert isinstance(failure, Failure)
    assert why in failure.error
    assert failure.about == TRANSCRIPT.about()
    assert len(model_server.asked) == 1


def test_a_server_that_sends_back_what_it_was_sent_does_not_put_it_into_a_log(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer(status=400, message=f"cannot read \x1b[2J: {asked.user * 50}")
    failure = judged(completion(model_server))
    assert isinstance(failure, Failure)
    assert len(failure.error) < 1000
    assert failure.error.isprintable()


def test_a_server_that_sends_back_keys_does_not_put_them_into_a_log(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "sk-of-the-environment")
    said = "no such key: sk-given-in-code, sk-of-the-environment"
    model_server.script = lambda asked, n: Answer(status=401, message=said)
    address = f"http://127.0.0.1:{model_server.port}/v1"
    lm = dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="sk-given-in-code")
    failure = judged(DspyJudge(TaskCompletion, inputs=Transcript, lm=lm))
    assert isinstance(failure, Failure)
    assert "no such key" in failure.error
    assert "sk-" not in failure.error


@pytest.mark.parametrize("answer", [f"```json\n{GOOD}\n```", f"Here is my verdict:\n{GOOD}\nIt was close."])
def test_fences_and_prose_around_an_answer_do_not_matter(answer: str, model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: answer
    assert judged(completion(model_server)).status == "verdict"


# ---------------------------------------------------------------------------------------------------------------------
# Any type
# ---------------------------------------------------------------------------------------------------------------------


class Tone(Enum):
    KIND = "kind"
    CURT = "curt"


class Review(BaseModel):
    """How the agent sounded."""

    tone: Tone
    topics: list[Literal["billing", "login"]] = Field(description="What it was about")
    turns: int = Field(ge=0, lt=100)
    share: float | None = Field(default=None, ge=0, le=1)
    urgent: bool | None = None

    @property
    def doubled(self) -> int:
        return self.turns * 2


REVIEW = {"tone": "curt", "topics": ["login"], "turns": 3, "share": 0.5, "urgent": None}


def test_any_verdict_type_is_asked_for_with_its_bounds_and_choices() -> None:
    judge = DspyJudge(Review, inputs=Transcript, lm=scripted(REVIEW))
    verdict = judged(judge)
    assert isinstance(verdict, Verdict)
    assert verdict.value == Review(tone=Tone.CURT, topics=["login"], turns=3, share=0.5)
    system = judge.prompt(TRANSCRIPT)[0]["content"]
    for line in (
        '- "tone": one of "kind", "curt".',
        '- "topics": a list of any of "billing", "login"; [] for none of them. What it was about.',
        '- "turns": a whole number from 0 to 99.',
        '- "share": a number from 0 to 1, or null.',
        '- "urgent": true or false, or null.',
        "How the agent sounded.",
    ):
        assert line in system
    assert judge.name == "review"


def test_a_field_of_the_input_and_one_of_the_verdict_may_share_a_name() -> None:
    judge = DspyJudge(Review, inputs=Transcript, lm=scripted(REVIEW))
    assert list(judge.signature.input_fields) == ["request", "given_turns", "result"]
    assert list(judge.signature.output_fields) == ["tone", "topics", "turns", "share", "urgent"]


@pytest.mark.parametrize(
    "given",
    [
        Exchange(message="Ship it?", served="Yes", shadow="No"),
        Session(id="s1", activities=[]),
        TRANSCRIPT,
    ],
)
def test_any_input_can_be_judged(given: Input) -> None:
    judge = DspyJudge(TaskCompletion, inputs=type(given), lm=scripted({"completed": True, "quality": 1}))
    assert judged(judge, given).status == "verdict"


class Aliased(BaseModel):
    done: bool = Field(alias="isDone")
    rating: Literal[1, 2, 3] = Field(validation_alias="stars")
    tokens: int = Field(default=0, le=1_234_567)


def test_fields_are_asked_for_by_their_names_whatever_other_names_they_have(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: '{"done": true, "rating": 2}'
    judge = DspyJudge(Aliased, inputs=Transcript, lm=model_server.lm())
    verdict = judged(judge)
    assert isinstance(verdict, Verdict), verdict
    assert (verdict.value.done, verdict.value.rating) == (True, 2)
    assert "at most 1234567." in model_server.asked[0].system


@pytest.mark.parametrize("rating", ["true", "2.0"])
def test_a_choice_is_of_the_type_that_it_is_declared_with(rating: str, model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: f'{{"done": true, "rating": {rating}}}'
    failure = judged(DspyJudge(Aliased, inputs=Transcript, lm=model_server.lm()))
    assert isinstance(failure, Failure)
    assert "rating: Input is of another type" in failure.error


class Followed(BaseModel):
    instructions: bool


class Order(Input):
    kind: ClassVar[str] = "order"

    instructions: str
    signature: str


def test_names_that_dspy_keeps_for_itself() -> None:
    with pytest.raises(InputError, match=r"Followed\.instructions has a name that dspy keeps"):
        DspyJudge(Followed, inputs=Transcript, lm=scripted())
    judge = DspyJudge(TaskCompletion, inputs=Order, lm=scripted())
    texts = judge.shown(Order(id="o1", instructions="Ring twice", signature="Bo")).texts
    assert texts == {"given_instructions": "Ring twice", "given_signature": "Bo"}


def test_a_subclass_of_a_measured_type_has_the_measures_name_and_rubric() -> None:
    class Feedback(TaskCompletion):
        stars: int = 3

    answer = {"completed": True, "quality": 4, "reason": None, "stars": 5}
    judge = DspyJudge(Feedback, inputs=Transcript, lm=scripted(answer))
    assert judge.name == "completion"
    assert judge.instructions.startswith("You judge whether an agent achieved")
    assert judged(judge).value.stars == 5  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "options",
    [
        {"lm": "openai/gpt-5-mini"},
        {"lm": DummyLM([]).copy(n=3)},
        {"inputs": dict},
        {"budget": 10},
        {"fields": ("nothing",)},
        {"demos": [Example(TRANSCRIPT)]},
    ],
)
def test_what_cannot_be_used_is_refused_when_the_judge_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        DspyJudge(TaskCompletion, **{"inputs": Transcript, "lm": scripted(), **options})


def test_a_verdict_type_that_cannot_be_read_is_refused() -> None:
    class Odd(BaseModel):
        when: bytes

    with pytest.raises(FieldTypeError, match="when"):
        DspyJudge(Odd, inputs=Transcript, lm=scripted())


# ---------------------------------------------------------------------------------------------------------------------
# The prompt
# ---------------------------------------------------------------------------------------------------------------------


def test_the_model_is_told_nothing_of_users_arms_and_attributes() -> None:
    judge = DspyJudge(TaskCompletion, inputs=Transcript, lm=scripted())
    for text in ("ada", "control", "writer"):
        assert text not in "".join(message["content"] for message in judge.prompt(TRANSCRIPT))


def test_an_input_of_another_type_is_an_error_and_never_a_skip(model_server: ModelServer) -> None:
    judge = completion_judge(lm=model_server.lm())
    other: Any = Pair(message="Hi", first="Hello", second="Good day")
    for ask in (judge.evaluate_sync, judge.prompt):
        with pytest.raises(InputError, match="judge 'completion' reads Transcript, not Pair"):
            ask(other)
    with pytest.raises(InputError, match="input 0 is a Pair, and evaluator 'completion' reads Transcript"):
        list(evaluate_all_sync(judge, [other]))
    assert model_server.asked == []


def test_demonstrations_come_before_the_input_and_are_data_too() -> None:
    demo = Example(TRANSCRIPT, "d1", expected=TaskCompletion(completed=False, quality=2), reason="no risks")
    judge = DspyJudge(TaskCompletion, inputs=Transcript, lm=scripted(), demos=[demo])
    roles = [message["role"] for message in judge.prompt(TRANSCRIPT)]
    assert roles == ["system", "user", "assistant", "user"]
    assert judge.prompt(TRANSCRIPT)[2]["content"] == '{"completed": false, "quality": 2, "reason": "no risks"}'
    assert judge.prompt(TRANSCRIPT)[1]["content"] == judge.prompt(TRANSCRIPT)[3]["content"]


def test_expected_tokens_grow_with_the_input() -> None:
    judge = DspyJudge(TaskCompletion, inputs=Transcript, lm=scripted())
    longer = TRANSCRIPT.model_copy(update={"result": "word " * 4000})
    assert judge.expected_tokens(longer) - judge.expected_tokens(TRANSCRIPT) == pytest.approx(5000, abs=10)


# ---------------------------------------------------------------------------------------------------------------------
# Versions
# ---------------------------------------------------------------------------------------------------------------------


class Strict(TaskCompletion):
    quality: int = Field(ge=1, le=4)


JUDGE = DspyJudge(TaskCompletion, inputs=Transcript, lm=dspy.LM("openai/gpt-5-mini", api_key="secret"))


@pytest.mark.parametrize(
    "change",
    [
        {"lm": dspy.LM("openai/gpt-5")},
        {"lm": dspy.LM("openai/gpt-5-mini", max_tokens=20000)},
        {"lm": dspy.LM("openai/gpt-5-mini", reasoning_effort="high")},
        {"instructions": "Be kind."},
        {"demos": [Example(TRANSCRIPT, expected=TaskCompletion(completed=True, quality=3))]},
        {"verdict_type": Strict},
        {"fields": ("request", "result")},
        {"budget": 500},
        {"target": "turn"},
    ],
)
def test_whatever_may_change_an_answer_changes_the_version(change: dict[str, Any]) -> None:
    assert replace(JUDGE, **change).version != JUDGE.version


@pytest.mark.parametrize(
    "lm",
    [
        dspy.LM("openai/gpt-5-mini", api_key="another"),
        dspy.LM("openai/gpt-5-mini", api_base="http://127.0.0.1:1/v1", timeout=3),
        dspy.LM("openai/gpt-5-mini", num_retries=7),
    ],
)
def test_how_the_model_is_reached_does_not(lm: dspy.LM) -> None:
    assert replace(JUDGE, lm=lm).version == JUDGE.version
    assert JUDGE.version.startswith("openai/gpt-5-mini#")


def test_verdicts_of_two_models_are_not_pooled() -> None:
    from evalr import MixedVersionsError
    from evalr.measures import completion_rate

    verdicts = []
    for number, model in enumerate(["one", "two"]):
        lm = scripted({"completed": True, "quality": 4})
        lm.model = model
        given = TRANSCRIPT.model_copy(update={"id": f"t{number}"})
        verdicts.append(judged(DspyJudge(TaskCompletion, inputs=Transcript, lm=lm), given))
    with pytest.raises(MixedVersionsError):
        completion_rate.estimate(verdicts)


# ---------------------------------------------------------------------------------------------------------------------
# The contract
# ---------------------------------------------------------------------------------------------------------------------


class TestContract(EvaluatorContract):
    evaluator: ClassVar[Any] = DspyJudge(
        SessionOutcome,
        inputs=Transcript,
        lm=scripted(*[{"success": True, "corrections": 0, "escalated": False, "user_turns": 1}] * 100),
    )
    inputs: ClassVar[Any] = [TRANSCRIPT, TRANSCRIPT.model_copy(update={"id": "t2"})]
