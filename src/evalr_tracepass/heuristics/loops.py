"""Does the agent do the same thing over and over? Repeated tool calls with the same outcome, or repeated texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evalr_tracepass.heuristics.heuristic import Heuristic, saturating
from evalr_tracepass.heuristics.windows import messages_of

REPEATS = 3
"""How often something has to be there to count as a loop."""

SHORTEST_TEXT = 20
"""Characters of a text that counts when it is repeated: "Done." may be said again."""

COMPARED = 2_000
"""Characters of a text that are compared."""

ALIKE = 90.0
"""Of 100, how alike two texts must be to count as one; by indel similarity."""

_FOLDED = re.compile(r"0x[0-9a-f]+|[0-9a-f]{7,}|\d+")


class Done(NamedTuple):
    """One tool call, by what makes two of them the same."""

    name: str
    arguments: str
    outcome: str


class _Folded(dict[str, str]):
    """Texts without what differs between repetitions that are alike: case, numbers, hashes, spaces. Each made once."""

    def __missing__(self, text: str) -> str:
        made = self[text] = " ".join(_FOLDED.sub("#", text.lower()).split())
        return made


def repetitions(messages: Sequence[Mapping[str, Any]]) -> int:
    """How often what the last message does, or says, is there, that time among them; 0 of an empty window."""
    if not messages:
        return 0
    folded = _Folded()
    done = [list(_done(message)) for message in messages]
    most = max((sum(_repeats(call, each, folded) for calls in done for each in calls) for call in done[-1]), default=0)
    return max(most, _said_again(messages, done, folded))


def _repeats(one: Done, other: Done, folded: _Folded) -> bool:
    """Whether two calls did the same to the same end.

    Arguments must be equal, since page 1, 2 and 3 are no loop, unless what came back is the same each time: then it is
    enough that they differ in numbers.
    """
    if one.name != other.name:
        return False
    if one.arguments == other.arguments:
        return folded[one.outcome] == folded[other.outcome]
    return bool(one.outcome) and one.outcome == other.outcome and folded[one.arguments] == folded[other.arguments]


def _done(message: Mapping[str, Any]) -> Iterator[Done]:
    for call in message.get("tool_calls", ()):
        outcome = call.get("error") or call.get("result") or call.get("status") or ""
        yield Done(str(call.get("name", "")), str(call.get("arguments", "")), str(outcome))


def _said_again(messages: Sequence[Mapping[str, Any]], done: Sequence[Sequence[Done]], folded: _Folded) -> int:
    """How often the last message's text is there. One that came with other tool calls got somewhere, and is none."""
    text = folded[str(messages[-1].get("content", ""))[:COMPARED]]
    if len(text) < SHORTEST_TEXT:
        return 0
    from rapidfuzz.fuzz import ratio

    last = done[-1]
    count = 1
    for message, calls in zip(messages[:-1], done[:-1], strict=True):
        if len(calls) != len(last) or not all(_repeats(a, b, folded) for a, b in zip(calls, last, strict=True)):
            continue
        other = folded[str(message.get("content", ""))[:COMPARED]]
        count += other == text or bool(ratio(text, other, score_cutoff=ALIKE))
    return count


def _score(text: str) -> tuple[float]:
    return (saturating(max(0, repetitions(messages_of(text))), REPEATS),)


heuristic = Heuristic("heuristic-loop", "1", ("progressing", "looping"), _score)
