"""Verdicts on learnings, summed up one by one and response by response."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalr.estimates.estimate import Estimate
from evalr.estimates.shown import Fielded
from evalr.measures.learning import (
    negative_rate,
    net_impact,
    positive_rate,
    relevance_rate,
    response_mixed_rate,
    response_negative_rate,
    response_net_impact,
    response_positive_rate,
    response_relevance_rate,
)
from evalr.measures.learning_folds import FoldedImpact
from evalr.summaries import Contest, Rate, Summary
from evalr.tallies.numbering import Numbering
from evalr.tallies.outcomes import LOSS, TIE, UNKNOWN_POSITION, WIN
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.feeding import ByUser, alone, contest_entry, rate_entry
from evalr_reflexio.rows import LearningRow
from evalr_reflexio.stored import PARTIAL

_FOLDED = {"positive": "win", "negative": "loss", "mixed": "tie", "neutral": "tie"}


def _of_responses(rate: Summary[Any], impact: str) -> Rate[FoldedImpact]:
    """A core summary of responses, of rows that are folded already."""
    return Rate(
        rate.name,
        of=FoldedImpact,
        hits=lambda v: None if v.impact is None else v.impact == impact,
        title=rate.title,
        noun="response",
    )


RELEVANT = Rate(
    response_relevance_rate.name,
    of=FoldedImpact,
    hits=lambda v: v.relevant,
    title=response_relevance_rate.title,
    noun="response",
)
NET = Contest(
    response_net_impact.name,
    of=FoldedImpact,
    outcome=lambda v: None if v.impact is None else _FOLDED[v.impact],
    title=response_net_impact.title,
    noun="response",
)
HELPED = _of_responses(response_positive_rate, "positive")
HURT = _of_responses(response_negative_rate, "negative")
MIXED = _of_responses(response_mixed_rate, "mixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactEstimates(Fielded):
    """What verdicts on learnings say together: the same of learnings one by one, or of whole responses.

    Attributes:
        relevant: the share that applied; of responses, with any learning that did.
        helped: the share with a positive impact; of responses, any helped and none hurt.
        hurt: the share with a negative impact; of responses, any hurt and none helped.
        net: `helped` less `hurt`.
        mixed: of responses, the share in which some learning helped and another hurt; None for learnings one by one.
    """

    relevant: Estimate
    helped: Estimate
    hurt: Estimate
    net: Estimate
    mixed: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if each is None else each.to_dict() for name, each in found.items()}


class ImpactSums:
    """What `ImpactEstimates` says, summed up by the number of the cluster: the user, or else the session."""

    __slots__ = ("by_cluster", "flags", "numbering", "results", "versions")

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.by_cluster = ByUser(7)
        self.results = 0
        self.versions: Counter[tuple[str, str]] = Counter()
        self.flags: Counter[str] = Counter()

    def add(
        self, relevant: bool | None, impact: str | None, cluster: int, given_by: tuple[str, str], *, partial: bool
    ) -> None:
        """Count one learning, or one response; `partial` where its grading did not finish."""
        by_cluster = self.by_cluster
        if cluster >= by_cluster.size:
            by_cluster.reach(cluster)
        uses, relevance_known, relevants, known, helped, hurt, mixed = by_cluster.columns
        self.results += 1
        self.versions[given_by] += 1
        if partial:
            self.flags[PARTIAL] += 1
        uses[cluster] += 1
        if relevant is not None:
            relevance_known[cluster] += 1
            if relevant:
                relevants[cluster] += 1
        if impact is not None:
            known[cluster] += 1
            if impact == "positive":
                helped[cluster] += 1
            elif impact == "negative":
                hurt[cluster] += 1
            elif impact == "mixed":
                mixed[cluster] += 1

    def merge(self, other: ImpactSums) -> None:
        """Count what another has counted."""
        self.results += other.results
        self.versions.update(other.versions)
        self.flags.update(other.flags)
        self.by_cluster.merge(other.by_cluster, self.numbering.of(other.numbering))

    def estimates(self, level: float, *, of_responses: bool) -> ImpactEstimates:
        """What they come to. Gradings of several versions are put together, and flagged."""
        asked: dict[str, Summary[Any]] = (
            {"relevant": RELEVANT, "helped": HELPED, "hurt": HURT, "net": NET, "mixed": MIXED}
            if of_responses
            else {"relevant": relevance_rate, "helped": positive_rate, "hurt": negative_rate, "net": net_impact}
        )
        entries, found = self._entries(), {}
        for name, summary in asked.items():
            entry = entries[name]
            entry.versions, entry.flags = self.versions, self.flags
            found[name] = summary.estimate(alone(summary, entry), level=level, mix_versions=True)
        return ImpactEstimates(**found)

    def _entries(self) -> dict[str, Entry[Any]]:
        uses, relevance_known, relevants, known, helped, hurt, mixed = self.by_cluster.columns
        neither = [all_ - up - down for all_, up, down in zip(known, helped, hurt, strict=True)]
        endings = {(WIN, UNKNOWN_POSITION): helped, (LOSS, UNKNOWN_POSITION): hurt, (TIE, UNKNOWN_POSITION): neither}
        numbering = self.numbering
        return {
            "relevant": rate_entry(relevants, relevance_known, uses, numbering),
            "helped": rate_entry(helped, known, uses, numbering),
            "hurt": rate_entry(hurt, known, uses, numbering),
            "mixed": rate_entry(mixed, known, uses, numbering),
            "net": contest_entry(endings, self.results, numbering),
        }


def folded(rows: Sequence[LearningRow]) -> tuple[bool | None, str | None]:
    """What several learnings did together for one response, as `fold_impacts` says it."""
    if len(rows) == 1:  # as most are
        return rows[0].relevant, rows[0].impact
    relevant = [row.relevant for row in rows if row.relevant is not None]
    impacts = [row.impact for row in rows if row.impact is not None]
    helped, hurt = "positive" in impacts, "negative" in impacts
    together = "mixed" if helped and hurt else "positive" if helped else "negative" if hurt else "neutral"
    return any(relevant) if relevant else None, together if impacts else None
