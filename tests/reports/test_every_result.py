"""Every public result shows itself in a notebook, all in one look, and what holds estimates can be drawn."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, get_type_hints

import pytest

from evalr.estimates.estimate import Estimate, Groups
from evalr.estimates.lift import Lift
from evalr.estimates.plot import Plotted
from evalr.estimates.shown import Fielded, Printed
from evalr.estimates.trends import Trends

ROOMS = ("evalr", *(f"evalr.{room}" for room in ("measures", "labels", "runs", "logs", "bulk")))
DOORS = tuple(f"evalr.{door}" for door in ("reflexio", "reflexr", "tracepass", "dspy"))

NOT_SHOWN = {
    "evalr.measures.Comparison": "a comparison to make, and no result of one",
    "evalr.runs.EvaluatorVersion": "a name",
    "evalr.reflexr.Workspace": "a name",
    "evalr.logs.Numbers": "what a page is made of",
    "evalr.reflexio.JudgedResponse": "one response among those of an answer",
}
"""Public classes that print or hold numbers, and are no results that people look at by themselves."""

HELD = (Estimate, Groups, Lift, Trends)


def public_classes() -> Iterator[tuple[str, type]]:
    """Each public class once, under the first of its names."""
    seen: set[type] = set()
    for name in (*ROOMS, *DOORS):
        try:
            room = import_module(name)
        except ImportError:  # a door whose extra is not installed
            continue
        for public in room.__all__:
            found = getattr(room, public)
            if inspect.isclass(found) and not issubclass(found, BaseException) and found not in seen:
                seen.add(found)
                yield f"{name}.{public}", found


def prints(found: type) -> bool:
    """Whether it says itself how it is printed."""
    return found.__str__.__module__.startswith("evalr") if hasattr(found.__str__, "__module__") else False


def holds_estimates(found: type) -> bool:
    """Whether a field of it is an estimate, or groups of them."""
    if not is_dataclass(found):
        return False
    try:
        hints = get_type_hints(found)
    except NameError:  # a type that is imported for type checkers alone
        hints = {each.name: str(each.type) for each in fields(found)}
    words = [str(hints.get(each.name, "")) for each in fields(found)]
    return any(re.search(r"\b(Estimate|Groups|Trend|Trends|Lift)\b", word) for word in words)


RESULTS = [
    pytest.param(found, id=name)
    for name, found in public_classes()
    if name not in NOT_SHOWN and (prints(found) or holds_estimates(found))
]


@pytest.mark.parametrize("found", RESULTS)
def test_a_result_shows_itself_in_a_notebook(found: type) -> None:
    assert any("_repr_html_" in vars(base) for base in found.__mro__), (
        "give it `_repr_html_`: derive it from evalr.estimates.shown.Printed where it prints, or else from Fielded"
    )


def test_the_list_is_of_public_results_alone() -> None:
    assert len(RESULTS) > 40
    assert set(NOT_SHOWN) <= {name for name, _ in public_classes()} | {name for name in NOT_SHOWN if "reflex" in name}


DRAWN = [
    pytest.param(found, id=name)
    for name, found in public_classes()
    if name not in NOT_SHOWN and not name.startswith("evalr.reflexio.") and holds_estimates(found)
]
"""But for the answers of Reflexio's report, which hold many of all kinds: each of those has its own plot."""


@pytest.mark.parametrize("found", DRAWN)
def test_what_holds_estimates_can_be_drawn(found: type) -> None:
    assert issubclass(found, Plotted)


# ---------------------------------------------------------------------------------------------------------------------
# How results without a table of their own show themselves
# ---------------------------------------------------------------------------------------------------------------------

SHARE = Estimate(name="share", value=0.75, low=0.6, high=0.9, n=4, noun="session", level=0.9)


@dataclass(frozen=True, slots=True)
class Inner:
    asked: int
    success: Estimate


@dataclass(frozen=True, slots=True)
class Answer(Fielded):
    path: str
    at: datetime
    sure: bool
    success: Estimate
    measures: Mapping[str, Estimate]
    inner: Inner
    empty: str | None = None
    names: tuple[str, ...] = ()
    many: tuple[int, ...] = tuple(range(9))


def test_fields_are_shown_with_their_intervals_and_escaped() -> None:
    attack = "<script>alert(1)</script>\u202e"
    answer = Answer(attack, datetime(2026, 9, 1, tzinfo=UTC), True, SHARE, {attack: SHARE}, Inner(1_200, SHARE))
    page = answer._repr_html_()
    assert page.startswith('<div class="evalr"><style>')
    assert "<script" not in page
    assert "\u202e" not in page
    for text in (
        "<caption>Answer</caption>",
        "90% interval",
        "[60.0, 90.0]",
        "4 sessions",
        "1,200",
        ">yes<",
        "2026-09-01",
    ):
        assert text in page
    assert ">empty<" not in page
    assert page.count("[60.0, 90.0]") == 3


def test_of_many_fields_so_many_are_shown_as_fit() -> None:
    answer = Answer(
        "p", datetime(2026, 9, 1, tzinfo=UTC), False, SHARE, dict.fromkeys(map(str, range(60)), SHARE), Inner(1, SHARE)
    )
    page = answer._repr_html_()
    assert len(re.findall("<tr>", page)) == 42
    assert "more lines; to_dict() has all" in page


class Line(Printed):
    def __str__(self) -> str:
        return "<b> one line"


def test_what_prints_shows_what_it_prints() -> None:
    assert "<p>&lt;b&gt; one line</p>" in Line()._repr_html_()


class Held(Plotted):
    name = "held"

    def __init__(self, **held: Estimate) -> None:
        self.held = held

    def drawn(self) -> list[tuple[str, Any]]:
        return list(self.held.items())


def test_what_holds_estimates_is_drawn_as_lines_of_one_unit_each() -> None:
    time = Estimate(name="time", value=60.0, low=30.0, high=90.0, n=7, unit="seconds", noun="wait")
    plot = Held(share=SHARE, time=time).plot()
    first, second = plot.spec["vconcat"]
    assert [row["beside"] for row in first["data"]["values"]] == ["75.0% [60.0, 90.0] · 4 sessions"]
    assert [row["beside"] for row in second["data"]["values"]] == ["1m [30s, 1m 30s] · 7 waits"]
    assert plot.says == "held: share 75.0% [60.0, 90.0] (n=4); time 1m [30s, 1m 30s] (n=7)"
