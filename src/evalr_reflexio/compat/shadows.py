"""How often the answer that was served won against its shadow: ties and second opinions count, as Reflexio counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.cells import name_of, name_or_none
from evalr_reflexio.compat.tiles import mean
from evalr_reflexio.compat.windows import (
    IS_USUAL,
    MONTH,
    Moment,
    Window,
    moment_of,
    now_of,
    text_of_time,
    window_of,
)
from evalr_reflexio.config import Config
from evalr_reflexio.store import Store
from evalr_reflexio.tables import LEARNINGS, SHADOWS

NOUN = "shadow verdict"
PINNED, PINNED_BEFORE = "v1.1.0", "v1.0.0"
"""The prompt version that is pinned where no configuration says, from 0.2.29 on and before."""
_FIELDS: Final = (
    "verdict_id", "created_at", "reflexio_is_request_1", "better_request", "is_significantly_better",
    "interaction_id", "session_id", "agent_version", "judge_prompt_version", "comparison_reason",
)  # fmt: skip
MOST = 100


def pinned_version(store: Store, config: Config) -> str:
    """The prompt version whose verdicts count."""
    if config.shadow_prompt_version is not None:
        return config.shadow_prompt_version
    return PINNED if store.has(LEARNINGS) else PINNED_BEFORE


def win_rate_trend(asked: AskedStore, window: Window | None, version: str) -> dict[str, Any]:
    """The win rate by day of UTC, and of the window; of nothing where there is no window."""
    days: dict[str, list[int]] = {}
    if window is not None and asked.store.has(SHADOWS):
        for day, won, _, count in _counts(asked, window, version):
            days.setdefault(day, [0, 0, 0])[won] += count
    wins, losses, ties = (sum(each) for each in zip(*days.values(), strict=True)) if days else (0, 0, 0)
    n = wins + losses + ties
    return {
        "daily": [_point(day, *days[day]) for day in sorted(days)],
        "window_total": {
            "n": n,
            "wins": wins,
            "losses": losses,
            "ties": ties,
            "win_rate": mean(wins, n),
            "net_win": mean(wins - losses, n),
        },
        "judge_prompt_version": version,
    }


def significant_shadow_comparisons(
    store: Store, *, since: Moment | None = None, until: Moment | None = None, config: Config | None = None,
    now: datetime | Clock = utc_now, account: Log | None = None,
) -> dict[str, int]:  # fmt: skip
    """How many verdicts of a period say that the difference is significant, which Reflexio lists and does not count.

    Args:
        store: the log.
        since: begins the period; see `overview`.
        until: ends it.
        config: the settings, whose prompt version is pinned; by default those found beside the log.
        now: the reading time.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    counts = [0, 0, 0]
    if store.has(SHADOWS):
        window = window_of(since, until, now_of(now))
        for _, won, significant, count in _counts(asked, window, pinned_version(store, asked.config(config))):
            counts[won] += count if significant else 0
    return dict(zip(("wins", "losses", "ties"), counts, strict=True))


def _point(day: str, wins: int, losses: int, ties: int) -> dict[str, Any]:
    return {"date": day, "n": wins + losses + ties, "wins": wins, "losses": losses, "ties": ties}


def _rows(
    asked: AskedStore, window: Window, version: str, *, where: str = "1", order: str = "", limit: int = -1
) -> Any:
    return asked.queries.rows(
        f"SELECT {asked.fields(SHADOWS, _FIELDS)} {_FROM} AND {where} {order} LIMIT ?",
        [*_given(window, version), limit],
    )


_FROM = f"FROM {SHADOWS} t WHERE t.created_at >= ? AND t.created_at <= ? AND t.judge_prompt_version = ?"


def _given(window: Window, version: str) -> list[str]:
    return [text_of_time(window.start), text_of_time(window.end), version]


def _counts(asked: AskedStore, window: Window, version: str) -> Iterator[tuple[str, int, bool, int]]:
    """(day, how it came out, whether the difference is significant, how many), with others one by one.

    What is written as Reflexio writes it is counted by SQLite.
    """
    # The plus has the texts compared as they are, whatever the column was declared to be.
    is_plain = f"{IS_USUAL.format('t.created_at')} AND +t.better_request COLLATE BINARY IN ('1', '2', 'tie')"
    fields = asked.fields(SHADOWS, _FIELDS[2:5])
    for at, *given, count in asked.queries.rows(
        f"SELECT substr(t.created_at, 1, 10), {fields}, count(*) {_FROM} AND {is_plain} GROUP BY 1, 2, 3, 4",
        _given(window, version),
    ):
        asked.account.records += count
        yield *_outcome((None, at, *given)), bool(given[2]), count
    others = _rows(asked, window, version, where=f"NOT coalesce({is_plain}, 0)")
    yield from asked.read(others, lambda row: (*_outcome(row), bool(row[4]), 1), NOUN)


def _outcome(row: Sequence[Any]) -> tuple[str, int]:
    """(day, 0 where the served answer won, 1 where it lost, 2 for a tie)."""
    better = row[3]
    if better not in ("1", "2", "tie"):
        raise Reason("wrong value in 'better_request'")
    day = _time(row[1]).astimezone(UTC).strftime("%Y-%m-%d")
    return day, 2 if better == "tie" else int((better == "1") != bool(row[2]))


def _time(text: Any) -> datetime:
    try:
        return moment_of(text)
    except (ValueError, TypeError, OverflowError):
        raise Reason("unreadable time") from None


def recent_shadow_comparisons(
    store: Store, *, limit: int = 10, config: Config | None = None, now: datetime | Clock = utc_now,
    account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`GET /api/evaluations/shadow_comparisons/recent`: the newest verdicts of 30 days, by the text of their time.

    Args:
        store: the log.
        limit: at most so many, from 1 to 100.
        config: the settings, whose prompt version is pinned; by default those found beside the log.
        now: the reading time.
        account: takes count of rows that are skipped.
    """
    asked = AskedStore(store, account)
    end = now_of(now)
    if not store.has(SHADOWS):
        return {"verdicts": []}
    version = pinned_version(store, asked.config(config))
    rows = _rows(
        asked,
        Window(end - MONTH, end),
        version,
        order="ORDER BY t.created_at DESC, t.verdict_id DESC",
        limit=max(1, min(limit, MOST)),
    )
    return {"verdicts": list(asked.read(rows, _shown, NOUN))}


def _shown(row: Sequence[Any]) -> dict[str, Any]:
    _outcome(row)
    verdict_id, at, first, better, significant, interaction, session, agent_version, prompt, reason = row
    return {
        "verdict_id": verdict_id,
        "interaction_id": name_of(interaction, "interaction_id"),
        "session_id": name_of(session, "session_id"),
        "agent_version": name_of(agent_version, "agent_version"),
        "reflexio_is_request_1": bool(first),
        "output": {
            "better_request": better,
            "is_significantly_better": bool(significant),
            "comparison_reason": name_or_none(reason, "comparison_reason"),
        },
        "judge_prompt_version": prompt,
        "created_at": _time(at).isoformat().replace("+00:00", "Z"),
    }
