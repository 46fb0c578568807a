"""Retrieval experiments as the API answers them: arms as stored, rows of results as sessions, users as clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from evalr.estimates.reflexio_rules import user_rule
from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr.tallies.moments import Moments
from evalr_reflexio.assigning import HOLDOUT, TREATMENT
from evalr_reflexio.compat.account import Asked
from evalr_reflexio.compat.results import NOUN, counted, in_window
from evalr_reflexio.compat.tiles import without_none
from evalr_reflexio.compat.windows import Window, now_of
from evalr_reflexio.config import Config, Experiment
from evalr_reflexio.store import Store
from evalr_reflexio.tables import INTERACTIONS, OUTCOMES, REQUESTS

ASSIGNED, EVALUATED = "evalr_assigned", "evalr_evaluated"
NOT_FOUND = "Retrieval experiment not found"

_OUTPUT = "lower(trim(i.role, char(9) || char(10) || char(11) || char(12) || char(13) || ' ')) <> 'user'"
"""Whatever a user did not write: answers, tools, and roles of other names."""


def retrieval_experiments(store: Store, *, config: Config | None = None) -> dict[str, Any]:
    """`GET /api/retrieval_experiments`: the active one, and all that there ever were, newest first."""
    config = Asked(store, None).config(config)
    active = config.active_experiment
    return without_none({
        "active_experiment": None if active is None else _shown(active),
        "experiments": [_shown(each) for each in config.experiments],
    })  # fmt: skip


def retrieval_experiment_results(
    store: Store, experiment_id: str, *, config: Config | None = None, now: datetime | Clock = utc_now,
    account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`GET /api/retrieval_experiments/{experiment_id}/results`.

    Evaluated are rows of results of sessions that began while it ran; published are all sessions that carry its id,
    whenever they began. The interval is clustered by user, with 1.96 for its width.

    Args:
        store: the log.
        experiment_id: of the experiment; for one that the settings do not know it is Reflexio's "not found".
        config: the settings, which hold the experiments; by default those found beside the log.
        now: until when an experiment is evaluated that was not stopped.
        account: takes count of rows that are skipped.
    """
    asked = Asked(store, account)
    experiment = asked.config(config).experiment(experiment_id)
    if experiment is None or experiment.started_at is None:
        return {"detail": NOT_FOUND}
    _assign(asked, experiment_id)
    ended = experiment.ended_at
    window = Window(int(experiment.started_at.timestamp()), now_of(now) if ended is None else int(ended.timestamp()))
    unattributed = _evaluate(asked, window)
    arms = {arm: _arm(asked, arm) for arm in (TREATMENT, HOLDOUT)}
    for arm, tokens in _tokens(asked, experiment_id).items():
        arms[arm] |= tokens
    moments = {arm: Moments.of_clusters(_clusters(asked, arm)) for arm in arms}
    rule = user_rule(moments[TREATMENT], moments[HOLDOUT])
    evaluated = sum(each.rows for each in moments.values())
    total = evaluated + unattributed
    return without_none({
        "experiment": _shown(experiment),
        TREATMENT: arms[TREATMENT],
        HOLDOUT: arms[HOLDOUT],
        "success_rate_lift_percentage_points": None if rule.lift is None else rule.lift * 100,
        "relative_success_lift": rule.relative,
        "confidence_interval_95_percentage_points": (
            None if rule.low is None or rule.high is None else [rule.low * 100, rule.high * 100]
        ),
        "evaluated_session_coverage": evaluated / total if total else None,
        "unattributed_evaluated_session_count": unattributed,
    })  # fmt: skip


def _shown(experiment: Experiment) -> dict[str, Any]:
    began, ended = experiment.started_at, experiment.ended_at
    return {
        "experiment_id": experiment.id,
        "holdout_percentage": experiment.holdout_percentage,
        "started_at": None if began is None else int(began.timestamp()),
        "ended_at": None if ended is None else int(ended.timestamp()),
    }


def _assign(asked: Asked, experiment_id: str) -> None:
    """Note the arm of each session: that of its first request that carries the experiment's id."""
    asked.queries.temporary(
        ASSIGNED, "session_id TEXT, user_id TEXT, arm TEXT, PRIMARY KEY (session_id, user_id)", anew=True
    )
    if asked.store.has(REQUESTS, "retrieval_experiment_id"):
        asked.queries.change(
            f"INSERT INTO temp.{ASSIGNED} SELECT session_id, user_id, retrieval_experiment_arm FROM (SELECT *, "
            "row_number() OVER (PARTITION BY session_id, user_id ORDER BY created_at, request_id) AS place "
            f"FROM {REQUESTS} WHERE retrieval_experiment_id = ?) WHERE place = 1",
            [experiment_id],
        )


def _evaluate(asked: Asked, window: Window) -> int:
    """Note the results of sessions in the experiment. Returns how many others were evaluated meanwhile."""
    asked.queries.temporary(
        EVALUATED, "arm TEXT, user_id TEXT, success INTEGER, corrections INTEGER, turns INTEGER, escalated INTEGER",
        anew=True,
    )  # fmt: skip
    user = "t.user_id" if asked.store.has(OUTCOMES, "user_id") else "''"
    join = f"LEFT JOIN temp.{ASSIGNED} a ON a.session_id = t.session_id AND a.user_id = coalesce({user}, '')"
    unattributed = 0

    def attributed() -> Iterator[tuple[Any, ...]]:
        nonlocal unattributed
        rows = in_window(asked, window, join=join, more="a.arm")
        for row, arm in asked.read(rows, lambda row: (counted(row), row[-1]), NOUN):
            if arm in (TREATMENT, HOLDOUT):
                yield arm, row.user, row.success, row.corrections, row.turns, row.escalated
            else:
                unattributed += 1

    asked.queries.change_many(f"INSERT INTO temp.{EVALUATED} VALUES (?, ?, ?, ?, ?, ?)", attributed())
    return unattributed


def _arm(asked: Asked, arm: str) -> dict[str, Any]:
    users, sessions = next(
        asked.queries.rows(f"SELECT count(DISTINCT user_id), count(*) FROM temp.{ASSIGNED} WHERE arm = ?", [arm])
    )
    found = next(
        asked.queries.rows(
            "SELECT count(DISTINCT user_id), count(*), avg(success), avg(corrections), avg(turns), avg(escalated) "
            f"FROM temp.{EVALUATED} WHERE arm = ?",
            [arm],
        )
    )
    evaluated_users, evaluated, success, corrections, turns, escalation = found
    return {
        "arm": arm,
        "assigned_user_count": users,
        "published_session_count": sessions,
        "evaluated_user_count": evaluated_users,
        "evaluated_session_count": evaluated,
        "success_rate": success,
        "average_corrections": corrections,
        "average_turns_to_resolution": turns,
        "escalation_rate": escalation,
        "average_output_tokens": None,
        "output_token_session_count": 0,
    }


def _clusters(asked: Asked, arm: str) -> Iterator[tuple[int, int, int]]:
    query = f"SELECT sum(success), count(*) FROM temp.{EVALUATED} WHERE arm = ? GROUP BY user_id"
    for successes, rows in asked.queries.rows(query, [arm]):
        yield successes, rows, rows


def _tokens(asked: Asked, experiment_id: str) -> dict[str, dict[str, Any]]:
    """Output tokens by arm, of the sessions all of whose output was counted."""
    if not asked.store.has(REQUESTS, "retrieval_experiment_id"):
        return {}
    turns: str = "(SELECT NULL AS role, NULL AS token_count WHERE 0) i ON 1"
    if asked.store.has(INTERACTIONS, "token_count"):
        turns = asked.queries.by(INTERACTIONS, "request_id", "r.request_id", "i")
    rows: Iterator[Sequence[Any]] = asked.queries.rows(
        "SELECT arm, avg(tokens), count(*) FROM (SELECT a.arm AS arm, "
        f"coalesce(sum(CASE WHEN {_OUTPUT} THEN i.token_count ELSE 0 END), 0) AS tokens, "
        f"sum(CASE WHEN {_OUTPUT} AND i.token_count IS NULL THEN 1 ELSE 0 END) AS missing "
        f"FROM {REQUESTS} r JOIN temp.{ASSIGNED} a ON a.session_id = r.session_id AND a.user_id = r.user_id "
        f"LEFT JOIN {turns} WHERE r.retrieval_experiment_id = ? GROUP BY r.user_id, r.session_id) "
        "WHERE missing = 0 AND arm IN ('treatment', 'holdout') GROUP BY arm",
        [experiment_id],
    )
    return {arm: {"average_output_tokens": mean, "output_token_session_count": count} for arm, mean, count in rows}
