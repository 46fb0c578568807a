"""Which sessions Reflexio would grade anew in a period: candidates by day and request source, so many of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

from evalr.errors import InputError
from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.firsts import find_firsts
from evalr_reflexio.compat.windows import DAY, IS_USUAL, Moment, Window, now_of, text_of_time, time_of, window_of
from evalr_reflexio.config import STRATUM_SIZE
from evalr_reflexio.store import Store
from evalr_reflexio.tables import REQUESTS


class Candidate(NamedTuple):
    """A session in one version, from one request source: a session with two of either is two candidates."""

    user: str
    session: str
    agent_version: str
    source: str
    day: int
    """When the session began: the first second of that day of UTC."""
    first_source: str
    """The request source of its first request."""


def regeneration_candidates(
    store: Store, *, since: Moment | None = None, until: Moment | None = None, now: datetime | Clock = utc_now,
    account: Log | None = None,
) -> Iterator[Candidate]:  # fmt: skip
    """The candidates of a period, by session, user and version.

    Args:
        store: the log.
        since: see `overview`.
        until: see `overview`.
        now: the reading time.
        account: takes count of those whose time cannot be read.
    """
    asked = AskedStore(store, account)
    return _candidates(asked, window_of(since, until, now_of(now))) if store.has(REQUESTS) else iter(())


def _candidates(asked: AskedStore, window: Window, source: str = f"{REQUESTS} t WHERE 1") -> Iterator[Candidate]:
    fields = asked.fields(REQUESTS, ("user_id", "session_id", "agent_version", "source"))
    rows = asked.queries.rows(
        "SELECT d.session_id, d.user_id, d.agent_version, d.source, f.created_at, f.source FROM (SELECT DISTINCT "
        f"{fields} FROM {source} AND t.session_id IS NOT NULL AND t.created_at BETWEEN ? AND ?) "
        f"d LEFT JOIN {find_firsts(asked)} f ON f.session_id = d.session_id AND f.user_id = d.user_id "
        "ORDER BY 1, 2, 3",
        [text_of_time(window.start), text_of_time(window.end)],
    )
    return asked.read(rows, _candidate, "session")


def _candidate(row: Any) -> Candidate:
    session, user, version, source, began, first_source = row
    if not isinstance(user, str) or not isinstance(session, str):
        raise Reason("wrong type in 'session_id'")
    return Candidate(user, session, version or "", source or "", time_of(began) // DAY * DAY, first_source or "")


def regeneration_strata(candidates: Iterator[Candidate]) -> dict[str, Any]:
    """How many candidates there are, and of each day and request source, as `DAY|SOURCE`."""
    return _told(Counter(map(_stratum, candidates)))


def regeneration_counts(
    store: Store, *, since: Moment | None = None, until: Moment | None = None, now: datetime | Clock = utc_now,
    account: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """`regeneration_strata` of `regeneration_candidates`, of which SQLite counts those that are plain."""
    window = window_of(since, until, now_of(now))
    asked = AskedStore(store, account)
    strata: Counter[str] = Counter()
    if store.has(REQUESTS):
        firsts, (start, end) = find_firsts(asked), map(text_of_time, window)
        # A session that is wholly in the period, in one version and from one source, is one candidate.
        is_plain = f"NOT odd AND created_at >= '{start}' AND last <= '{end}' AND {IS_USUAL.format('created_at')}"
        days = f"SELECT substr(created_at, 1, 10), source, count(*) FROM {firsts} WHERE {is_plain} GROUP BY 1, 2"
        for day, source, count in asked.queries.rows(days):
            asked.account.records += count
            strata[f"{time_of(day)}|{source or ''}"] += count
        others = f"(SELECT session_id, user_id FROM {firsts} WHERE NOT coalesce({is_plain}, 0)) f"
        # The plus leaves numbers numbers, so that an index serves; what is no text comes by itself.
        requests = asked.queries.by(REQUESTS, "session_id", "+f.session_id", "t")
        are_texts = "typeof(t.session_id) = 'text' AND typeof(t.user_id) = 'text'"
        for source in (
            f"{others} CROSS JOIN {requests} AND t.user_id = +f.user_id AND {are_texts}",
            f"{REQUESTS} t WHERE NOT ({are_texts})",
        ):
            strata.update(map(_stratum, _candidates(asked, window, source)))
    return _told(strata)


def _stratum(candidate: Candidate) -> str:
    return f"{candidate.day}|{candidate.first_source}"


def _told(strata: Counter[str]) -> dict[str, Any]:
    return {"regen_candidates": strata.total(), "strata": dict(sorted(strata.items()))}


def regeneration_sample(
    candidates: Iterator[Candidate], *, size: int = STRATUM_SIZE, rng: Random | None = None
) -> list[Candidate]:
    """The candidates that would be graded: all of a stratum that has no more than `size`, or else so many by chance.

    Args:
        candidates: of `regeneration_candidates`.
        size: of a stratum.
        rng: chance; Reflexio's own is not seeded.

    Raises:
        InputError: the size is not above 0.
    """
    if size <= 0:
        raise InputError(f"size={size!r} must be above 0")
    rng = Random() if rng is None else rng
    strata: dict[tuple[int, str], list[Candidate]] = {}
    for each in candidates:
        strata.setdefault((each.day, each.first_source), []).append(each)
    return [each for found in strata.values() for each in (found if len(found) <= size else rng.sample(found, size))]
