"""What a store knows of the conversations of a list: their labels, and which of them are flagged."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalr_tracepass.passes import ENDED
from evalr_tracepass.records import Account, Pass, Result
from evalr_tracepass.stores.store import Chip, Conversation, PassStore, ResultStore, Totals
from evalr_tracepass.web.snapshot import Entry, key_of

MOST_PASSES = 200
"""Passes that a page knows of: the latest."""

_TOGETHER = 10_000


class Labels(NamedTuple):
    """What passes said of one conversation.

    Attributes:
        convo_id: which.
        user: its end user.
        fired_count: results that fired.
        completed: results in all, but for those that failed.
        failed: those.
        chips: of signals that fired, the top label of each, highest score first.
    """

    convo_id: str
    user: str
    fired_count: int
    completed: int
    failed: int
    chips: tuple[Chip, ...]


@dataclass
class Kept:
    """A store of passes and one of results, on behalf of one account."""

    store: PassStore
    results_store: ResultStore
    account: Account
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _known: dict[tuple[str, str | None, bool], dict[str, Labels]] = field(default_factory=dict, repr=False)
    _totals: dict[tuple[str, object], Totals] = field(default_factory=dict, repr=False)
    _generation: object = None

    def passes(self) -> list[Pass]:
        """The latest passes, the latest first."""
        return self.store.passes(self.account, limit=MOST_PASSES)

    def labels(self, entries: Iterable[Entry], passes: str) -> dict[str, Labels]:
        """What passes said of these conversations, by their keys."""
        ids = list(dict.fromkeys(entry.convo_id for entry in entries))
        if not ids:
            return {}
        # Ids are shared by users, and with all passes each conversation comes once for each of them.
        return _by_key(self._every(passes=passes, convo_ids=ids))

    def flagged(self, passes: str, signal_id: str | None, *, read: bool = False) -> dict[str, Labels]:
        """Every flagged conversation by its key, or those in which a signal fired; with `read`, all that were read.

        They are kept until a pass ends.
        """
        asked = (passes, signal_id, read)
        generation = tuple((each.id, each.status, each.completed_at) for each in self.passes())
        with self._lock:
            if generation != self._generation:
                self._generation = generation
                self._known.clear()
            known = self._known.get(asked)
        if known is None:
            known = _by_key(self._every(passes=passes, signal_id=signal_id, flagged=not read))
            with self._lock:
                if generation == self._generation:
                    self._known[asked] = known
        return known

    def totals(self, found: Pass) -> Totals:
        """What a pass came to; of one that has ended it is counted once."""
        asked = (found.id, found.completed_at)
        known = self._totals.get(asked)
        if known is None:
            known = self.results_store.totals(self.account, found.id)
            if found.status in ENDED:
                self._totals[asked] = known
        return known

    def failed_inputs(self, found: Pass) -> int:
        """The inputs of a pass on which some model failed, also where others read them."""
        return len({each.request_id for each in self.results_store.results(self.account, passes=found.id, failed=True)})

    def results(self, convo_id: str, user: str, passes: str) -> list[Result]:
        """The results of one conversation, in the order of its turns."""
        found = self.results_store.results(self.account, passes=passes, convo_id=convo_id)
        return [each for each in found if each.user == user]

    def _every(self, **asked: Any) -> Iterable[Conversation]:
        """All that a query of the store finds, however many they are."""
        offset = 0
        while True:
            part = self.results_store.conversations(self.account, **asked, limit=_TOGETHER, offset=offset)
            yield from part
            if len(part) < _TOGETHER:
                return
            offset += _TOGETHER


def top_chips(chips: Sequence[Chip], most: int = 3) -> tuple[tuple[Chip, ...], int]:
    """The first chips of a row, and how many more there are."""
    return tuple(chips[:most]), max(0, len(chips) - most)


def _by_key(found: Iterable[Conversation]) -> dict[str, Labels]:
    """Of each conversation one, with what every pass said of it where there are several."""
    known: dict[str, Labels] = {}
    for each in found:
        key = key_of(each.convo_id, each.user)
        one = Labels(each.convo_id, each.user, each.fired_count, each.completed, each.failed, each.chips)
        known[key] = _joined(known[key], one) if key in known else one
    return known


def _joined(one: Labels, other: Labels) -> Labels:
    best: dict[tuple[str, str], Chip] = {}
    for chip in (*one.chips, *other.chips):
        place = (chip.signal_id, chip.label)
        if place not in best or chip.score > best[place].score:
            best[place] = chip
    return Labels(
        one.convo_id,
        one.user,
        one.fired_count + other.fired_count,
        one.completed + other.completed,
        one.failed + other.failed,
        tuple(sorted(best.values(), key=lambda chip: (-chip.score, chip.signal_id))),
    )
