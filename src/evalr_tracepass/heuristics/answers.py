"""Did the agent answer what a person said, or say nothing, or refuse? English refusals, thanks and goodbyes only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalr_tracepass.heuristics.heuristic import Heuristic
from evalr_tracepass.heuristics.windows import messages_of

Answer = Literal["answered", "unanswered", "refused"]

READ = 200
"""Characters of an answer in which a refusal has to begin: later on, it is about a part."""

_HELP = (
    r"(?:help|assist|comply|answer|provide|share|discuss|fulfil+|continue|support|generate|create|write|"
    r"do that|do this)"
)
_REFUSED = re.compile(
    r"\b(?:"
    rf"i(?:'m| am) (?:sorry|afraid)[,.]? (?:but )?(?:i|that)\b.{{0,30}}?(?:can(?:'t|not)|unable|not able|won't)"
    rf"|i (?:can(?:'t|not)|could not|won't|will not|must decline)(?: to)? (?:\w+ )?{_HELP}"
    rf"|i(?:'m| am) (?:unable|not able|not allowed|not permitted) to (?:\w+ )?{_HELP}"
    r"|(?:this|that|your) (?:request|question) (?:violates|goes against)"
    r")",
    re.IGNORECASE,
)

_SOFT = r"(?:ok(?:ay)?|no|great|perfect|super|cool|good|nice|all good|got it)"
_CLOSE = (
    r"(?:(?:many )?thanks(?: (?:a lot|so much|again))?|thank you(?: (?:very|so) much)?|thx|cheers|(?:good)?bye|"
    r"that(?:'s| is| was|'ll be| will be) (?:all|it)(?: for (?:now|today))?)"
)
_CLOSED = re.compile(rf"(?:{_SOFT}[\s,.!]*)*{_CLOSE}(?:[\s,.!]+(?:{_SOFT}|{_CLOSE}))*[\s.!]*", re.IGNORECASE)
"""A message that ends a conversation: it thanks, or says goodbye, and no more. Nobody waits for an answer to it."""

MOST_CLOSING = 80
"""Characters of a message that can be one."""


def answer_to(messages: Sequence[Mapping[str, Any]]) -> Answer:
    """What became of a person's message, from it and what the agent did until the next."""
    said = [text for message in messages if message.get("role") == "assistant" and (text := _text(message))]
    if not said:
        return "answered" if _is_closing(messages) else "unanswered"
    return "refused" if _REFUSED.search(said[-1][:READ].replace("\u2019", "'")) else "answered"


def _is_closing(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the person's message asks for nothing, and the agent did nothing after it."""
    if len(messages) != 1:
        return False
    text = _text(messages[0]).replace("\u2019", "'")
    return len(text) <= MOST_CLOSING and _CLOSED.fullmatch(text) is not None


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("content", "")).strip()


def _score(text: str) -> tuple[float, float]:
    found = answer_to(messages_of(text))
    return (float(found == "unanswered"), float(found == "refused"))


heuristic = Heuristic("heuristic-no-answer", "2", ("answered", "unanswered", "refused"), _score)
