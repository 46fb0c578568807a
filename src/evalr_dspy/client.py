"""One call of a language model, and what the client said of it: usage, cost, and why the answer ended."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import dspy

from evalr.errors import InputError, error_words
from evalr.input_fields import without_lone_surrogates
from evalr.quoting import safe_text

CONNECTION = frozenset(
    {
        "api_base",
        "api_key",
        "api_version",
        "azure_ad_token_provider",
        "base_url",
        "extra_headers",
        "extra_query",
        "headers",
        "model_list",
        "organization",
        "project",
        "rollout_id",
        "timeout",
    }
)
"""Settings of a client that say how a model is reached, and change no answer; some are secret."""

PUBLIC = frozenset({"api_base", "api_version", "base_url", "model_list", "rollout_id", "timeout"})
"""Those of them that are no secrets."""

KEY_ENDINGS = ("_KEY", "_TOKEN", "_SECRET")
"""How the names of variables end in which clients look for keys."""

SHORTEST_SECRET = 8

LONGEST_ERROR = 500


class Heard(NamedTuple):
    """What the client said of a call.

    Attributes:
        cost: US dollars, None where the client does not know it.
        cut_off: whether the answer ended where the model's limit of tokens was.
        refused: whether the provider kept an answer back.
    """

    cost: float | None = None
    cut_off: bool = False
    refused: bool = False


class Line:
    """A client for one call: it asks once, and what it heard is its own, however many calls there are at once."""

    def __init__(self, lm: dspy.BaseLM, *, cache: bool, retries: int = 0) -> None:
        # A copy shares its connections and has a history of its own; that of the whole process would hold every text.
        self.lm = lm.copy(cache=cache, num_retries=retries)
        self._entries: list[Mapping[str, Any]] = []
        self.lm.update_history = self._entries.append

    def heard(self) -> Heard:
        """What was said of the call; nothing where it did not come to an answer."""
        if not self._entries:
            return Heard()
        entry = self._entries[-1]
        ended = _finish_reason(entry.get("response"))
        return Heard(_cost(entry), cut_off=ended == "length", refused=ended == "content_filter")


def checked(lm: object) -> dspy.BaseLM:
    """The language model itself, where a judge can ask it.

    Raises:
        InputError: it is none, or would give several answers at once.
    """
    if not isinstance(lm, dspy.BaseLM):
        raise InputError(f'lm={type(lm).__name__} is no language model: pass one such as dspy.LM("openai/gpt-5-mini")')
    several = next((name for name in ("n", "num_generations") if (lm.kwargs.get(name) or 1) != 1), None)
    if several is not None:
        raise InputError(f"lm has {several}={lm.kwargs[several]!r}: a judge needs one answer; repeat a run for more")
    return lm


def settings(lm: dspy.BaseLM) -> dict[str, Any]:
    """What changes a model's answers, beside its name."""
    own = {name: value for name, value in lm.kwargs.items() if name not in CONNECTION and value is not None}
    return {"model_type": lm.model_type, **own}


def words(error: Exception, lm: dspy.BaseLM) -> str:
    """What an error says, without keys and cut: some servers send back all that they were sent."""
    text = without_lone_surrogates(error_words(error))
    for secret in sorted(set(_secrets(lm)), key=len, reverse=True):
        text = text.replace(secret, "(secret)")
    return safe_text(text, longest=LONGEST_ERROR)


def _secrets(lm: dspy.BaseLM) -> Iterator[str]:
    """The keys that a client may have sent: those that it was given, and those that it may have found."""
    given = [value for name, value in lm.kwargs.items() if name in CONNECTION - PUBLIC]
    given += [value for name, value in os.environ.items() if name.upper().endswith(KEY_ENDINGS)]
    for value in given:
        for each in value.values() if isinstance(value, Mapping) else [value]:
            bare = each.removeprefix("Bearer ").strip() if isinstance(each, str) else ""
            if len(bare) >= SHORTEST_SECRET:
                yield bare


def _cost(entry: Mapping[str, Any]) -> float | None:
    """What a call cost, None where that is no more than a guess: no usage was reported, or a cache gave the answer."""
    usage = entry.get("usage") or {}
    # A client may report what it was not told as 0, and no call has a prompt of no tokens.
    return entry.get("cost") if usage.get("prompt_tokens") or usage.get("input_tokens") else None


def _finish_reason(response: Any) -> str | None:
    if isinstance(response, tuple):
        response = response[0] if response else None
    own = getattr(response, "finish_reason", None)
    if isinstance(own, str):
        return own
    choices = getattr(response, "choices", None)
    if not choices:
        return None
    found = getattr(choices[0], "finish_reason", None)
    return found if isinstance(found, str) else None
