"""What the lift in success is said to tell: a side only where 0 is outside the interval."""

from __future__ import annotations

import pytest

from evalr.estimates.lift import Lift
from evalr.measures import SessionOutcome, success_rate
from evalr.verdicts import About, Verdict
from evalr_reflexio.answers.showing import _told
from evalr_reflexio.answers.words import power_words


def lift(treated: int, control: int, *, n: int = 40, randomised: bool = True) -> Lift:
    """Of n users in each arm, so many succeeded."""
    results = [
        Verdict(
            SessionOutcome(success=number < wins),
            "agent_success",
            about=About("session", f"{arm}{number}", user=f"{arm}{number}", arm=arm),
        )
        for arm, wins in (("treatment", treated), ("holdout", control))
        for number in range(n)
    ]
    return success_rate.lift(results, randomised=randomised)


@pytest.mark.parametrize(
    ("treated", "control", "randomised", "told"),
    [
        (21, 20, True, "0 is in the interval: this log does not tell which arm does better"),
        (38, 5, True, "0 is not in the interval: treatment does better"),
        (5, 38, True, "0 is not in the interval: holdout does better"),
        (38, 5, False, "0 is not in the interval: treatment does better, whatever the cause"),
    ],
)
def test_a_side_is_told_where_0_is_outside(treated: int, control: int, randomised: bool, told: str) -> None:
    found = lift(treated, control, randomised=randomised)
    assert _told(found.difference, found) == told


def test_no_difference_is_promised_that_is_more_than_all_there_is() -> None:
    assert power_words(lift(2, 1, n=2)) == "less than 80% power to see even 100pp"
    found = lift(21, 20)
    assert power_words(found) == f"80% power to see {100 * (found.detectable() or 0):.1f}pp"
