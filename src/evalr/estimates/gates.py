"""Gates: whether a number clears a bar, at the limit of its interval that counts against it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.words import interval_words, value_words

PASSED, NOT_CLEARED, UNUSABLE = 0, 1, 2
"""Exit codes."""

Sign = Literal["<", "<=", ">", ">="]

_CONDITION = re.compile(r"\s*([^\s<>=]+)\s*(<=|>=|<|>)\s*([^\s<>=]+)\s*")
CONDITION_RULE = "write a condition as NAME<NUMBER, with <, <=, > or >=, such as 'drop_off<20%' or 'waits_median<5m'"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a gate asks of a summary: `drop_off < 20%`. `bar` is still text: the summary's unit says how to read it."""

    name: str
    comparison: Sign
    bar: str

    @property
    def wants_less(self) -> bool:
        """Whether the upper limit counts, rather than the lower one."""
        return self.comparison.startswith("<")

    def holds(self, limit: float, bar: float) -> bool:
        """Whether a limit clears the bar."""
        return {"<": limit < bar, "<=": limit <= bar, ">": limit > bar, ">=": limit >= bar}[self.comparison]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a gate found.

    Attributes:
        code: an exit code: 0 passed, 1 not cleared, 2 undefined.
        verdict: the same in a word.
        asked: the condition.
        found: the numbers in words.
    """

    code: int
    verdict: str
    asked: str
    found: str


def is_condition(text: str) -> bool:
    """Whether a text reads as a condition."""
    return _CONDITION.fullmatch(text) is not None


def read_condition(text: str) -> Condition:
    """`drop_off<0.2` as a condition."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r} is not a condition: {CONDITION_RULE}")
    name, comparison, bar = found.groups()
    return Condition(name, comparison, bar)  # type: ignore[arg-type]


def rule(condition: Condition, estimate: Estimate, read_bar: Callable[[str, Estimate], float]) -> Ruling:
    """Hold an estimate against a condition: it passes where the limit of its interval does, never where undefined.

    `read_bar` reads the bar in the estimate's unit.
    """
    asked = f"{condition.name} {condition.comparison} {condition.bar}"
    if estimate.value is None:
        return Ruling(UNUSABLE, "undefined", asked, " · ".join(estimate.notes()) or estimate.status)
    bar = read_bar(condition.bar, estimate)
    found = f"{value_words(estimate.value, estimate.unit)} {interval_words(estimate.low, estimate.high, estimate.unit)}"
    if estimate.low is None and estimate.high is None:
        return Ruling(UNUSABLE, "undefined", asked, f"{found.strip()} has no interval: {estimate.reason}")
    which = "upper" if condition.wants_less else "lower"
    limit = estimate.high if condition.wants_less else estimate.low
    if limit is None:
        return Ruling(NOT_CLEARED, "not cleared", asked, f"{found}, the log does not reach the {which} limit")
    cleared = condition.holds(limit, bar)
    words = f"{found}, {which} limit {value_words(limit, estimate.unit)}; {' · '.join(estimate.notes())}"
    if cleared:
        return Ruling(PASSED, "passed", asked, words)
    return Ruling(NOT_CLEARED, "not cleared", asked, words)
