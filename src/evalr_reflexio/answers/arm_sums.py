"""What one pass sums up of the sessions of one arm."""

from __future__ import annotations

from array import array
from collections import Counter
from datetime import datetime
from typing import Any

from evalr.tallies.durations import COMPETING, EVENT, OPEN
from evalr.tallies.numbering import Numbering
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.asked import day_of
from evalr_reflexio.answers.feeding import ByUser, mean_entry, rate_entry, time_entry
from evalr_reflexio.answers.measured import CORRECTIONS, DROP_OFF, ESCALATION, SUCCESS, TOKENS, TURNS
from evalr_reflexio.conversations import user_turns_of
from evalr_reflexio.rows import OutcomeRow, SessionRecord
from evalr_reflexio.stored import PREFIX, is_prefix


class ArmSums:
    """The sessions of one arm, or of none.

    Attributes:
        published: sessions with a request.
        evaluated: those of them with a verdict.
        judged: sessions with a verdict, those whose requests are gone among them.
        spoken: published sessions with an interaction.
        evaluation_only: published for evaluation only.
        failure_types: of sessions that failed; "" where that is not known.
        flags: of verdicts.
        by_user: sums by the number of the user, in the order of `_COLUMNS`.
        users, days, successes: of each verdict: its user's number, its day, and whether it was a success. Trends of any
            length are made of these, at nine bytes a session.
    """

    __slots__ = (
        "_own_correction_squares", "_own_token_squares", "by_user", "days", "drop_ends", "drop_times", "drop_users",
        "evaluated", "evaluation_only", "failure_types", "flags", "judged", "numbering", "published", "spoken",
        "successes", "turn_ends", "turn_times", "turn_users", "users",
    )  # fmt: skip

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.published = self.evaluated = self.judged = self.evaluation_only = self.spoken = 0
        self.failure_types: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.by_user = ByUser(8)
        self._own_correction_squares = self._own_token_squares = 0
        self.users, self.days, self.successes = array("i"), array("i"), array("b")
        self.turn_times, self.turn_ends, self.turn_users = array("d"), array("b"), array("i")
        self.drop_times, self.drop_ends, self.drop_users = array("d"), array("b"), array("i")

    def judge(self, record: SessionRecord, row: OutcomeRow, user: int, at: datetime, corrections: int | None) -> None:
        """Count the verdict on a session; `corrections` are those of the verdict, where they mean what they say."""
        by_user = self.by_user
        if user >= by_user.size:
            by_user.reach(user)
        sessions, successes, escalated, escalation_known, corrected, corrections_known, _, _ = by_user.columns
        success = row.success
        self.judged += 1
        sessions[user] += 1
        if success:
            successes[user] += 1
        if row.escalated is not None:
            escalation_known[user] += 1
            if row.escalated:
                escalated[user] += 1
        if corrections is not None:
            corrections_known[user] += 1
            corrected[user] += corrections
            if not user:
                self._own_correction_squares += corrections * corrections
        turns = row.turns
        if not success:
            self.failure_types[(row.failure_type or "").strip().casefold()] += 1
            turns = user_turns_of(record, row) if turns is None else turns
            turns = 0 if turns is None else turns  # as `turns_to_resolution` has it
        if turns is not None:
            self.turn_times.append(turns)
            self.turn_ends.append(EVENT if success else COMPETING)
            self.turn_users.append(user)
        if row.through_request is not None and is_prefix(record, row):
            self.flags[PREFIX] += 1
        self.users.append(user)
        self.days.append(day_of(at))
        self.successes.append(success)

    def speak(self, user: int, tokens: int | None, waited: float, *, ended: bool) -> None:
        """Count a published session with interactions: the agent's tokens, and how long it waited for a return."""
        by_user = self.by_user
        if user >= by_user.size:
            by_user.reach(user)
        self.spoken += 1
        if tokens is not None:
            by_user.columns[6][user] += tokens
            by_user.columns[7][user] += 1
            if not user:
                self._own_token_squares += tokens * tokens
        self.drop_times.append(waited)
        self.drop_ends.append(EVENT if ended else OPEN)
        self.drop_users.append(user)

    def entries(self) -> dict[str, Entry[Any]]:
        """What each summary has counted, by its name here."""
        sessions, successes, escalated, escalation_known, corrected, corrections_known, tokens, tokens_known = (
            self.by_user.columns
        )
        numbering = self.numbering
        found: dict[str, Entry[Any]] = {
            SUCCESS: rate_entry(successes, sessions, sessions, numbering),
            CORRECTIONS: mean_entry(corrected, corrections_known, self._own_correction_squares, self.judged, numbering),
            TURNS: time_entry(self.turn_times, self.turn_ends, self.turn_users, self.judged, numbering),
            ESCALATION: rate_entry(escalated, escalation_known, sessions, numbering),
            TOKENS: mean_entry(tokens, tokens_known, self._own_token_squares, self.spoken, numbering),
            DROP_OFF: time_entry(self.drop_times, self.drop_ends, self.drop_users, self.spoken, numbering),
        }
        for name in (SUCCESS, CORRECTIONS, TURNS, ESCALATION):
            found[name].flags = Counter(self.flags)
        return found

    def ended(self) -> tuple[list[int], list[int]]:
        """By the number of the user, successes and judged sessions."""
        sessions, successes = self.by_user.columns[:2]
        return successes, sessions

    def merge(self, other: ArmSums) -> None:
        """Count what another pass has counted, of other sessions."""
        for name in ("published", "evaluated", "judged", "evaluation_only", "spoken", "_own_correction_squares",
                     "_own_token_squares"):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failure_types.update(other.failure_types)
        self.flags.update(other.flags)
        numbers = self.numbering.of(other.numbering)
        self.by_user.merge(other.by_user, numbers)
        for name in ("days", "successes", "turn_times", "turn_ends", "drop_times", "drop_ends"):
            getattr(self, name).extend(getattr(other, name))
        is_same = isinstance(numbers, range)
        for name in ("users", "turn_users", "drop_users"):
            theirs = getattr(other, name)
            getattr(self, name).extend(theirs if is_same else map(numbers.__getitem__, theirs))
