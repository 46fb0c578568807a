"""Signals, presets and classifiers of one's own on the command line: of a store, of files, and as they are named."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tracepass_command import conversation, parsed, ran, write_lines

from evalr.tracepass import (
    Account,
    ClassifierReflex,
    JudgeQuestion,
    Preset,
    Signal,
    load_signals,
    open_store,
    save_question,
    save_signals,
    train_reflex,
    transform,
)

sys.path.append(str(Path(__file__).parent.parent / "dspy_judges"))

from model_server import Asked, ModelServer, running

ME = Account("local")
TONE = ["--model", "heuristic-negative-tone", "--fires-on", "negative"]
DROPPED = ["--model", "handoff", "--fires-on", "dropped", "--transform", "assistant_message"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(
        tmp_path / "traces.jsonl",
        conversation("calm", "Where is my order?", "It left today, you will have it tomorrow."),
        conversation(
            "angry", "Where is it?", "Ask someone else, I pass this on.", "This is useless, awful!!", user="bob"
        ),
    )
    return tmp_path


def own(folder: Path, *options: str) -> dict[str, Any]:
    found = parsed(folder, "signals", *options)["signals"]
    return {each["signal_id"]: each for each in found if each["source"] == "custom"}


def test_B20_one_of_ones_own_stands_for_a_signal_with_the_same_classifier_and_texts(folder: Path) -> None:
    ran(folder, "signals", "save", "grumpy", *TONE)
    code, out, err = ran(folder, "grep", "negative|grumpy", "traces.jsonl", "--json")
    assert (code, json.loads(out)["signal"]) == (0, "grumpy")
    assert "heuristic-negative-tone does not run: grumpy has its classifier read the same texts" in err
    code, out, _ = ran(folder, "grep", "negative", "traces.jsonl", "--signal", "heuristic-negative-tone", "--json")
    assert (code, json.loads(out)["signal"]) == (0, "heuristic-negative-tone")


# In the store ---------------------------------------------------------------------------------------------------------


def test_B19_a_signal_is_saved_changed_listed_and_removed(folder: Path) -> None:
    assert ran(folder, "signals", "save", "grumpy", *TONE, "--threshold", "negative=0.2")[1] == "saved signal grumpy\n"
    first = own(folder)["grumpy"]
    assert (first["model"], first["fires_on"], first["thresholds"]) == (
        "heuristic-negative-tone",
        ["negative"],
        {"negative": 0.2},
    )
    assert (first["transform"]["id"], first["monitor"], first["unavailable"]) == ("user_message", False, None)
    # What is not said again stays as it was, and so does when it was made.
    ran(folder, "signals", "save", "grumpy", "--monitor", "--ticked", "--title", "Grumpy")
    then = own(folder)["grumpy"]
    changed = {"monitor": True, "enabled_by_default": True, "display_name": "Grumpy", "updated": then["updated"]}
    assert then == {**first, **changed}
    assert then["created"] < then["updated"]
    assert (
        "[x] grumpy                   User chat, model heuristic-negative-tone, fires on negative >= 0.2, monitor"
        in ran(folder, "signals")[1].splitlines()
    )
    assert ran(folder, "signals", "remove", "grumpy")[0] == 0
    assert own(folder) == {}


def test_B19_a_saved_signal_runs_by_its_name_by_a_pattern_and_where_it_is_ticked(folder: Path) -> None:
    ran(folder, "signals", "save", "grumpy", *TONE, "--ticked")
    assert ran(folder, "grep", "grumpy", "traces.jsonl")[0] == 0
    assert parsed(folder, "estimate", "traces.jsonl", "--signal", "grumpy")["predictions"] == 3
    found = parsed(folder, "run", "traces.jsonl")
    assert (found["signals"], found["flagged"]) == (["grumpy"], 1)


def test_B19_a_preset_is_saved_run_listed_and_removed(folder: Path) -> None:
    ran(folder, "signals", "save", "grumpy", *TONE)
    assert ran(folder, "presets")[1].startswith("no presets yet")
    ran(folder, "presets", "save", "nightly", "--signal", "grumpy", "--signal", "heuristic-loop")
    assert ran(folder, "presets")[1] == "nightly  grumpy, heuristic-loop\n"
    found = parsed(folder, "run", "traces.jsonl", "--preset", "nightly")
    assert sorted(found["signals"]) == ["grumpy", "heuristic-loop"]
    for command in (["estimate", "traces.jsonl"], ["preview", "traces.jsonl"]):
        assert ran(folder, *command, "--preset", "nightly")[0] == 0
    ran(folder, "presets", "save", "nightly", "--monitor")
    (saved,) = parsed(folder, "presets")["presets"]
    assert (saved["signals"], saved["monitor"]) == (["grumpy", "heuristic-loop"], True)
    code, _, err = ran(folder, "signals", "remove", "grumpy")
    assert (code, "preset nightly runs signal 'grumpy'" in err) == (2, True)
    assert ran(folder, "presets", "remove", "nightly")[0] == 0
    assert ran(folder, "signals", "remove", "grumpy")[0] == 0
    assert parsed(folder, "presets") == {"presets": []}


def test_B19_a_monitor_runs_the_signals_and_presets_that_are_on(folder: Path) -> None:
    ran(folder, "signals", "save", "grumpy", *TONE, "--monitor")
    ran(folder, "presets", "save", "nightly", "--signal", "heuristic-no-answer", "--monitor")
    ran(folder, "presets", "save", "off", "--signal", "heuristic-loop")
    found = parsed(folder, "monitor", "traces.jsonl", "--now", "2026-11-01T12:00:00Z")
    assert sorted(found["signals"]) == ["grumpy", "heuristic-no-answer"]


def test_B18_what_one_account_has_saved_is_not_anothers(folder: Path) -> None:
    ran(folder, "signals", "save", "grumpy", *TONE, "--org", "acme")
    ran(folder, "presets", "save", "nightly", "--signal", "grumpy", "--org", "acme")
    assert own(folder, "--org", "globex") == {}
    code, _, err = ran(folder, "estimate", "traces.jsonl", "--preset", "nightly", "--org", "globex")
    assert (code, "there is no preset 'nightly'" in err) == (2, True)


def test_B19_files_and_the_store_take_from_each_other(folder: Path) -> None:
    grumpy = Signal(
        signal_id="grumpy",
        model="heuristic-negative-tone",
        display_name="Grumpy",
        fires_on=("negative",),
        transform=transform("user_message"),
    )
    save_signals(folder / "team.json", [grumpy], [Preset(name="nightly", signals=("grumpy",))])
    # A file works without being saved, too.
    assert parsed(folder, "run", "traces.jsonl", "--signals", "team.json", "--preset", "nightly")["flagged"] == 1
    assert ran(folder, "signals", "load", "team.json")[1] == "saved 1 signal and 1 preset\n"
    with_times = open_store(folder / "tracepass.db")
    assert with_times.signals(ME)["grumpy"].created is not None
    with_times.close()
    assert ran(folder, "signals", "write", "copy.json")[1] == "wrote 1 signal and 1 preset\n"
    copied = load_signals(folder / "copy.json")
    assert (list(copied.signals), list(copied.presets)) == (["grumpy"], ["nightly"])
    assert copied.signals["grumpy"].model_copy(update={"created": None, "updated": None}) == grumpy


def test_B19_the_same_is_done_in_a_file(folder: Path) -> None:
    ran(folder, "signals", "save", "grumpy", *TONE, "--signals", "mine.json")
    ran(folder, "presets", "save", "nightly", "--signal", "grumpy", "--signals", "mine.json")
    assert not (folder / "tracepass.db").exists()
    assert ran(folder, "presets", "--signals", "mine.json")[1] == "nightly  grumpy\n"
    ran(folder, "presets", "remove", "nightly", "--signals", "mine.json")
    ran(folder, "signals", "remove", "grumpy", "--signals", "mine.json")
    assert load_signals(folder / "mine.json").signals == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["signals", "save", "x"], "fires on nothing: name a label with --fires-on"),
        (["signals", "save", "x", *TONE[:2], "--fires-on", "negtive"], "['other', 'negative']"),
        (
            ["run", "traces.jsonl", "--signal", "heuristic-loop", "--by", "live"],
            "is a rule that runs here, without --by",
        ),
        (["signals", "save", "jailbreak", *TONE], "a signal that comes with evalr"),
        (["signals", "save", "x", *TONE, "--transform", "user_mesage"], "user_message"),
        (["signals", "save", "x", *TONE, "--threshold", "negative"], "write LABEL=SCORE"),
        (
            ["signals", "save", "x", *TONE, "--threshold", "negative=50"],
            "--threshold 'negative=50': a score is from 0 to 1",
        ),
        (["signals", "save", "x", *TONE, "--threshold", "negative=nan"], "a score is from 0 to 1"),
        (["signals", "remove", "x"], "no signal of your own 'x'"),
        (["signals", "load", "nowhere.json"], "nowhere.json"),
        (["signals", "write", "x.json"], "there is no store"),
        (["presets", "save", "p"], "has no signal"),
        (["presets", "save", "p", "--signal", "heuristic-lop"], "did you mean 'heuristic-loop'?"),
        (["presets", "remove", "p"], "no preset 'p'"),
        (["run", "traces.jsonl", "--preset", "p"], "no preset 'p'"),
        (["grep", "x", "traces.jsonl", "--reflex", "handoff"], "write --reflex as NAME=FILE"),
    ],
)
def test_B20_misuse_says_the_way_out(folder: Path, arguments: list[str], message: str) -> None:
    code, out, err = ran(folder, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


# Classifiers of one's own ---------------------------------------------------------------------------------------------


def handoff() -> ClassifierReflex:
    dropped = ["Ask someone else, I pass this on.", "Not my job, ask another team.", "I pass you on to someone else."]
    kept = ["It left today, you will have it tomorrow.", "I have refunded it.", "Done, you will have an email."]
    texts, labels = [*dropped, *kept] * 3, (["dropped"] * 3 + ["kept"] * 3) * 3
    return train_reflex("handoff", texts, labels)


@pytest.fixture
def trained(folder: Path) -> Path:
    pytest.importorskip("sklearn")
    saved = handoff().classifier
    assert hasattr(saved, "save")
    saved.save(folder / "handoff.json")
    return folder


def test_R2_a_trained_classifier_is_named_on_the_command_line(trained: Path) -> None:
    ran(trained, "signals", "save", "bad-handoff", *DROPPED)
    named = ["--reflex", "handoff=handoff.json"]
    code, _, err = ran(trained, "run", "traces.jsonl", "--signal", "bad-handoff")
    assert (code, "no classifier named 'handoff' is configured; name one with --reflex handoff=FILE" in err) == (
        2,
        True,
    )
    assert own(trained, *named)["bad-handoff"]["unavailable"] is None
    estimated = parsed(trained, "estimate", "traces.jsonl", "--signal", "bad-handoff", *named)
    assert (estimated["predictions"], estimated["cost"]) == (2, 0.0)
    (line,) = ran(trained, "grep", "handoff", "traces.jsonl", *named)[1].splitlines()
    assert line.split("\t")[1:4] == ["angry", "1", "dropped"]
    found = parsed(trained, "run", "traces.jsonl", "--signal", "bad-handoff", *named)
    assert (found["flagged"], found["signals"]) == (1, ["bad-handoff"])


def test_R2_a_file_of_signals_names_its_classifiers_beside_it(trained: Path) -> None:
    (trained / "team").mkdir()
    (trained / "handoff.json").rename(trained / "team" / "handoff.json")
    ran(trained, "signals", "save", "bad-handoff", *DROPPED, "--signals", "team/signals.json")
    content = json.loads((trained / "team" / "signals.json").read_text())
    content["reflexes"] = {"handoff": "handoff.json"}
    (trained / "team" / "signals.json").write_text(json.dumps(content))
    assert parsed(trained, "run", "traces.jsonl", "--signals", "team/signals.json", "--signal", "bad-handoff")[
        "flagged"
    ]
    code, out, err = ran(trained, "signals", "load", "team/signals.json")
    assert (code, out) == (0, "saved 1 signal and 0 presets\n")
    assert "name those of handoff with --reflex" in err
    # What is changed in the file leaves where its classifiers are.
    ran(trained, "signals", "save", "bad-handoff", "--ticked", "--signals", "team/signals.json")
    assert json.loads((trained / "team" / "signals.json").read_text())["reflexes"] == {"handoff": "handoff.json"}
    assert parsed(trained, "run", "traces.jsonl", "--signals", "team/signals.json")["signals"] == ["bad-handoff"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "handoff.json"),
        ("{}", 'no "type": "local-classifier"'),
        ("not JSON", 'no "type": "local-classifier"'),
        ('{"type": "local-classifier", "format": 1}', "no whole classifier"),
        ('{"type": "tracepass-judge", "format": 1, "labels": ["a"], "question": "?"}', "labels"),
        ('{"type": "tracepass-judge", "format": 1, "labels": ["a", "b"], "question": "?"}', "name one with --lm"),
    ],
)
def test_R2_a_file_that_is_no_classifier_says_so(folder: Path, content: str | None, message: str) -> None:
    ran(folder, "signals", "save", "bad-handoff", *DROPPED)
    if content is not None:
        (folder / "handoff.json").write_text(content)
    named = ["--signal", "bad-handoff", "--reflex", "handoff=handoff.json"]
    code, out, err = ran(folder, "run", "traces.jsonl", *named)
    assert (code, out) == (2, "")
    assert message in err
    # What needs no such classifier runs all the same.
    assert ran(folder, "run", "traces.jsonl", "--signal", "heuristic-negative-tone", *named[2:])[0] == 0


def test_R2_a_classifier_that_no_signal_has_is_told(folder: Path) -> None:
    named = ["--signal", "heuristic-negative-tone", "--reflex", "frustation=any.json"]
    code, _, err = ran(folder, "estimate", "traces.jsonl", *named)
    assert code == 0
    assert "no signal has the model 'frustation'" in err


# A judge --------------------------------------------------------------------------------------------------------------


def angry_or_not(asked: Asked, n: int) -> str:
    return json.dumps({"label": "angry" if "useless" in asked.user else "calm"})


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "cache"))
    pytest.importorskip("dspy")
    with running(ModelServer(angry_or_not)) as serving:
        yield serving


def test_R2_a_judge_is_named_on_the_command_line_and_asked_after_a_yes(folder: Path, server: ModelServer) -> None:
    question = JudgeQuestion(labels=("angry", "calm"), question="Is the person angry?", lm="openai/some-model")
    save_question(folder / "mood.json", question)
    ran(folder, "signals", "save", "angry", "--model", "mood", "--fires-on", "angry")
    named = ["--signal", "angry", "--reflex", "mood=mood.json", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
    for command in (["run", "traces.jsonl"], ["grep", "angry", "traces.jsonl"]):
        code, out, err = ran(folder, *command, *named)
        assert (code, out) == (2, "")
        assert "Run 3 predictions? Estimated cost: unknown" in err
        assert "add --yes" in err
    assert server.asked == []
    (line,) = ran(folder, "grep", "angry", "traces.jsonl", *named, "--yes")[1].splitlines()
    assert line.split("\t")[1:] == ["angry", "2", "angry", "1.000", "[angry 100%]"]
    assert len(server.asked) == 3
    found = parsed(folder, "run", "traces.jsonl", *named, "--yes", "--rate", "0.01")
    assert (found["flagged"], found["estimate"]["cost"]) == (1, 0.03)
    assert len(server.asked) == 6
    assert {asked.body["model"] for asked in server.asked} == {"some-model"}


def test_B10_what_a_judge_could_not_answer_is_tried_again(folder: Path, server: ModelServer) -> None:
    save_question(folder / "mood.json", JudgeQuestion(labels=("angry", "calm"), question="Is the person angry?"))
    ran(folder, "signals", "save", "angry", "--model", "mood", "--fires-on", "angry")
    judge = ["--reflex", "mood=mood.json", "--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
    server.script = lambda asked, n: "no JSON" if "useless" in asked.user else angry_or_not(asked, n)
    code, out, _ = ran(folder, "run", "traces.jsonl", "--signal", "angry", *judge, "--yes", "--json")
    found = json.loads(out)
    assert (code, found["status"], found["failed"], found["completed"]) == (1, "partial_failure", 1, 2)
    server.script, before = angry_or_not, len(server.asked)
    found = parsed(folder, "retry", "latest", "traces.jsonl", *judge)
    assert (found["status"], found["flagged"]) == ("complete", 1)
    assert len(server.asked) == before + 1
    assert os.environ.get("OPENAI_API_KEY") is None
