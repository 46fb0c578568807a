"""How well the evaluation itself is doing, as far as a log tells: what was judged, what was not, what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalr.estimates.shown import Fielded


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Fielded):
    """What the evaluation covered, in the period.

    Attributes:
        published: sessions with a request.
        evaluated: those of them with a verdict by the judge that counts.
        without_turns: those of them without an interaction, which nobody can judge.
        evaluation_only: those of them for evaluation only, which may be judged at a rate of their own.
        prefix: verdicts that requests came after.
        gone: verdicts on sessions that have no request in the log.
        judged_again: earlier verdicts on a session that was judged once more.
        other_judges: verdicts by other judges, which are in no number, by the judge's name.
        gradings: sessions by how far the grading of their learnings got: "complete", "degraded", "failed", "pending" or
            "not_applicable".
        failed_chunks: parts of gradings that failed.
        answers_with_shadow: answers that have another one beside them.
        shadow_judged: those with a verdict.
        learnings_attached: learnings given to answers, each answer's once.
        learnings_judged: those with a verdict.
        disagreeing: sessions whose requests disagree in tag, experiment arm, request source or `evaluation_only`, or of
            which a part was judged, by what; the first request decides all the same.
        disagreeing_sessions: the first of those, by (user, session).
        outside_the_period: sessions that began outside the period, or after the reading time.
        skipped: rows of the log that cannot be used, by reason.
        repaired: what was mended in rows that were kept.
        sampling: the shares of sessions that the configuration has judged: of all, of those for evaluation only, and
            for learnings; None where no configuration is known.
    """

    published: int
    evaluated: int
    without_turns: int
    evaluation_only: int
    prefix: int
    gone: int
    judged_again: int
    other_judges: Mapping[str, int]
    gradings: Mapping[str, int]
    failed_chunks: int
    answers_with_shadow: int
    shadow_judged: int
    learnings_attached: int
    learnings_judged: int
    disagreeing: Mapping[str, int]
    disagreeing_sessions: Mapping[str, Sequence[tuple[str, str]]]
    outside_the_period: int
    skipped: Mapping[str, int]
    repaired: Mapping[str, int]
    sampling: Mapping[str, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["disagreeing_sessions"] = {
            what: [list(key) for key in sessions] for what, sessions in self.disagreeing_sessions.items()
        }
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()}


@dataclass(slots=True)
class HealthSums:
    """What one pass counts of the evaluation."""

    without_turns: int = 0
    gone: int = 0
    judged_again: int = 0
    failed_chunks: int = 0
    outside: int = 0
    other_judges: Counter[str] = field(default_factory=Counter)
    gradings: Counter[str] = field(default_factory=Counter)

    def merge(self, other: HealthSums) -> None:
        """Count what another pass has counted, of other sessions."""
        self.without_turns += other.without_turns
        self.gone += other.gone
        self.judged_again += other.judged_again
        self.failed_chunks += other.failed_chunks
        self.outside += other.outside
        self.other_judges.update(other.other_judges)
        self.gradings.update(other.gradings)
