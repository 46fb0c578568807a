"""Shadow wins: counted for the treatment, whichever of the two answers that was."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from evalr import About, Verdict
from evalr.inputs import Exchange, Pair
from evalr.measures import Preference, ShadowWin, shadow_wins
from evalr.measures.shadow import measure
from evalr.testing import MeasureContract


def won(winner: Any, **fields: Any) -> ShadowWin:
    return ShadowWin(winner=winner, **fields)


def test_the_headline_is_that_of_the_published_page() -> None:
    verdicts = [won("served")] * 134 + [won("tie")] * 52 + [won("shadow")] * 14
    assert str(shadow_wins.estimate(verdicts)).startswith("67% win rate · 134 wins · 52 ties · 14 losses · n=200")


def test_the_treatment_wins_whichever_side_it_is_on() -> None:
    verdicts = [won("shadow", treatment="shadow"), won("served", treatment="shadow"), won("served"), won("tie")]
    assert shadow_wins.estimate(verdicts).counts == {"wins": 2, "ties": 1, "losses": 1}


def test_the_position_is_that_of_the_treatment() -> None:
    verdicts = [
        won("served", shown_first="served"),
        won("served", shown_first="shadow"),
        won("served", shown_first="shadow", treatment="shadow"),
        won("tie"),
    ]
    counts = shadow_wins.estimate(verdicts).counts
    assert (counts["shown_first"], counts["shown_second"]) == (2, 1)


def test_both_orders_are_a_pair() -> None:
    about = About("exchange", id="e1", session="s1")
    answers = [won("served", shown_first="served"), won("shadow", shown_first="shadow")]
    results = [
        Verdict(answer, "shadow", about=about._replace(repeat=number)) for number, answer in enumerate(answers, start=1)
    ]
    assert shadow_wins.estimate(results, per="id", fold="all").counts == {"wins": 0, "ties": 1, "losses": 0}
    consistency = shadow_wins.consistency(results)
    assert (consistency.same.value, consistency.first_slot) == (0, 1)


def test_a_tie_is_not_significant() -> None:
    assert won("tie", significant=False).winner == "tie"
    with pytest.raises(ValidationError, match="a tie is not significant"):
        won("tie", significant=True)


def test_a_pair_does_not_say_where_its_answers_come_from() -> None:
    pair = Pair(id="e1", user="ada", session="s1", message="Ship it?", first="Yes", second="No")
    assert pair.about().subject == ("pair", "ada", "s1", "e1")
    with pytest.raises(ValidationError, match="a tie is not significant"):
        Preference(better="tie", significant=True)


class TestContract(MeasureContract):
    measure = measure
    results: ClassVar = [
        Verdict(won(winner, shown_first="served"), "shadow", about=Exchange(id=f"e{number}", **texts).about())
        for texts in [{"message": "Ship it?", "served": "Yes", "shadow": "No"}]
        for number, winner in enumerate(["served", "tie", "shadow", "served"])
    ]
