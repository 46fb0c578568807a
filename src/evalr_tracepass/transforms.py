"""Transforms: how a trace becomes the texts that a classifier reads, as versioned data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.input_fields import Name
from evalr_tracepass.records import InputKind

Format = Literal["plain_transcript", "json_messages", "compact_trace"]
"""How turns are written: `role: text` lines, JSON lines of messages, or one short line for each turn and tool call."""

TransformKind = Literal[
    "user_message",
    "assistant_message",
    "full_conversation",
    "rolling_window",
    "user_plus_previous_assistant",
    "user_plus_tool_calls",
    "tool_failure_window",
    "agent_window",
    "every_other_user_turn",
]
"""What it makes of a trace; `CATALOGUE` has one of each."""


class Transform(BaseModel):
    """How a trace becomes texts. Whoever changes one that has been used gives it a new version.

    Attributes:
        id: its name.
        version: from 1 to 65535.
        kind: what it makes of a trace.
        name: for people, as a list of signals shows it.
        description: what it makes, in a sentence.
        input_kind: what its texts show.
        format: how turns are written, where a text is more than the words of one turn.
        max_tokens: how long a text may be, at four characters a token, and 16 or more; None is as long as a text
            may be at all.
        may_cut: whether what is too long is cut, oldest first; otherwise such a row fails with `input_too_long`.
        include_user_messages: of the turns around the target, whether people's are shown.
        include_assistant_messages: the same of agents'.
        include_tool_calls: whether tool calls are shown: name, arguments, status and error.
        include_tool_results: whether their results are, too.
        include_reasoning: whether an agent's private reasoning is shown, where the log keeps it.
        include_subagents: whether what a sub-agent said is shown.
        include_injected: whether text that a program put into a person's turn is shown.
        window_turns: how many turns a window has, its target among them.
        after_turns: how many turns after the target it has beside these.
        every: of so many targets, the first is taken.
        max_result_chars: where a tool's result is cut.
        warning: what to know before choosing it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: Name
    version: Annotated[int, Field(ge=1, le=65_535)] = 1
    kind: TransformKind
    name: Name
    description: str = ""
    input_kind: InputKind
    format: Format = "plain_transcript"
    max_tokens: Annotated[int, Field(ge=16)] | None = None
    may_cut: bool = True
    include_user_messages: bool = True
    include_assistant_messages: bool = True
    include_tool_calls: bool = False
    include_tool_results: bool = False
    include_reasoning: bool = False
    include_subagents: bool = False
    include_injected: bool = False
    window_turns: Annotated[int, Field(ge=1)] = 8
    after_turns: Annotated[int, Field(ge=0)] = 0
    every: Annotated[int, Field(ge=1)] = 1
    max_result_chars: Annotated[int, Field(ge=0)] = 500
    warning: str = ""


def _made(kind: TransformKind, name: str, shows: InputKind, description: str, **options: Any) -> Transform:
    """A transform of the catalogue, which goes by its kind unless `id` says otherwise."""
    return Transform(**{"id": kind, **options}, kind=kind, name=name, input_kind=shows, description=description)


_TOOLS = {"include_tool_calls": True, "include_tool_results": True}

CATALOGUE: dict[str, Transform] = {
    made.id: made
    for made in (
        _made(
            "user_message",
            "User chat",
            "user_chat",
            "One row for each message that a person wrote: exactly its text.",
        ),
        _made(
            "assistant_message",
            "Agent chat",
            "agent_chat",
            "One row for each message that the agent showed to people: exactly its text.",
        ),
        _made(
            "full_conversation",
            "Full trace",
            "full_trace",
            "One row for each conversation.",
            warning="can be expensive; may exceed context window; not appropriate for per-turn labeling",
        ),
        _made(
            "rolling_window",
            "Rolling window",
            "full_trace",
            "One row for each message of a person or an agent, with the seven before it.",
        ),
        _made(
            "user_plus_previous_assistant",
            "User and previous agent message",
            "user_chat",
            "One row for each message of a person, with the agent's message that it answers.",
            window_turns=2,
        ),
        _made(
            "user_plus_tool_calls",
            "User and tool calls",
            "user_chat",
            "One row for each message of a person, with the tool calls that the agent made upon it.",
            format="compact_trace",
            include_assistant_messages=False,
            include_tool_calls=True,
        ),
        _made(
            "user_plus_tool_calls",
            "User and answer",
            "full_trace",
            "One row for each message of a person, with all that the agent said and did upon it.",
            id="user_and_answer",
            format="json_messages",
            include_tool_calls=True,
        ),
        _made(
            "tool_failure_window",
            "Tool failure",
            "agent_chat",
            "One row for each turn in which a tool call failed, with four turns before it and two after.",
            **_TOOLS,
            format="compact_trace",
            window_turns=5,
            after_turns=2,
        ),
        _made(
            "agent_window",
            "Agent window",
            "agent_chat",
            "One row for each turn of the agent, with its eleven turns before, tool calls among them.",
            **_TOOLS,
            format="json_messages",
            include_user_messages=False,
            window_turns=12,
        ),
        _made(
            "every_other_user_turn",
            "Every other user turn",
            "user_chat",
            "One row for the first, third, fifth … message that a person wrote: exactly its text.",
            every=2,
        ),
    )
}
"""The transforms that come with it, by their ids."""


def transform(name: str) -> Transform:
    """The transform of the catalogue with that id.

    Raises:
        InputError: there is none.
    """
    if name not in CATALOGUE:
        raise InputError(f"there is no transform {name!r}; {choice_words(name, CATALOGUE)}")
    return CATALOGUE[name]
