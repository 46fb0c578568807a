"""The sessions of a log with all that judges look at: the conversation, its exchanges, and its learnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import ClassVar

from pydantic import Field

from evalr.input_fields import Name
from evalr.inputs import Exchange, Input, LearningUse, Side, Transcript, Turn
from evalr.logs.log import Log
from evalr.quoting import quoted
from evalr_reflexio.arms import Arms
from evalr_reflexio.controls import controls_of
from evalr_reflexio.conversations import (
    GONE,
    NO_MESSAGE,
    NO_SIDE_EXCHANGE,
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
    store: Store, records: Iterable[SessionRecord], account: Log, *, arms: Arms | None = None, shadow: Served = "served"
) -> Iterator[Conversation]:
    """What there is to judge, session by session; those of which verdicts alone are left are left out.

    Args:
        store: the log.
        records: its sessions.
        account: takes count of answers and learnings in them that nobody can judge.
        arms: what puts sessions into arms, or None.
        shadow: which of two answers had Reflexio.
    """
    controls = controls_of(arms, shadow)
    remaining = (record for record in records if record.requests)
    while batch := list(islice(remaining, _BATCH)):
        texts = store.learning_texts(references_in(batch))
        for record in batch:
            arm = None if arms is None else arms.read(record).arm
            transcript = transcript_of(record, arm=arm) if record.interactions else None
            turns = [] if transcript is None else transcript.turns
            uses = list(learning_uses_of(record, texts, turns=turns, arm=arm))
            gone = [each for each in uses if isinstance(each, Reference)]
            account.records += len(gone)
            for each in gone:
                account.leave_out(GONE, f"{each.kind} {quoted(each.id)}")
            first = record.requests[0]
            yield made(
                Conversation,
                {
                    "id": record.session,
                    "at": first.at,
                    "read_at": None,
                    "weight": None,
                    "transcript": transcript,
                    "exchanges": list(_exchanges(record, arm, treatment_side(shadow, arm, controls), account)),
                    "learnings": [each for each in uses if not isinstance(each, Reference)],
                    "gone": len(gone),
                    "request_source": first.source,
                    "evaluation_only": first.evaluation_only,
                    **shared_fields(record, arm),
                },
            )


def _exchanges(record: SessionRecord, arm: str | None, side: Side | None, account: Log) -> Iterator[Exchange]:
    """The exchanges of a session that can be judged; the others are left out by why they cannot."""
    for each in exchanges_of(record, treatment=side or "served", arm=arm):
        if side is not None and each.message:
            yield each
        else:
            account.records += 1
            account.leave_out(NO_MESSAGE if side else NO_SIDE_EXCHANGE, f"interaction {each.id}")
