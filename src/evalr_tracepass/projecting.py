"""Projecting: the texts that a transform makes of a trace, each with the step that it is about."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from evalr_tracepass.records import INPUT_TOO_LONG, LONGEST_TEXT, ErrorInfo
from evalr_tracepass.traces import Call, Step, Trace
from evalr_tracepass.transforms import Format, Transform, TransformKind

FULL_CONVERSATION = "Full conversation:"

CHARACTERS_PER_TOKEN = 4
"""How many characters a token stands for where no tokenizer is at hand: about right for English."""

_ROLES = {"person": "user", "agent": "assistant"}


class Projected(NamedTuple):
    """One text that a transform made.

    Attributes:
        step: what it is about, None for the whole conversation.
        text: what is to be read; "" where nothing is.
        truncated: whether part of it was cut to fit.
        error: why it cannot be read, where it is too long and must not be cut.
        retained: whether the log has the content: without it there is no row.
    """

    step: Step | None
    text: str
    truncated: bool = False
    error: ErrorInfo | None = None
    retained: bool = True


def longest(transform: Transform) -> int:
    """The most characters that a text of a transform may have."""
    if transform.max_tokens is None:
        return LONGEST_TEXT
    return min(LONGEST_TEXT, transform.max_tokens * CHARACTERS_PER_TOKEN)


def project(transform: Transform, trace: Trace) -> Iterator[Projected]:
    """The texts that a transform makes of a trace, in its order, those that were not retained among them."""
    kind = _KINDS[transform.kind]
    if kind.target is None:
        yield _whole(transform, trace)
        return
    targets = [place for place, step in enumerate(trace.steps) if kind.target(step) and _counts(transform, step)]
    taken = targets if transform.every == 1 else targets[:: transform.every]
    if kind.around is None:
        for place in taken:
            step = trace.steps[place]
            yield _fitted(transform, step, step.text) if step.text.strip() else Projected(step, "", retained=False)
        return
    context = [place for place, step in enumerate(trace.steps) if kind.context(transform, step)]
    write = _FORMATS[transform.format]
    written: dict[tuple[int, bool], str] = {}

    def piece(place: int, target: bool) -> str:
        found = written.get((place, target))
        if found is None:
            found = written[place, target] = write.step(transform, trace.steps[place], target)
        return found

    for place in taken:
        step = trace.steps[place]
        if not step.text.strip() and not step.calls:
            yield Projected(step, "", retained=False)
            continue
        around = kind.around(transform, trace.steps, place, context)
        before = [piece(each, False) for each in around if each < place]
        after = [piece(each, False) for each in around if each > place]
        yield _joined(transform, step, before, piece(place, True), after)


# ---------------------------------------------------------------------------------------------------------------------
# Which steps
# ---------------------------------------------------------------------------------------------------------------------


def _person(step: Step) -> bool:
    return step.role == "person" and step.said


def _agent(step: Step) -> bool:
    return step.role == "agent" and step.said


def _agent_step(step: Step) -> bool:
    return step.role == "agent" and (step.said or bool(step.calls))


def _failure(step: Step) -> bool:
    return any(call.failed for call in step.calls)


def _message(step: Step) -> bool:
    return step.said


def _counts(transform: Transform, step: Step) -> bool:
    """Whether a transform reads such steps at all: by default not what nobody saw, or nobody wrote."""
    hidden = step.hidden
    return not hidden or (
        transform.include_reasoning
        if hidden == "reasoning"
        else transform.include_subagents
        if hidden == "subagent"
        else transform.include_injected
    )


def _shown(transform: Transform, step: Step) -> bool:
    """Whether a step is shown around a target."""
    if not _counts(transform, step):
        return False
    said = transform.include_user_messages if step.role == "person" else transform.include_assistant_messages
    return (said and bool(step.text.strip())) or (transform.include_tool_calls and bool(step.calls))


def _window(transform: Transform, steps: Sequence[Step], place: int, context: Sequence[int]) -> list[int]:
    until, since = bisect_left(context, place), bisect_right(context, place)
    first = max(0, until - (transform.window_turns - 1))
    return [*context[first:until], *context[since : since + transform.after_turns]]


def _one_before(transform: Transform, steps: Sequence[Step], place: int, context: Sequence[int]) -> list[int]:
    until = bisect_left(context, place)
    return [context[until - 1]] if until else []


def _answer(transform: Transform, steps: Sequence[Step], place: int, context: Sequence[int]) -> list[int]:
    """What the agent did upon a person's message: the steps up to the next."""
    found = []
    for at in range(bisect_right(context, place), len(context)):
        if steps[context[at]].role == "person":
            break
        found.append(context[at])
    return found


def _answers(transform: Transform, step: Step) -> bool:
    """What an answer is made of, and what ends it."""
    return _shown(transform, step) if step.role == "agent" else step.said and _counts(transform, step)


def _agent_text(transform: Transform, step: Step) -> bool:
    return step.role == "agent" and bool(step.text.strip()) and _counts(transform, step)


class _Kind(NamedTuple):
    """What a kind of transform is about (None: the whole), and what it shows around that (None: nothing)."""

    target: Callable[[Step], bool] | None
    around: Callable[[Transform, Sequence[Step], int, Sequence[int]], list[int]] | None = None
    context: Callable[[Transform, Step], bool] = _shown
    """What `around` chooses from."""


_KINDS: dict[TransformKind, _Kind] = {
    "user_message": _Kind(_person),
    "assistant_message": _Kind(_agent),
    "full_conversation": _Kind(None),
    "rolling_window": _Kind(_message, _window),
    "user_plus_previous_assistant": _Kind(_person, _one_before, _agent_text),
    "user_plus_tool_calls": _Kind(_person, _answer, _answers),
    "tool_failure_window": _Kind(_failure, _window),
    "agent_window": _Kind(_agent_step, _window),
    "every_other_user_turn": _Kind(_person),
}


# ---------------------------------------------------------------------------------------------------------------------
# How they are written
# ---------------------------------------------------------------------------------------------------------------------


class _Format(NamedTuple):
    step: Callable[[Transform, Step, bool], str]
    begin: str
    between: str
    end: str


def _said(transform: Transform, step: Step, target: bool) -> str:
    """What a step shows of what was said. A target shows it always."""
    include = transform.include_user_messages if step.role == "person" else transform.include_assistant_messages
    return step.text if target or include else ""


def _calls(transform: Transform, step: Step) -> Sequence[Call]:
    return step.calls if transform.include_tool_calls else ()


def _result(transform: Transform, call: Call) -> str:
    if not transform.include_tool_results:
        return ""
    return _cut(call.result, transform.max_result_chars)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… [{len(text) - most:,} more characters]"


def _plain(transform: Transform, step: Step, target: bool) -> str:
    lines = []
    if transform.include_reasoning and step.reasoning:
        lines.append(f"reasoning: {step.reasoning}")
    if said := _said(transform, step, target):
        lines.append(f"{_ROLES[step.role]}: {said}")
    for call in _calls(transform, step):
        lines.append(f"tool call: {call.name} {call.arguments}".rstrip())
        if call.status or call.error:
            lines.append(
                f"tool status: {call.status or 'error'} {_cut(call.error, transform.max_result_chars)}".rstrip()
            )
        if result := _result(transform, call):
            lines.append(f"tool result: {result}")
    return "\n".join(lines)


def _compact(transform: Transform, step: Step, target: bool) -> str:
    lines = []
    if transform.include_reasoning and step.reasoning:
        lines.append(f"~ {_line(step.reasoning)}")
    if said := _said(transform, step, target):
        lines.append(f"{'>' if step.role == 'person' else '<'} {_line(said)}")
    for call in _calls(transform, step):
        line = f"{'!' if call.failed else '*'} {call.name}({_line(call.arguments)})"
        line += f" {call.status}" if call.status and not call.error else ""
        line += f" error: {_line(_cut(call.error, transform.max_result_chars))}" if call.error else ""
        line += f" -> {_line(result)}" if (result := _result(transform, call)) else ""
        lines.append(line)
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _json(transform: Transform, step: Step, target: bool) -> str:
    message: dict[str, object] = {"role": _ROLES[step.role], "content": _said(transform, step, target)}
    if transform.include_reasoning and step.reasoning:
        message["reasoning"] = step.reasoning
    calls = [_json_call(transform, call) for call in _calls(transform, step)]
    if calls:
        message["tool_calls"] = calls
    return json.dumps(message, ensure_ascii=False)


def _json_call(transform: Transform, call: Call) -> dict[str, object]:
    found: dict[str, object] = {"name": call.name, "arguments": call.arguments}
    if call.status:
        found["status"] = call.status
    if call.error:
        found["error"] = _cut(call.error, transform.max_result_chars)
    if call.failed:
        found["failed"] = True
    if result := _result(transform, call):
        found["result"] = result
    return found


_FORMATS: dict[Format, _Format] = {
    "plain_transcript": _Format(_plain, "", "\n\n", ""),
    "compact_trace": _Format(_compact, "", "\n", ""),
    "json_messages": _Format(_json, "[", ",\n", "]"),
}


# ---------------------------------------------------------------------------------------------------------------------
# How they are made to fit
# ---------------------------------------------------------------------------------------------------------------------


def _whole(transform: Transform, trace: Trace) -> Projected:
    shown = [step for step in trace.steps if _shown(transform, step)]
    if not shown:
        return Projected(None, "", retained=False)
    write = _FORMATS[transform.format].step
    *before, last = (write(transform, step, False) for step in shown)
    return _joined(transform, None, before, last, [], lead=f"{FULL_CONVERSATION}\n")


def _joined(
    transform: Transform, step: Step | None, before: list[str], target: str, after: list[str], *, lead: str = ""
) -> Projected:
    """The pieces of a text, without the oldest where they are too long together. The target stays."""
    form, most = _FORMATS[transform.format], longest(transform)
    lead += form.begin
    room = most - len(lead) - len(form.end) - len(target)
    gap = len(form.between)
    around = [*before, *after]
    needed = sum(map(len, around)) + gap * len(around)
    dropped = 0
    if needed > room:
        if not transform.may_cut:
            return _too_long(step, needed + most - room, most)
        while dropped < len(around) and needed > room:
            needed -= len(around[dropped]) + gap
            dropped += 1
    kept = [*before[dropped:], _cut_piece(transform, target, len(target) + min(room, 0))]
    kept += after[max(0, dropped - len(before)) :]
    return Projected(step, f"{lead}{form.between.join(kept)}{form.end}", dropped > 0 or room < 0)


def _fitted(transform: Transform, step: Step, text: str) -> Projected:
    most = longest(transform)
    if len(text) <= most:
        return Projected(step, text)
    if not transform.may_cut:
        return _too_long(step, len(text), most)
    return Projected(step, text[:most], truncated=True)


def _cut_piece(transform: Transform, piece: str, most: int) -> str:
    """A piece cut to fit: a text from its end on; a JSON message in each of its texts, so that it can still be read."""
    if len(piece) <= most:
        return piece
    if transform.format != "json_messages":
        return piece[:most]
    message = json.loads(piece)
    calls = message.get("tool_calls", [])
    while calls and len(_shortened(message, 0)) > most:
        calls.pop(0)
    if not calls:
        message.pop("tool_calls", None)
    low, high = 0, most
    while low < high:  # an escape makes a character longer, so that how much fits must be tried
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_shortened(message, middle)) <= most else (low, middle - 1)
    return _shortened(message, low)


def _shortened(message: dict[str, Any], most: int) -> str:
    calls = [
        {name: value[:most] if name in ("arguments", "error", "result") else value for name, value in call.items()}
        for call in message.get("tool_calls", ())
    ]
    short = {name: value[:most] if name in ("content", "reasoning") else value for name, value in message.items()}
    return json.dumps({**short, "tool_calls": calls} if calls else short, ensure_ascii=False)


def _too_long(step: Step | None, found: int, most: int) -> Projected:
    return Projected(
        step, "", error=ErrorInfo(INPUT_TOO_LONG, f"{found:,} characters, and this transform sends at most {most:,}")
    )
