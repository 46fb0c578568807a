"""Scores that were imported from Braintrust: the mean of each scorer in the last seven days, and before."""

from __future__ import annotations

from typing import Any

from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.counted import SESSIONS
from evalr_reflexio.compat.windows import Window
from evalr_reflexio.tables import SCORES


def score_tiles(
    asked: AskedStore, current: Window, previous: Window, *, org: str | None, set_number: int | None = None
) -> list[dict[str, Any]]:
    """A tile for each scorer that has current scores; without earlier ones, its change is its value.

    Of a set of request sources they are joined by the session's id alone, whoever's session it is.
    """
    if not asked.store.has(SCORES, "scorer_name") or not org:
        return []
    now = _means(asked, current, org, set_number)
    before = _means(asked, previous, org, set_number)
    return [
        {"scorer_name": name, "current": mean, "n": n, "delta": mean - before[name][0] if name in before else mean}
        for name, (mean, n) in now.items()
    ]


def _means(asked: AskedStore, window: Window, org: str, set_number: int | None) -> dict[str, tuple[float, int]]:
    of_set = (
        "" if set_number is None else f"AND session_id IN (SELECT session_id FROM temp.{SESSIONS} WHERE set_number = ?)"
    )
    rows = asked.queries.rows(
        f"SELECT scorer_name, sum(value), count(*) FROM {SCORES} WHERE org_id = ? AND ts >= ? AND ts <= ? {of_set} "
        "GROUP BY scorer_name ORDER BY scorer_name",
        [org, window.start, window.end, *(() if set_number is None else (set_number,))],
    )
    return {name: (total / n, n) for name, total, n in rows}
