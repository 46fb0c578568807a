"""Verdicts on learnings, summed up one by one and response by response."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalr.estimates.estimate import Estimate
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
from evalr.tallies.counts import Counts
from evalr.tallies.numbering import Numbering
from evalr.tallies.outcomes import LOSS, TIE, UNKNOWN_POSITION, WIN, Outcomes
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.buckets import alone
from evalr_reflexio.answers.feeding import Cluster, add_ending, add_hit, entry_of
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
class ImpactEstimates:
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
    """Entries of what `ImpactEstimates` says."""

    __slots__ = ("flags", "helped", "hurt", "mixed", "net", "relevant", "versions")

    _ENTRIES = ("helped", "hurt", "mixed", "net", "relevant")

    def __init__(self, numbering: Numbering) -> None:
        self.versions: Counter[tuple[str, str]] = Counter()
        self.flags: Counter[str] = Counter()
        self.relevant: Entry[Counts] = entry_of(Counts, numbering)
        self.helped: Entry[Counts] = entry_of(Counts, numbering)
        self.hurt: Entry[Counts] = entry_of(Counts, numbering)
        self.mixed: Entry[Counts] = entry_of(Counts, numbering)
        self.net: Entry[Outcomes] = entry_of(Outcomes, numbering)

    def add(
        self, relevant: bool | None, impact: str | None, cluster: Cluster, given_by: tuple[str, str], *, partial: bool
    ) -> None:
        """Count one learning, or one response; `partial` where its grading did not finish."""
        self.versions[given_by] += 1
        if partial:
            self.flags[PARTIAL] += 1
        add_hit(self.relevant, relevant, cluster)
        known = impact is not None
        helped, hurt = impact == "positive", impact == "negative"
        add_hit(self.helped, helped if known else None, cluster)
        add_hit(self.hurt, hurt if known else None, cluster)
        add_hit(self.mixed, impact == "mixed" if known else None, cluster)
        ending = None if not known else WIN if helped else LOSS if hurt else TIE
        add_ending(self.net, ending, UNKNOWN_POSITION, cluster)

    def merge(self, other: ImpactSums) -> None:
        """Count what another has counted."""
        self.versions.update(other.versions)
        self.flags.update(other.flags)
        for name in self._ENTRIES:
            getattr(self, name).merge(getattr(other, name))

    def estimates(self, level: float, *, of_responses: bool) -> ImpactEstimates:
        """What they come to. Gradings of several versions are put together, and flagged."""
        asked: dict[str, Summary[Any]] = (
            {"relevant": RELEVANT, "helped": HELPED, "hurt": HURT, "net": NET, "mixed": MIXED}
            if of_responses
            else {"relevant": relevance_rate, "helped": positive_rate, "hurt": negative_rate, "net": net_impact}
        )
        found = {}
        for name, summary in asked.items():
            entry = getattr(self, name)
            entry.versions, entry.flags = self.versions, self.flags
            found[name] = summary.estimate(alone(summary, entry), level=level, mix_versions=True)
        return ImpactEstimates(**found)


def folded(rows: Sequence[LearningRow]) -> tuple[bool | None, str | None]:
    """What several learnings did together for one response, as `fold_impacts` says it."""
    relevant = [row.relevant for row in rows if row.relevant is not None]
    impacts = [row.impact for row in rows if row.impact is not None]
    helped, hurt = "positive" in impacts, "negative" in impacts
    together = "mixed" if helped and hurt else "positive" if helped else "negative" if hurt else "neutral"
    return any(relevant) if relevant else None, together if impacts else None
