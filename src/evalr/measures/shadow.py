"""Shadow wins: of two answers to one message, which is better, the one that was served or its shadow?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from evalr.inputs import Exchange, Side
from evalr.measures.measure import Measure
from evalr.summaries import Contest, Rate, Summary
from evalr.verdicts import Result, Verdict

Winner = Literal["served", "shadow", "tie"]


class Preference(BaseModel):
    """Which of a `Pair` of answers is better, as a judge or people see it who do not know where they come from."""

    better: Literal["first", "second", "tie"] = Field(description="The better answer, or tie")
    significant: bool = Field(default=False, description="It is better by far; never so for a tie")
    reason: str | None = Field(default=None, description="Why, in a sentence or two")

    @model_validator(mode="after")
    def _nobody_wins_a_tie(self) -> Preference:
        if self.better == "tie" and self.significant:
            raise ValueError("a tie is not significant")
        return self


class ShadowWin(BaseModel):
    """Which of two answers to one message is better, as a judge or people see it.

    Where both orders were asked, `when_served_first` and `when_shadow_first` keep what each said, and a winner is one
    that won in both. `shown_first` is for an answer in one order alone.
    """

    winner: Winner = Field(description="The better answer, or tie")
    significant: bool | None = Field(default=None, description="It is better by far")
    shown_first: Side | None = Field(default=None, description="The answer that was shown first")
    when_served_first: Winner | None = Field(default=None, description="The winner with the served answer shown first")
    when_shadow_first: Winner | None = Field(default=None, description="The winner with the shadow shown first")
    longer: Literal["served", "shadow", "neither"] | None = Field(
        default=None, description="The answer with more characters"
    )
    reason: str | None = Field(default=None, description="Why, in a sentence or two")
    treatment: Side = Field(default="served", description="The answer that comes from what is being tried")

    @model_validator(mode="after")
    def _its_parts_agree(self) -> ShadowWin:
        if self.winner == "tie" and self.significant:
            raise ValueError("a tie is not significant")
        if (self.when_served_first is None) != (self.when_shadow_first is None):
            raise ValueError("when_served_first and when_shadow_first belong together: both orders, or neither")
        if self.when_served_first is None:
            return self
        if self.shown_first is not None:
            raise ValueError("shown_first is of one order, and both orders were asked")
        if self.winner != (self.when_served_first if self.consistent else "tie"):
            raise ValueError("the winner is the one that both orders agree on, and else there is a tie")
        return self

    @property
    def consistent(self) -> bool | None:
        """Whether both orders said the same; None where they were not both asked."""
        return None if self.when_served_first is None else self.when_served_first == self.when_shadow_first

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # Of the fields that say how it was asked, those that do say it.
        optional = ("shown_first", "when_served_first", "when_shadow_first", "longer")
        return [(name, value) for name, value in super().__repr_args__() if value is not None or name not in optional]


# ---------------------------------------------------------------------------------------------------------------------
# Summaries
# ---------------------------------------------------------------------------------------------------------------------


def ending_for(winner: Winner, side: Side | None) -> str:
    """How it ended for one side."""
    if winner == "tie":
        return "tie"
    return "win" if winner == side else "loss"


def _treatment_first(verdict: ShadowWin) -> bool | None:
    return None if verdict.shown_first is None else verdict.shown_first == verdict.treatment


shadow_wins = Contest(
    "shadow",
    of=ShadowWin,
    outcome=lambda v: ending_for(v.winner, v.treatment),
    first=_treatment_first,
    view="wins",
    title="shadow wins",
    noun="comparison",
)
"""The share of comparisons that the treatment's answer won; ties count as not won. `view=` gives other readings."""

shadow_net = replace(shadow_wins, name="shadow_net", view="net", title="net win of the treatment")
"""The share that the treatment won less the share that it lost: above 0 where it wins more often. Gates hold this."""

shadow_decided = replace(shadow_wins, name="shadow_decided", view="decided", title="won where decided")
"""The share that the treatment won of those that are no tie."""

shadow_half_tie = replace(shadow_wins, name="shadow_half_tie", view="half_tie", title="won, ties half")
"""The share that the treatment won, with a tie as half a win."""

shadow_adjusted = replace(
    shadow_wins,
    name="shadow_adjusted",
    view="adjusted",
    title="won, freed of position",
    leaves_out=lambda v: None if v.consistent is None else "both orders asked",
)
"""The same as if the treatment had been shown first in half of the comparisons; of those asked in one order."""

shadow_consistency = Rate(
    "shadow_consistent",
    of=ShadowWin,
    hits=lambda v: v.consistent,
    leaves_out=lambda v: "in one order only" if v.consistent is None else None,
    title="same winner in both orders",
    noun="comparison",
)
"""The share of comparisons whose winner, or tie, is the same in both orders; of those asked in both."""


def _slot(verdict: ShadowWin) -> str | None:
    """How it ended for the slot shown first: in both orders, where both were asked, or it is a tie."""
    if verdict.consistent is None:
        return None if verdict.shown_first is None else ending_for(verdict.winner, verdict.shown_first)
    slots = {ending_for(winner, first) for first, winner in _orders(verdict)}
    return slots.pop() if len(slots) == 1 else "tie"


first_slot_wins = Contest(
    "shadow_first_slot",
    of=ShadowWin,
    outcome=_slot,
    view="decided",
    title="won by the slot shown first",
    noun="comparison",
)
"""Of the comparisons that the position could decide, the share that the answer shown first won; half without a bias.

Asked in one order, these are all that are no tie. Asked in both, they are those where one slot won in both orders.
"""

longer_wins = Contest(
    "shadow_longer",
    of=ShadowWin,
    outcome=lambda v: None if v.longer is None else ending_for(v.winner, None if v.longer == "neither" else v.longer),
    leaves_out=lambda v: "of equal length" if v.longer == "neither" else None,
    view="decided",
    title="won by the longer answer",
    noun="comparison",
)
"""Of the comparisons that are no tie, the share that the longer answer won, whichever it was.

A judge that prefers length is above half; so is one that is right, where longer answers are better.
"""


def each_order(results: Iterable[Result[ShadowWin]]) -> list[Result[ShadowWin]]:
    """Results in both orders as two results each, one for each order; any others as they are.

    `shadow_wins.position` and `shadow_wins.consistency` read them. The two are told apart by `repeat`.
    """
    found: list[Result[ShadowWin]] = []
    for result in results:
        if isinstance(result, Verdict) and result.value.consistent is not None:
            found += _as_two(result)
        else:
            found.append(result)
    return found


def _as_two(result: Verdict[ShadowWin]) -> list[Result[ShadowWin]]:
    value, about = result.value, result.about
    parts: list[Result[ShadowWin]] = []
    for number, (first, winner) in enumerate(_orders(value), start=1):
        alone = ShadowWin(winner=winner, shown_first=first, longer=value.longer, treatment=value.treatment)
        repeat = number if about is None or about.repeat is None else 2 * about.repeat - 2 + number
        own = None if about is None else about._replace(repeat=repeat)
        # What both cost is not to be counted twice.
        parts.append(replace(result, value=alone, about=own, confidence=None, latency=None, cost=None))
    return parts


def _orders(verdict: ShadowWin) -> list[tuple[Side, Winner]]:
    """The side that was shown first, and the winner then."""
    orders: list[tuple[Side, Winner | None]] = [
        ("served", verdict.when_served_first),
        ("shadow", verdict.when_shadow_first),
    ]
    return [(first, winner) for first, winner in orders if winner is not None]


def _summaries() -> Sequence[Summary[Any]]:
    return (
        shadow_wins,
        shadow_net,
        shadow_decided,
        shadow_half_tie,
        shadow_adjusted,
        shadow_consistency,
        first_slot_wins,
        longer_wins,
    )


measure = Measure(
    name="shadow",
    question="is the treatment's answer better than the other one?",
    input=Exchange,
    verdict=ShadowWin,
    summaries=_summaries,
)
