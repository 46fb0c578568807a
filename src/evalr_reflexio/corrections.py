"""Which verdicts say how often people corrected the agent: before 0.2.30 that number was one of playbooks."""

from __future__ import annotations

from typing import NamedTuple

from evalr_reflexio.rows import OutcomeRow, SessionRecord
from evalr_reflexio.store import Store
from evalr_reflexio.tables import INTERACTIONS, OUTCOMES
from evalr_reflexio.turns import are_counted


class Corrections(NamedTuple):
    """How the numbers of older releases are known in a log.

    Attributes:
        are_kept: whether the release that keeps it has any others.
        are_dated: whether turns tell which release wrote them, as those do that it counts the tokens of. A later one
            that brings the database up to date leaves them uncounted; the HTTP API gives no counts.
    """

    are_kept: bool
    are_dated: bool

    def of(self, record: SessionRecord, row: OutcomeRow) -> int | None:
        """The corrections that a verdict counts; None where its number is none of corrections."""
        if not self.are_kept or not row.user:
            return None
        is_new = row.tags is not None or row.through_request is not None or not self.are_dated
        return row.corrections if is_new or not record.interactions or are_counted(record.interactions) else None


def corrections_in(store: Store) -> Corrections:
    """What a log tells of its numbers."""
    return Corrections(store.has(OUTCOMES, "tags"), not store.over_http and store.has(INTERACTIONS, "token_count"))
