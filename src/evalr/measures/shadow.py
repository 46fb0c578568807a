"""Shadow wins: of two answers to one message, which is better, the one that was served or its shadow?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from evalr.inputs import Exchange, Side
from evalr.measures.measure import Measure
from evalr.summaries import Contest, Summary


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
    """Which of two answers to one message is better, as a judge or people see it."""

    winner: Literal["served", "shadow", "tie"] = Field(description="The better answer, or tie")
    significant: bool | None = Field(default=None, description="It is better by far")
    shown_first: Side | None = Field(default=None, description="The answer that was shown first")
    reason: str | None = Field(default=None, description="Why, in a sentence or two")
    treatment: Side = Field(default="served", description="The answer that comes from what is being tried")

    @model_validator(mode="after")
    def _nobody_wins_a_tie(self) -> ShadowWin:
        if self.winner == "tie" and self.significant:
            raise ValueError("a tie is not significant")
        return self


def _outcome(verdict: ShadowWin) -> str:
    if verdict.winner == "tie":
        return "tie"
    return "win" if verdict.winner == verdict.treatment else "loss"


def _treatment_first(verdict: ShadowWin) -> bool | None:
    return None if verdict.shown_first is None else verdict.shown_first == verdict.treatment


shadow_wins = Contest(
    "shadow",
    of=ShadowWin,
    outcome=_outcome,
    first=_treatment_first,
    view="wins",
    title="shadow wins",
    noun="comparison",
)
"""The share of comparisons that the treatment's answer won; ties count as not won. `view=` gives other readings."""


def _summaries() -> Sequence[Summary[Any]]:
    return (shadow_wins,)


measure = Measure(
    name="shadow",
    question="is the treatment's answer better than the other one?",
    input=Exchange,
    verdict=ShadowWin,
    summaries=_summaries,
)
