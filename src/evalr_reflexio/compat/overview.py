"""Reflexio's evaluation page, digit for digit: `POST /api/get_evaluation_overview` of 0.2.32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappush, heappushpop
from typing import Any

from evalr.errors import InputError
from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr_reflexio.compat.account import Asked
from evalr_reflexio.compat.counted import SESSION_COLUMNS, SESSIONS
from evalr_reflexio.compat.firsts import find_firsts
from evalr_reflexio.compat.results import NOUN, counted, in_window, shown_by_id
from evalr_reflexio.compat.rules import Rules, find_rules
from evalr_reflexio.compat.scores import score_tiles
from evalr_reflexio.compat.shadows import pinned_version, win_rate_trend
from evalr_reflexio.compat.tiles import STEPS, Bucket, Curve, Result, Tally, distribution, tiles, without_none
from evalr_reflexio.compat.windows import WEEK, Moment, Window, now_of, window_of
from evalr_reflexio.config import DEFAULT_ORG, Config
from evalr_reflexio.store import Store
from evalr_reflexio.tables import OUTCOMES

RECENT = 100
SourceSets = Mapping[str, Sequence[str]]


@dataclass
class _Part:
    """What is counted of all results, or of those in one set of request sources."""

    curves: dict[Bucket, Curve] = field(default_factory=lambda: {"day": Curve("day"), "week": Curve("week")})
    whole: Tally = field(default_factory=Tally)
    current: Tally = field(default_factory=Tally)
    previous: Tally = field(default_factory=Tally)

    def add(self, row: Result) -> None:
        """Count one row of the period."""
        self.whole.add(row)
        for curve in self.curves.values():
            curve.add(row)


class Windows:
    """The period, the seven days at its end, and the seven before."""

    def __init__(self, asked: Window) -> None:
        self.whole = asked
        begin = max(asked.start, asked.end - WEEK)
        self.current = Window(begin, asked.end)
        self.previous = Window(max(0, begin - WEEK), begin)
        self.loaded = Window(min(asked.start, self.previous.start), asked.end)


def overview(
    store: Store,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    bucket: Bucket = "week",
    include_shadow: bool = True,
    source_sets: SourceSets | None = None,
    config: Config | None = None,
    now: datetime | Clock = utc_now,
    listed: int | None = None,
    account: Log | None = None,
) -> dict[str, Any]:
    """What Reflexio 0.2.32 answers to `POST /api/get_evaluation_overview`, computed of its database.

    A row that would break its whole answer is skipped and counted. Its page counts rows of results as sessions.

    Args:
        store: the log.
        since: begins the period: an aware datetime, or Reflexio's own `from_ts`; by default 1970.
        until: ends it: an aware datetime, which is outside, or Reflexio's own `to_ts`, which is inside; by default now.
        bucket: of the chart: "day" or "week".
        include_shadow: whether to count verdicts on shadow answers.
        source_sets: request sources by label, to be compared; "" is a request source, too.
        config: the settings; by default those found beside the log.
        now: the reading time.
        listed: how many sessions are listed by name, for each list; all of them by default.
        account: takes count of rows that are skipped; see `Store.account`.

    Raises:
        InputError: the period is empty, a source is in two sets, or there is no such bucket.
        LogError: the log holds answers of the HTTP API, or cannot be read.
    """
    if bucket not in STEPS:
        raise InputError(f"bucket={bucket!r} must be 'day' or 'week'")
    page = read_page(
        Asked(store, account), since=since, until=until, source_sets=source_sets, config=config, now=now, listed=listed
    )
    return page.answer(bucket, include_shadow=include_shadow)


def read_page(
    asked: Asked,
    *,
    since: Moment | None,
    until: Moment | None,
    source_sets: SourceSets | None,
    config: Config | None,
    now: datetime | Clock,
    listed: int | None,
) -> Page:
    """Everything that overviews of a period are made of, read once."""
    sets = source_sets or {}
    numbers = _set_numbers(sets)
    config = asked.config(config)
    page = Page(asked, Windows(window_of(since, until, now_of(now))), sets, numbers, config, listed)
    firsts = find_firsts(asked)
    user = "t.user_id" if asked.store.has(OUTCOMES, "user_id") else "''"
    rows = in_window(
        asked,
        page.windows.loaded,
        join=f"LEFT JOIN {firsts} f ON f.session_id = t.session_id AND f.user_id = coalesce({user}, '')",
        more="f.source",
    )
    page.read(asked.read(rows, _with_source, NOUN))
    return page


def _set_numbers(source_sets: SourceSets) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for number, (label, sources) in enumerate(source_sets.items(), start=1):
        if not label or isinstance(sources, str) or not sources:
            raise InputError(f"source_sets: {label!r} needs a label and a list of request sources, not {sources!r}")
        for source in sources:
            if numbers.setdefault(source, number) != number:
                raise InputError(f"source_sets: request source {source!r} is in two sets")
    return numbers


class Page:
    """One pass over the results of a period: sums, the newest ones, and the sessions that they are of."""

    def __init__(
        self,
        asked: Asked,
        windows: Windows,
        source_sets: SourceSets,
        numbers: Mapping[str, int],
        config: Config,
        listed: int | None,
    ) -> None:
        self.asked, self.windows, self.config, self.listed = asked, windows, config, listed
        self.org = asked.store.org or config.org or DEFAULT_ORG
        self.parts = [_Part() for _ in range(len(source_sets) + 1)]
        self.sources: set[str] = set()
        self.unmatched = 0
        self.rules: Rules = Rules(asked, {}, listed)
        self._source_sets, self._numbers = source_sets, numbers
        self._newest: list[tuple[int, int]] = []

    def read(self, results: Iterable[tuple[Result, str]], *, by_user: bool = True) -> None:
        """Count every result, once, and then what their sessions cited.

        Args:
            results: each with the request source of its session, newest first.
            by_user: whether sessions are told apart by their user, too.
        """
        self.asked.queries.temporary(SESSIONS, SESSION_COLUMNS, anew=True)
        # Rows come newest first, and so the last one of a session to be read stays.
        self.asked.queries.change_many(
            f"INSERT OR REPLACE INTO temp.{SESSIONS} VALUES (?, ?, ?, ?, ?)", self._count(results)
        )
        self.rules = find_rules(self.asked, self.listed, by_user=by_user)

    def _count(self, results: Iterable[tuple[Result, str]]) -> Iterator[tuple[str, str, str, int | None, bool]]:
        start, end = self.windows.whole
        (now, _), (before, _) = self.windows.current, self.windows.previous
        for row, source in results:
            number = self._numbers.get(source)
            parts = [self.parts[0]] if number is None else [self.parts[0], self.parts[number]]
            inside = start <= row.at <= end
            for part in parts:
                if inside:
                    part.add(row)
                if now <= row.at <= end:
                    part.current.add(row)
                if before <= row.at < now:
                    part.previous.add(row)
            if inside:
                self.unmatched += number is None
                self.sources.add(source if row.session else "")
                self._keep(row)
                if row.session:
                    yield row.session, row.user, source, number, row.success

    def _keep(self, row: Result) -> None:
        key = (row.at, row.result_id)
        if len(self._newest) < RECENT:
            heappush(self._newest, key)
        else:
            heappushpop(self._newest, key)

    def recent(self) -> list[dict[str, Any]]:
        """The newest hundred results."""
        order = [result_id for _, result_id in sorted(self._newest, reverse=True)]
        found = shown_by_id(self.asked, order)
        return [found[result_id] for result_id in order if result_id in found]

    @property
    def _limit(self) -> int:
        return -1 if self.listed is None else self.listed

    def answer(self, bucket: Bucket, *, include_shadow: bool = True) -> dict[str, Any]:
        """The whole answer, as 0.2.32 gives it."""
        whole, windows = self.parts[0], self.windows
        shadows = windows.whole if include_shadow else None
        return without_none({
            "hero": self.hero(bucket),
            "context_tiles": tiles(whole.current, whole.previous),
            "rule_attribution": self.rules.rows(),
            "score_distribution": distribution(whole.current, whole.previous),
            "braintrust_tiles": score_tiles(self.asked, windows.current, windows.previous, org=self.org),
            "shadow_win_rate_trend": win_rate_trend(
                self.asked, shadows, pinned_version(self.asked.store, self.config)
            ),
            "recent_results": self.recent(),
            "source_set_comparison": {
                "available_sources": sorted(self.sources),
                "source_sessions": [self.sessions_of(source) for source in sorted(self.sources)],
                "sets": [
                    self.set_row(number, label, bucket) for number, label in enumerate(self._source_sets, start=1)
                ],
                "unmatched_session_count": self.unmatched if self._source_sets else 0,
            },
        })  # fmt: skip

    def hero(self, bucket: Bucket) -> dict[str, Any]:
        """The headline and its chart. Reflexio has switched the part of it off that is about shadows."""
        whole = self.parts[0]
        return {
            "state": "shadow_off" if whole.whole.rows else "empty",
            "regular_success_rate_pp": whole.whole.success_pp,
            "shadow_success_rate_pp": None,
            "delta_pp": None,
            "buckets": whole.curves[bucket].points(),
        }

    def sessions_of(self, source: str) -> dict[str, Any]:
        """The sessions of a request source: their ids, and whose each is."""
        limit = self._limit
        where = f"FROM temp.{SESSIONS} WHERE source = ?"
        ids = f"SELECT DISTINCT session_id {where} ORDER BY session_id LIMIT ?"
        pairs = f"SELECT user_id, session_id {where} ORDER BY user_id, session_id LIMIT ?"
        rows = self.asked.queries.rows
        return {
            "source": source,
            "session_ids": [session for (session,) in rows(ids, [source, limit])],
            "sessions": [{"user_id": user, "session_id": session} for user, session in rows(pairs, [source, limit])],
        }

    def set_row(self, number: int, label: str, bucket: Bucket) -> dict[str, Any]:
        """One set of request sources: its success of the whole period, and tiles of the last seven days."""
        part, windows = self.parts[number], self.windows
        ids = f"SELECT DISTINCT session_id FROM temp.{SESSIONS} WHERE set_number = ? ORDER BY session_id LIMIT ?"
        scores = score_tiles(self.asked, windows.current, windows.previous, org=self.org, set_number=number)
        return {
            "label": label,
            "sources": list(self._source_sets[label]),
            "session_count": part.whole.rows,
            "session_ids": [session for (session,) in self.asked.queries.rows(ids, [number, self._limit])],
            "success_rate_pp": part.whole.success_pp,
            "buckets": part.curves[bucket].points(),
            "context_tiles": tiles(part.current, part.previous),
            "score_distribution": distribution(part.current, part.previous),
            "rule_attribution": self.rules.rows(number),
            "braintrust_tiles": scores,
        }


def _with_source(row: Sequence[Any]) -> tuple[Result, str]:
    return counted(row), row[-1] or ""
