"""Do the agent's tool calls fail one after another?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalr_tracepass.heuristics.heuristic import Heuristic, saturating
from evalr_tracepass.heuristics.windows import messages_of

STREAK = 3
"""Failures in a row that count as a streak."""


def failures_in_a_row(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many tool calls have failed since the last one that did not; 0 where the last message made none."""
    if not messages or not messages[-1].get("tool_calls"):
        return 0
    count = 0
    for message in reversed(messages):
        for call in reversed(message.get("tool_calls", ())):
            if not call.get("failed"):
                return count
            count += 1
    return count


def _score(text: str) -> tuple[float]:
    return (saturating(failures_in_a_row(messages_of(text)), STREAK),)


heuristic = Heuristic("heuristic-tool-errors", "1", ("working", "error_streak"), _score)
