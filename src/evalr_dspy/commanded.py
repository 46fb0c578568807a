"""The ready judges as `evalr judge` makes them: of a model's name."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import dspy

from evalr.errors import InputError
from evalr.measures import ReadyJudge, ShadowEvaluator, shadow_evaluator
from evalr_dspy.judge import DspyJudge
from evalr_dspy.ready import completion_judge, learning_judge, outcome_judge, pairwise_judge
from evalr_dspy.rubrics import SUCCESS_DEFINITION

OWN_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
"""Whether dspy uses the list of prices that it ships, rather than fetch one when it first needs it."""


def named_lm(lm: str, *, api_base: str | None = None, max_tokens: int = 0) -> dspy.LM:
    """The model of that name, for a run: it asks once, and caches nothing.

    Raises:
        InputError: the client knows no such model, or the address cannot be used.
    """
    if max_tokens < 0:
        raise InputError(f"max_tokens={max_tokens} must be a number of tokens, or 0 for the model's own limit")
    os.environ.setdefault(OWN_PRICES, "true")  # a price in advance must not take a look at the network
    options: dict[str, Any] = {"max_tokens": max_tokens or None}
    if api_base is not None:
        options |= {"api_base": _address(api_base)}
        if not os.environ.get("OPENAI_API_KEY") and lm.startswith("openai/"):
            options["api_key"] = "none"  # servers of one's own often want none, and the client does
    try:
        return dspy.LM(lm, cache=False, num_retries=0, **options)
    except (ValueError, TypeError, dspy.LMConfigurationError) as error:
        raise InputError(f"the model {lm!r} cannot be used: {error}") from error


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


def _outcome(*, lm: str, api_base: str | None, max_tokens: int, success_definition: str) -> DspyJudge[Any, Any]:
    model = named_lm(lm, api_base=api_base, max_tokens=max_tokens)
    return outcome_judge(lm=model, success_definition=success_definition)


def _learning(*, lm: str, api_base: str | None, max_tokens: int, success_definition: str) -> DspyJudge[Any, Any]:
    model = named_lm(lm, api_base=api_base, max_tokens=max_tokens)
    return learning_judge(lm=model, success_definition=success_definition)


def _shadow(*, lm: str, api_base: str | None, max_tokens: int, orders: Any) -> ShadowEvaluator:
    return shadow_evaluator(pairwise_judge(lm=named_lm(lm, api_base=api_base, max_tokens=max_tokens)), orders=orders)


_MODEL = {"max_tokens": 0}
"""Of an answer; 0 leaves it to the model."""

completion = ReadyJudge(name="completion", make=_completion, settings=_MODEL)
outcome = ReadyJudge(name="outcome", make=_outcome, settings={**_MODEL, "success_definition": SUCCESS_DEFINITION})
learning = ReadyJudge(name="learning", make=_learning, settings={**_MODEL, "success_definition": SUCCESS_DEFINITION})
shadow = ReadyJudge(name="shadow", make=_shadow, settings={**_MODEL, "orders": "random"})
