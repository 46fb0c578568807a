"""What one pass sums up of the sessions of one arm."""

from __future__ import annotations

from array import array
from collections import Counter
from datetime import datetime
from typing import Any

from evalr.tallies.counts import Counts
from evalr.tallies.durations import COMPETING, EVENT, OPEN, Durations
from evalr.tallies.numbering import Numbering
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.asked import Asked, day_of
from evalr_reflexio.answers.feeding import add_hit, add_number, add_time, entry_of
from evalr_reflexio.answers.measured import CORRECTIONS, DROP_OFF, ESCALATION, SUCCESS, TOKENS, TURNS
from evalr_reflexio.conversations import user_turns_of
from evalr_reflexio.rows import OutcomeRow, SessionRecord
from evalr_reflexio.stored import PREFIX, is_prefix

_CELLS = {
    SUCCESS: Counts,
    CORRECTIONS: Counts,
    TURNS: Durations,
    ESCALATION: Counts,
    TOKENS: Counts,
    DROP_OFF: Durations,
}


class ArmSums:
    """The sessions of one arm, or of none.

    Attributes:
        published: sessions with a request.
        evaluated: those of them with a verdict.
        judged: sessions with a verdict, those whose requests are gone among them.
        evaluation_only: published for evaluation only.
        failure_types: of sessions that failed; "" where that is not known.
        flags: of verdicts.
        entries: what each summary counts, by its name here.
        users, days, successes: of each verdict: its user's number, its day, and whether it was a success. Trends of any
            length are made of these, at nine bytes a session.
    """

    __slots__ = (
        "days", "entries", "evaluated", "evaluation_only", "failure_types", "flags", "judged", "numbering", "published",
        "successes", "users",
    )  # fmt: skip

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.published = self.evaluated = self.judged = self.evaluation_only = 0
        self.failure_types: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.entries: dict[str, Entry[Any]] = {name: entry_of(cells, numbering) for name, cells in _CELLS.items()}
        self.users, self.days, self.successes = array("i"), array("i"), array("b")

    def judge(self, record: SessionRecord, row: OutcomeRow, at: datetime, *, knows_corrections: bool) -> None:
        """Count the verdict on a session."""
        cluster = record.user or None
        entries = self.entries
        self.judged += 1
        if record.requests:
            self.evaluated += 1
        success = row.success
        add_hit(entries[SUCCESS], success, cluster)
        add_number(entries[CORRECTIONS], row.corrections if knows_corrections else None, cluster)
        add_hit(entries[ESCALATION], row.escalated, cluster)
        if success:
            add_time(entries[TURNS], row.turns, EVENT, cluster)
        else:
            turns = row.turns
            add_time(entries[TURNS], user_turns_of(record, row) if turns is None else turns, COMPETING, cluster)
            self.failure_types[(row.failure_type or "").strip().casefold()] += 1
        if is_prefix(record, row):
            self.flags[PREFIX] += 1
        self.users.append(self.numbering.number(cluster))
        self.days.append(day_of(at))
        self.successes.append(success)

    def publish(self, record: SessionRecord, asked: Asked) -> None:
        """Count a session with requests, judged or not."""
        self.published += 1
        cluster = record.user or None
        if record.requests[0].evaluation_only:
            self.evaluation_only += 1
        if not record.interactions:
            return
        tokens: int | None = 0
        last_word = answered = None
        now = asked.now
        for turn in record.interactions:
            if turn.at > now:
                break
            if turn.role == "agent":
                last_word, answered = turn.at, None
                tokens = None if tokens is None or turn.tokens is None else tokens + turn.tokens
            elif answered is None and turn.role == "person":
                answered = turn.at
        add_number(self.entries[TOKENS], tokens, cluster)
        # As `measure_drop_off` says it of sessions without proposals and ends, which Reflexio's logs do not have.
        if last_word is None:
            add_time(self.entries[DROP_OFF], 0.0, EVENT, cluster)
        elif answered is None:
            add_time(self.entries[DROP_OFF], (now - last_word).total_seconds(), OPEN, cluster)
        else:
            add_time(self.entries[DROP_OFF], (answered - last_word).total_seconds(), EVENT, cluster)

    def merge(self, other: ArmSums) -> None:
        """Count what another pass has counted, of other sessions."""
        self.published += other.published
        self.evaluated += other.evaluated
        self.judged += other.judged
        self.evaluation_only += other.evaluation_only
        self.failure_types.update(other.failure_types)
        self.flags.update(other.flags)
        for name, entry in self.entries.items():
            entry.merge(other.entries[name])
        numbers = self.numbering.of(other.numbering)
        self.users.extend(numbers[user] for user in other.users)
        self.days.extend(other.days)
        self.successes.extend(other.successes)
