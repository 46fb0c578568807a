"""Sessions with a learning beside those without it: an association, whoever was given it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalr.estimates.compare import rate_difference
from evalr.estimates.estimate import Estimate
from evalr.estimates.shown import Fielded
from evalr.measures.session_outcome import success_rate
from evalr.tallies.counts import Counts
from evalr.tallies.moments import Moments
from evalr.tallies.numbering import OWN, Numbering
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.asked import Asked
from evalr_reflexio.answers.feeding import alone, of_singles, rate_entry

ASSOCIATION = "association"


@dataclass(frozen=True, slots=True, kw_only=True)
class Association(Fielded):
    """Success of sessions with a learning beside that of sessions without it: never more than an association.

    Who is given a learning differs from who is not, in what they ask and in how hard it is, so that neither number says
    what the learning does.

    Attributes:
        with_it: the success rate of sessions in which it was given.
        without_it: that of the others.
        difference: the first less the second, in points, clustered by user.
        p: two-sided, of no difference.
        among: which sessions those are: all, or those of one arm.
    """

    with_it: Estimate
    without_it: Estimate
    difference: Estimate
    p: float | None
    among: str

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "with_it": self.with_it.to_dict(),
            "without_it": self.without_it.to_dict(),
            "difference": self.difference.to_dict(),
            "p": self.p,
            "among": self.among,
        }


class Everyone:
    """All judged sessions in which a learning could have been given, from which those with one are taken away."""

    def __init__(
        self, by_user: tuple[Sequence[int], Sequence[int]], numbering: Numbering, judge: tuple[str, str], asked: Asked,
        among: str,
    ):  # fmt: skip
        ended = rate_entry(by_user[0], by_user[1], by_user[1], numbering)
        self.judge, self.level, self.among = judge, asked.level, among
        self._keys = numbering.keys
        self._successes, self._sessions_of = by_user
        self._moments = ended.cells.moments()
        self._sessions = ended.counted
        self._own = ended.cells.loose_clusters()

    def association(self, with_it: Mapping[int, tuple[int, int]]) -> Association:
        """Success with a learning and without it, whose sums by user these are."""
        there, absent = self._with(with_it), self._without(with_it)
        with_it_, without_it = self._estimate(there), self._estimate(absent)
        shared = there.cells.shared_with(absent.cells)
        found = rate_difference(
            there.cells.moments(),
            absent.cells.moments(),
            shared=shared,
            level=self.level,
            units=(there.counted, absent.counted),
        )
        few = any("low_confidence" in each.flags or not each.n for each in (with_it_, without_it))
        difference = Estimate(
            name="learning_association",
            value=found.value,
            low=found.interval.low,
            high=found.interval.high,
            level=self.level,
            unit="points",
            noun="session",
            counts={"with": with_it_.n, "without": without_it.n},
            n=with_it_.n + without_it.n,
            clusters=with_it_.clusters + without_it.clusters - shared.clusters,
            variance=found.interval.variance,
            method=found.interval.method,
            status="undefined" if found.value is None else "degenerate" if found.interval.low is None else "ok",
            reason=found.interval.reason,
            flags=(ASSOCIATION, *(["low_confidence"] if few else [])),
        )
        return Association(with_it=with_it_, without_it=without_it, difference=difference, p=found.p, among=self.among)

    def _with(self, with_it: Mapping[int, tuple[int, int]]) -> Entry[Counts]:
        hits, own = with_it.get(OWN, (0, 0))
        users = ((self._keys[user], y, m) for user, (y, m) in with_it.items() if user != OWN)
        return _entry(Counts.of_sums(users, of_singles(hits, own, own)), sum(m for _, m in with_it.values()))

    def _without(self, with_it: Mapping[int, tuple[int, int]]) -> Entry[Counts]:
        """All but those, without a look at the users who never had it: their sums stay as they are."""
        touched, left = [], []
        for user, (y, m) in with_it.items():
            if user != OWN:
                all_y, all_m = self._successes[user], self._sessions_of[user]
                touched.append((all_y, all_m, all_m))
                if all_m > m:
                    left.append((self._keys[user], all_y - y, all_m - m))
        hits, own = with_it.get(OWN, (0, 0))
        others = _less(_less(self._moments, Moments.of_clusters(touched)), of_singles(hits, own, own))
        return _entry(Counts.of_sums(left, others), self._sessions - sum(m for _, m in with_it.values()))

    def _estimate(self, entry: Entry[Counts]) -> Estimate:
        found = success_rate.estimate(alone(success_rate, entry, self.judge), level=self.level)
        # Of those whose sums were taken together, only how many they are is known: users, where everybody is one.
        return found if self._own else replace(found, clustered_by={"user": found.clusters} if found.n else {})


def _entry(cells: Counts, sessions: int) -> Entry[Counts]:
    entry = Entry(cells)
    entry.results = entry.counted = sessions
    return entry


def _less(whole: Moments, part: Moments) -> Moments:
    """Sums over clusters without some of them."""
    return Moments(*(mine - theirs for mine, theirs in zip(whole, part, strict=True)))  # type: ignore[arg-type]
