"""Two arms compared in everything that is measured, with what one has to know before believing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from evalr.estimates.estimate import Estimate, Trend
from evalr.estimates.lift import MISMATCH, UNEVEN, Allocation, Lift
from evalr.estimates.sample_ratio import coverage_by_arm, sample_ratio
from evalr.estimates.shown import Fielded
from evalr.measures.session_outcome import turns_to_resolution
from evalr.tallies.tally import Entry
from evalr_reflexio.answers.arm_sums import ArmSums
from evalr_reflexio.answers.asked import Asked
from evalr_reflexio.answers.buckets import success_trend
from evalr_reflexio.answers.feeding import BY_ARM, tally_of
from evalr_reflexio.answers.measured import JUDGED, TURNS, computed_by, summaries
from evalr_reflexio.arms import ArmCounts, Arms, ExperimentArms, pairs_of
from evalr_reflexio.assigning import Unit


class Coverage(NamedTuple):
    """So many of so many."""

    part: int
    whole: int

    @property
    def share(self) -> float | None:
        """The part of the whole; None where there is nothing."""
        return self.part / self.whole if self.whole else None

    def to_dict(self) -> dict[str, Any]:
        """Both, and the share."""
        return {**self._asdict(), "share": self.share}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswer(Fielded):
    """What is known of the sessions of one arm, or of those in none.

    Attributes:
        measures: by name: "success", "corrections", "turns" (resolved within so many), "escalation", "output_tokens",
            "drop_off". The first four are of judged sessions, the other two of all that were published.
        turns_median: the number of the person's turns by which half of the sessions were resolved.
        trend: success over time.
        coverage: evaluated of published sessions.
        users: users with a published session.
        evaluation_only: published sessions for evaluation only.
        failure_types: failures by type; "" where the judge gave none.
    """

    measures: Mapping[str, Estimate]
    turns_median: Estimate
    trend: Trend
    coverage: Coverage
    users: int
    evaluation_only: int
    failure_types: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "measures": {name: each.to_dict() for name, each in self.measures.items()},
            "turns_median": self.turns_median.to_dict(),
            "trend": self.trend.to_dicts(),
            "coverage": self.coverage.to_dict(),
            "users": self.users,
            "evaluation_only": self.evaluation_only,
            "failure_types": dict(self.failure_types),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPair(Fielded):
    """One arm compared with the control.

    Attributes:
        treatment: the arm.
        control: what it is compared with.
        lifts: by the names of `ArmAnswer.measures`, each clustered by user, with its relative and always-valid lift.
        allocation: how many were assigned to either, whether that is what the split makes likely, and whether both were
            evaluated alike.
    """

    treatment: str
    control: str
    lifts: Mapping[str, Lift]
    allocation: Allocation

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "treatment": self.treatment,
            "control": self.control,
            "lifts": {name: lift.to_dict() for name, lift in self.lifts.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsAnswer(Fielded):
    """The arms of one split, each by itself and compared.

    Attributes:
        name: of the split, such as "tag" or "experiment:exp-1".
        unit: what was assigned: "user" or "session".
        randomised: whether chance decided. If not, every difference is an observation.
        pairs: each arm against the control.
        by_arm: what is known of each arm; of sessions in none under None.
        attributed: of all judged sessions, those in the split; of an experiment, Reflexio calls that coverage.
        untagged: published sessions in no arm, and judged ones that are gone, by cause; see `ArmCounts`.
        seen: the values that were there instead of a tag, by cause.
        checked, disagreeing: sessions whose arm was computed anew, and those whose logged arm is another one.
        checked_by: of whose hash: "user" or "session".
        disagreeing_sessions: the first of those, by (user, session).
        notes: what else to know of the arms, such as that the registry of an experiment is of another organisation.
    """

    name: str
    unit: str
    randomised: bool
    pairs: tuple[ArmPair, ...]
    by_arm: Mapping[str | None, ArmAnswer]
    attributed: Coverage
    untagged: Mapping[str, int]
    seen: Mapping[str, Mapping[str, int]]
    checked: int
    disagreeing: int
    disagreeing_sessions: Sequence[tuple[str, str]]
    checked_by: Unit = "user"
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        return {
            "name": self.name,
            "unit": self.unit,
            "randomised": self.randomised,
            "pairs": [pair.to_dict() for pair in self.pairs],
            "by_arm": [{"arm": arm} | each.to_dict() for arm, each in self.by_arm.items()],
            "attributed": self.attributed.to_dict(),
            "untagged": dict(self.untagged),
            "seen": {cause: dict(values) for cause, values in self.seen.items()},
            "checked": self.checked,
            "disagreeing": self.disagreeing,
            "checked_by": self.checked_by,
            "disagreeing_sessions": [list(key) for key in self.disagreeing_sessions],
            "notes": list(self.notes),
        }


class Members(NamedTuple):
    """Which users are in which arms: for each, by its number, the bits of its arms with a published session."""

    published: Sequence[int]
    evaluated: Sequence[int]
    """The same of sessions that are evaluated, too."""
    bits: Mapping[str | None, int]

    def users(self, arm: str | None) -> int:
        """How many users have a published session in an arm."""
        bit = self.bits[arm]
        return sum(1 for bits in self.published if bits & bit)


Entries = Mapping[str, Entry[Any]]
"""What each summary has counted, by its name."""


def arm_answer(
    sums: ArmSums,
    entries: Entries,
    users: int,
    asked: Asked,
    judge: tuple[str, str],
    *,
    parts: Sequence[ArmSums] | None = None,
) -> ArmAnswer:
    """One arm by itself; or several as one, made of `parts`."""
    tallies = {
        name: tally_of(summary, {None: entries[name]}, given_by=_given_by(name, asked, judge))
        for name, summary in summaries(asked).items()
    }
    found = {name: summary.estimate(tallies[name], level=asked.level) for name, summary in summaries(asked).items()}
    return ArmAnswer(
        measures=found,
        turns_median=turns_to_resolution.estimate(tallies[TURNS], level=asked.level),
        trend=success_trend([sums] if parts is None else parts, asked.bucket, asked.level, judge),
        coverage=Coverage(sums.evaluated, sums.published),
        users=users,
        evaluation_only=sums.evaluation_only,
        failure_types=dict(sums.failure_types.most_common()),
    )


def _given_by(name: str, asked: Asked, judge: tuple[str, str]) -> tuple[str, str]:
    return judge if name in JUDGED else computed_by(name, asked)


def compared(
    sums: Mapping[str | None, ArmSums],
    entries: Mapping[str | None, Entries],
    members: Members,
    arms: Arms,
    asked: Asked,
    judge: tuple[str, str],
    *,
    randomised: bool,
) -> tuple[ArmPair, ...]:
    """Each arm against the control, in everything that is measured."""
    tallies = {
        name: tally_of(
            summary,
            {arm: each[name] for arm, each in entries.items() if arm is not None or each[name].results},
            by=BY_ARM,
            given_by=_given_by(name, asked, judge),
        )
        for name, summary in summaries(asked).items()
    }
    found = []
    for treatment, control in pairs_of(arms):
        allocation = _allocation((treatment, control), members, sums, arms, asked)
        lifts = {}
        for name, summary in summaries(asked).items():
            lift = summary.lift(
                tallies[name],
                treatment=treatment,
                control=control,
                randomised=randomised,
                planned=asked.planned,
                level=asked.level,
            )
            lifts[name] = _with_allocation(lift, allocation)
        found.append(ArmPair(treatment=treatment, control=control, lifts=lifts, allocation=allocation))
    return tuple(found)


def _allocation(
    pair: tuple[str, str], members: Members, sums: Mapping[str | None, ArmSums], arms: Arms, asked: Asked
) -> Allocation:
    """Who was assigned to either arm, counted in what the split assigns."""
    several = 0
    if arms.unit == "user":
        assigned, evaluated = dict.fromkeys(pair, 0), dict.fromkeys(pair, 0)
        of_bits = {members.bits[arm]: arm for arm in pair}
        named = sum(bit for arm, bit in members.bits.items() if arm is not None)
        for bits, judged in zip(members.published, members.evaluated, strict=True):
            arm = of_bits.get(bits & named)
            if arm is not None:
                assigned[arm] += 1
                evaluated[arm] += bool(judged & bits)
            elif bits:
                several += (bits & named).bit_count() > 1
    else:
        assigned = {arm: sums[arm].published for arm in pair}
        evaluated = {arm: sums[arm].evaluated for arm in pair}
    weights = _weights(pair, arms, asked)
    return Allocation(
        assigned=assigned,
        evaluated=evaluated,
        sample_ratio=None if weights is None else sample_ratio(list(assigned.values()), weights),
        coverage=coverage_by_arm(list(evaluated.values()), list(assigned.values())),
        in_several=several,
        noun=arms.unit,
    )


def _weights(pair: tuple[str, str], arms: Arms, asked: Asked) -> list[float] | None:
    """The split that was meant, treatment first; None where nobody said."""
    holdout = asked.holdout
    if holdout is None and asked.assigned is not None:
        holdout = asked.assigned.holdout
    if isinstance(arms, ExperimentArms):
        percentage = arms.experiment.holdout_percentage
        holdout = holdout if percentage is None else percentage / 100
    return None if holdout is None or len(arms.labels) != 2 else [1 - holdout, holdout]


def _with_allocation(lift: Lift, allocation: Allocation) -> Lift:
    """The lift with who was assigned, and its flags where the arms are not what they were meant to be."""
    flags = [MISMATCH] if allocation.sample_ratio is not None and allocation.sample_ratio.alarm else []
    if allocation.coverage is not None and allocation.coverage.alarm:
        flags.append(UNEVEN)

    def flagged(estimate: Estimate) -> Estimate:
        return replace(estimate, flags=(*estimate.flags, *flags)) if flags else estimate

    return replace(
        lift,
        difference=flagged(lift.difference),
        relative=flagged(lift.relative),
        always_valid=flagged(lift.always_valid),
        allocation=allocation,
    )


def untagged_of(counts: ArmCounts) -> dict[str, Any]:
    """The fields of `ArmsAnswer` that say what a reading found of arms."""
    return {
        "untagged": dict(counts.untagged.most_common()),
        "seen": {cause: dict(values.most_common()) for cause, values in counts.seen.items()},
        "checked": counts.checked,
        "disagreeing": counts.disagreeing,
        "disagreeing_sessions": tuple(counts.disagreeing_sessions),
    }
