"""The arms that a log's sessions carry, for a report that was asked for none."""

from __future__ import annotations

from datetime import datetime

from evalr_reflexio.arms import EXPERIMENT_WORD, TAG_WORD
from evalr_reflexio.assigning import TAG
from evalr_reflexio.config import Config, Experiment
from evalr_reflexio.store import Store
from evalr_reflexio.tables import REQUESTS


def arms_seen(
    store: Store, config: Config, *, since: datetime | None = None, until: datetime | None = None
) -> str | None:
    """As `--arms` names them: the tag, where a request has one; or else the newest experiment that ran in the period.

    Where none is known to have run in it, it is the active one, or the last one. Request sources are no arms before
    somebody says which of them is the control. None where there are no arms.
    """
    if _has_tags(store):
        return TAG_WORD
    found = experiments_seen(store, config)
    chosen = next((each for each in found if _ran_in(each, since, until)), found[0] if found else None)
    return None if chosen is None else f"{EXPERIMENT_WORD}:{chosen.id}"


def _ran_in(experiment: Experiment, since: datetime | None, until: datetime | None) -> bool:
    began, over = experiment.started_at, experiment.until
    return (began is None or until is None or began < until) and (over is None or since is None or since < over)


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
