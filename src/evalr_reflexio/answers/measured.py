"""What arms are compared in: whether sessions succeed, and at what cost to the person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from evalr.estimates.words import count_words, seconds_text, window_words
from evalr.measures.drop_off import drop_off_share
from evalr.measures.session_outcome import corrections, escalation_rate, success_rate, turns_to_resolution
from evalr.summaries import Mean, Summary
from evalr_reflexio.answers.asked import Asked


class OutputTokens(BaseModel):
    """How much an agent wrote in a session."""

    tokens: int | None = Field(default=None, ge=0, description="Of all its answers; None where any was not counted")


output_tokens = Mean(
    "output_tokens",
    of=OutputTokens,
    value=lambda v: v.tokens,
    title="output tokens a session",
    noun="session",
    unit="tokens",
)
"""The mean number of tokens that the agent's answers in a session have."""

SUCCESS, CORRECTIONS, TURNS, ESCALATION, TOKENS, DROP_OFF = (
    "success", "corrections", "turns", "escalation", "output_tokens", "drop_off",
)  # fmt: skip
JUDGED = (SUCCESS, CORRECTIONS, TURNS, ESCALATION)
"""Those that are known of sessions with a verdict alone."""


def summaries(asked: Asked) -> Mapping[str, Summary[Any]]:
    """What is compared, by name: success first."""
    within = count_words(asked.turns, "turn")
    return {
        SUCCESS: success_rate,
        CORRECTIONS: corrections,
        TURNS: replace(turns_to_resolution, within=asked.turns, title=f"resolved within {within}"),
        ESCALATION: escalation_rate,
        TOKENS: output_tokens,
        DROP_OFF: replace(drop_off_share, within=asked.window, title=f"drop-off after {window_words(asked.window)}"),
    }


def computed_by(name: str, asked: Asked) -> tuple[str, str]:
    """The evaluator and version of what is computed of a session."""
    return (name, f"1:{seconds_text(asked.window)}" if name == DROP_OFF else "1")
