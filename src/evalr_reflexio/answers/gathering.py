"""One pass: every session of a log into sums, from which all answers are made. Sums of parts add up to the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from evalr.reports.lane import without
from evalr.tallies.numbering import OWN, Numbering
from evalr_reflexio.answers.arm_sums import ArmSums
from evalr_reflexio.answers.asked import Asked
from evalr_reflexio.answers.customers import CustomerSums
from evalr_reflexio.answers.feeding import ByUser
from evalr_reflexio.answers.health import HealthSums
from evalr_reflexio.answers.learnings import LearningSums
from evalr_reflexio.answers.newest import Newest
from evalr_reflexio.answers.recent import Recent
from evalr_reflexio.answers.shadows import ShadowSums
from evalr_reflexio.arm_checks import checked_by, computed_arm
from evalr_reflexio.arms import ArmCounts, ArmReading, Arms, ExperimentArms
from evalr_reflexio.config import Config
from evalr_reflexio.corrections import Corrections
from evalr_reflexio.noticed import Noticed
from evalr_reflexio.rows import InteractionRow, OutcomeRow, Reference, SessionRecord
from evalr_reflexio.speaking import Bearer, Spoken
from evalr_reflexio.turns import JudgedTurns, judged_turns, said_by

NO_ARMS = ArmReading(None)


class Gathering:
    """What a pass over sessions sums up, one `see` for each.

    Args:
        asked: what is asked.
        arms: what puts sessions into arms; None for none.
        config: what is known of the organisation.
        evaluator: the judge of sessions whose verdicts count.
        shadow_version: the prompt version of the shadow verdicts that count; None where there are none.
        controls: the arms whose served answers had no Reflexio.
        corrections: which numbers are of corrections.
    """

    def __init__(
        self,
        asked: Asked,
        *,
        arms: Arms | None,
        config: Config,
        evaluator: str,
        shadow_version: str | None,
        controls: tuple[str, ...],
        corrections: Corrections,
    ) -> None:
        self.asked, self.arms, self.config, self.evaluator = asked, arms, config, evaluator
        self.controls, self.corrections = controls, corrections
        self.numbering = Numbering()
        labels: list[str | None] = [None] if arms is None else [*arms.labels, None]
        self.sums: dict[str | None, ArmSums] = {label: ArmSums(self.numbering) for label in labels}
        self.bits: Mapping[str | None, int] = {label: 1 << place for place, label in enumerate(labels)}
        self.members_of = ByUser(2)
        self._computed: dict[int, str | None] = {}
        self.arm_counts = ArmCounts()
        self.shadows = ShadowSums(asked, shadow_version, controls, self.numbering)
        self.learnings = LearningSums(self.numbering, asked.newest)
        self.recent: Newest[Recent] = Newest(asked.newest)
        self.customers = CustomerSums()
        self.health = HealthSums()
        self.noticed = Noticed()
        self.judged_in_experiment = self.attributed = self.attributed_outside = 0

    def see(
        self,
        record: SessionRecord,
        *,
        said: Spoken | None = None,
        reading: ArmReading | None = None,
        odd: Sequence[str] | None = None,
        turns: JudgedTurns | None = None,
    ) -> None:
        """Count one session, with all that the log holds of it.

        Args:
            record: the session.
            said: what its turns say until the reading time; this and the others are found where they are not known.
            reading: its arm.
            odd: what is odd about it.
            turns: those that its verdicts are about; see `judged_turns`.
        """
        if reading is None:
            reading = NO_ARMS if self.arms is None else self.arms.read(record)
        arm = reading.arm
        judged = self._judged(record)
        requests = record.requests
        began = requests[0].at if requests else None if judged is None else judged.at
        counts = began is not None and self.asked.takes_in(began)
        user = self.numbering.number(record.user or None)
        if counts:
            self._count(record, reading, judged, user, said)
            if len(requests) > 1:
                self.noticed.see(record, odd)
        elif began is not None:
            self.health.outside += 1
            said = said_by(record.interactions)
            for turn, _ in said.with_shadow:
                self._see_shadow(turn.at)
            for turn in said.given:
                self._see_given(turn)
        turns = judged_turns(record) if turns is None else turns
        if record.shadow_verdicts:
            self.shadows.see(record, turns, arm, self.asked)
        if record.learning_verdicts:
            self.learnings.see(record, turns, self.asked)
        reported = record.customer_outcome
        if reported is not None and (counts if began is not None else self.asked.takes_in(reported.at)):
            self.customers.see(record, reported, judged)

    def _judged(self, record: SessionRecord) -> OutcomeRow | None:
        """The verdict that counts: the last one by the judge."""
        for row in reversed(record.outcomes):
            if row.evaluator == self.evaluator:
                return row
        return None

    def could_be_given(self, arm: str | None) -> bool:
        """Whether answers of an arm could have been given learnings."""
        return self.arms is None or (arm is not None and arm not in self.controls)

    def has_arms(self) -> bool:
        """Whether any session of the period is in an arm."""
        return any(sums.published or sums.judged for arm, sums in self.sums.items() if arm is not None)

    def _count(
        self, record: SessionRecord, reading: ArmReading, judged: OutcomeRow | None, user: int, said: Spoken | None
    ) -> None:
        arm, requests = reading.arm, record.requests
        sums, members = self.sums[arm], self.members_of
        if user >= members.size:
            members.reach(user)
        if self.arms is not None:
            self._count_arm(record, reading, self.arms, user)
        if requests:
            sums.published += 1
            members.columns[0][user] |= self.bits[arm]
            if requests[0].evaluation_only:
                sums.evaluation_only += 1
            if record.grading is not None:
                self.health.gradings[record.grading.status] += 1
                self.health.failed_chunks += record.grading.failed_chunks
        if judged is not None:
            at = requests[0].at if requests else judged.at
            corrections = self.corrections.of(record, judged)
            sums.judge(record, judged, user, at, corrections)
            if requests:
                sums.evaluated += 1
                members.columns[1][user] |= self.bits[arm]
            else:
                self.health.gone += 1
            self._count_attributed(at, arm)
            recent = (record.user, requests[0] if requests else None, judged, at, arm, corrections)
            self.recent.add(at, judged.result_id, recent)
        if len(record.outcomes) > (judged is not None):
            self._count_others(record, judged)
        if record.interactions:
            said = said_by(record.interactions, self.asked.now) if said is None else said
            self._speak(said, arm, None if judged is None else judged.success, user)
        elif requests:
            self.health.without_turns += 1

    def _speak(self, said: Spoken, arm: str | None, success: bool | None, user: int) -> None:
        """Count what a session's turns say: tokens, how it was left, and the learnings that its answers were given."""
        sums, last_word, answered = self.sums[arm], said.last_word, said.answered
        # As `measure_drop_off` says it of sessions without proposals and ends, which Reflexio's logs do not have.
        if last_word is None:
            sums.speak(user, said.tokens, 0.0, ended=True)
        elif answered is None:
            sums.speak(user, said.tokens, (self.asked.now - last_word).total_seconds(), ended=False)
        else:
            sums.speak(user, said.tokens, (answered - last_word).total_seconds(), ended=True)
        for turn, _ in said.with_shadow:
            self._see_shadow(turn.at)
        if said.given or said.cited:
            given: set[Reference] = set()
            for turn in said.given:
                self._see_given(turn)
                given.update(turn.learnings or ())
            cited = set().union(*said.cited)
            in_no_arm = self.arms is not None and arm is None
            self.learnings.end(
                given, cited, success, user, could_be_given=self.could_be_given(arm), in_no_arm=in_no_arm
            )

    def _see_shadow(self, at: datetime) -> None:
        """Count an answer with another one beside it, by when it was given."""
        if self.asked.takes_in(at):
            self.shadows.with_shadow += 1

    def _see_given(self, turn: InteractionRow | Bearer) -> None:
        """Count the learnings that an answer was given, by when it was: verdicts on them count by that time, too."""
        if self.asked.takes_in(turn.at):
            self.learnings.give(turn.learnings or (), turn.citations or ())

    def _count_arm(self, record: SessionRecord, reading: ArmReading, arms: Arms, user: int) -> None:
        self.arm_counts.see(reading)
        rule = self.asked.assigned
        if reading.arm is None or (rule is None and not isinstance(arms, ExperimentArms)):
            return
        if checked_by(arms, rule) == "session":
            computed = computed_arm(record, arms, org=self.config.org, rule=rule)
        else:
            if user not in self._computed:
                self._computed[user] = computed_arm(record, arms, org=self.config.org, rule=rule)
            computed = self._computed[user]
        if computed is not None:
            self.arm_counts.check(record, reading.arm, computed)

    def _count_attributed(self, at: datetime, arm: str | None) -> None:
        """Whether a judged session carries the split; of an experiment's, only those that began while it ran count."""
        if isinstance(self.arms, ExperimentArms) and not self.arms.experiment.ran_at(at):
            self.attributed_outside += arm is not None
            return
        self.judged_in_experiment += 1
        self.attributed += arm is not None

    def _count_others(self, record: SessionRecord, judged: OutcomeRow | None) -> None:
        for row in record.outcomes:
            if row.evaluator != self.evaluator:
                self.health.other_judges[row.evaluator] += 1
            elif judged is not None and row.result_id != judged.result_id:
                self.health.judged_again += 1

    def merge(self, other: Gathering) -> None:
        """Count what another pass has counted, of other sessions of the same log and for the same question."""
        for arm, sums in self.sums.items():
            sums.merge(other.sums[arm])
        numbers = self.numbering.of(other.numbering)
        self.members_of.reach(max(numbers, default=0))
        for mine, theirs in zip(self.members_of.columns, other.members_of.columns, strict=True):
            for number, bits in zip(numbers, theirs, strict=False):
                mine[number] |= bits
        self.arm_counts.merge(other.arm_counts)
        self.shadows.merge(other.shadows)
        self.learnings.merge(other.learnings)
        self.recent.merge(other.recent)
        self.customers.merge(other.customers)
        self.health.merge(other.health)
        self.noticed.merge(other.noticed)
        self.judged_in_experiment += other.judged_in_experiment
        self.attributed += other.attributed
        self.attributed_outside += other.attributed_outside

    def __getstate__(self) -> dict[str, Any]:
        """What was counted, which is all that `merge` takes of another gathering."""
        return without(vars(self), "asked", "arms", "config", "_computed")

    def members(self) -> tuple[Sequence[int], Sequence[int]]:
        """The bits of each user's arms, by those published and those evaluated, without those who have no name."""
        published, evaluated = self.members_of.columns
        return published[OWN + 1 :], evaluated[OWN + 1 :]
