"""What the pages on running name as an option is one."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import evalr
from evalr import labels, runs

DOCS = Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"\b([a-z_]+)=(?!=)")


def options() -> set[str]:
    """The names of all parameters of what is public, and of its methods."""
    things = [getattr(module, name) for module in (evalr, labels, runs) for name in module.__all__]
    found = {"minutes"}  # of a timedelta
    for thing in things:
        functions = [thing, *(vars(thing).values() if isinstance(thing, type) else ())]
        for function in functions:
            try:
                found |= set(inspect.signature(function).parameters)
            except (TypeError, ValueError):
                continue  # a constant, say
    return found


@pytest.mark.parametrize("page", ["running", "online", "online-grading", "experiments"])
def test_every_option_that_a_page_names_is_one(page: str) -> None:
    prose = FENCE.sub("", (DOCS / f"{page}.md").read_text(encoding="utf-8"))
    named = {name for code in re.findall(r"`([^`]+)`", prose) for name in OPTION.findall(code)}
    assert named
    assert named <= options()
