"""What a notebook shows of each kind of result: the same look, every text escaped, and nothing that is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from evalr import detectable, sample_ratio, users_needed
from evalr.estimates import display
from evalr.estimates.contest_results import WinTest
from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Allocation
from evalr.estimates.shown import Fielded
from evalr.measures import SessionOutcome
from evalr.measures.session_outcome import success_rate

HOSTILE = "</p><script>alert(1)</script>\x1b[2J\u202e"

SHOWN: list[Any] = [
    users_needed(0.75, 0.7),
    detectable(0.7, treatment_users=900, control_users=100),
    sample_ratio([60, 40], [0.5, 0.5]),
    Allocation(assigned={"a": 3, HOSTILE: 4}, evaluated={"a": 1, HOSTILE: 2}),
    WinTest(p=0.1, exact=None, mid_p=None, method="m/1", wins=3, losses=1, clusters=4),
]


@pytest.mark.parametrize("result", SHOWN, ids=lambda result: type(result).__name__)
def test_what_prints_a_line_shows_it(result: Any) -> None:
    page = result._repr_html_()
    assert page.startswith('<div class="evalr"><style>')
    assert set(re.findall(r"</?(\w+)", page)) <= {"div", "style", "p", "pre"}
    assert not re.search("[\x1b\u202e]", page)


@dataclass(frozen=True, slots=True)
class Found(Fielded):
    """A result of a reader, such as a package may add."""

    share: Estimate
    seen: dict[str | None, int]
    lists: tuple[int, ...] = ()


def test_what_has_no_table_prints_a_line_for_each_field() -> None:
    share = success_rate.estimate([SessionOutcome(success=each) for each in (True, False, True)])
    found = Found(share, {HOSTILE: 2, None: 1})
    head, first, *rest = str(found).split("\n")
    assert (head, first) == ("Found", "  share  66.7% [20.8, 93.9] · 3 sessions · low confidence")
    assert rest[0] == "  seen"
    assert rest[2] == "    without an arm  1"
    assert not re.search("[\x1b\u202e]", str(found))
    assert repr(found).startswith("Found(share=Estimate(name=")


def test_lines_stay_aligned_and_are_so_many_as_fit() -> None:
    page = display.printed("\n".join(f"{number:>4}  <b>" for number in range(60)))
    assert "<pre>   0  &lt;b&gt;\n   1" in page
    assert "and 20 more lines; print() has them all" in page
    assert "<p>one line</p>" in display.printed("one line")
