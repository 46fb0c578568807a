"""The ready judges as the command makes them, and what they say that a call costs."""

from __future__ import annotations

from typing import Any

import pytest
from model_server import ModelServer

from evalr.errors import InputError
from evalr.inputs import Exchange, Input, LearningUse, Transcript
from evalr.measures import installed_measures
from evalr.measures.ready_judges import judged_measures, ready_judge
from evalr_dspy.commanded import named_lm
from evalr_dspy.prices import price

LM = "openai/gpt-4o-mini"
INPUTS: dict[str, Input] = {
    "completion": Transcript(id="t", request="do it"),
    "outcome": Transcript(id="t", request="do it"),
    "learning": LearningUse(
        id="l", learning_id="l1", response_id="r1", message="do it", response="done", learning="do it well"
    ),
    "shadow": Exchange(id="e", message="do it", served="done", shadow="not done"),
}


def made(measure: str, lm: str = LM, **settings: Any) -> Any:
    ready = ready_judge(measure)
    return ready.make(lm=lm, api_base=None, **{**ready.settings, **settings})


def test_every_judged_measure_has_a_judge() -> None:
    judged = {name for name, measure in installed_measures().loaded.items() if measure.evaluator is None}
    assert judged == set(INPUTS) <= set(judged_measures())


@pytest.mark.parametrize("measure", INPUTS)
def test_each_is_of_its_measure_and_knows_its_price(measure: str) -> None:
    judge = made(measure)
    about = installed_measures().loaded[measure]
    assert issubclass(judge.verdict_type, about.verdict)
    assert judge.input_type is about.input
    assert 0 < judge.expected_cost(INPUTS[measure]) < 0.01
    assert made(measure, "openai/a-model-without-a-price").expected_cost(INPUTS[measure]) is None


def test_settings_reach_the_judge_and_its_version() -> None:
    assert made("outcome", success_definition="The person says thanks.").version != made("outcome").version
    assert made("completion", max_tokens=500).version != made("completion").version
    both, one = (made("shadow", orders=orders).expected_cost(INPUTS["shadow"]) for orders in ("both", "random"))
    assert both == 2 * one


def test_an_estimate_is_what_the_client_makes_of_the_usage(model_server: ModelServer) -> None:
    judge = ready_judge("completion").make(lm=LM, api_base=f"http://127.0.0.1:{model_server.port}/v1", max_tokens=0)
    result = judge.evaluate_sync(INPUTS["completion"])
    assert result.cost == pytest.approx(price(judge.lm, asked=1000, answered=100))


@pytest.mark.parametrize(
    ("lm", "options", "message"),
    [
        ("openai/", {}, "the model 'openai/' cannot be used"),
        (LM, {"max_tokens": -1}, "max_tokens=-1"),
        (LM, {"api_base": "localhost:8000"}, "begins with http:// or https://"),
        (LM, {"api_base": "https://me:secret@example.test/v1"}, "holds a name or password"),
        ("openai/gpt-5-mini", {"max_tokens": 10}, "cannot be used"),
    ],
)
def test_what_cannot_be_used_is_said(lm: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        named_lm(lm, **options)
    assert "secret" not in str(raised.value)


def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert named_lm(LM, api_base="http://localhost:8000/v1").kwargs["api_key"] == "none"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    assert "api_key" not in named_lm(LM, api_base="http://localhost:8000/v1").kwargs
