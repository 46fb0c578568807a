"""What each transform makes of a trace."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalr.inputs import ToolCall, Transcript, Turn
from evalr.tracepass import CATALOGUE, Transform, transform
from evalr_tracepass.projecting import Projected, longest, project
from evalr_tracepass.traces import trace_of

START = datetime(2026, 9, 28, 9, tzinfo=UTC)


def person(text: str, **more: object) -> Turn:
    return Turn.model_validate({"role": "person", "text": text, **more})


def agent(text: str = "", *calls: ToolCall, **more: object) -> Turn:
    return Turn.model_validate({"role": "agent", "text": text, "tool_calls": list(calls), **more})


def call(name: str = "Bash", *, error: str | None = None, **more: object) -> ToolCall:
    return ToolCall.model_validate({"name": name, "error": error, **more})


def made(which: str | Transform, *turns: Turn, **more: object) -> list[Projected]:
    by = transform(which) if isinstance(which, str) else which
    transcript = Transcript.model_validate({"id": "c", "request": "", "turns": list(turns), **more})
    return list(project(by, trace_of(transcript)))


def texts(which: str | Transform, *turns: Turn) -> list[str]:
    return [each.text for each in made(which, *turns) if each.retained]


TALK = (
    person("please fix it"),
    agent("looking", call(arguments={"command": "ls"}, status="ok", result="a.py")),
    agent("", call(arguments={"command": "make"}, error="Exit code 2", result="")),
    person("and now?"),
    agent("done"),
)

# R4 and R5: transforms as data


def test_R4_a_transform_is_data_that_json_holds_and_gives_back() -> None:
    for each in CATALOGUE.values():
        assert Transform.model_validate_json(each.model_dump_json()) == each


@pytest.mark.parametrize("version", [0, 65_536])
def test_R4_a_version_fits_the_column_that_stores_keep_it_in(version: int) -> None:
    with pytest.raises(ValidationError):
        Transform(id="t", version=version, kind="user_message", name="T", input_kind="user_chat")


def test_R5_the_seeds_transforms_have_its_names_and_kinds() -> None:
    assert {
        name: (each.kind, each.name, each.input_kind, each.format) for name, each in list(CATALOGUE.items())[:3]
    } == {
        "user_message": ("user_message", "User chat", "user_chat", "plain_transcript"),
        "assistant_message": ("assistant_message", "Agent chat", "agent_chat", "plain_transcript"),
        "full_conversation": ("full_conversation", "Full trace", "full_trace", "plain_transcript"),
    }


def test_R5_messages_are_sent_exactly_as_they_were_written() -> None:
    odd = "  two\n\nlines \t and  spaces  "
    assert texts("user_message", person(odd), agent("a")) == [odd]
    assert texts("assistant_message", person("p"), agent(odd)) == [odd]


def test_R5_agent_chat_is_what_people_saw_of_it() -> None:
    turns = (
        person("hi"),
        agent("I had better say hello", kind="reasoning"),
        agent("hello from a helper", metadata={"subagent": True}),
        agent("hello", metadata={"reasoning": "they said hi"}),
        Turn(role="tool", text="tool output"),
        Turn(role="system", text="be kind"),
        agent('{"command": "ls"}', kind="tool_call"),
        agent("", call()),
    )
    assert texts("assistant_message", *turns) == ["hello"]


@pytest.mark.parametrize(
    "injected",
    [
        person("remember the rules", metadata={"injected": True}),
        person("/compact", kind="command"),
        person("[Request interrupted]", kind="interrupt"),
        person("<system-reminder>\nbe brief\n</system-reminder>"),
        person("<command-name>/x</command-name> <local-command-stdout>ok</local-command-stdout>"),
    ],
    ids=lambda turn: turn.kind if turn.kind != "message" else turn.text[:12],
)
def test_R5_what_a_program_wrote_in_a_persons_name_is_no_user_chat(injected: Turn) -> None:
    assert texts("user_message", person("why?"), injected) == ["why?"]
    shown = transform("user_message").model_copy(update={"include_injected": True})
    assert texts(shown, person("why?"), injected) == ["why?", injected.text]


def test_R5_a_text_of_many_tags_is_read_in_no_time() -> None:
    text = "<command-name>x</command-name>" * 10_000
    assert texts("user_message", person("hi"), person(text)) == ["hi"]
    assert texts("user_message", person(f"{text}z")) == [f"{text}z"]


def test_R5_a_persons_text_about_a_tag_is_theirs() -> None:
    text = "<system-reminder>x</system-reminder> what is this?"
    assert texts("user_message", person(text)) == [text]


def test_R5_a_full_conversation_begins_with_its_line() -> None:
    (whole,) = texts("full_conversation", *TALK)
    assert whole == (
        "Full conversation:\nuser: please fix it\n\nassistant: looking\n\nuser: and now?\n\nassistant: done"
    )


def test_R5_a_request_that_no_turn_repeats_is_the_persons_message() -> None:
    (row,) = made("user_message", agent("done"), request="do it")
    assert row.step is not None
    assert (row.text, row.step.event_id, row.step.turn_index) == ("do it", "request", None)
    assert len(made("user_message", person("do it"), agent("done"), request="do it, please")) == 1


@pytest.mark.parametrize("form", ["plain_transcript", "json_messages", "compact_trace"])
def test_R5_formats(form: str) -> None:
    shown = transform("full_conversation").model_copy(
        update={"format": form, "include_tool_calls": True, "include_tool_results": True}
    )
    (text,) = texts(shown, *TALK[:3])
    body = text.removeprefix("Full conversation:\n")
    expected = {
        "plain_transcript": (
            'user: please fix it\n\nassistant: looking\ntool call: Bash {"command": "ls"}\ntool status: ok\n'
            'tool result: a.py\n\ntool call: Bash {"command": "make"}\ntool status: error Exit code 2'
        ),
        "compact_trace": (
            '> please fix it\n< looking\n* Bash({"command": "ls"}) ok -> a.py\n'
            '! Bash({"command": "make"}) error: Exit code 2'
        ),
    }
    if form in expected:
        assert body == expected[form]
    else:
        assert json.loads(body) == [
            {"role": "user", "content": "please fix it"},
            {
                "role": "assistant",
                "content": "looking",
                "tool_calls": [{"name": "Bash", "arguments": '{"command": "ls"}', "status": "ok", "result": "a.py"}],
            },
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"name": "Bash", "arguments": '{"command": "make"}', "error": "Exit code 2", "failed": True}
                ],
            },
        ]


# R6: windows


def test_R6_a_rolling_window_ends_with_its_target() -> None:
    turns = [person(f"p{n}") if n % 2 == 0 else agent(f"a{n}") for n in range(12)]
    windows = texts("rolling_window", *turns)
    assert len(windows) == 12
    assert windows[0] == "user: p0"
    assert windows[11].split("\n\n") == [f"{'user: p' if n % 2 == 0 else 'assistant: a'}{n}" for n in range(4, 12)]


def test_R6_a_message_with_the_agents_message_before_it() -> None:
    assert texts("user_plus_previous_assistant", *TALK) == [
        "user: please fix it",
        "assistant: looking\n\nuser: and now?",
    ]


def test_R6_a_message_with_the_tool_calls_made_upon_it() -> None:
    assert texts("user_plus_tool_calls", *TALK) == [
        '> please fix it\n* Bash({"command": "ls"}) ok\n! Bash({"command": "make"}) error: Exit code 2',
        "> and now?",
    ]


def test_R6_a_tool_failure_has_four_turns_before_it_and_two_after() -> None:
    turns = [agent(f"a{n}") for n in range(6)] + [agent("", call(error="boom"))] + [agent(f"b{n}") for n in range(4)]
    (row,) = made("tool_failure_window", *turns)
    assert row.text == "< a2\n< a3\n< a4\n< a5\n! Bash() error: boom\n< b0\n< b1"
    assert row.step is not None
    assert row.step.turn_index == 6


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (Turn(role="tool", text="no such file", ref="t1", kind="tool_error"), True),
        (Turn(role="tool", text="no such file", ref="t1", metadata={"error": True}), True),
        (Turn(role="tool", text="Exit code 1\n2 tests failed", ref="t1"), True),
        (Turn(role="tool", text="exitcode: 1 (execution failed)", ref="t1"), True),
        (Turn(role="tool", text="exitcode: 0 (execution succeeded)", ref="t1"), False),
        (Turn(role="tool", text="the log says: exit code 1", ref="t1"), False),
        (person("no, do not", kind="rejection", ref="t1"), False),
    ],
    ids=lambda each: each.text[:24] if isinstance(each, Turn) else None,
)
def test_R6_a_tools_answer_is_put_to_its_call(answer: Turn, failed: bool) -> None:
    asked = agent('{"path": "x"}', kind="tool_call", ref="t1", metadata={"tool": "Read"})
    other = agent("", call("Grep", id="t2"))
    trace = trace_of(Transcript(id="c", request="", turns=[person("p"), asked, other, answer]))
    (read,), (grep,) = trace.steps[1].calls, trace.steps[2].calls
    assert (read.name, read.arguments, read.failed, grep.failed) == ("Read", '{"path": "x"}', failed, False)
    assert len(made("tool_failure_window", person("p"), asked, other, answer)) == failed
    assert trace.has_error == failed


def test_R6_an_answer_without_a_name_is_that_of_the_first_call_that_waits() -> None:
    turns = [agent("", call("A"), call("B")), Turn(role="tool", text="a"), Turn(role="tool", text="b")]
    (step,) = trace_of(Transcript(id="c", request="", turns=turns)).steps
    assert [(each.name, each.result) for each in step.calls] == [("A", "a"), ("B", "b")]


def test_R6_an_answer_that_says_nothing_is_one() -> None:
    turns = [agent("", call("A"), call("B")), *(Turn(role="tool", text=text) for text in ("", "b", "", "c"))]
    (step,) = trace_of(Transcript(id="c", request="", turns=turns)).steps
    assert [(each.name, each.result) for each in step.calls] == [("A", ""), ("B", "b"), ("tool", ""), ("tool", "c")]


def test_R6_answers_with_and_without_names_do_not_mix() -> None:
    answers = [
        Turn(role="tool", text="2", ref="t2"),
        Turn(role="tool", text="1"),
        Turn(role="tool", text="?", ref="t9"),
    ]
    (step,) = trace_of(
        Transcript(id="c", request="", turns=[agent("", call("A", id="t1"), call("B", id="t2")), *answers])
    ).steps
    assert [(each.name, each.result) for each in step.calls] == [("A", "1"), ("B", "2"), ("tool", "?")]


def test_R6_an_agent_window_has_its_turns_and_tool_calls_and_no_one_elses() -> None:
    windows = [json.loads(text) for text in texts("agent_window", *TALK)]
    assert [[each["role"] for each in window] for window in windows] == [["assistant"] * n for n in (1, 2, 3)]
    assert windows[2][-1] == {"role": "assistant", "content": "done"}
    long = [agent(f"a{n}") for n in range(20)]
    assert len(json.loads(texts("agent_window", *long)[19])) == 12


def test_R6_every_other_user_turn_is_the_first_and_the_third() -> None:
    assert texts("every_other_user_turn", *(person(f"p{n}") for n in range(5))) == ["p0", "p2", "p4"]


def test_R6_a_long_conversation_takes_its_length_in_time() -> None:
    turns = [person("p") if n % 3 == 0 else agent("a", call(error="x" if n % 5 == 0 else None)) for n in range(30_000)]
    transcript = Transcript(id="c", request="p", turns=turns)
    trace = trace_of(transcript)
    for each in CATALOGUE.values():
        start = perf_counter()
        assert sum(1 for _ in project(each, trace)) >= 1
        # About 0.3 seconds at most; what looks at every turn for every turn takes minutes.
        assert perf_counter() - start < 5, each.id


# B11: what was not retained


@pytest.mark.parametrize("empty", ["", " \n"])
def test_B11_a_turn_without_content_makes_no_row_and_is_counted(empty: str) -> None:
    found = made("user_message", person(empty), person("hello"))
    assert [(each.text, each.retained) for each in found] == [("", False), ("hello", True)]
    assert [each.retained for each in made("full_conversation", person(empty))] == [False]


def test_B11_a_turn_of_tool_calls_alone_has_lost_nothing() -> None:
    assert made("assistant_message", agent("", call())) == []


# B12 and B13: what does not fit


def test_B12_the_oldest_is_dropped_first_and_the_target_is_kept() -> None:
    short = transform("rolling_window").model_copy(update={"max_tokens": 16})
    last = made(short, *(agent(f"{n}" * 20) for n in range(4)))[-1]
    assert (last.text, last.truncated) == (f"assistant: {'2' * 20}\n\nassistant: {'3' * 20}", True)
    assert made(short, *(agent(f"{n}" * 21) for n in range(4)))[-1].text == f"assistant: {'3' * 21}"
    assert [each.truncated for each in made(short, agent("a"), agent("b"))] == [False, False]


@pytest.mark.parametrize(("length", "cut"), [(350_000, False), (350_001, True)])
def test_B12_a_text_over_the_limit_is_cut_and_marked_or_fails(length: int, cut: bool) -> None:
    (row,) = made("user_message", person("x" * length))
    assert (len(row.text), row.truncated, row.error) == (350_000, cut, None)
    strict = transform("user_message").model_copy(update={"may_cut": False})
    (row,) = made(strict, person("x" * length))
    assert (row.error is not None) == cut
    if row.error is not None:
        assert (row.error.type, row.text) == ("input_too_long", "")


def test_B12_a_window_that_must_not_be_cut_fails() -> None:
    strict = transform("rolling_window").model_copy(update={"may_cut": False, "max_tokens": 16})
    assert [each.error and each.error.type for each in made(strict, agent("a" * 40), agent("b" * 40))] == [
        None,
        "input_too_long",
    ]


def test_B13_a_tools_name_arguments_status_and_error_are_shown_and_its_result_is_cut() -> None:
    long = call("Read", arguments={"path": "x"}, status="ok", result="r" * 600)
    (row,) = made("agent_window", agent("", long, call("Run", error="e" * 600)))
    (message,) = json.loads(row.text)
    read, run = message["tool_calls"]
    assert (read["name"], read["arguments"], read["status"]) == ("Read", '{"path": "x"}', "ok")
    assert read["result"] == "r" * 500 + "… [100 more characters]"
    assert run["error"] == "e" * 500 + "… [100 more characters]"
    hidden = transform("agent_window").model_copy(update={"include_tool_results": False})
    assert "result" not in json.loads(made(hidden, agent("", long))[0].text)[0]["tool_calls"][0]


# Properties

words = st.text(max_size=60)
calls = st.builds(
    lambda name, arguments, error, result: call(name, arguments=arguments, error=error, result=result),
    st.text(min_size=1, max_size=8),
    st.dictionaries(words, words, max_size=2),
    st.none() | words,
    st.none() | words,
)
turns = st.lists(
    st.builds(person, words)
    | st.builds(lambda text, made: agent(text, *made), words, st.lists(calls, max_size=3))
    | st.builds(lambda text: Turn(role="tool", text=text), words),
    max_size=12,
)
changes = st.fixed_dictionaries(
    {
        "max_tokens": st.none() | st.integers(16, 60),
        "may_cut": st.booleans(),
        "include_tool_calls": st.booleans(),
        "include_tool_results": st.booleans(),
        "include_user_messages": st.booleans(),
        "include_assistant_messages": st.booleans(),
        "format": st.sampled_from(["plain_transcript", "json_messages", "compact_trace"]),
        "window_turns": st.integers(1, 4),
        "after_turns": st.integers(0, 2),
        "every": st.integers(1, 3),
    }
)


@given(turns, st.sampled_from(sorted(CATALOGUE)), changes)
def test_B12_no_text_is_over_its_budget_and_none_loses_its_target(
    given_turns: list[Turn], which: str, change: dict[str, object]
) -> None:
    by = transform(which).model_copy(update=change)
    for row in made(by, *given_turns):
        assert len(row.text) <= longest(by)
        assert row.retained or row.text == ""
        assert not (row.error and by.may_cut)
        if not row.retained or row.error:
            continue
        alone = which in ("user_message", "assistant_message", "every_other_user_turn")
        if by.format == "json_messages" and not alone:
            window = json.loads(row.text.removeprefix("Full conversation:\n"))
            assert window
        if row.step is None:
            assert row.text.startswith("Full conversation:\n")
        elif not row.truncated and row.step.text:
            wanted = row.step.text
            if not alone and by.format == "compact_trace":
                wanted = " ".join(wanted.split())
            if not alone and by.format == "json_messages":
                wanted = json.dumps(wanted, ensure_ascii=False)[1:-1]
            assert wanted in row.text
        elif alone:
            assert row.step.text.startswith(row.text)


@given(turns, st.integers(16, 40))
def test_B12_of_a_window_that_is_cut_the_newest_are_left(given_turns: list[Turn], tokens: int) -> None:
    whole = made("rolling_window", *given_turns)
    short = made(transform("rolling_window").model_copy(update={"max_tokens": tokens}), *given_turns)
    assert len(whole) == len(short)
    for long, cut in zip(whole, short, strict=True):
        assert cut.truncated == (len(long.text) > 4 * tokens)
        assert long.text.endswith(cut.text) or (cut.truncated and cut.text in long.text)


def test_R1_a_trace_has_its_times_user_release_and_errors() -> None:
    turns = [
        person("p", at=START, id="e1", metadata={"span_id": "s1"}),
        agent("a", at=START + timedelta(seconds=2), id="e1", metadata={"error": True, "release": "1.2"}),
    ]
    trace = trace_of(Transcript(id="c", user="u", request="p", turns=turns))
    assert (trace.convo_id, trace.user, trace.release, trace.has_error) == ("c", "u", "1.2", True)
    assert (trace.began, trace.ended) == (START, START + timedelta(seconds=2))
    assert [(step.event_id, step.span_id, step.turn_index) for step in trace.steps] == [("e1", "s1", 0), ("e1", "", 1)]
    released = Transcript(id="c", request="", turns=turns, attributes={"release": "2.0"})
    assert trace_of(released).release == "2.0"
