"""Shadow answers: how often the answer with Reflexio wins against the one without it, and where it loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalr.estimates.contest_results import WinTest
from evalr.estimates.estimate import Estimate, Trend
from evalr.inputs import Side
from evalr.measures.shadow import shadow_decided, shadow_net, shadow_wins
from evalr.tallies.numbering import Numbering
from evalr.tallies.outcomes import FIRST, LOSS, SECOND, TIE, WIN, Outcomes
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.asked import Asked, day_of
from evalr_reflexio.answers.buckets import alone, in_order, name_of_bucket
from evalr_reflexio.answers.feeding import add_ending, entry_of, pooled, tally_of
from evalr_reflexio.answers.newest import Newest
from evalr_reflexio.rows import InteractionRow, SessionRecord, ShadowRow
from evalr_reflexio.stored import SHADOW_JUDGE, treatment_side

OTHER_VERSION = "of another prompt version"
NO_ARM = "of a session without an arm"
EARLIER = "of an answer that was judged again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One comparison of two answers, without their texts: `evalr.reflexio.comparison_texts` looks them up.

    Attributes:
        verdict_id: of its row.
        interaction: the answer's; None where the row names none.
        user: whose session it was; None where that is not known.
        session: in which session.
        at: when the answer was given, or else when it was judged.
        arm: of the session.
        outcome: "win", "tie" or "loss" of the answer that had Reflexio.
        by_far: whether the better one is better by far.
        treatment: which answer had Reflexio.
        served_first: whether the judge was shown the served one first.
        reason: why, as the judge gave it.
    """

    verdict_id: int
    interaction: int | None
    user: str | None
    session: str
    at: datetime
    arm: str | None
    outcome: str
    by_far: bool
    treatment: Side
    served_first: bool
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"at": self.at.isoformat()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowAnswer:
    """What the judge of two answers says.

    Attributes:
        wins: the share that the answer with Reflexio won; ties count as not won.
        net: the share that it won less the share that it lost.
        decided: the share that it won of those that are no tie.
        test: whether it wins more often than it loses.
        by_far: how many comparisons were won, and lost, by far.
        trend: `wins` over time.
        arms: `wins` by arm; empty without arms.
        which: which answer is taken for the one with Reflexio: "served", "shadow" or "arm".
        version: of the judge's prompt, None where no verdict says; those of others are left out.
        with_shadow: answers in the log that have another one beside them.
        judged: those of them with a verdict.
        recent: the newest comparisons.
        disagreements: the newest of those that the answer with Reflexio lost by far: where it did harm.
        lost_by_far: how many such there are.
        left_out: verdicts that are in no number, by reason.
    """

    wins: Estimate
    net: Estimate
    decided: Estimate
    test: WinTest
    by_far: Mapping[str, int]
    trend: Trend
    arms: Mapping[str | None, Estimate]
    which: str
    version: str | None
    with_shadow: int
    judged: int
    recent: tuple[Compared, ...]
    disagreements: tuple[Compared, ...]
    lost_by_far: int
    left_out: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "wins": self.wins.to_dict(),
            "net": self.net.to_dict(),
            "decided": self.decided.to_dict(),
            "test": self.test.to_dict(),
            "by_far": dict(self.by_far),
            "trend": self.trend.to_dicts(),
            "arms": [{"arm": arm} | estimate.to_dict() for arm, estimate in self.arms.items()],
            "which": self.which,
            "version": self.version,
            "with_shadow": self.with_shadow,
            "judged": self.judged,
            "recent": [each.to_dict() for each in self.recent],
            "disagreements": [each.to_dict() for each in self.disagreements],
            "lost_by_far": self.lost_by_far,
            "left_out": dict(self.left_out),
        }


class ShadowSums:
    """The verdicts on two answers, as one pass sums them up."""

    __slots__ = ("_controls", "_version", "arms", "by_far", "days", "judged", "left_out", "lost", "newest", "numbering",
                 "with_shadow")  # fmt: skip

    def __init__(self, asked: Asked, version: str | None, controls: tuple[str, ...], numbering: Numbering) -> None:
        self._version, self._controls, self.numbering = version, controls, numbering
        self.days: dict[str, Entry[Outcomes]] = {}
        self.arms: dict[str | None, Entry[Outcomes]] = {}
        self.by_far: Counter[str] = Counter()
        self.with_shadow = self.judged = 0
        self.left_out: Counter[str] = Counter()
        self.newest: Newest[Compared] = Newest(asked.listed)
        self.lost: Newest[Compared] = Newest(asked.listed)

    def see(self, record: SessionRecord, turns: Mapping[int, InteractionRow], arm: str | None, asked: Asked) -> None:
        """Count the verdicts of one session."""
        rows = list(self._of_version(record.shadow_verdicts))
        last = {row.interaction: row.verdict_id for row in rows}
        user = record.user or None
        cluster: Any = user if user is not None else (record.session,)
        side = treatment_side(asked.shadow, arm, self._controls)
        for row in rows:
            turn = None if row.interaction is None else turns.get(row.interaction)
            at = row.at if turn is None else turn.at
            if not asked.takes_in(at):
                continue
            if row.interaction is not None and last[row.interaction] != row.verdict_id:
                self.left_out[EARLIER] += 1
            elif side is None:
                self.left_out[NO_ARM] += 1
            else:
                self._count(row, side, at, arm, record, cluster, asked)

    def _of_version(self, rows: list[ShadowRow]) -> Iterator[ShadowRow]:
        for row in rows:
            if self._version is None or row.prompt_version == self._version:
                yield row
            else:
                self.left_out[OTHER_VERSION] += 1

    def _count(
        self,
        row: ShadowRow,
        side: Side,
        at: datetime,
        arm: str | None,
        record: SessionRecord,
        cluster: Any,
        asked: Asked,
    ) -> None:
        winner = row.winner
        ending = TIE if winner == "tie" else WIN if winner == side else LOSS
        position = FIRST if row.served_first == (side == "served") else SECOND
        self.judged += 1
        bucket = name_of_bucket(day_of(at), asked.bucket)
        day = self.days.get(bucket)
        if day is None:
            day = self.days[bucket] = entry_of(Outcomes, Numbering())
        of_arm = self.arms.get(arm)
        if of_arm is None:
            of_arm = self.arms[arm] = entry_of(Outcomes, self.numbering)
        add_ending(day, ending, position, cluster)
        add_ending(of_arm, ending, position, cluster)
        by_far = row.significant and ending != TIE
        name = _ENDINGS[ending]
        if by_far:
            self.by_far[name] += 1
        compared = Compared(
            verdict_id=row.verdict_id,
            interaction=row.interaction,
            user=record.user or None,
            session=record.session,
            at=at,
            arm=arm,
            outcome=name,
            by_far=by_far,
            treatment=side,
            served_first=row.served_first,
            reason=row.reason,
        )
        self.newest.add(at, row.verdict_id, compared)
        if by_far and ending == LOSS:
            self.lost.add(at, row.verdict_id, compared)

    def merge(self, other: ShadowSums) -> None:
        """Count what another pass has counted, of other sessions."""
        for mine, theirs, numbering in ((self.days, other.days, None), (self.arms, other.arms, self.numbering)):
            for group, entry in theirs.items():
                if group not in mine:
                    mine[group] = entry_of(Outcomes, numbering or Numbering())  # type: ignore[index]
                mine[group].merge(entry)  # type: ignore[index]
        self.by_far.update(other.by_far)
        self.left_out.update(other.left_out)
        self.with_shadow += other.with_shadow
        self.judged += other.judged
        self.newest.merge(other.newest)
        self.lost.merge(other.lost)

    def answer(self, asked: Asked, *, has_arms: bool) -> ShadowAnswer:
        """What they come to."""
        given_by = (SHADOW_JUDGE, self._version or "unknown")
        tally = tally_of(shadow_wins, self.arms, given_by=given_by)
        whole = pooled(shadow_wins, tally)
        tallies = {name: alone(shadow_wins, entry, given_by) for name, entry in self.days.items()}
        trend = {name: shadow_wins.estimate(each, level=asked.level) for name, each in tallies.items()}
        return ShadowAnswer(
            wins=shadow_wins.estimate(whole, level=asked.level),
            net=shadow_net.estimate(whole, level=asked.level),
            decided=shadow_decided.estimate(whole, level=asked.level),
            test=shadow_wins.sign_test(whole),
            by_far={"wins": self.by_far["win"], "losses": self.by_far["loss"]},
            trend=in_order(asked.bucket, trend, shadow_wins, asked.level),
            arms=dict(shadow_wins.by(tally, "arm", level=asked.level)) if has_arms else {},
            which=asked.shadow,
            version=self._version,
            with_shadow=self.with_shadow,
            judged=self.judged,
            recent=tuple(self.newest),
            disagreements=tuple(self.lost),
            lost_by_far=self.lost.seen,
            left_out=dict(self.left_out),
        )


_ENDINGS = {WIN: "win", TIE: "tie", LOSS: "loss"}
