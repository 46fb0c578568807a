"""Shadow answers: how often the answer with Reflexio wins against the one without it, and where it loses."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from evalr.estimates.contest_results import WinTest
from evalr.estimates.estimate import Estimate, Trend
from evalr.estimates.shown import Fielded
from evalr.inputs import Side
from evalr.measures.shadow import shadow_decided, shadow_net, shadow_wins
from evalr.tallies.numbering import Numbering
from evalr.tallies.outcomes import FIRST, LOSS, SECOND, TIE, WIN, Outcomes
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.asked import Asked, Bucket, day_of
from evalr_reflexio.answers.buckets import in_order, name_of_bucket
from evalr_reflexio.answers.feeding import BY_ARM, ByUser, alone, contest_entry, pooled, tally_of
from evalr_reflexio.answers.newest import Newest
from evalr_reflexio.conversations import is_exchange
from evalr_reflexio.rows import InteractionRow, SessionRecord, ShadowRow
from evalr_reflexio.speaking import Bearer
from evalr_reflexio.stored import SHADOW_JUDGE, treatment_side

OTHER_VERSION = "of another prompt version"
NO_ARM = "of a session without an arm"
EARLIER = "of an answer that was judged again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Fielded):
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
class ShadowAnswer(Fielded):
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


class _Seen(NamedTuple):
    """One comparison as it is kept while it may be among the newest."""

    row: ShadowRow
    user: str
    at: datetime
    arm: str | None
    ending: int
    side: Side


class ShadowSums:
    """The verdicts on two answers, as one pass sums them up: by arm, and by the day for trends of any length."""

    __slots__ = (
        "_controls", "_version", "arms", "by_far", "days", "endings", "judged", "left_out", "lost", "newest",
        "numbering", "users", "with_shadow",
    )  # fmt: skip

    def __init__(self, asked: Asked, version: str | None, controls: tuple[str, ...], numbering: Numbering) -> None:
        self._version, self._controls, self.numbering = version, controls, numbering
        self.arms: dict[str | None, ByUser] = {}
        self.days, self.users, self.endings = array("i"), array("i"), array("b")
        self.by_far: Counter[str] = Counter()
        self.with_shadow = self.judged = 0
        self.left_out: Counter[str] = Counter()
        self.newest: Newest[_Seen] = Newest(asked.listed)
        self.lost: Newest[_Seen] = Newest(asked.listed)

    def see(
        self, record: SessionRecord, turns: Mapping[int, InteractionRow | Bearer], arm: str | None, asked: Asked
    ) -> None:
        """Count the verdicts of one session."""
        rows = record.shadow_verdicts
        last = {row.interaction: row.verdict_id for row in rows if self._is_of_version(row)}
        cluster = self.numbering.number(record.user or (record.session,))
        side = treatment_side(asked.shadow, arm, self._controls)
        for row in rows:
            turn = None if row.interaction is None else turns.get(row.interaction)
            at = row.at if turn is None else turn.at
            if not asked.takes_in(at):
                continue
            if not self._is_of_version(row):
                self.left_out[OTHER_VERSION] += 1
            elif row.interaction is not None and last[row.interaction] != row.verdict_id:
                self.left_out[EARLIER] += 1
            elif side is None:
                self.left_out[NO_ARM] += 1
            else:
                self.judged += turn is not None and is_exchange(turn)
                self._count(row, side, at, arm, record, cluster)

    def _is_of_version(self, row: ShadowRow) -> bool:
        return self._version is None or row.prompt_version == self._version

    def _count(
        self, row: ShadowRow, side: Side, at: datetime, arm: str | None, record: SessionRecord, cluster: int
    ) -> None:
        winner = row.winner
        ending = TIE if winner == "tie" else WIN if winner == side else LOSS
        position = FIRST if row.served_first == (side == "served") else SECOND
        sums = self.arms.get(arm)
        if sums is None:
            sums = self.arms[arm] = ByUser(_PLACES)
        if cluster >= sums.size:
            sums.reach(cluster)
        sums.columns[_COLUMNS[ending, position]][cluster] += 1
        self.days.append(day_of(at))
        self.users.append(cluster)
        self.endings.append(_COLUMNS[ending, position])
        seen = _Seen(row, record.user, at, arm, ending, side)
        self.newest.add(at, row.verdict_id, seen)
        if row.significant and ending != TIE:
            self.by_far[_ENDINGS[ending]] += 1
            if ending == LOSS:
                self.lost.add(at, row.verdict_id, seen)

    def merge(self, other: ShadowSums) -> None:
        """Count what another pass has counted, of other sessions."""
        numbers = self.numbering.of(other.numbering)
        for arm, sums in other.arms.items():
            self.arms.setdefault(arm, ByUser(_PLACES)).merge(sums, numbers)
        self.days.extend(other.days)
        self.users.extend(map(numbers.__getitem__, other.users))
        self.endings.extend(other.endings)
        self.by_far.update(other.by_far)
        self.left_out.update(other.left_out)
        self.with_shadow += other.with_shadow
        self.judged += other.judged
        self.newest.merge(other.newest)
        self.lost.merge(other.lost)

    def answer(self, asked: Asked, *, has_arms: bool) -> ShadowAnswer:
        """What they come to."""
        level, given_by = asked.level, (SHADOW_JUDGE, self._version or "unknown")
        entries = {arm: _entry_of(sums, self.numbering) for arm, sums in self.arms.items()}
        tally = tally_of(shadow_wins, entries, by=BY_ARM, given_by=given_by)
        whole = pooled(shadow_wins, entries)
        return ShadowAnswer(
            wins=shadow_wins.estimate(whole, level=level),
            net=shadow_net.estimate(whole, level=level),
            decided=shadow_decided.estimate(whole, level=level),
            test=shadow_wins.sign_test(whole),
            by_far={"wins": self.by_far["win"], "losses": self.by_far["loss"]},
            trend=self._trend(asked.bucket, level, given_by),
            arms=dict(shadow_wins.by(tally, "arm", level=level)) if has_arms else {},
            which=asked.shadow,
            version=self._version,
            with_shadow=self.with_shadow,
            judged=self.judged,
            recent=tuple(map(_compared, self.newest)),
            disagreements=tuple(map(_compared, self.lost)),
            lost_by_far=self.lost.seen,
            left_out=dict(self.left_out),
        )

    def _trend(self, bucket: Bucket, level: float, given_by: tuple[str, str]) -> Trend:
        buckets: dict[str, list[int]] = {}
        for day, user, place in zip(self.days, self.users, self.endings, strict=True):
            buckets.setdefault(name_of_bucket(day, bucket), []).append(_PLACES * user + place)
        keys, found = self.numbering.keys, {}
        for name, comparisons in buckets.items():
            numbering = Numbering()
            by_user = ByUser(_PLACES)
            for each, count in Counter(comparisons).items():
                user, place = divmod(each, _PLACES)
                number = numbering.number(keys[user])
                by_user.reach(number)
                by_user.columns[place][number] += count
            entry = _entry_of(by_user, numbering)
            found[name] = shadow_wins.estimate(alone(shadow_wins, entry, given_by), level=level)
        return in_order(bucket, found, shadow_wins, level)


def _entry_of(sums: ByUser, numbering: Numbering) -> Entry[Outcomes]:
    return contest_entry(dict(zip(_COLUMNS, sums.columns, strict=True)), sum(map(sum, sums.columns)), numbering)


def _compared(seen: _Seen) -> Compared:
    row = seen.row
    return Compared(
        verdict_id=row.verdict_id,
        interaction=row.interaction,
        user=seen.user or None,
        session=row.session,
        at=seen.at,
        arm=seen.arm,
        outcome=_ENDINGS[seen.ending],
        by_far=row.significant and seen.ending != TIE,
        treatment=seen.side,
        served_first=row.served_first,
        reason=row.reason,
    )


_COLUMNS = {(ending, position): 2 * ending + position for ending in (WIN, TIE, LOSS) for position in (FIRST, SECOND)}
"""Where the comparisons that ended so, shown there, are counted."""
_PLACES = len(_COLUMNS)

_ENDINGS = {WIN: "win", TIE: "tie", LOSS: "loss"}
