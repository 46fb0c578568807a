"""The ready judges as the command makes them, and what they say that a call costs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import dspy
import pytest
from model_server import ModelServer

from evalr.errors import InputError
from evalr.inputs import Exchange, Input, LearningUse, Transcript
from evalr.measures import installed_measures
from evalr.measures.ready_judges import judged_measures, ready_judge
from evalr_dspy import completion_judge
from evalr_dspy.commanded import named_lm, read_tools
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


# Tools, as people write them

AS_MODELS_ARE_GIVEN_THEM = [
    {"type": "function", "function": {"name": "search", "description": "Finds orders", "parameters": {}}},
    {"name": "refund"},
]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"search": "Finds orders", "refund": ""}, {"search": "Finds orders", "refund": ""}),
        (AS_MODELS_ARE_GIVEN_THEM, {"search": "Finds orders", "refund": ""}),
    ],
)
def test_tools_are_read_from_files_and_words(content: Any, expected: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "tools.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    assert read_tools([str(place)]) == expected
    assert read_tools([str(place), "mail = To a=b"]) == {**expected, "mail": "To a=b"}
    assert read_tools([]) == {}


@pytest.mark.parametrize(
    ("given", "content", "message"),
    [
        (
            ["nowhere.json"],
            None,
            "nowhere.json cannot be read: No such file or directory; write tools=",
        ),
        (["tools.json"], "search", "tools.json is no JSON"),
        (["tools.json"], "[]", "must be {"),
        (["tools.json"], "7", "must be {"),
        (["tools.json"], '[{"description": "d"}]', "must be {"),
        (["tools.json"], '{"search": ["d"]}', "must be {"),
        (["tools.json"], '[{"function": "search"}]', "must be {"),
        (["a=1", "a=2"], None, "the tool 'a' is named twice"),
        (["=what"], None, "a tool needs a name"),
    ],
)
def test_tools_that_cannot_be_read_are_said(
    given: list[str], content: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("tools.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        read_tools(given)


@pytest.mark.parametrize("measure", ["outcome", "learning"])
def test_tools_and_success_are_in_the_version(measure: str) -> None:
    plain, tools, success = (
        made(measure),
        made(measure, tools=("search=Finds orders",)),
        made(measure, success_definition="Paid."),
    )
    assert len({plain.version, tools.version, success.version}) == 3
    assert "- search: Finds orders" in tools.instructions


# Judges from files


def loaded(measure: str, path: Path, **options: Any) -> Any:
    ready = ready_judge(measure)
    assert ready.load is not None
    settled = {name: value for name, value in ready.settings.items() if name not in ready.of_file}
    return ready.load(path=str(path), **{"lm": None, "api_base": None, **settled, **options})


@pytest.mark.parametrize("measure", INPUTS)
def test_a_saved_judge_is_the_one_that_was_saved(measure: str, tmp_path: Path) -> None:
    place = tmp_path / "judge.json"
    judge = made(measure, max_tokens=400)
    (judge.judge if measure == "shadow" else judge).save(place)
    assert loaded(measure, place).version == judge.version
    other = loaded(measure, place, lm="openai/gpt-4o", max_tokens=400)
    assert "openai/gpt-4o#" in other.version
    assert loaded(measure, place, max_tokens=500).version == made(measure, max_tokens=500).version


def test_a_saved_judge_asks_where_the_command_says_and_caches_nothing(
    model_server: ModelServer, tmp_path: Path
) -> None:
    place = tmp_path / "judge.json"
    saved = dspy.LM(LM, temperature=0.3, api_key="sk-secret", api_base="http://127.0.0.1:9")
    completion_judge(lm=saved, cache=True).save(place)
    judge = loaded("completion", place, api_base=f"http://127.0.0.1:{model_server.port}/v1")
    assert [judge.evaluate_sync(INPUTS["completion"]).status for _ in range(2)] == ["verdict", "verdict"]
    assert [asked.body["temperature"] for asked in model_server.asked] == [0.3, 0.3]


def test_a_shadow_judge_is_made_of_a_judge_of_pairs(tmp_path: Path) -> None:
    made("completion").save(tmp_path / "judge.json")
    with pytest.raises(InputError, match=r"is no judge of pairs.*it gives TaskCompletion of Transcript"):
        loaded("shadow", tmp_path / "judge.json")
