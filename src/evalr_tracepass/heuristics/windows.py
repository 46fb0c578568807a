"""Windows of an agent's turns, as `agent_window` writes them, read back."""

from __future__ import annotations

import json
from typing import Any


def messages_of(text: str) -> list[dict[str, Any]]:
    """The messages of a text in the format `json_messages`.

    Raises:
        ValueError: it is none, so that the signal has another transform than its heuristic reads.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("this heuristic reads the format json_messages, such as that of the transform agent_window")
    return found
