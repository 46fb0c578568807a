"""The same sessions split in other ways in the same pass: by request source, and by other experiments."""

from __future__ import annotations

from dataclasses import replace

from evalr_reflexio.answers.arm_answer import ArmsAnswer
from evalr_reflexio.answers.asked import Asked
from evalr_reflexio.answers.impact import arms_answer, gathering_for
from evalr_reflexio.arms import Arms, ExperimentArms, SourceArms
from evalr_reflexio.arms_seen import experiments_seen
from evalr_reflexio.config import Config, Experiment
from evalr_reflexio.conversations import NO_SOURCE
from evalr_reflexio.rows import SessionRecord
from evalr_reflexio.store import Store

MOST_SOURCES = 12
MOST_EXPERIMENTS = 3
"""Each of them takes a look at every session."""


class Splits:
    """What one pass sums up of the sessions in other splits than the one that was asked for.

    Attributes:
        gatherings: what was summed up, split by split.
    """

    def __init__(self, store: Store, asked: Asked, arms: Arms | None, config: Config) -> None:
        chosen = arms.experiment.id if isinstance(arms, ExperimentArms) else None
        others = [each for each in experiments_seen(store, config) if each.id != chosen]
        plain = replace(asked, assigned=None, holdout=None, shadow="served", newest=0, listed=0)
        self.experiments = [
            (arms, gathering_for(store, plain, arms, config)) for arms in map(ExperimentArms, others[:MOST_EXPERIMENTS])
        ]
        self.more = len(others) - len(self.experiments)
        sources = [name for name, _ in store.request_sources_seen().most_common(MOST_SOURCES)]
        sets = SourceArms({name or NO_SOURCE: [name] for name in sources}) if len(sources) > 1 else None
        self.sources = None if sets is None else (sets, gathering_for(store, plain, sets, config))
        self.gatherings = [gathering for _, gathering in self.experiments]
        if self.sources is not None:
            self.gatherings.append(self.sources[1])

    def see(self, record: SessionRecord) -> None:
        """Count one session."""
        if record.shadow_verdicts or record.learning_verdicts:
            record = replace(record, shadow_verdicts=[], learning_verdicts=[])
        for gathering in self.gatherings:
            gathering.see(record)

    def answers(self) -> tuple[ArmsAnswer | None, dict[Experiment, ArmsAnswer]]:
        """By request source, and by experiment: those that have a session of the period."""
        sources = None if self.sources is None else arms_answer(self.sources[1], self.sources[0], randomised=False)
        found = {arms.experiment: arms_answer(each, arms, randomised=True) for arms, each in self.experiments}
        return sources, {each: arms for each, arms in found.items() if _is_there(arms)}


def _is_there(arms: ArmsAnswer) -> bool:
    return any(answer.coverage.whole for arm, answer in arms.by_arm.items() if arm is not None)
