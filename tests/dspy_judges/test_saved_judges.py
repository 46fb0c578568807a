"""Judges as JSON: read back they are the same, keys are left out, and a file does not say what code to import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM
from pydantic import BaseModel

from evalr import InputError
from evalr.dspy import DspyJudge, completion_judge, learning_judge, pairwise_judge
from evalr.inputs import Transcript, Turn
from evalr.labels import Example
from evalr.measures import TaskCompletion

LM = dspy.LM(
    "openai/gpt-4o-mini", api_key="sk-secret", api_base="http://127.0.0.1:9/v1", max_tokens=500, temperature=0.2
)
DEMO = Example(
    Transcript(id="d1", request="Draft it", turns=[Turn(role="person", text="Draft {it}")]),
    expected=TaskCompletion(completed=False, quality=2),
    reason="nothing there",
)


class Own(BaseModel):
    kind: bool


@pytest.mark.parametrize(
    "judge",
    [
        completion_judge(lm=LM, demos=[DEMO], budget=900, instructions="Judge it. {x} \ud83d"),
        learning_judge(lm=LM, success_definition="It ships.", tools={"search": "Search."}),
        pairwise_judge(lm=LM, name="mine"),
    ],
)
def test_a_judge_read_back_is_the_same(judge: DspyJudge[Any, Any], tmp_path: Path) -> None:
    judge.save(tmp_path / "judge.json")
    again: DspyJudge[Any, Any] = DspyJudge.load(tmp_path / "judge.json")
    assert again.version == judge.version
    assert (again.name, again.verdict_type, again.inputs) == (judge.name, judge.verdict_type, judge.inputs)
    assert (again.instructions, again.demos, again.fields) == (judge.instructions, judge.demos, judge.fields)
    assert again.lm.kwargs == {"temperature": 0.2, "max_tokens": 500}
    assert [path.name for path in tmp_path.iterdir()] == ["judge.json"]


def test_neither_keys_nor_addresses_are_saved(tmp_path: Path) -> None:
    completion_judge(lm=LM).save(tmp_path / "judge.json")
    text = (tmp_path / "judge.json").read_text()
    assert "sk-secret" not in text
    assert "127.0.0.1" not in text


def test_a_file_does_not_say_where_keys_are_sent(tmp_path: Path) -> None:
    place = tmp_path / "judge.json"
    completion_judge(lm=LM).save(place)
    state = json.loads(place.read_text())
    state["lm"] |= {"api_base": "http://127.0.0.1:9/steal", "headers": {"x": "y"}, "model_list": []}
    place.write_text(json.dumps(state))
    again: DspyJudge[Any, Any] = DspyJudge.load(place)
    assert again.lm.kwargs == {"temperature": 0.2, "max_tokens": 500}


def test_another_model_makes_another_version(tmp_path: Path) -> None:
    completion_judge(lm=LM).save(tmp_path / "judge.json")
    again: DspyJudge[Any, Any] = DspyJudge.load(tmp_path / "judge.json", lm=dspy.LM("openai/gpt-4o"))
    assert again.version.startswith("openai/gpt-4o#")


def test_types_of_your_own_are_yours_to_pass(tmp_path: Path) -> None:
    judge = DspyJudge(Own, inputs=Transcript, lm=LM)
    judge.save(tmp_path / "judge.json")
    with pytest.raises(InputError, match="pass verdict_type="):
        DspyJudge.load(tmp_path / "judge.json")
    with pytest.raises(InputError, match="verdict_type=TaskCompletion"):
        DspyJudge.load(tmp_path / "judge.json", verdict_type=TaskCompletion)  # type: ignore[arg-type]
    again: DspyJudge[Any, Any] = DspyJudge.load(tmp_path / "judge.json", verdict_type=Own)
    assert again.version == judge.version


def test_a_model_of_another_class_is_yours_to_pass(tmp_path: Path) -> None:
    completion_judge(lm=DummyLM([])).save(tmp_path / "judge.json")
    with pytest.raises(InputError, match="pass lm="):
        DspyJudge.load(tmp_path / "judge.json")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no saved judge"),
        ("[]", "is no saved judge"),
        ('{"format": "evalr judge", "format_version": 99}', "another version of evalr"),
        ('{"format": "evalr judge", "format_version": 1}', "lacks 'input_type'"),
    ],
)
def test_what_is_no_saved_judge_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "judge.json").write_text(text)
    with pytest.raises(InputError, match=why):
        DspyJudge.load(tmp_path / "judge.json")
    with pytest.raises(InputError, match="cannot be read"):
        DspyJudge.load(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    "edit",
    [
        {"name": 5},
        {"verdict_type": []},
        {"input_type": {}},
        {"instructions": ["x"]},
        {"fields": None},
        {"fields": [["turns"]]},
        {"budget": "16000"},
        {"target": 1},
        {"cache": "no"},
        {"trained_on": {}},
        {"trained_on": [["transcript", None, None, 1]]},
        {"demos": [1]},
        {"lm": "gpt"},
        {"lm": {"model": 5}},
    ],
)
def test_a_saved_judge_that_somebody_broke_is_refused_by_name(edit: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    completion_judge(lm=LM, demos=[DEMO]).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | edit))
    with pytest.raises(InputError, match=next(iter(edit)) if "lm" not in edit else "lm|model"):
        DspyJudge.load(path)
    path.write_text("[" * 100_000)
    with pytest.raises(InputError, match="no saved judge"):
        DspyJudge.load(path)


def test_a_saved_judge_is_readable(tmp_path: Path) -> None:
    completion_judge(lm=LM, demos=[DEMO]).save(tmp_path / "judge.json")
    state = json.loads((tmp_path / "judge.json").read_text())
    assert (state["name"], state["verdict_type"], state["input_type"]) == ("completion", "TaskCompletion", "Transcript")
    assert state["demos"][0]["reason"] == "nothing there"
    assert state["lm"]["model"] == "openai/gpt-4o-mini"
