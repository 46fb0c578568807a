"""Reflexio's evaluation page, digit for digit: `POST /api/get_evaluation_overview` of 0.2.32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from evalr.errors import InputError
from evalr.inputs import Clock, utc_now
from evalr.logs.log import Log
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.counted import SESSION_COLUMNS, SESSIONS, SETS
from evalr_reflexio.compat.results import Rows, rows_in, shown_by_id
from evalr_reflexio.compat.rules import Rules, find_rules
from evalr_reflexio.compat.scores import score_tiles
from evalr_reflexio.compat.shadows import pinned_version, win_rate_trend
from evalr_reflexio.compat.tiles import STEPS, Bucket, Tally, distribution, points, tiles, without_none
from evalr_reflexio.compat.windows import WEEK, Moment, Window, now_of, window_of
from evalr_reflexio.config import DEFAULT_ORG, Config
from evalr_reflexio.store import Store

RECENT = 100
INSIDE = "at >= ? AND at <= ?"
SourceSets = Mapping[str, Sequence[str]]


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
        AskedStore(store, account),
        since=since,
        until=until,
        source_sets=source_sets,
        config=config,
        now=now,
        listed=listed,
    )
    return page.answer(bucket, include_shadow=include_shadow)


def read_page(
    asked: AskedStore,
    *,
    since: Moment | None,
    until: Moment | None,
    source_sets: SourceSets | None,
    config: Config | None,
    now: datetime | Clock,
    listed: int | None,
) -> Page:
    """Everything that overviews of a period are made of, read once."""
    windows = Windows(window_of(since, until, now_of(now)))
    page = Page(asked, windows, rows_in(asked, windows.loaded), source_sets or {}, asked.config(config), listed)
    page.find_sessions()
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
    """What an overview of some rows of results is made of: sums, the newest ones, and the sessions that they are of."""

    def __init__(
        self,
        asked: AskedStore,
        windows: Windows,
        rows: Rows,
        source_sets: SourceSets,
        config: Config,
        listed: int | None,
    ) -> None:
        self.asked, self.windows, self.rows, self.config, self.listed = asked, windows, rows, config, listed
        self.org = asked.store.org or config.org or DEFAULT_ORG
        self.rules: Rules = Rules(asked, {}, listed)
        self._sets = source_sets
        self._numbers = _set_numbers(source_sets)
        rows.check()

    def find_sessions(self, *, by_user: bool = True) -> None:
        """Find the sessions of the period, how each ended, and which rules they cited.

        Args:
            by_user: whether sessions are told apart by their user, too.
        """
        queries = self.asked.queries
        queries.temporary(SETS, "source TEXT, number INTEGER", key="source", anew=True)
        queries.change_many(f"INSERT INTO temp.{SETS} VALUES (?, ?)", self._numbers.items())
        queries.temporary(SESSIONS, SESSION_COLUMNS, key="session_id, user_id", anew=True)
        user = "user_id" if by_user else "''"
        found = self.rows.query(
            f"session_id, {user}, source, (SELECT number FROM temp.{SETS} s WHERE s.source = r.source), success",
            f"{INSIDE} AND session_id <> ''",
            # The last one to be put there stays, which is the one that Reflexio reads last.
            end="ORDER BY written DESC, result_id",
        )
        given = [*self.rows.given, *self.windows.whole]
        queries.change(f"INSERT OR REPLACE INTO temp.{SESSIONS} {found}", given)
        self.rules = find_rules(self.asked, self.listed, by_user=by_user)

    def tally(self, window: Window, sources: Sequence[str] | None, *, before: bool = False) -> Tally:
        """The sums of a window, with its last second or `before` it; of all request sources, or of some."""
        inside = "at >= ? AND at < ?" if before else INSIDE
        return self.rows.tally(f"{inside} AND {_of(sources)}", [*window, *(sources or ())])

    def curve(self, bucket: Bucket, sources: Sequence[str] | None) -> list[dict[str, Any]]:
        """The chart of the period."""
        where = f"{INSIDE} AND {_of(sources)}"
        return points(self.rows.buckets(STEPS[bucket], where, [*self.windows.whole, *(sources or ())]))

    def tiles(self, sources: Sequence[str] | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """The context tiles, and the histogram of corrections."""
        current = self.tally(self.windows.current, sources)
        previous = self.tally(self.windows.previous, sources, before=True)
        return tiles(current, previous), distribution(current, previous)

    def sources(self) -> list[str]:
        """The request sources of the period's rows."""
        found = self.rows.select(
            "DISTINCT CASE session_id WHEN '' THEN '' ELSE source END", INSIDE, self.windows.whole, end="ORDER BY 1"
        )
        return [source for (source,) in found]

    def recent(self) -> list[dict[str, Any]]:
        """The newest hundred results."""
        end = f"ORDER BY at DESC, result_id DESC LIMIT {RECENT}"
        order = [result_id for (result_id,) in self.rows.select("result_id", INSIDE, self.windows.whole, end=end)]
        found = shown_by_id(self.asked, order)
        return [found[result_id] for result_id in order if result_id in found]

    @property
    def _limit(self) -> int:
        return -1 if self.listed is None else self.listed

    def answer(self, bucket: Bucket, *, include_shadow: bool = True) -> dict[str, Any]:
        """The whole answer, as 0.2.32 gives it."""
        windows, sources = self.windows, self.sources()
        shown, histogram = self.tiles(None)
        shadows = windows.whole if include_shadow else None
        return without_none({
            "hero": self.hero(bucket),
            "context_tiles": shown,
            "rule_attribution": self.rules.rows(),
            "score_distribution": histogram,
            "braintrust_tiles": score_tiles(self.asked, windows.current, windows.previous, org=self.org),
            "shadow_win_rate_trend": win_rate_trend(
                self.asked, shadows, pinned_version(self.asked.store, self.config)
            ),
            "recent_results": self.recent(),
            "source_set_comparison": {
                "available_sources": sources,
                "source_sessions": [self.sessions_of(source) for source in sources],
                "sets": [self.set_row(number, label, bucket) for number, label in enumerate(self._sets, start=1)],
                "unmatched_session_count": self._unmatched(),
            },
        })  # fmt: skip

    def answers(self) -> dict[Bucket, dict[str, Any]]:
        """The answer with a chart by week, and by day: the rest of both is the same."""
        week = self.answer("week")
        compared = week["source_set_comparison"]
        sets = [part | {"buckets": self.curve("day", part["sources"])} for part in compared["sets"]]
        day = week | {"hero": self.hero("day"), "source_set_comparison": compared | {"sets": sets}}
        return {"week": week, "day": without_none(day)}

    def _unmatched(self) -> int:
        if not self._sets:
            return 0
        named = list(self._numbers)
        where = f"{INSIDE} AND NOT {_of(named)}"
        return int(next(self.rows.select("count(*)", where, [*self.windows.whole, *named]))[0])

    def hero(self, bucket: Bucket) -> dict[str, Any]:
        """The headline and its chart. Reflexio has switched the part of it off that is about shadows."""
        whole = self.tally(self.windows.whole, None)
        return {
            "state": "shadow_off" if whole.rows else "empty",
            "regular_success_rate_pp": whole.success_pp,
            "shadow_success_rate_pp": None,
            "delta_pp": None,
            "buckets": self.curve(bucket, None),
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
        windows, sources = self.windows, list(self._sets[label])
        ids = f"SELECT DISTINCT session_id FROM temp.{SESSIONS} WHERE set_number = ? ORDER BY session_id LIMIT ?"
        whole = self.tally(windows.whole, sources)
        shown, histogram = self.tiles(sources)
        return {
            "label": label,
            "sources": sources,
            "session_count": whole.rows,
            "session_ids": [session for (session,) in self.asked.queries.rows(ids, [number, self._limit])],
            "success_rate_pp": whole.success_pp,
            "buckets": self.curve(bucket, sources),
            "context_tiles": shown,
            "score_distribution": histogram,
            "rule_attribution": self.rules.rows(number),
            "braintrust_tiles": score_tiles(
                self.asked, windows.current, windows.previous, org=self.org, set_number=number
            ),
        }


def _of(sources: Sequence[str] | None) -> str:
    return "1" if sources is None else f"source IN ({', '.join('?' * len(sources))})"
