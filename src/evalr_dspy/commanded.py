"""The ready judges as `evalr judge` makes them: of a model's name."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dspy

from evalr.errors import InputError
from evalr.measures import Preference, ReadyJudge, ShadowEvaluator, shadow_evaluator
from evalr.quoting import quoted, safe_text
from evalr_dspy.judge import DspyJudge
from evalr_dspy.ready import completion_judge, learning_judge, outcome_judge, pairwise_judge
from evalr_dspy.rubrics import SUCCESS_DEFINITION

OWN_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
"""Whether dspy uses the list of prices that it ships, rather than fetch one when it first needs it."""

_LIMITS = ("max_tokens", "max_completion_tokens")


def named_lm(lm: str, *, api_base: str | None = None, max_tokens: int = 0) -> dspy.LM:
    """The model of that name, for a run: it asks once, and caches nothing.

    Raises:
        InputError: the client knows no such model, or the address cannot be used.
    """
    os.environ.setdefault(OWN_PRICES, "true")  # a price in advance must not take a look at the network
    options = {"max_tokens": _limit(max_tokens), **_connection(lm, api_base)}
    try:
        return dspy.LM(lm, cache=False, num_retries=0, **options)
    except (ValueError, TypeError, dspy.LMConfigurationError) as error:
        raise InputError(f"the model {lm!r} cannot be used: {error}") from error


def _limit(max_tokens: int) -> int | None:
    if max_tokens < 0:
        raise InputError(f"max_tokens={max_tokens} must be a number of tokens, or 0 for the model's own limit")
    return max_tokens or None


def _connection(lm: str, api_base: str | None) -> dict[str, Any]:
    if api_base is None:
        return {}
    wants_key = os.environ.get("OPENAI_API_KEY") or not lm.startswith("openai/")
    # Servers of one's own often want none, and the client does.
    return {"api_base": _address(api_base)} | ({} if wants_key else {"api_key": "none"})


def _address(api_base: str) -> str:
    try:
        parts = urlsplit(api_base)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("the address of a server begins with http:// or https://, as in http://localhost:8000/v1")
    if parts.username is not None or parts.password is not None:
        raise InputError("the address holds a name or password: give keys in the environment, where nobody sees them")
    return api_base


def _completion(*, lm: str, api_base: str | None, max_tokens: int) -> DspyJudge[Any, Any]:
    return completion_judge(lm=named_lm(lm, api_base=api_base, max_tokens=max_tokens))


def _outcome(
    *, lm: str, api_base: str | None, max_tokens: int, success_definition: str, tools: Sequence[str]
) -> DspyJudge[Any, Any]:
    model = named_lm(lm, api_base=api_base, max_tokens=max_tokens)
    return outcome_judge(lm=model, success_definition=success_definition, tools=read_tools(tools))


def _learning(
    *, lm: str, api_base: str | None, max_tokens: int, success_definition: str, tools: Sequence[str]
) -> DspyJudge[Any, Any]:
    model = named_lm(lm, api_base=api_base, max_tokens=max_tokens)
    return learning_judge(lm=model, success_definition=success_definition, tools=read_tools(tools))


def _shadow(*, lm: str, api_base: str | None, max_tokens: int, orders: Any) -> ShadowEvaluator:
    return shadow_evaluator(pairwise_judge(lm=named_lm(lm, api_base=api_base, max_tokens=max_tokens)), orders=orders)


# ---------------------------------------------------------------------------------------------------------------------
# Judges from files
# ---------------------------------------------------------------------------------------------------------------------


def _saved(*, path: str, lm: str | None, api_base: str | None, max_tokens: int) -> DspyJudge[Any, Any]:
    if lm is not None:
        return DspyJudge.load(path, lm=named_lm(lm, api_base=api_base, max_tokens=max_tokens))
    os.environ.setdefault(OWN_PRICES, "true")
    judge: DspyJudge[Any, Any] = DspyJudge.load(path)
    given = {"cache": False, "num_retries": 0, **_connection(judge.lm.model, api_base)}
    if _limit(max_tokens):
        # Models that reason have another word for it.
        given[next((name for name in _LIMITS if name in judge.lm.kwargs), _LIMITS[0])] = max_tokens
    return replace(judge, lm=judge.lm.copy(**given), cache=False)


def _saved_shadow(*, orders: Any, **options: Any) -> ShadowEvaluator:
    judge = _saved(**options)
    if not issubclass(judge.verdict_type, Preference):
        given = f"it gives {judge.verdict_type.__name__} of {judge.inputs.__name__}"
        raise InputError(f"{options['path']} is no judge of pairs, which a judge of 'shadow' is made of: {given}")
    return shadow_evaluator(judge, orders=orders)


# ---------------------------------------------------------------------------------------------------------------------
# The tools of an agent, as people write them
# ---------------------------------------------------------------------------------------------------------------------


def read_tools(given: Sequence[str]) -> dict[str, str]:
    """Tools by name, each with its description.

    Args:
        given: `search=Finds orders`, or the path of a JSON file: an object of names and descriptions, or a list of
            tools as models are given them, each with a `name` and a `description`, also inside of `function`.

    Raises:
        InputError: a file cannot be read, has no tools, or a tool is named twice.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, description = text.partition("=")
        named = [(name.strip(), description.strip())] if equals else _tools_in(Path(text))
        for tool, words in named:
            if tool in found:
                raise InputError(f"the tool {quoted(tool)} is named twice")
            found[tool] = words
    if "" in found:
        raise InputError("a tool needs a name: write tools=NAME=DESCRIPTION, or the path of a JSON file")
    return found


def _tools_in(path: Path) -> list[tuple[str, str]]:
    where = safe_text(str(path), longest=500)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "write tools=NAME=DESCRIPTION, or the path of a JSON file"
        raise InputError(f"{where} cannot be read: {error.strerror}; {hint}") from error
    except ValueError as error:
        raise InputError(f"{where} is no JSON: {error}") from error
    tools = list(content.items()) if isinstance(content, dict) else [*map(_tool, _listed(content))]
    if not tools or not all(isinstance(name, str) and isinstance(words, str) for name, words in tools):
        rule = '{"NAME": "DESCRIPTION", ...}, or a list of tools that each have a name and a description'
        raise InputError(f"{where} must be {rule}")
    return tools


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _tool(tool: Any) -> tuple[Any, Any]:
    found = tool.get("function", tool) if isinstance(tool, dict) else {}
    return (found.get("name"), found.get("description", "")) if isinstance(found, dict) else (None, None)


_MODEL = {"max_tokens": 0}
"""Of an answer; 0 leaves it to the model."""
_TEAM = {**_MODEL, "success_definition": SUCCESS_DEFINITION, "tools": ()}
_OF_TEAM = ("success_definition", "tools")

completion = ReadyJudge(name="completion", make=_completion, settings=_MODEL, load=_saved)
outcome = ReadyJudge(name="outcome", make=_outcome, settings=_TEAM, load=_saved, of_file=_OF_TEAM)
learning = ReadyJudge(name="learning", make=_learning, settings=_TEAM, load=_saved, of_file=_OF_TEAM)
shadow = ReadyJudge(name="shadow", make=_shadow, settings={**_MODEL, "orders": "random"}, load=_saved_shadow)
