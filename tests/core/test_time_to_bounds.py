"""The bounds of a share by a time hold what full information would have shown, whichever way it turned out."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr.inputs import About
from evalr.summaries.time_to import TimeTo
from evalr.verdicts import Verdict

Fold = Literal["any", "all"] | None
Row = tuple[int | None, str | None, str]
"""How long (None: not known), how it ended (None: not yet), and of which unit."""

folds: st.SearchStrategy[Fold] = st.sampled_from([None, "any", "all"])
row_lists = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 6), st.integers(0, 6)),
        st.sampled_from([None, "yes", "no"]),
        st.sampled_from("xy"),
    ),
    min_size=1,
    max_size=4,
)


class Wait(BaseModel):
    after: float | None
    end: str | None


def time_to(fold: Fold, within: float | None = None, opened: bool = False) -> TimeTo[Wait]:
    return TimeTo(
        "wait",
        of=Wait,
        after=lambda v: v.after,
        end=lambda v: v.end,
        event="yes",
        within=within,
        open=opened,
        fold=fold,
        per=None if fold is None else "unit",
    )


def verdict(after: float | None, end: str | None, unit: str) -> Verdict[Wait]:
    about = About("session", attributes={"unit": unit})
    return Verdict(Wait(after=after, end=end), "wait", about=about)


def ways_to_end(row: Row) -> list[tuple[float, str]]:
    """An open row ends after it was last seen open: soon, in either way, or late."""
    after, end, _ = row
    if after is None:
        return [(time, how) for time in (0, 3, 6, 9) for how in ("yes", "no")]
    return [(after + 0.5, "yes"), (after + 0.5, "no"), (after + 20, "yes")] if end is None else [(after, end)]


def true_share(rows: list[Row], ends: tuple[tuple[float, str], ...], fold: Fold, within: float, opened: bool) -> float:
    units = defaultdict(list)
    for place, (row, end) in enumerate(zip(rows, ends, strict=True)):
        units[place if fold is None else row[2]].append(end)
    hits = 0
    for of_unit in units.values():
        last = min(of_unit, key=lambda each: (-each[0], each[1]))
        first = min(of_unit, key=lambda each: (each[0], each[1] != "yes"))
        after, how = last if fold == "all" else first
        hits += (how == "yes" and after <= within) != opened
    return float(Fraction(hits, len(units)))


@given(row_lists, folds, st.integers(0, 7), st.booleans())
@example([(2, "yes", "x"), (6, None, "x"), (4, None, "x")], None, 5, True)  # two thirds, by the curve and by counts
def test_bounds_hold_what_full_information_would_show(rows: list[Row], fold: Fold, within: int, opened: bool) -> None:
    estimate = time_to(fold, within, opened).estimate([verdict(*row) for row in rows])
    assert estimate.bounds is not None
    low, high = estimate.bounds
    shares = [true_share(rows, ends, fold, within, opened) for ends in product(*map(ways_to_end, rows))]
    assert low <= min(shares)
    assert max(shares) <= high
    assert estimate.value is None or low <= estimate.value <= high


def test_the_last_of_a_unit_with_an_open_row_may_be_the_end_already_seen() -> None:
    """Open after 5, another row ended after 6: if the open one ends in between, the last end is at 6, in time."""
    rows = [verdict(6, "yes", "x"), verdict(5, None, "x")]
    for given_rows in (rows, rows[::-1]):
        estimate = time_to("all", 6).estimate(given_rows)
        assert (estimate.status, estimate.bounds) == ("not_reached", (0, 1))
    assert time_to("all", 5.5).estimate(rows).value == 0


@pytest.mark.parametrize(("fold", "truth"), [("any", 1 - np.exp(-2.5)), ("all", (1 - np.exp(-1.25)) ** 2)])
def test_a_unit_cut_off_as_one_is_right_on_average(fold: Literal["any", "all"], truth: float) -> None:
    random = np.random.default_rng(1)
    size = 4000
    natural, cut = random.exponential(8, (size, 2)), random.uniform(0, 24, size)
    rows = [
        verdict(min(time, cut[unit]), "yes" if time <= cut[unit] else None, str(unit))
        for unit in range(size)
        for time in natural[unit].tolist()
    ]
    assert time_to(fold, 10.0).estimate(rows).value == pytest.approx(truth, abs=0.03)
