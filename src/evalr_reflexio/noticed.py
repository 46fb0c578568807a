"""What is odd about sessions, and decides nothing by itself: counted and listed, so that somebody may look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from evalr.estimates.words import count_words
from evalr.quoting import quoted
from evalr_reflexio.arms import ANOTHER_TYPE, MOST_LISTED, arm_of_tag
from evalr_reflexio.rows import RequestRow, SessionRecord
from evalr_reflexio.stored import is_prefix

TAGS = "tags differ between requests"
EXPERIMENT_ARMS = "experiment arms differ between requests"
SOURCES = "request sources differ between requests"
EVALUATION_ONLY = "evaluation_only differs between requests"
PREFIXES = "requests came after the last one that was judged"
SHOWN = 3


@dataclass(slots=True)
class Noticed:
    """How many sessions have something odd, and which: by (user, session), the first two hundred of each.

    The first request decides all the same: which tag, request source and arm a session has.
    """

    counts: Counter[str] = field(default_factory=Counter)
    sessions: defaultdict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))

    def see(self, record: SessionRecord, odd: Sequence[str] | None = None) -> None:
        """Take one session in; `odd` is what is odd about it, where that is known."""
        for what in irregularities(record) if odd is None else odd:
            self.counts[what] += 1
            if len(self.sessions[what]) < MOST_LISTED:
                self.sessions[what].append(record.key)

    def merge(self, other: Noticed) -> None:
        """Take in what another reading has noticed, of other sessions."""
        self.counts.update(other.counts)
        for what, sessions in other.sessions.items():
            mine = self.sessions[what]
            mine += sessions[: MOST_LISTED - len(mine)]

    def sentences(self) -> list[str]:
        """One for each kind, such as `request sources differ between requests: 2 sessions ('u1' 's4', 'u2' 's1')`."""
        return [f"{what}: {count_words(count, 'session')} ({self._named(what)})" for what, count in self.counts.items()]

    def _named(self, what: str) -> str:
        named = [f"{quoted(session)} of {quoted(user)}" for user, session in self.sessions[what][:SHOWN]]
        return ", ".join(named) + (", …" if self.counts[what] > SHOWN else "")


def _differ(requests: Sequence[RequestRow]) -> bool:
    """Whether requests say different things, beside when they were made: mostly they do not."""
    return any(map(_said(requests[0]).__ne__, map(_said, requests)))


_said = itemgetter(slice(RequestRow._fields.index("source"), RequestRow._fields.index("position")))


def irregularities(record: SessionRecord) -> list[str]:
    """What is odd about one session."""
    found = []
    requests = record.requests
    if len(requests) > 1 and _differ(requests):
        if len({request.source for request in requests}) > 1:
            found.append(SOURCES)
        if len({request.evaluation_only for request in requests} - {None}) > 1:
            found.append(EVALUATION_ONLY)
        arms = {(request.experiment, request.experiment_arm) for request in requests if request.experiment is not None}
        if len(arms) > len({experiment for experiment, _ in arms}):
            found.append(EXPERIMENT_ARMS)
        tags = (arm_of_tag(request.metadata) for request in requests)
        if len({tag.arm or tag.seen for tag in tags if tag.cause in (None, ANOTHER_TYPE)}) > 1:
            found.append(TAGS)
    for row in record.outcomes:
        if row.through_request is not None and is_prefix(record, row):
            found.append(PREFIXES)
            break
    return found
