"""Answers of a running Reflexio, fetched over HTTP and saved as they are: a folder that is then read as a log.

Its answers come in pages that shift once new requests arrive, or are cut at a limit. So a span of time is asked for in
periods; where an answer is as long as its limit, the period is halved until it is not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evalr.background import run_sync
from evalr.errors import InputError, LogError, MissingExtraError
from evalr.estimates.words import count_words
from evalr.inputs import resolve_now, utc_now
from evalr.quoting import quoted
from evalr_reflexio.documents import EXPERIMENTS_ROUTE, MANIFEST

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "REFLEXIO_API_KEY"

TRIES = 6
LONGEST_PAUSE = 60.0
SHORTEST_PERIOD = timedelta(seconds=1)
LIMIT = 1000
"""Rows of an answer: the most that Reflexio gives of verdicts on learnings and of outcomes."""

MOST_SHADOWS = 100

_PASSING = {408, 429, 500, 502, 503, 504}
_REFUSED = {401, 403}
_UNKNOWN = {404, 405, 501}

REQUESTS_ROUTE = "/api/get_requests"
OUTCOMES_ROUTE = "/api/get_agent_success_evaluation_results"
LEARNINGS_ROUTE = "/api/get_retrieved_learning_evaluation_results"
CUSTOMERS_ROUTE = "/api/get_session_outcomes"
SHADOWS_ROUTE = "/api/evaluations/shadow_comparisons/recent"

Progress = Callable[[str, int], None]
"""Called after each answer with what was asked for and how many rows of it have come so far."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was fetched: read it with `open_store(folder)` or `evalr report FOLDER`.

    Attributes:
        folder: with one JSON file for each answer.
        rows: how many rows came, by route, those that two answers share counted twice.
        notes: what could not be had.
    """

    folder: Path
    rows: Mapping[str, int]
    notes: list[str]


def fetch_sync(
    url: str,
    folder: str | os.PathLike[str],
    *,
    since: datetime,
    until: datetime | None = None,
    key: str | None = None,
    period: timedelta = timedelta(days=1),
    page: int = 200,
    timeout: float = 60.0,
    progress: Progress | None = None,
) -> Fetched:
    """As `fetch`, for callers that do not await; it works inside a running event loop, too."""
    work = fetch(
        url, folder, since=since, until=until, key=key, period=period, page=page, timeout=timeout, progress=progress
    )
    return run_sync(work)


async def fetch(
    url: str,
    folder: str | os.PathLike[str],
    *,
    since: datetime,
    until: datetime | None = None,
    key: str | None = None,
    period: timedelta = timedelta(days=1),
    page: int = 200,
    timeout: float = 60.0,  # noqa: ASYNC109  of one answer, and not of the whole
    progress: Progress | None = None,
) -> Fetched:
    """Fetch what a running Reflexio keeps of a span of time, into a folder of JSON files.

    No more than one answer is in memory. A server that is busy (429, 5xx) is asked again, as late as it says. The
    configuration is not fetched, as it may hold keys: download it yourself, and name it with `config=` when reading.

    Args:
        url: of the server, such as "https://www.reflexio.ai".
        folder: to write to; it must not exist, or be empty.
        since: the beginning of the span, aware.
        until: its end; by default now.
        key: the API key; by default that in the environment variable REFLEXIO_API_KEY, or none.
        period: how much time is asked for at once.
        page: sessions of one answer.
        timeout: seconds to wait for an answer.
        progress: see `Progress`.

    Raises:
        MissingExtraError: httpx is not installed.
        InputError: a time is naive, the span is empty, the key cannot be one, or the folder holds something.
        LogError: the server cannot be reached, refuses the key, or answers what is no answer of Reflexio's.
    """
    _check_zones(since=since, until=until)
    begin, end = resolve_now(since), resolve_now(until or utc_now)
    if begin >= end:
        raise InputError(f"since={begin.isoformat()} is not before until={end.isoformat()}")
    if period < SHORTEST_PERIOD:
        raise InputError(f"period={period!r} must be a second or more")
    if page < 1:
        raise InputError(f"page={page} must be a number of sessions, from 1")
    folder = Path(folder)
    _make(folder)
    httpx = _httpx()
    key = _key(os.environ.get(KEY_VARIABLE) if key is None else key)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=_base(url), headers=headers, timeout=timeout) as client:
        run = _Fetch(client, folder, progress, (begin, end), key)
        await run.requests(period, page)
        await run.halving(OUTCOMES_ROUTE, "agent_success_evaluation_results", period)
        await run.halving(LEARNINGS_ROUTE, "results", period)
        await run.customer_outcomes()
        await run.once(SHADOWS_ROUTE, "verdicts", {"limit": MOST_SHADOWS})
        await run.once(EXPERIMENTS_ROUTE, "experiments", {})
        if not run.files:
            raise LogError(f"{url} has none of the routes of Reflexio's HTTP API: give the address of its server alone")
        run.save_manifest(complete=True)
    return Fetched(folder, dict(run.rows), run.notes)


def _check_zones(**times: datetime | None) -> None:
    for name, time in times.items():
        if isinstance(time, datetime) and time.tzinfo is None:
            raise InputError(f"{name}={time.isoformat()} has no time zone: pass one, such as tzinfo=UTC")


def _httpx() -> Any:
    try:
        import httpx
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise MissingExtraError(
            "fetching from Reflexio needs httpx: pip install 'evalr[reflexio]'", name="httpx"
        ) from error
    return httpx


def _base(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"url={url!r} is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"url={url!r} must be an address such as https://www.reflexio.ai")
    if parts.username or parts.password:
        raise InputError(f"a key is not given in the address: set {KEY_VARIABLE}, or pass key=")
    return url.rstrip("/")


def _key(given: str | None) -> str:
    """The key without the line end that files leave; what no header can hold is refused, and not repeated."""
    key = (given or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"the key has characters that no key has: set {KEY_VARIABLE}, or pass key=")
    return key


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            left = ", or take this one away, if it is left of a fetch that ended early"
            raise InputError(f"{folder} is not empty: name a folder that does not exist yet{left}")
    except OSError as error:
        raise LogError(f"{folder} cannot be made: {error.strerror or error}") from error


class _UnknownRoute(Exception):  # noqa: N818  it is no error: an older server lacks it
    pass


@dataclass(slots=True)
class _Fetch:
    """One fetch: what it has saved, and what it could not have."""

    client: httpx.AsyncClient
    folder: Path
    progress: Progress | None
    span: tuple[datetime, datetime]
    key: str
    rows: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unknown_routes: list[str] = field(default_factory=list)
    files: int = 0

    def save_manifest(self, *, complete: bool) -> None:
        begin, end = self.span
        said = {
            "since": begin.isoformat(),
            "until": end.isoformat(),
            "complete": complete,
            "notes": self.notes,
            "unknown_routes": self.unknown_routes,
        }
        (self.folder / MANIFEST).write_text(json.dumps(said, indent=1), encoding="utf-8")

    async def requests(self, period: timedelta, page: int) -> None:
        """Every session with its requests and interactions, page by page of each period."""
        for begin, end in _periods(*self.span, period):
            offset, repeats = 0, _Repeats(REQUESTS_ROUTE, "page")
            while True:
                asked = {**_span(begin, end), "top_k": page, "offset": offset}
                answer = await self._known(REQUESTS_ROUTE, asked)
                if answer is None:
                    return
                sessions = self._rows(answer, "sessions", REQUESTS_ROUTE)
                repeats.see(sessions)
                self._save(REQUESTS_ROUTE, answer, len(sessions))
                offset += len(sessions)
                if not sessions or not answer.get("has_more"):
                    break

    async def halving(self, route: str, name: str, period: timedelta) -> None:
        """Rows of a route that has a limit and no pages: a period whose answer is as long as that is halved."""
        waiting = list(reversed(list(_periods(*self.span, period))))
        repeats = _Repeats(route, "period")
        while waiting:
            begin, end = waiting.pop()
            answer = await self._known(route, {**_span(begin, end), "limit": LIMIT})
            if answer is None:
                return
            rows = self._rows(answer, name, route)
            if len(rows) >= LIMIT and end - begin > SHORTEST_PERIOD:
                middle = begin + (end - begin) / 2
                waiting += [(middle, end), (begin, middle)]
                continue
            if len(rows) >= LIMIT:
                repeats.see(rows)
                self.notes.append(f"{route} gave {LIMIT:,} rows of the second {begin.isoformat()}, and may have more")
            if rows:
                self._save(route, answer, len(rows))

    async def customer_outcomes(self) -> None:
        """What customers reported, page by page."""
        begin, end = self.span
        offset, repeats = 0, _Repeats(CUSTOMERS_ROUTE, "page")
        while True:
            asked = {
                "start_time": int(begin.timestamp()),
                "end_time": int(end.timestamp()),
                "top_k": LIMIT,
                "offset": offset,
            }
            answer = await self._known(CUSTOMERS_ROUTE, asked)
            if answer is None:
                return
            rows = self._rows(answer, "session_outcomes", CUSTOMERS_ROUTE)
            repeats.see(rows)
            if rows:
                self._save(CUSTOMERS_ROUTE, answer, len(rows))
            offset += len(rows)
            if len(rows) < LIMIT:
                return

    async def once(self, route: str, name: str, asked: Mapping[str, Any]) -> None:
        """An answer that is all there is."""
        answer = await self._known(route, asked, method="GET")
        if answer is not None:
            self._save(route, answer, len(self._rows(answer, name, route)))

    def _save(self, route: str, answer: Mapping[str, Any], rows: int) -> None:
        if not self.files:  # and no sooner: where the key is refused, the same folder takes the next try
            self.save_manifest(complete=False)
        self.files += 1
        name = f"{self.files:06d}-{route.rpartition('/')[2]}.json"
        (self.folder / name).write_text(json.dumps(answer), encoding="utf-8")
        self.rows[route] = self.rows.get(route, 0) + rows
        if self.progress is not None:
            self.progress(route, self.rows[route])

    async def _known(self, route: str, asked: Mapping[str, Any], *, method: str = "POST") -> dict[str, Any] | None:
        """The answer; None, and a note, where the server is too old for the route."""
        try:
            return await self._answer(route, asked, method)
        except _UnknownRoute:
            self.notes.append(f"this server has no {route}")
            self.unknown_routes.append(route)
            return None

    async def _answer(self, route: str, asked: Mapping[str, Any], method: str) -> dict[str, Any]:
        import anyio
        import httpx

        said = ""
        for attempt in range(TRIES):
            try:
                if method == "GET":
                    response = await self.client.get(route, params=dict(asked))
                else:
                    response = await self.client.post(route, json=dict(asked))
            except httpx.RequestError as error:
                said, pause = f"{type(error).__name__}: {self._told(str(error))}", _pause(attempt, None)
            else:
                if response.status_code not in _PASSING:
                    return self._read(response, route)
                said, pause = f"status {response.status_code}", _pause(attempt, response.headers.get("retry-after"))
            if attempt < TRIES - 1:
                await anyio.sleep(pause)
        raise LogError(f"{self.client.base_url} {route}: asked {TRIES} times, last {said}")

    def _read(self, response: httpx.Response, route: str) -> dict[str, Any]:
        status = response.status_code
        where = f"{response.request.url.scheme}://{response.request.url.netloc.decode('ascii', 'replace')}{route}"
        if status in _REFUSED:
            raise LogError(f"{where} refuses the key (status {status}): set {KEY_VARIABLE}, or pass key=")
        if status in _UNKNOWN:
            raise _UnknownRoute
        if status >= 300:
            raise LogError(f"{where}: status {status}, {quoted(self._told(response.text), longest=200)}")
        try:
            found = response.json()
        except (ValueError, RecursionError) as error:
            raise LogError(
                f"{where} answers no JSON, but {quoted(self._told(response.text))}: is it Reflexio's address?"
            ) from error
        if not isinstance(found, dict):
            raise LogError(f"{where} answers no JSON object: is it Reflexio's address?")
        return found

    def _rows(self, answer: Mapping[str, Any], name: str, route: str) -> list[Any]:
        found = answer.get(name)
        if answer.get("success") is False or not isinstance(found, list):
            said = answer.get("msg") or answer.get("message") or answer.get("detail") or "no " + name
            raise LogError(f"{route} did not succeed: {quoted(self._told(str(said)), longest=200)}")
        return found

    def _told(self, text: str) -> str:
        """What a server said, without the key, which some repeat."""
        return text.replace(self.key, "(key)") if self.key else text


class _Repeats:
    """Notices a server that reads neither pages nor times, and so would answer the same rows for ever."""

    def __init__(self, route: str, what: str) -> None:
        self._route, self._what = route, what
        self._seen: set[bytes] = set()

    def see(self, rows: list[Any]) -> None:
        """Take note of the rows of a page or period; raise LogError where another one had the same."""
        if not rows:
            return
        digest = hashlib.sha256(json.dumps(rows).encode()).digest()
        if digest in self._seen:
            raise LogError(
                f"{self._route} gives {count_words(len(rows), 'row')} again, for another {self._what} than before: "
                "is it Reflexio's address?"
            )
        self._seen.add(digest)


def _pause(attempt: int, said: str | None) -> float:
    """Seconds to wait: as the server says, or else twice as long each time."""
    try:
        asked = float(said) if said is not None else 0.0
    except ValueError:
        asked = 0.0
    return float(min(LONGEST_PAUSE, max(asked, 0.25 * 2**attempt)))


def _periods(begin: datetime, end: datetime, period: timedelta) -> list[tuple[datetime, datetime]]:
    found = []
    while begin < end:
        found.append((begin, min(end, begin + period)))
        begin += period
    return found


def _span(begin: datetime, end: datetime) -> dict[str, str]:
    return {"start_time": begin.isoformat(), "end_time": end.isoformat()}
