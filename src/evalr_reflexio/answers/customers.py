"""What customers reported beside what the judge said: how far the judge may be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalr.estimates.shown import Fielded
from evalr.inputs import About
from evalr.labels import Agreement, agreement, feedback
from evalr.measures.session_outcome import SessionOutcome
from evalr.verdicts import Verdict
from evalr_reflexio.rows import CustomerOutcomeRow, OutcomeRow, SessionRecord
from evalr_reflexio.stored import CUSTOMER, UNVERSIONED

UNKNOWN, INFERRED, NOT_JUDGED = "reported as unknown", "inferred by Reflexio", "without a verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerAnswer(Fielded):
    """How far the judge of sessions says what customers reported.

    Attributes:
        agreement: on success; None where there is no session with both.
        reported: sessions of which a customer reported a success or a failure.
        compared: those of them with a verdict.
        left_out: other reports, by reason. An outcome that Reflexio inferred is its judge's own opinion.
    """

    agreement: Agreement | None
    reported: int
    compared: int
    left_out: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "agreement": None if self.agreement is None else self.agreement.to_dict(),
            "reported": self.reported,
            "compared": self.compared,
            "left_out": dict(self.left_out),
        }


class CustomerSums:
    """Sessions with both a verdict and a customer's report."""

    __slots__ = ("left_out", "pairs", "reported")

    def __init__(self) -> None:
        self.reported = 0
        self.left_out: Counter[str] = Counter()
        self.pairs: list[tuple[str, str, bool, bool]] = []
        """(user, session, judged, reported): as many as customers reported, which is seldom many."""

    def see(self, record: SessionRecord, reported: CustomerOutcomeRow, judged: OutcomeRow | None) -> None:
        """Count one report."""
        if reported.inferred:
            self.left_out[INFERRED] += 1
        elif reported.outcome == "unknown":
            self.left_out[UNKNOWN] += 1
        else:
            self.reported += 1
            if judged is None:
                self.left_out[NOT_JUDGED] += 1
            else:
                self.pairs.append((record.user, record.session, judged.success, reported.outcome == "success"))

    def merge(self, other: CustomerSums) -> None:
        """Count what another pass has counted, of other sessions."""
        self.reported += other.reported
        self.left_out.update(other.left_out)
        self.pairs += other.pairs

    def answer(self, evaluator: str, level: float) -> CustomerAnswer:
        """What they come to."""
        results, labels = [], []
        for user, session, judged, reported in sorted(self.pairs):
            about = About("transcript", session, user or None)
            results.append(Verdict(SessionOutcome(success=judged), evaluator, UNVERSIONED, about))
            labels.append(feedback(about, SessionOutcome(success=reported), author=CUSTOMER))
        found = agreement(results, labels, fields=["success"], level=level) if results else None
        return CustomerAnswer(
            agreement=found, reported=self.reported, compared=len(self.pairs), left_out=dict(self.left_out)
        )
