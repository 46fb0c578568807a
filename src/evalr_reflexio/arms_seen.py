"""The arms that a log's sessions carry, for a report that was asked for none."""

from __future__ import annotations

from evalr_reflexio.arms import Arms, ExperimentArms, TagArms
from evalr_reflexio.assigning import TAG, Unit
from evalr_reflexio.config import Config, Experiment
from evalr_reflexio.store import Store
from evalr_reflexio.tables import REQUESTS


def arms_seen(store: Store, config: Config, *, randomised: bool = False, unit: Unit = "session") -> Arms | None:
    """By tag, where a request has one; or else those of the active experiment, or of the last one. None without both.

    Request sources are no arms before somebody says which of them is the control.
    """
    if _has_tags(store):
        return TagArms(randomised=randomised, unit=unit)
    found = experiments_seen(store, config)
    return ExperimentArms(found[0]) if found else None


def experiments_seen(store: Store, config: Config) -> list[Experiment]:
    """The experiments that requests carry: the active one first, then by when they started, the newest first."""
    names = store.experiments_seen()
    found = [config.experiment(name) or Experiment(name) for name in names if name]
    known = [each for each in found if each.started_at is not None]
    known.sort(key=lambda each: (each.ended_at is None, each.started_at), reverse=True)
    return known + [each for each in found if each.started_at is None]


def _has_tags(store: Store) -> bool:
    if not store.keeps_metadata:
        return False
    rows = store.queries.rows(f"SELECT 1 FROM {REQUESTS} WHERE instr(metadata, ?) LIMIT 1", [TAG])
    return next(iter(rows), None) is not None
