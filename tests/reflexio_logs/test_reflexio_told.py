"""What the lift in success is said to tell: a side only where 0 is outside the interval."""

from __future__ import annotations

import pytest

from evalr.estimates.lift import Lift
from evalr.measures import SessionOutcome, success_rate
from evalr.verdicts import About, Verdict
from evalr_reflexio.answers.showing import _told


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
