"""What a notebook shows of each kind of result: the same look, every text escaped, and nothing that is fetched."""

from __future__ import annotations

import re
from typing import Any

import pytest

from evalr import detectable, sample_ratio, users_needed
from evalr.estimates import display
from evalr.estimates.contest_results import WinTest
from evalr.estimates.lift import Allocation

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


def test_lines_stay_aligned_and_are_so_many_as_fit() -> None:
    page = display.printed("\n".join(f"{number:>4}  <b>" for number in range(60)))
    assert "<pre>   0  &lt;b&gt;\n   1" in page
    assert "and 20 more lines; print() has them all" in page
    assert "<p>one line</p>" in display.printed("one line")
