"""Traces: a transcript as transforms read it, with each tool's result at its call and what nobody saw set apart.

What a log says of a turn beyond the core's fields is in its `metadata`, by these names: `span_id`, `model`,
`input_tokens`, `output_tokens`, `latency`, `finish_reason`, `release`, `error` (anything but false or empty is one),
`reasoning` (a text, or true where the turn is nothing else), `subagent` and `injected` (true where it is).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from evalr.inputs import ToolCall, Transcript, Turn

Hidden = Literal["", "reasoning", "subagent", "injected"]
"""Why a turn is nothing that the person and the agent said to each other; "" where it is."""

REASONING_KINDS = frozenset({"reasoning", "thinking"})
SUBAGENT_KINDS = frozenset({"subagent", "sidechain"})
INJECTED_KINDS = frozenset(
    {"injected", "reminder", "command", "command_output", "rejection", "interrupt", "hook", "notification", "system"}
)
"""Kinds of a person's turn that a program wrote in the person's name."""

CALL_KINDS = frozenset({"tool_call", "tool_use"})
ERROR_KINDS = frozenset({"tool_error", "error"})
FAILED = frozenset({"error", "errored", "failed", "failure", "exception", "timeout", "timed_out"})
"""Words for the status of a call that failed, in lower case."""

UNNAMED_TOOL = "tool"
REQUEST = "request"
"""The event of a request that no turn repeats."""

_EXIT_CODE = re.compile(r"\s*exit ?code:? *[1-9]", re.IGNORECASE)
_INJECTED_TAG = re.compile(
    r"<(system-reminder|command-name|command-message|command-args|local-command-stdout|local-command-stderr)>"
)


_sorted_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


class Call(NamedTuple):
    """One call of a tool, with what came back."""

    name: str
    arguments: str
    status: str
    error: str
    result: str
    failed: bool


class Step(NamedTuple):
    """One turn of a person or an agent, as transforms read it.

    Attributes:
        turn_index: its place among the transcript's turns, from 0; None of a request that no turn repeats.
        event_id: the turn's id, or its place where it has none.
        span_id: "" where the log has none.
        role: whose it is.
        text: what was said, for the other to see; of a hidden turn, what it holds.
        calls: the tool calls that it made.
        hidden: why it is nothing that they said to each other.
        reasoning: private thoughts that the log keeps beside what was said.
        error: whether the log says that the turn itself failed.
        at: when.
        said: whether it is a message, retained or not, rather than tool calls or thoughts alone.
    """

    turn_index: int | None
    event_id: str
    span_id: str
    role: Literal["person", "agent"]
    text: str
    calls: list[Call]
    hidden: Hidden
    reasoning: str
    error: bool
    at: datetime | None
    said: bool


class Trace(NamedTuple):
    """One conversation, as transforms read it."""

    convo_id: str
    user: str
    release: str
    began: datetime | None
    ended: datetime | None
    steps: list[Step]

    @property
    def has_error(self) -> bool:
        """Whether a turn or a tool call in it failed."""
        return any(step.error or any(call.failed for call in step.calls) for step in self.steps)

    def says(self, folded: str) -> bool:
        """Whether something that was said in it holds a text, which is given case-folded."""
        return any(not step.hidden and folded in step.text.casefold() for step in self.steps)


def trace_of(transcript: Transcript) -> Trace:
    """A transcript as transforms read it; `convo_id` is "" where it has no id."""
    steps: list[Step] = []
    open_calls: dict[str, tuple[Step, int]] = {}
    agents: list[Step] = []
    waiting: list[int] = []
    began = ended = None
    for index, turn in enumerate(transcript.turns):
        at = turn.at
        if at is not None:
            began = at if began is None or at < began else began
            ended = at if ended is None or at > ended else ended
        role = turn.role
        if role == "tool":
            if not agents:
                agents.append(_bare(index, turn))
                steps.append(agents[0])
            _take_result(turn, agents[-1], open_calls, waiting)
        elif role != "system":
            if turn.kind == "rejection" and turn.ref in open_calls:
                _settle(*open_calls[turn.ref], status="rejected")
            calls = _calls_of(turn)
            step = _step(turn, index, calls)
            for place, call in enumerate(calls):
                if call.id is not None and call.result is None:
                    open_calls[call.id] = (step, place)
            steps.append(step)
            if role == "agent":
                agents.append(step)
                waiting = [place for place, call in enumerate(calls) if call.result is None]
    at = transcript.at or began
    if transcript.request and not any(step.role == "person" and step.said and not step.hidden for step in steps):
        steps.insert(0, Step(None, REQUEST, "", "person", transcript.request, [], "", "", False, at, True))
    return Trace(transcript.id or "", transcript.user or "", _release(transcript), at, ended or at, steps)


def _step(turn: Turn, index: int, calls: Sequence[ToolCall]) -> Step:
    metadata = turn.metadata
    reasoning = metadata.get("reasoning") if metadata else None
    # Where the turn is the call, its text is the arguments, which nobody was told.
    text = "" if calls and not turn.tool_calls else turn.text
    return Step(
        index,
        turn.id or f"turn-{index + 1}",
        _span(metadata) if metadata else "",
        "person" if turn.role == "person" else "agent",
        text,
        [_call(call) for call in calls] if calls else [],
        _hidden(turn, metadata),
        reasoning if isinstance(reasoning, str) else "",
        bool(metadata.get("error")) if metadata else False,
        turn.at,
        bool(text) or not (calls or reasoning or turn.kind == "closed"),
    )


def _bare(index: int, turn: Turn) -> Step:
    """A step for what a tool said before any agent did."""
    return Step(index, turn.id or f"turn-{index + 1}", "", "agent", "", [], "", "", False, turn.at, False)


def _hidden(turn: Turn, metadata: Mapping[str, Any]) -> Hidden:
    kind = turn.kind
    if kind in REASONING_KINDS or (metadata and metadata.get("reasoning") is True):
        return "reasoning"
    if kind in SUBAGENT_KINDS or (metadata and metadata.get("subagent")):
        return "subagent"
    if metadata and metadata.get("injected"):
        return "injected"
    if turn.role == "person" and (kind in INJECTED_KINDS or _is_injected(turn.text)):
        return "injected"
    return ""


def _is_injected(text: str) -> bool:
    """Whether a text is nothing but what the programs of coding agents write in tags of their own."""
    place, end = len(text) - len(text.lstrip()), len(text.rstrip())
    while place < end:
        tag = _INJECTED_TAG.match(text, place)
        closed = -1 if tag is None else text.find(f"</{tag[1]}>", tag.end())
        if tag is None or closed < 0:
            return False
        place = closed + len(tag[1]) + 3
        while place < end and text[place].isspace():
            place += 1
    return bool(text) and end > 0


def _calls_of(turn: Turn) -> list[ToolCall]:
    if turn.tool_calls or turn.kind not in CALL_KINDS:
        return turn.tool_calls
    # The turn is the call: its text is the arguments, its ref what the result will name.
    name = turn.metadata.get("tool")
    return [ToolCall(name=name if isinstance(name, str) and name else UNNAMED_TOOL, id=turn.ref, arguments=turn.text)]


def _call(call: ToolCall) -> Call:
    result, error, status = _text(call.result), call.error or "", call.status or ""
    return Call(call.name, _text(call.arguments), status, error, result, _failed(status, error, result))


def _take_result(turn: Turn, last: Step, open_calls: dict[str, tuple[Step, int]], waiting: list[int]) -> None:
    """Put a tool's turn to the call that it answers: the one it names, or the agent's first that waits for one."""
    metadata = turn.metadata
    status = "error" if turn.kind in ERROR_KINDS or (metadata and metadata.get("error")) else ""
    named = next((ref for ref in (turn.ref, *(call.id for call in turn.tool_calls)) if ref is not None), None)
    if named is not None and named in open_calls:
        step, place = open_calls.pop(named)
        if step is last and place in waiting:
            waiting.remove(place)
        _settle(step, place, status=status, result=turn.text)
        return
    if named is None and waiting:
        place = waiting.pop(0)
    else:
        name = metadata.get("tool") or metadata.get("name") if metadata else None
        place = len(last.calls)
        last.calls.append(Call(name if isinstance(name, str) else UNNAMED_TOOL, "", "", "", "", failed=False))
    _settle(last, place, status=status, result=turn.text)


def _settle(step: Step, place: int, *, status: str, result: str = "") -> None:
    call = step.calls[place]
    status = status or call.status
    is_error = status in FAILED and not call.error
    error = result if is_error else call.error
    failed = call.failed or _failed(status, error, result)
    step.calls[place] = call._replace(status=status, result="" if is_error else result, error=error, failed=failed)


def _failed(status: str, error: str, result: str) -> bool:
    return bool(error) or status.lower() in FAILED or _EXIT_CODE.match(result) is not None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _sorted_json(value)


def _span(metadata: Mapping[str, Any]) -> str:
    span = metadata.get("span_id")
    return span if isinstance(span, str) else ""


def _release(transcript: Transcript) -> str:
    found: Any = transcript.attributes.get("release")
    if found is None:
        releases = (turn.metadata.get("release") for turn in transcript.turns if turn.metadata)
        found = next((release for release in releases if isinstance(release, str)), "")
    return found if isinstance(found, str) else ", ".join(found)
