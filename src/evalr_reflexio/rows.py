"""The rows of a Reflexio log as every release means them, whatever its columns and spellings are.

Times are instants in UTC, flags are booleans, lists are lists. What a release or a way of reading does not keep is
None, which is never a 0, an empty list or False.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from evalr.inputs import Role


class _NotKept:
    def __repr__(self) -> str:
        return "NOT_KEPT"


NOT_KEPT: Final = _NotKept()
"""The metadata of a request where no column keeps it, as in every release but 0.2.24 and 0.2.25."""


class ToolUse(NamedTuple):
    """One call of a tool."""

    name: str
    arguments: Any = None
    status: str | None = None


class Reference(NamedTuple):
    """One learning as an answer names it: that it was given it, or that it used it."""

    kind: str
    """"profile", "user_playbook", "agent_playbook", or, in citations of older releases, "playbook"."""
    id: str


class RequestRow(NamedTuple):
    """One publish of a session."""

    request_id: str
    user: str
    session: str
    at: datetime
    source: str
    """Where the request came from, "" where it does not say."""
    agent_version: str
    evaluation_only: bool | None
    experiment: str | None
    experiment_arm: str | None
    metadata: Any
    """As JSON holds it, `NOT_KEPT` where no column does, `UNREADABLE` where it is no JSON."""
    position: int
    """Where the row stands in its table: 0.2.25 takes the first row of one second for the first request."""


class InteractionRow(NamedTuple):
    """One turn: a message, an answer, a tool's or a person's action."""

    interaction_id: int
    request_id: str
    at: datetime
    role: Role
    raw_role: str
    content: str
    shadow_content: str
    tokens: int | None
    """Of `content` alone; None where nobody counted."""
    action: str | None
    """What the person did where it was no message, such as "click"."""
    expert_content: str
    tools: Sequence[ToolUse]
    citations: Sequence[Reference] | None
    learnings: Sequence[Reference] | None
    action_description: str = ""
    """Of what the person did where it was no message."""


class OutcomeRow(NamedTuple):
    """What Reflexio's judge said of one session. Several may be about one session."""

    result_id: int
    user: str
    """"" in rows of releases before 0.2.27, which kept the session's id alone."""
    session: str
    at: datetime
    """When the session began; when it was judged is not kept."""
    agent_version: str
    evaluator: str
    success: bool
    failure_type: str | None
    failure_reason: str | None
    corrections: int | None
    turns: int | None
    escalated: bool | None
    tags: Sequence[str] | None
    """None is not tagged yet, an empty list is tagged without a match."""
    regular_vs_shadow: str | None
    through_request: str | None
    """The last request that the judge saw; None where that is not kept."""
    judged_interactions: int | None


class ShadowRow(NamedTuple):
    """Which of two answers to one message Reflexio's judge took for the better one."""

    verdict_id: int
    interaction: int | None
    """None where the row names none that could be one."""
    session: str
    at: datetime
    agent_version: str
    served_first: bool
    better: Literal["1", "2", "tie"]
    significant: bool
    reason: str | None
    prompt_version: str

    @property
    def winner(self) -> Literal["served", "shadow", "tie"]:
        """Which answer won, by the position that it was shown in."""
        if self.better == "tie":
            return "tie"
        return "served" if (self.better == "1") == self.served_first else "shadow"


NO_DIAGNOSIS, NO_EVIDENCE, INCOMPLETE = "no diagnosis", "no cited interactions", "incomplete evidence"
NO_DIGEST, OTHER_DIGEST = "no recorded digest", "digest of another text"


class LearningRow(NamedTuple):
    """What one learning did for one response, by Reflexio's judge. None is unknown."""

    result_id: int
    user: str
    session: str
    at: datetime
    """When the session began."""
    agent_version: str
    interaction: int | None
    interaction_at: datetime | None
    kind: str
    learning: str
    relevant: bool | None
    relevance_reason: str | None
    impact: Literal["positive", "neutral", "negative"] | None
    impact_reason: str | None
    diagnosis: str | None
    diagnosis_reason: str | None
    evidence: Sequence[int]
    """The interactions that the diagnosis cites."""
    evidence_complete: bool
    digest: str | None
    """Of the playbook that was judged, as it was then."""
    digest_now: str | None = None
    """Of the playbook as the log has it; None where that is not known."""

    @property
    def diagnosis_lacks(self) -> str | None:
        """Why the diagnosis does not count; None where it does.

        It has to cite interactions, on complete evidence, of a playbook whose digest is recorded and, where the log has
        the playbook, is still that of its text.
        """
        if self.diagnosis is None:
            return NO_DIAGNOSIS
        if not self.evidence:
            return NO_EVIDENCE
        if not self.evidence_complete:
            return INCOMPLETE
        if not self.digest:
            return NO_DIGEST
        return None if self.digest_now in (None, self.digest) else OTHER_DIGEST


class CustomerOutcomeRow(NamedTuple):
    """What the customer reported of one session."""

    outcome_id: str
    user: str
    session: str
    at: datetime
    outcome: Literal["success", "failure", "unknown"]
    source: str
    label: str | None
    value: float | None
    inferred: bool
    """Reflexio's own opinion, and no customer's."""


class GradingState(NamedTuple):
    """How far the grading of a session's learnings got."""

    status: str
    """"complete", "degraded", "failed", "pending" or "not_applicable"."""
    version: str | None
    failed_chunks: int


@dataclass(slots=True)
class SessionRecord:
    """Everything that the log holds of one session of one user.

    Attributes:
        user: "" where the log holds verdicts alone, which do not say whose they are.
        requests: in the order of (time, id); none where the log holds verdicts alone.
        interactions: in the order of (time, id).
        outcomes: in the order of their ids. Several may be of one evaluator: the last one counts.
        shadow_verdicts: in the order of their ids, of every prompt version.
        learning_verdicts: in the order of their ids.
        customer_outcome: None where the customer reported none.
        grading: of the learnings; None where the log does not say.
    """

    user: str
    session: str
    requests: list[RequestRow] = field(default_factory=list)
    interactions: Sequence[InteractionRow] = field(default_factory=list)
    outcomes: list[OutcomeRow] = field(default_factory=list)
    shadow_verdicts: list[ShadowRow] = field(default_factory=list)
    learning_verdicts: list[LearningRow] = field(default_factory=list)
    customer_outcome: CustomerOutcomeRow | None = None
    grading: GradingState | None = None

    @property
    def first(self) -> RequestRow | None:
        """The first request, which decides for the whole session."""
        return self.requests[0] if self.requests else None

    @property
    def last(self) -> RequestRow | None:
        """The last request."""
        return self.requests[-1] if self.requests else None

    @property
    def key(self) -> tuple[str, str]:
        """(user, session): session ids alone are used again by other users."""
        return self.user, self.session


Columns = Mapping[str, frozenset[str]]
"""The columns of each table that the log has."""
