"""The arms of one retrieval experiment: those that the log keeps, or those that evalr's own registry gave its users."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.quoting import quoted
from evalr_reflexio.arms import NO_REQUEST, ArmReading, ExperimentArms
from evalr_reflexio.assigning import experiment_arm
from evalr_reflexio.config import DEFAULT_ORG, Config, Experiment
from evalr_reflexio.registry import REGISTRY, ExperimentRegistry, is_registry
from evalr_reflexio.rows import RequestRow, SessionRecord
from evalr_reflexio.store import Store

NOT_WHILE_IT_RAN = "began while the experiment did not run"
NO_USER = "no user"


@dataclass(frozen=True, slots=True)
class AssignedArms(ExperimentArms):
    """Arms that a registry gave the users of a log whose requests do not carry them.

    Of a session that began while the experiment ran it is the arm that `ExperimentRegistry.assign` gives its user. That
    is the arm as assigned: nothing in the log says that the agent kept to it.
    """

    in_log: ClassVar[bool] = False

    def attributed(self, record: SessionRecord) -> RequestRow | None:
        """The first request, where the experiment ran then."""
        first = record.first
        return first if first is not None and self.experiment.ran_at(first.at) else None

    def read(self, record: SessionRecord) -> ArmReading:
        """The arm of one session."""
        if record.first is None:
            return ArmReading(None, NO_REQUEST)
        if not record.user:
            return ArmReading(None, NO_USER)
        if self.attributed(record) is None:
            return ArmReading(None, NOT_WHILE_IT_RAN)
        org, percentage = self.experiment.assigned_in, self.experiment.holdout_percentage
        return ArmReading(experiment_arm(org or DEFAULT_ORG, self.experiment.id, record.user, percentage or 0.0))


def experiment_arms(
    name: str,
    *,
    config: Config | None = None,
    store: Store | None = None,
    registry: str | os.PathLike[str] | None = None,
) -> ExperimentArms:
    """The arms of the experiment of this id.

    Args:
        name: its id.
        config: what is known of Reflexio's experiments.
        store: the log, where it should be checked that it has them.
        registry: of evalr's own experiments; by default the one beside the log, where the configuration has none such.

    Raises:
        InputError: nobody knows such an experiment; the message says which there are.
        RegistryError: the registry cannot be read.
    """
    known = None if config is None or registry is not None else config.experiment(name)
    place = registry
    if known is None and place is None and store is not None:
        beside = Path(store.path).parent / REGISTRY
        place = beside if is_registry(beside) and name in ExperimentRegistry(beside).ids else None
    if place is not None:
        log_org = None if store is None else store.org
        return arms_in_log(*_registered(place, name, log_org or (config.org if config else None)), store=store)
    if known is None and store is not None:
        seen = store.experiments_seen()
        if name not in seen:
            names = sorted({*seen, *(each.id for each in (config.experiments if config else ()))})
            there = choice_words(name, names) if names else "there are none in this log"
            raise InputError(f"no request carries an experiment {quoted(name)}; {there}")
    return ExperimentArms(known or Experiment(name))


def arms_in_log(experiment: Experiment, notes: Sequence[str] = (), *, store: Store | None) -> ExperimentArms:
    """The arms that the log keeps of a registry's experiment, or those of the registry where it keeps none at all."""
    if store is None or experiment.id in store.experiments_seen():
        return ExperimentArms(experiment, tuple(notes))
    return AssignedArms(experiment, (*notes, AS_ASSIGNED))


AS_ASSIGNED = "no request carries the experiment: arms are those that the registry gives users, while it ran"


def of_another_org(experiment: Experiment, log_org: str | None, registry: str | os.PathLike[str]) -> list[str]:
    """What to know where a registry's experiment is not one of the log's organisation."""
    if log_org is None or experiment.assigned_in in (None, log_org):
        return []
    own = quoted(experiment.assigned_in or "")
    both = f"organisation {own} in {os.fspath(registry)}, and the log is of {quoted(log_org)}"
    return [f"the experiment is one of {both}: each gives users other arms, and the hash is that of the first"]


def _registered(registry: str | os.PathLike[str], name: str, log_org: str | None) -> tuple[Experiment, list[str]]:
    """The experiment of this id, of the log's organisation or else of the only one that has it."""
    orgs = ExperimentRegistry(registry).organisations_with(name)
    wanted = log_org or DEFAULT_ORG
    if len(orgs) > 1 and wanted not in orgs:
        raise InputError(
            f"experiment {quoted(name)} in {os.fspath(registry)} is one of {len(orgs)} organisations "
            f"({', '.join(map(quoted, orgs))}), and the log is of none of them: say which with "
            "`evalr experiment results ID LOG --org NAME`"
        )
    org = wanted if wanted in orgs or not orgs else orgs[0]
    found = ExperimentRegistry(registry, org=org).get(name)
    return found, of_another_org(found, log_org, registry)
