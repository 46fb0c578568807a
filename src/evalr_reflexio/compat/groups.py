"""The split by tag of 0.2.24 and 0.2.25, which Reflexio took out since: three curves, and a lift with its interval.

Those releases joined results to requests by the session's id alone, so that where several users share one, the tag of
whoever came first is that of all.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final, Literal

from evalr.errors import InputError
from evalr.estimates.reflexio_rules import CAP, session_rule
from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr.tallies.moments import Moments
from evalr_reflexio.arms import arm_of_tag
from evalr_reflexio.assigning import CONTROL, TREATMENT
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.dashboard import get_playbook_application_stats
from evalr_reflexio.compat.overview import INSIDE, Page, Windows
from evalr_reflexio.compat.results import newest_rows
from evalr_reflexio.compat.scores import score_tiles
from evalr_reflexio.compat.shadows import pinned_version, win_rate_trend
from evalr_reflexio.compat.tiles import STEPS, Bucket, mean
from evalr_reflexio.compat.windows import Moment, Window, now_of, time_of, window_of
from evalr_reflexio.config import Config
from evalr_reflexio.store import Store
from evalr_reflexio.tables import REQUESTS

UNTAGGED = "untagged"
GROUPS: Final = (TREATMENT, CONTROL, UNTAGGED)
NO_ESTIMATE = "no estimate"
BEYOND = ">±50pp"
MOST_RESULTS = 10_000
"""Those releases look at no more of the newest results, of any time."""

Join = Literal["session", "user"]


def overview_with_groups(
    store: Store, *, since: Moment | None = None, until: Moment | None = None, bucket: Bucket = "week",
    config: Config | None = None, now: datetime | Clock = utc_now, listed: int | None = None,
    account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`POST /api/get_evaluation_overview` of 0.2.25, the last release with a split by tag.

    Args:
        store: the log.
        since: see `overview`.
        until: see `overview`.
        bucket: of the curves: "day" or "week".
        config: the settings; by default those found beside the log.
        now: the reading time.
        listed: how many sessions are listed by name, for each rule; all of them by default.
        account: takes count of rows that are skipped.

    Raises:
        InputError, LogError: as for `overview`.
    """
    if bucket not in STEPS:
        raise InputError(f"bucket={bucket!r} must be 'day' or 'week'")
    asked = AskedStore(store, account)
    windows = Windows(window_of(since, until, now_of(now)))
    page = Page(asked, windows, newest_rows(asked, MOST_RESULTS), {}, asked.config(config), listed)
    page.find_sessions(by_user=False)
    shown, histogram = page.tiles(None)
    del shown["behavior_success"]
    titles = {(each["kind"], each["real_id"]): each["title"] for each in _applied(store, now)}
    return {
        "hero": page.hero(bucket),
        "context_tiles": shown,
        "rule_attribution": [
            each | {"title": titles.get((each["kind"], each["rule_id"]), "")} for each in page.rules.rows()
        ],
        "score_distribution": histogram,
        "braintrust_tiles": score_tiles(asked, windows.current, windows.previous, org=page.org),
        "success_rate_trend_by_group": _Groups(asked, windows.whole, "session").trend(bucket),
        "shadow_win_rate_trend": win_rate_trend(asked, windows.whole, pinned_version(store, page.config)),
    }


def _applied(store: Store, now: datetime | Clock) -> list[dict[str, Any]]:
    stats: list[dict[str, Any]] = get_playbook_application_stats(store, now=now)["stats"]
    return stats


def metadata_groups(
    store: Store, *, since: Moment | None = None, until: Moment | None = None, bucket: Bucket = "week",
    join: Join = "session", now: datetime | Clock = utc_now, account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The three curves of the split by tag, their totals, and the lift of its tile with its 95% interval.

    Args:
        store: the log, of a release that keeps metadata.
        since: see `overview`.
        until: see `overview`.
        bucket: of the curves: "day" or "week".
        join: what a result and its first request have in common: "session" alone, as in Reflexio, or the "user", too.
        now: the reading time.
        account: takes count of rows that are skipped.

    Raises:
        InputError: as for `overview`; or the log keeps no metadata.
    """
    if bucket not in STEPS or join not in ("session", "user"):
        raise InputError(f"bucket={bucket!r} must be 'day' or 'week', and join={join!r} 'session' or 'user'")
    if not store.keeps_metadata:
        raise InputError(f"{store.path} keeps no metadata of requests: only Reflexio 0.2.24 and 0.2.25 do")
    groups = _Groups(AskedStore(store, account), window_of(since, until, now_of(now)), join)
    return {
        "success_rate_trend_by_group": groups.trend(bucket),
        "totals": {name: [n, mean(successes, n)] for name, (n, successes) in groups.totals.items()},
        "lift": lift_tile(groups.totals[TREATMENT], groups.totals[CONTROL]),
    }


def lift_tile(treatment: tuple[int, int], control: tuple[int, int]) -> dict[str, Any]:
    """The tile of the lift, of (sessions, successes) in each group: with the words that it is shown as.

    Reflexio returns the half width alone, and never more than 0.5, so that 0.5 itself is taken for more than that:
    `low_confidence` is of the width before it was cut.

    Raises:
        InputError: a group has more successes than sessions, or fewer than none.
    """
    for n, successes in (treatment, control):
        if not 0 <= successes <= n:
            raise InputError(f"a group of {n} sessions has no {successes} successes: give (sessions, successes)")
    arms = [
        Moments(clusters=n, rows=n, y=successes, m=n, yy=successes, ym=successes, mm=n)
        for n, successes in (treatment, control)
    ]
    rule = session_rule(*arms)
    if rule.lift is None or rule.half_width is None:
        shown = NO_ESTIMATE
    else:
        width = BEYOND if rule.low_confidence else f"±{rule.half_width * 100:.1f}pp"
        shown = f"{rule.lift * 100:+.1f}pp {width}"
    return {
        "lift": rule.lift,
        "half_width": rule.half_width,
        "unclamped_half_width": rule.unclamped,
        "low_confidence": rule.low_confidence,
        "at_cap": None if rule.half_width is None else rule.half_width >= CAP,
        "shown": shown,
        "n_treatment": treatment[0],
        "n_control": control[0],
    }


class _Groups:
    """Results of a period by the tag of their session's first request."""

    def __init__(self, asked: AskedStore, window: Window, join: Join) -> None:
        self.totals: dict[str, tuple[int, int]] = dict.fromkeys(GROUPS, (0, 0))
        self._points: dict[str, dict[tuple[Bucket, int], tuple[int, int]]] = {name: {} for name in GROUPS}
        self._asked, self._by_user = asked, join == "user"
        groups = dict[tuple[str, str, int], str]()
        rows = newest_rows(asked, MOST_RESULTS)
        rows.check()
        for session, user, at, success in rows.select("session_id, user_id, at, success", INSIDE, window):
            key = (session, user, at) if self._by_user else (session, "", 0)
            group = groups.get(key)
            if group is None:
                group = groups[key] = self._group_of(session, user, at)
            self.totals[group] = _one_more(self.totals[group], success)
            points = self._points[group]
            for bucket, step in STEPS.items():
                begin = at // step * step
                points[bucket, begin] = _one_more(points.get((bucket, begin), (0, 0)), success)

    def _group_of(self, session: str, owner: str, began: int) -> str:
        """Of several requests of one second, the first is the one that was stored first."""
        source = self._asked.queries.by(REQUESTS, "session_id", "?", "r")
        rows = self._asked.queries.rows(
            f"SELECT r.user_id, r.created_at, r.metadata FROM (SELECT 1) CROSS JOIN {source} "
            "ORDER BY r.created_at, r.rowid",
            [session],
        )
        firsts: dict[str, tuple[Any, Any]] = {}
        for user, at, metadata in rows:
            firsts.setdefault(user if self._by_user else "", (at, metadata))
        found = list(firsts.values())
        if self._by_user and owner:
            found = [firsts[owner]] if owner in firsts else []
        elif len(found) > 1:
            # Those releases keep no user in results; a session began when its result says.
            found = [first for first in found if _began(first[0]) == began]
        return arm_of_tag(_metadata(found[0][1])).arm or UNTAGGED if len(found) == 1 else UNTAGGED

    def trend(self, bucket: Bucket) -> dict[str, list[dict[str, Any]]]:
        """The three curves."""
        return {
            name: [
                {"ts": begin, "rate": successes / n, "n": n}
                for (of, begin), (n, successes) in sorted(points.items())
                if of == bucket
            ]
            for name, points in self._points.items()
        }


def _one_more(counts: tuple[int, int], success: int) -> tuple[int, int]:
    return counts[0] + 1, counts[1] + success


def _began(text: Any) -> int | None:
    try:
        return time_of(text)
    except Reason:
        return None


def _metadata(stored: Any) -> Any:
    """As that release reads it, with Python's own JSON; None where it cannot be read, which is untagged."""
    try:
        return json.loads(stored or "{}")
    except (ValueError, TypeError, RecursionError):
        return None
