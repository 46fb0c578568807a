"""Each `_sync` twin takes what its async form takes, and hands it on."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from evalr import runs
from evalr.runs import Online

TWINS = [name.removesuffix("_sync") for name in runs.__all__ if name.endswith("_sync")]
NAMED = inspect.Parameter.KEYWORD_ONLY
METHODS = [name.removesuffix("_sync") for name in vars(Online) if name.endswith("_sync")]


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_has_the_parameters_of_its_async_form(name: str) -> None:
    assert parameters(getattr(runs, f"{name}_sync")) == parameters(getattr(runs, name))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_s_twin_has_the_parameters_of_its_async_form(name: str) -> None:
    assert parameters(getattr(Online, f"{name}_sync")) == parameters(getattr(Online, name))


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_hands_on_what_it_is_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = getattr(runs, f"{name}_sync")
    module = sys.modules[twin.__module__]
    heard: list[inspect.BoundArguments] = []
    signature = inspect.signature(getattr(runs, name))

    def instead(*args: Any, **options: Any) -> None:
        heard.append(signature.bind(*args, **options))
        raise LookupError

    monkeypatch.setattr(module, name, instead)
    given = {each.name: object() for each in parameters(twin)}
    places = [value for each, value in given.items() if signature.parameters[each].kind is not NAMED]
    options = {each: value for each, value in given.items() if signature.parameters[each].kind is NAMED}
    with pytest.raises(LookupError):
        twin(*places, **options)
    assert heard[0].arguments == given
