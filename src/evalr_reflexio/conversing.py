"""The sessions of a log with all that judges look at: the conversation, its exchanges, and its learnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import ClassVar

from pydantic import Field

from evalr.input_fields import Name
from evalr.inputs import Exchange, Input, LearningUse, Transcript, Turn
from evalr_reflexio.arms import Arms
from evalr_reflexio.conversations import (
    exchanges_of,
    learning_uses_of,
    references_in,
    shared_fields,
    transcript_of,
)
from evalr_reflexio.making import made
from evalr_reflexio.rows import Reference, SessionRecord
from evalr_reflexio.store import Store
from evalr_reflexio.stored import Served, treatment_side

_BATCH = 64


class Conversation(Input):
    """One session of one user, with what each family of judges reads.

    Attributes:
        transcript: for the judge of outcomes; None where nothing was said.
        exchanges: its answers that have another one beside them, for the shadow judge.
        learnings: those that its answers were given, for the learning judge.
        gone: how many more learnings there were, whose texts are gone.
        request_source: where its first request came from, "" where it does not say.
        evaluation_only: whether it was only for evaluation; None where the log does not say.
    """

    kind: ClassVar[str] = "session"

    id: Name
    transcript: Transcript | None = None
    exchanges: list[Exchange] = Field(default_factory=list)
    learnings: list[LearningUse] = Field(default_factory=list)
    gone: int = 0
    request_source: str = ""
    evaluation_only: bool | None = None

    @property
    def turns(self) -> list[Turn]:
        """What was said: its last time tells how long it has been quiet."""
        return [] if self.transcript is None else self.transcript.turns

    def first_event(self) -> datetime | None:
        """The time of the first turn."""
        return None if self.transcript is None else self.transcript.first_event()


def conversations(
    store: Store, records: Iterable[SessionRecord], *, arms: Arms | None = None, shadow: Served = "served"
) -> Iterator[Conversation]:
    """What there is to judge, session by session; those of which verdicts alone are left are left out."""
    remaining = (record for record in records if record.requests)
    while batch := list(islice(remaining, _BATCH)):
        texts = store.learning_texts(references_in(batch))
        for record in batch:
            arm = None if arms is None else arms.read(record).arm
            side = treatment_side(shadow, arm)
            transcript = transcript_of(record, arm=arm) if record.interactions else None
            turns = [] if transcript is None else transcript.turns
            uses = list(learning_uses_of(record, texts, turns=turns, arm=arm))
            first = record.requests[0]
            yield made(
                Conversation,
                {
                    "id": record.session,
                    "at": first.at,
                    "read_at": None,
                    "weight": None,
                    "transcript": transcript,
                    "exchanges": [
                        each
                        for each in exchanges_of(record, treatment=side or "served", arm=arm)
                        if each.message and side is not None
                    ],
                    "learnings": [each for each in uses if not isinstance(each, Reference)],
                    "gone": sum(isinstance(each, Reference) for each in uses),
                    "request_source": first.source,
                    "evaluation_only": first.evaluation_only,
                    **shared_fields(record, arm),
                },
            )
