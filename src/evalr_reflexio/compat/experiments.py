"""Retrieval experiments as the API answers them: arms as stored, rows of results as sessions, users as clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from evalr.estimates.reflexio_rules import user_rule
from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr.tallies.moments import Moments
from evalr_reflexio.assigning import HOLDOUT, TREATMENT
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.firsts import keep_first
from evalr_reflexio.compat.results import rows_in
from evalr_reflexio.compat.tiles import without_none
from evalr_reflexio.compat.windows import Window, now_of
from evalr_reflexio.config import Config, Experiment
from evalr_reflexio.store import Store
from evalr_reflexio.tables import INTERACTIONS, REQUESTS

ASSIGNED = "evalr_assigned"
_BY_USER = (
    f"(SELECT arm FROM temp.{ASSIGNED} a WHERE a.session_id = r.session_id AND a.user_id = r.user_id) "
    "AS arm, count(*) AS n, sum(success) AS s, sum(corrections) AS c, sum(turns) AS t, count(turns) AS w, "
    "sum(escalated) AS e"
)
_BY_ARM = "SELECT arm, count(*), sum(n), sum(s), sum(c), sum(t), sum(w), sum(e), sum(s * s), sum(s * n), sum(n * n)"


class _Sums(NamedTuple):
    """What `_BY_ARM` selects: of users, of their results, and of what those say."""

    users: int = 0
    n: int = 0
    successes: int = 0
    corrections: int = 0
    turns: int | None = 0
    with_turns: int = 0
    escalated: int = 0
    yy: int = 0
    ym: int = 0
    mm: int = 0

    @property
    def moments(self) -> Moments:
        """Of success, with users as clusters."""
        return Moments(self.users, self.n, self.successes, self.n, self.yy, self.ym, self.mm)


NOT_FOUND = "Retrieval experiment not found"

_OUTPUT = (
    "CASE i.role COLLATE BINARY WHEN 'User' THEN 0 WHEN 'Agent' THEN 1 ELSE "  # which it mostly is, and soon told
    "lower(trim(i.role, char(9) || char(10) || char(11) || char(12) || char(13) || ' ')) <> 'user' END"
)
"""Whatever a user did not write: answers, tools, and roles of other names."""


def retrieval_experiments(store: Store, *, config: Config | None = None) -> dict[str, Any]:
    """`GET /api/retrieval_experiments`: the active one, and all that there ever were, newest first."""
    config = AskedStore(store, None).config(config)
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
    asked = AskedStore(store, account)
    experiment = asked.config(config).experiment(experiment_id)
    if experiment is None or experiment.started_at is None:
        return {"detail": NOT_FOUND}
    _assign(asked, experiment_id)
    ended = experiment.ended_at
    window = Window(int(experiment.started_at.timestamp()), now_of(now) if ended is None else int(ended.timestamp()))
    rows = rows_in(asked, window)
    rows.check()
    total = next(rows.select("count(*)"))[0]
    inner = rows.query(_BY_USER, end="GROUP BY 1, user_id")
    sums = {
        arm: _Sums(*found) for arm, *found in asked.queries.rows(f"{_BY_ARM} FROM ({inner}) GROUP BY arm", rows.given)
    }
    found = {arm: sums.get(arm, _Sums()) for arm in (TREATMENT, HOLDOUT)}
    arms = {arm: _arm(asked, arm, each) for arm, each in found.items()}
    for arm, tokens in _tokens(asked, experiment_id).items():
        arms[arm] |= tokens
    rule = user_rule(*(each.moments for each in found.values()))
    evaluated = sum(each.n for each in found.values())
    unattributed = total - evaluated
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


def _assign(asked: AskedStore, experiment_id: str) -> None:
    """Note the arm of each session: that of its first request that carries the experiment's id."""
    asked.queries.temporary(ASSIGNED, "session_id TEXT, user_id TEXT, arm TEXT", key="session_id, user_id", anew=True)
    if asked.store.has(REQUESTS, "retrieval_experiment_id"):
        where = "retrieval_experiment_id = ?"
        keep_first(asked, ASSIGNED, "retrieval_experiment_arm", where, [experiment_id])


def _arm(asked: AskedStore, arm: str, sums: _Sums) -> dict[str, Any]:
    published = f"SELECT count(DISTINCT user_id), count(*) FROM temp.{ASSIGNED} WHERE arm = ?"
    users, sessions = next(asked.queries.rows(published, [arm]))
    return {
        "arm": arm,
        "assigned_user_count": users,
        "published_session_count": sessions,
        "evaluated_user_count": sums.users,
        "evaluated_session_count": sums.n,
        "success_rate": _mean(sums.successes, sums.n),
        "average_corrections": _mean(sums.corrections, sums.n),
        "average_turns_to_resolution": _mean(sums.turns or 0, sums.with_turns),
        "escalation_rate": _mean(sums.escalated, sums.n),
        "average_output_tokens": None,
        "output_token_session_count": 0,
    }


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None


def _tokens(asked: AskedStore, experiment_id: str) -> dict[str, dict[str, Any]]:
    """Output tokens by arm, of the sessions all of whose output was counted."""
    if not asked.store.has(REQUESTS, "retrieval_experiment_id"):
        return {}
    turns: str = "(SELECT NULL AS role, NULL AS token_count WHERE 0) i ON 1"
    if asked.store.has(INTERACTIONS, "token_count"):
        turns = asked.queries.by(INTERACTIONS, "request_id", "r.request_id", "i")
    # Request by request as they stand, and not session by session: their turns then stand together, too.
    of_requests = (
        "SELECT r.session_id AS session_id, r.user_id AS user_id, "
        f"coalesce(sum(CASE WHEN {_OUTPUT} THEN i.token_count ELSE 0 END), 0) AS tokens, "
        f"sum(CASE WHEN {_OUTPUT} AND i.token_count IS NULL THEN 1 ELSE 0 END) AS missing "
        f"FROM {REQUESTS} r LEFT JOIN {turns} WHERE r.retrieval_experiment_id = ? GROUP BY r.rowid"
    )
    rows: Iterator[Sequence[Any]] = asked.queries.rows(
        "SELECT arm, avg(tokens), count(*) FROM ("
        f"SELECT a.arm AS arm, sum(q.tokens) AS tokens, sum(q.missing) AS missing FROM ({of_requests}) q "
        f"CROSS JOIN temp.{ASSIGNED} a ON a.session_id = q.session_id AND a.user_id = q.user_id "
        "GROUP BY q.session_id, q.user_id) "
        "WHERE missing = 0 AND arm IN ('treatment', 'holdout') GROUP BY arm",
        [experiment_id],
    )
    return {arm: {"average_output_tokens": mean, "output_token_session_count": count} for arm, mean, count in rows}
