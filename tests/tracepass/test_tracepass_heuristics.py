"""Classifiers that work offline: rules written by hand, and what each takes for what it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.inputs import ToolCall, Transcript, Turn
from evalr.tracepass import HEURISTIC_SIGNALS, Prediction, Reflex, heuristics, plan, reading

Call = dict[str, Any]


def fired(name: str, text: str) -> bool:
    return reading(HEURISTIC_SIGNALS[name], said(name, text)).fired


def said(name: str, text: str) -> Prediction:
    predictions = heuristics()[name].predict([text])
    assert isinstance(predictions, list)
    return predictions[0]


def window(*messages: str | Call | list[Call]) -> str:
    """Messages of an agent: a text, a tool call, or several."""
    made = []
    for message in messages:
        if isinstance(message, str):
            made.append({"role": "assistant", "content": message})
        else:
            calls = [message] if isinstance(message, dict) else message
            made.append({"role": "assistant", "content": "", "tool_calls": calls})
    return json.dumps(made)


def did(arguments: str = "ls", result: str = "", *, name: str = "Bash", error: str = "") -> Call:
    call = {"name": name, "arguments": arguments, "result": result, "error": error, "failed": bool(error)}
    return {key: value for key, value in call.items() if value}


# What they are


def test_R2_every_heuristic_is_a_reflex_that_says_what_it_is() -> None:
    for name, reflex in heuristics().items():
        assert isinstance(reflex, Reflex)
        assert (reflex.name, getattr(reflex, "kind", None)) == (name, "heuristic")
        assert name.startswith("heuristic-")
        assert reflex.version
        assert not {"jailbreak", "frustrat", "guardrail"} & set(name.split("-"))
        assert set(HEURISTIC_SIGNALS[name].labels) == set(reflex.labels)
        assert not HEURISTIC_SIGNALS[name].enabled_by_default


def test_R2_nothing_that_goes_by_patterns_is_called_jailbreak_or_frustration() -> None:
    words = " ".join(f"{name} {signal.display_name} {signal.labels}" for name, signal in HEURISTIC_SIGNALS.items())
    assert not any(word in words.lower() for word in ("jailbreak", "frustrat", "guardrail", "leaked"))


@given(st.text(max_size=200))
def test_R2_whatever_a_text_holds_a_heuristic_selects_one_label(text: str) -> None:
    for name in ("heuristic-thinking-tags", "heuristic-negative-tone"):
        prediction = said(name, text)
        assert [each.selected for each in prediction.classes].count(True) == 1
        assert all(0 <= each.score <= 1 for each in prediction.classes)
        top = reading(HEURISTIC_SIGNALS[name], prediction)
        assert (top.top_label,) == top.selected_labels


@pytest.mark.parametrize("name", ["heuristic-loop", "heuristic-tool-errors", "heuristic-no-answer"])
def test_R2_a_heuristic_refuses_what_another_transform_made(name: str) -> None:
    with pytest.raises(ValueError, match="agent_window"):
        heuristics()[name].predict(["user: hello"])


# Loops


@pytest.mark.parametrize(
    ("messages", "loops"),
    [
        ([did("ls", "a")] * 2, False),
        ([did("ls", "a")] * 3, True),
        ([did("make", error="Exit code 2"), "I will try again now, then", did("make", error="Exit code 2")] * 2, True),
        # Other work in between, and the last step is new.
        ([*[did("ls", "a")] * 3, did("cat a", "b")], False),
        # Pages 1, 2, 3: other arguments, other results.
        ([did(f"page {n}", f"result {n}") for n in range(5)], False),
        # Pages 1, 2, 3, and the same came back each time.
        ([did(f"page {n}", "nothing found") for n in range(5)], True),
        # What came back is not known: other numbers are other work.
        ([did(f"page {n}") for n in range(5)], False),
        # The same command, and something else came back: it got somewhere.
        ([did("make", error="3 tests failed: a"), did("make", error="1 test failed: b"), did("make", "ok")], False),
        # Times in what comes back do not hide a loop.
        ([did("make", error=f"boom at 12:0{n}") for n in range(3)], True),
        # A cycle of three.
        ([did("a", "1"), did("b", "x"), did("c", "y")] * 3, True),
        (["Shall I go ahead with the change?"] * 3, True),
        ([f"Attempt {n}: I could not reach the server" for n in range(3)], True),
        (["I could not reach the server.", "I could not reach the server!", "I could not reach the servers."], True),
        (["Done."] * 5, False),
        (["Here is the first part of it all", "and a second one, different", "the third is not like these"], False),
    ],
)
def test_R2_loops(messages: list[str | Call], loops: bool) -> None:
    assert fired("heuristic-loop", window(*messages)) == loops


def test_R2_a_text_that_came_with_new_work_each_time_is_no_loop() -> None:
    made = [
        {"role": "assistant", "content": "Now let me fix the next file", "tool_calls": [did(f"edit {name}", "ok")]}
        for name in ("a.py", "b.py", "c.py", "d.py")
    ]
    assert not fired("heuristic-loop", json.dumps(made))
    assert fired("heuristic-loop", json.dumps([made[0]] * 3))


def test_R2_a_loop_scores_higher_the_longer_it_goes_on() -> None:
    scores = [
        reading(HEURISTIC_SIGNALS["heuristic-loop"], said("heuristic-loop", window(*[did()] * n))) for n in (3, 6)
    ]
    assert [each.top_score for each in scores] == [0.5, pytest.approx(2 / 3)]


# Errors in a row


@pytest.mark.parametrize(
    ("messages", "streak"),
    [
        ([did(error="a"), did(error="b")], False),
        ([did(error="a"), did(error="b"), did(error="c")], True),
        ([[did(error="a"), did(error="b"), did(error="c")]], True),
        ([did(error="a"), "let me see", did(error="b"), did(error="c")], True),
        ([did(error="a"), did(error="b"), did("ok", "fine"), did(error="c")], False),
        ([did(error="a"), did(error="b"), did(error="c"), did("ok", "fine")], False),
        ([did(error="a"), did(error="b"), did(error="c"), "sorry"], False),
    ],
)
def test_R2_tool_errors_in_a_row(messages: list[Any], streak: bool) -> None:
    assert fired("heuristic-tool-errors", window(*messages)) == streak


# Thinking tags


@pytest.mark.parametrize(
    ("text", "leaked"),
    [
        ("<think>The user wants a refund, so I should</think>Sure!", True),
        ("<thinking>\nlet me see\n</thinking>\n\nHere it is.", True),
        ("Right.</think>\nHere it is.", True),
        ("Sure. <think>They want a refund</think> Done.", True),
        ("<|channel|>analysis<|message|>They ask for x", True),
        ("<SCRATCHPAD>\n1 + 1", True),
        ("Put it in <thinking> tags, then close them with </thinking> as usual.", False),
        ("```xml\n<think>x</think>\n```\nThat is how.", False),
        ("~~~\n<think>\nnever closed", False),
        ("Use `<think>` for that.", False),
        ("I think <b>this</b> is right", False),
        ("<thinker>a</thinker>", False),
        ("a < b and c > d", False),
    ],
)
def test_R2_thinking_tags_outside_of_code(text: str, leaked: bool) -> None:
    assert fired("heuristic-thinking-tags", text) == leaked


# Answers


@pytest.mark.parametrize(
    ("turns", "label"),
    [
        (["Sure, here it is."], "answered"),
        ([], "unanswered"),
        (["  "], "unanswered"),
        (["I'm sorry, but I can't help with that."], "refused"),
        (["I can\u2019t assist with this request."], "refused"),
        (["I am unable to provide medical advice."], "refused"),
        (["I can help with that."], "answered"),
        (["I can't see why it fails yet; let me look at the log."], "answered"),
        (["I cannot help with that.", "Well, here it is after all."], "answered"),
        ([f"{'All of it is done. ' * 20} I cannot help with the last part."], "answered"),
    ],
)
def test_R2_answers(turns: list[str], label: str) -> None:
    signal = HEURISTIC_SIGNALS["heuristic-no-answer"]
    made = [Turn(role="person", text="please"), *(Turn(role="agent", text=text) for text in turns)]
    (row,) = plan([signal]).rows([Transcript(id="c", request="please", turns=made)])
    found = reading(signal, said(signal.model, row.text))
    assert (found.top_label, found.fired) == (label, label != "answered")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Thanks, that is all.", "answered"),
        ("ok great, thank you so much!", "answered"),
        ("No thanks. Bye!", "answered"),
        ("that\u2019s all for today", "answered"),
        ("yes, thanks", "unanswered"),
        ("ok", "unanswered"),
        ("Thanks. And my refund?", "unanswered"),
        ("thanks for nothing, where is my order", "unanswered"),
        (f"thanks{' thanks' * 20}", "unanswered"),
    ],
)
def test_R2_nobody_waits_for_an_answer_to_thanks_alone(text: str, label: str) -> None:
    signal = HEURISTIC_SIGNALS["heuristic-no-answer"]
    (row,) = plan([signal]).rows([Transcript(id="c", request="please", turns=[Turn(role="person", text=text)])])
    assert reading(signal, said(signal.model, row.text)).top_label == label


def test_R2_an_agent_that_only_used_tools_did_not_answer() -> None:
    signal = HEURISTIC_SIGNALS["heuristic-no-answer"]
    turns = [Turn(role="person", text="please"), Turn(role="agent", tool_calls=[ToolCall(name="Bash")])]
    (row,) = plan([signal]).rows([Transcript(id="c", request="please", turns=turns)])
    assert reading(signal, said(signal.model, row.text)).top_label == "unanswered"


# Tone


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("this is useless", True),
        ("Why did you delete it?? I already said no", True),
        ("STOP DELETING MY FILES NOW!!", True),
        ("thanks, that works", False),
        ("not bad at all", False),
        ("there is no bad row", False),
        ("the test fails with an error, please fix the bug", False),
        ("```\nterrible horrible awful\n```\nwhat does this mean?", False),
        ("> this is useless\nhe wrote that", False),
        ("what?!", False),
    ],
)
def test_R2_a_negative_tone_is_a_tone(text: str, negative: bool) -> None:
    assert fired("heuristic-negative-tone", text) == negative


def test_R2_a_window_of_a_trace_is_read_as_it_was_planned() -> None:
    turns = [Turn(role="person", text="fix it")]
    for n in range(4):
        turns.append(Turn(role="agent", tool_calls=[ToolCall(name="Bash", id=f"t{n}", arguments={"command": "make"})]))
        turns.append(Turn(role="tool", text="Exit code 2", ref=f"t{n}", kind="tool_error"))
    chosen = [HEURISTIC_SIGNALS[name] for name in ("heuristic-loop", "heuristic-tool-errors")]
    rows = list(plan(chosen).rows([Transcript(id="c", request="fix it", turns=turns)]))
    assert [row.models for row in rows] == [("heuristic-loop", "heuristic-tool-errors")] * 4
    for signal in chosen:
        assert [fired(signal.model, row.text) for row in rows] == [False, False, True, True]
