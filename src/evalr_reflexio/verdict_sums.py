"""Verdicts of a log's own judges, summed up by user into what the summaries of their measures would have counted.

Each kind of verdict has a class: `add` one by one, and `entries` at the end, by the name of the first summary that
reads a tally.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import compress, count
from typing import Any

from evalr.inputs import Side
from evalr.measures.learning import (
    learning_coverage,
    negative_rate,
    net_impact,
    positive_rate,
    relevance_rate,
    response_negative_rate,
    response_net_impact,
    response_relevance_rate,
)
from evalr.measures.session_outcome import (
    correction_rate,
    corrections,
    escalation_rate,
    success_rate,
    turns_to_resolution,
)
from evalr.measures.shadow import first_slot_wins, longer_wins, shadow_adjusted, shadow_consistency, shadow_wins
from evalr.summaries.summary import UNKNOWN
from evalr.tallies.counts import Counts, Units
from evalr.tallies.durations import COMPETING, EVENT
from evalr.tallies.numbering import Numbering
from evalr.tallies.outcomes import FIRST, LOSS, SECOND, TIE, UNKNOWN_POSITION, WIN, UnitOutcomes, UnitRow
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.feeding import ByUser, contest_entry, mean_entry, rate_entry, time_entry
from evalr_reflexio.conversations import user_turns_of
from evalr_reflexio.rows import LearningRow, OutcomeRow, SessionRecord, ShadowRow
from evalr_reflexio.stored import PARTIAL, PREFIX, is_prefix

Entries = dict[str, Entry[Any]]

_ONE_ORDER = "in one order only"


class OutcomeVerdicts:
    """Verdicts on sessions."""

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.results = 0
        self.flags: Counter[str] = Counter()
        self._by_user = ByUser(7)
        self._after, self._end, self._users = array("d"), array("b"), array("i")

    def add(self, record: SessionRecord, row: OutcomeRow, user: int, corrected: int | None) -> None:
        """Count one, of the user of this number; `corrected` is how often, where the log's number means that."""
        by_user = self._by_user
        if user >= by_user.size:
            by_user.reach(user)
        rows, successes, escalated, escalation_known, corrections_of, corrections_known, any_corrected = by_user.columns
        self.results += 1
        rows[user] += 1
        turns = row.turns
        if row.success:
            successes[user] += 1
        elif turns is None:
            turns = user_turns_of(record, row) or 0
        if row.escalated is not None:
            escalation_known[user] += 1
            if row.escalated:
                escalated[user] += 1
        if corrected is not None:
            corrections_known[user] += 1
            if corrected:
                corrections_of[user] += corrected
                any_corrected[user] += 1
        if turns is not None:
            self._after.append(turns)
            self._end.append(EVENT if row.success else COMPETING)
            self._users.append(user)
        if row.through_request is not None and is_prefix(record, row):
            self.flags[PREFIX] += 1

    def entries(self) -> Entries:
        """What was counted."""
        rows, successes, escalated, escalation_known, corrections_of, corrections_known, any_corrected = (
            self._by_user.columns
        )
        numbering, results = self.numbering, self.results
        return {
            success_rate.name: rate_entry(successes, rows, rows, numbering),
            escalation_rate.name: rate_entry(escalated, escalation_known, rows, numbering),
            correction_rate.name: rate_entry(any_corrected, corrections_known, rows, numbering),
            corrections.name: mean_entry(corrections_of, corrections_known, 0, results, numbering),
            turns_to_resolution.name: time_entry(self._after, self._end, self._users, results, numbering),
        }


class ShadowVerdicts:
    """Verdicts on two answers."""

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.results = 0
        self.flags: Counter[str] = Counter()
        self._by_user = ByUser(6)

    def add(self, row: ShadowRow, treatment: Side, user: int) -> None:
        """Count one, of the user of this number, in which this answer had Reflexio."""
        by_user = self._by_user
        if user >= by_user.size:
            by_user.reach(user)
        winner = row.winner
        ending = TIE if winner == "tie" else WIN if winner == treatment else LOSS
        position = FIRST if row.served_first == (treatment == "served") else SECOND
        self.results += 1
        by_user.columns[2 * ending + position][user] += 1

    def entries(self) -> Entries:
        """What was counted."""
        columns, numbering, results = self._by_user.columns, self.numbering, self.results
        endings = {(end, at): columns[2 * end + at] for end in (WIN, TIE, LOSS) for at in (FIRST, SECOND)}
        slot = {
            (WIN, UNKNOWN_POSITION): _sum(endings[WIN, FIRST], endings[LOSS, SECOND]),
            (TIE, UNKNOWN_POSITION): _sum(endings[TIE, FIRST], endings[TIE, SECOND]),
            (LOSS, UNKNOWN_POSITION): _sum(endings[LOSS, FIRST], endings[WIN, SECOND]),
        }
        in_one_order: Entry[Any] = Entry(Counts())
        in_one_order.results = in_one_order.left_out[_ONE_ORDER] = results
        return {
            shadow_wins.name: contest_entry(endings, results, numbering),
            shadow_adjusted.name: contest_entry(endings, results, numbering),
            shadow_consistency.name: in_one_order,
            first_slot_wins.name: contest_entry(slot, results, numbering),
            longer_wins.name: contest_entry({}, results, numbering),
        }


class LearningVerdicts:
    """Verdicts on learnings, and on responses made of them."""

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.results = 0
        self.flags: Counter[str] = Counter()
        self._by_user = ByUser(6)
        self._responses: dict[tuple[int, ...], ByUser] = {}

    def add(self, rows: Sequence[LearningRow], user: int, *, partial: bool) -> None:
        """Count all those on one response, of the user of this number; `partial` where grading did not finish."""
        by_user = self._by_user
        if user >= by_user.size:
            by_user.reach(user)
        uses, relevance_known, relevants, known, helped, hurt = by_user.columns
        size = len(rows)
        self.results += size
        if partial:
            self.flags[PARTIAL] += size
        up = down = judged = relevant = told = 0
        for row in rows:
            if row.relevant is not None:
                told += 1
                relevant += row.relevant
            impact = row.impact
            if impact is not None:
                judged += 1
                if impact == "positive":
                    up += 1
                elif impact == "negative":
                    down += 1
        uses[user] += size
        relevance_known[user] += told
        relevants[user] += relevant
        known[user] += judged
        helped[user] += up
        hurt[user] += down
        response = (size, told, relevant, judged, up, down)
        alike = self._responses.get(response)
        if alike is None:
            alike = self._responses[response] = ByUser(1)
        if user >= alike.size:
            alike.reach(user)
        alike.columns[0][user] += 1

    def entries(self) -> Entries:
        """What was counted."""
        uses, relevance_known, relevants, known, helped, hurt = self._by_user.columns
        neutral = [all_ - up - down for all_, up, down in zip(known, helped, hurt, strict=True)]
        endings = {(WIN, UNKNOWN_POSITION): helped, (LOSS, UNKNOWN_POSITION): hurt, (TIE, UNKNOWN_POSITION): neutral}
        numbering = self.numbering
        return {
            net_impact.name: contest_entry(endings, self.results, numbering),
            relevance_rate.name: rate_entry(relevants, relevance_known, uses, numbering),
            positive_rate.name: rate_entry(helped, known, uses, numbering),
            negative_rate.name: rate_entry(hurt, known, uses, numbering),
            learning_coverage.name: rate_entry(known, uses, uses, numbering),
            response_net_impact.name: self._of_responses(sum(known), UnitOutcomes(), _net),
            response_negative_rate.name: self._of_responses(sum(known), UnitOutcomes(), _harm),
            response_relevance_rate.name: self._of_responses(sum(relevance_known), Units(), _relevant),
        }

    def _of_responses(self, known: int, cells: Any, row_of: Any) -> Entry[Any]:
        keys = self.numbering.keys
        for response, by_user in self._responses.items():
            (times,) = by_user.columns
            for user in compress(count(), times):
                cells.alike[row_of(response, keys[user])] += times[user]
        entry: Entry[Any] = Entry(cells)
        entry.results, entry.counted = self.results, known
        if known < self.results:
            entry.left_out[UNKNOWN] = entry.unknown = self.results - known
        return entry


def _net(response: tuple[int, ...], user: Any) -> UnitRow:
    size, _, _, judged, up, down = response
    return UnitRow((0, 0, 0, 0, 0, 0, up, judged - up - down, down), size - judged, user)


def _harm(response: tuple[int, ...], user: Any) -> UnitRow:
    size, _, _, judged, up, down = response
    return UnitRow((0, 0, 0, 0, 0, 0, down, judged - up - down, up), size - judged, user)


def _relevant(response: tuple[int, ...], user: Any) -> tuple[int, int, int, Any]:
    size, told, relevant, _, _, _ = response
    return relevant, told, size - told, user


def _sum(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return list(map(int.__add__, one, other))
