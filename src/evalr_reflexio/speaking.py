"""What the turns of a session say, read in one go: who spoke last, how long it took, and what answers had with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from evalr.inputs import Role
from evalr_reflexio.rows import InteractionRow, Reference


class Bearer(NamedTuple):
    """What matters of a turn that has another answer, or learnings, with it."""

    interaction_id: int
    at: datetime
    role: Role
    shadow_content: str
    citations: Sequence[Reference] | None
    learnings: Sequence[Reference] | None


class Spoken(NamedTuple):
    """What was said until a reading time.

    Attributes:
        tokens: of the agent's answers; None where any was not counted.
        last_word: when the agent spoke last; None where it never did.
        answered: when the person spoke first after that; None where nobody did.
        waited: how long the person took each time to come back to the agent, in seconds.
        with_shadow: the answers that have another one beside them, each with whether any message came before it.
        given: the turns with learnings.
        cited: what turns cite, where they cite anything.
        is_all: whether nothing was said later.
    """

    tokens: int | None
    last_word: datetime | None
    answered: datetime | None
    waited: Sequence[float]
    with_shadow: Sequence[tuple[InteractionRow | Bearer, bool]]
    given: Sequence[InteractionRow | Bearer]
    cited: Sequence[Sequence[Reference]]
    is_all: bool


def spoken(turns: Sequence[InteractionRow], now: datetime | None = None) -> Spoken:
    """What turns in the order of their times say until `now`, or to the end."""
    is_all = now is None or not turns or turns[-1].at <= now
    if not is_all and now is not None:
        turns = [turn for turn in turns if turn.at <= now]
    tokens: int | None = 0
    last_word: datetime | None = None
    answered: datetime | None = None
    has_message = False
    waited: list[float] = []
    with_shadow: list[tuple[InteractionRow, bool]] = []
    given: list[InteractionRow] = []
    cited: list[Sequence[Reference]] = []
    for turn in turns:
        # Taken apart at once, since each look at a field of a million turns counts.
        _, _, at, role, _, content, shadow, counted, _, _, _, citations, attached, _ = turn
        if role == "agent":
            last_word, answered = at, None
            tokens = None if tokens is None or counted is None else tokens + counted
            if shadow:
                with_shadow.append((turn, has_message))
        elif role == "person":
            if answered is None:
                answered = at
                if last_word is not None:
                    waited.append((at - last_word).total_seconds())
            if content:
                has_message = True
        if citations:
            cited.append(citations)
        if attached:
            given.append(turn)
    return Spoken(tokens, last_word, answered, waited, with_shadow, given, cited, is_all)
