"""The newest verdicts on sessions, one for each session of each user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalr.estimates.shown import Fielded
from evalr_reflexio.conversations import NO_SOURCE
from evalr_reflexio.rows import OutcomeRow, RequestRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentOutcome(Fielded):
    """The verdict on one session. Session ids are used again by other users: (user, session) is the key.

    Attributes:
        user: whose session it was; None where that is not known.
        session: its id.
        at: when it began.
        result_id: of the verdict's row.
        evaluator: who judged.
        success: as judged.
        failure_type, failure_reason: of a failure.
        corrections, turns, escalated: as judged; None where that is not known.
        tags: None is not tagged yet.
        request_source: of its first request; "(none)" where that names none, None where the log has no request of it.
        agent_version: of its first request.
        evaluation_only: whether its first request was for evaluation only.
        arm: None where it is in none.
    """

    user: str | None
    session: str
    at: datetime
    result_id: int
    evaluator: str
    success: bool
    failure_type: str | None
    failure_reason: str | None
    corrections: int | None
    turns: int | None
    escalated: bool | None
    tags: Sequence[str] | None
    request_source: str | None
    agent_version: str | None
    evaluation_only: bool | None
    arm: str | None

    @property
    def key(self) -> tuple[str | None, str]:
        """(user, session)."""
        return self.user, self.session

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"at": self.at.isoformat(), "tags": None if self.tags is None else list(self.tags)}


Recent = tuple[str, RequestRow | None, OutcomeRow, datetime, str | None, int | None]
"""What `recent_outcome` is made of, which most verdicts never are."""


def recent_outcome(
    user: str, first: RequestRow | None, row: OutcomeRow, at: datetime, arm: str | None, corrections: int | None
) -> RecentOutcome:
    """A verdict with what is known of its session."""
    return RecentOutcome(
        user=user or None,
        session=row.session,
        at=at,
        result_id=row.result_id,
        evaluator=row.evaluator,
        success=row.success,
        failure_type=None if row.success else row.failure_type,
        failure_reason=None if row.success else row.failure_reason,
        corrections=corrections,
        turns=row.turns,
        escalated=row.escalated,
        tags=row.tags,
        request_source=None if first is None else first.source or NO_SOURCE,
        agent_version=(row.agent_version if first is None else first.agent_version) or None,
        evaluation_only=None if first is None else first.evaluation_only,
        arm=arm,
    )


def by_request_source(outcomes: Iterable[RecentOutcome]) -> dict[str | None, list[RecentOutcome]]:
    """The same by the request source of their first request; None where the log has no request of the session."""
    found: dict[str | None, list[RecentOutcome]] = {}
    for each in outcomes:
        found.setdefault(each.request_source, []).append(each)
    return found
