"""Which groups stand out: sums by group, and those with the largest."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nsmallest
from typing import Any, NamedTuple

from evalr.inputs import About
from evalr.measures.measure import Ranking
from evalr.summaries.keys import group_reader
from evalr.verdicts import Result, Verdict

KEPT = 50
"""How many groups of a ranking a report holds."""


class Standing(NamedTuple):
    """One group of a ranking: `part` of `whole`, over `n` verdicts."""

    group: str
    part: int
    whole: int
    n: int


class Ranked(NamedTuple):
    """The groups of a ranking with the largest parts, and how many groups have any part at all."""

    ranking: Ranking
    groups: tuple[Standing, ...]
    total: int

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types."""
        ranking = self.ranking
        by = ranking.by if isinstance(ranking.by, str) else None
        groups = [standing._asdict() for standing in self.groups]
        return {"title": ranking.title, "by": by, "unit": ranking.unit, "groups": groups, "groups_total": self.total}


class Ranks:
    """The sums of each group, as verdicts come."""

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking
        self._groups_of: Callable[[About], Any] = group_reader(ranking.by)
        self._sums: dict[str, tuple[int, int, int]] = {}

    def add(self, result: Result[Any]) -> None:
        """Count one result; what is no verdict, or has no group, has no part in it."""
        if not isinstance(result, Verdict) or result.about is None:
            return
        part, whole = self.ranking.part(result.value), self.ranking.whole(result.value)
        for group in self._groups_of(result.about):
            if group is not None and whole:
                self._put(group, part, whole, 1)

    def _put(self, group: str, part: int, whole: int, n: int) -> None:
        sums = self._sums.get(group, (0, 0, 0))
        self._sums[group] = (sums[0] + part, sums[1] + whole, sums[2] + n)

    def merge(self, other: Ranks) -> None:
        """Count what another has counted."""
        for group, sums in other._sums.items():
            self._put(group, *sums)

    def __getstate__(self) -> dict[str, Any]:
        """What was counted, which is all that `merge` takes of another."""
        return {"_sums": self._sums}

    def ranked(self) -> Ranked:
        """The groups with the largest parts."""
        found = [Standing(group, *sums) for group, sums in self._sums.items() if sums[0]]
        largest = nsmallest(KEPT, found, key=lambda standing: (-standing.part, standing.group))
        return Ranked(self.ranking, tuple(largest), len(found))
