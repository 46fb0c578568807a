"""Answers whose learnings were judged: the newest of them, each with every verdict on what it was given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalr_reflexio.answers.learning_sums import folded
from evalr_reflexio.rows import LearningRow


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedResponse:
    """One answer with the verdicts on its learnings, without its text.

    Attributes:
        interaction: the answer's.
        user: whose session it was; None where that is not known.
        session: in which session.
        at: when the answer was given, or else when its session began.
        learnings: the verdict on each learning.
        uses: of each, whether the answer cites it: "cited", "supplied only", or "not told".
    """

    interaction: int
    user: str | None
    session: str
    at: datetime
    learnings: tuple[LearningRow, ...]
    uses: tuple[str, ...]

    @property
    def relevant(self) -> bool | None:
        """Whether any of them applied; None where no verdict knows."""
        return folded(self.learnings)[0]

    @property
    def impact(self) -> str | None:
        """What they did together: "positive", "negative", "mixed" or "neutral"; None where no verdict knows."""
        return folded(self.learnings)[1]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "interaction": self.interaction,
            "user": self.user,
            "session": self.session,
            "at": self.at.isoformat(),
            "relevant": self.relevant,
            "impact": self.impact,
            "learnings": [_plain(*each) for each in zip(self.learnings, self.uses, strict=True)],
        }


_TOLD = (
    "kind", "learning", "relevant", "relevance_reason", "impact", "impact_reason", "diagnosis", "diagnosis_reason",
    "evidence_complete",
)  # fmt: skip


def _plain(row: LearningRow, use: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _TOLD} | {"evidence": list(row.evidence), "use": use}
