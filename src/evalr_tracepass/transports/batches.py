"""Asynchronous batches over HTTP: up to 10,000 rows are uploaded, and asked for until they have been read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from evalr.errors import InputError, TransportError
from evalr_tracepass.outcomes import Outcome
from evalr_tracepass.records import LARGEST_BATCH, Account, Row
from evalr_tracepass.transports.answers import outcome_of, state_of
from evalr_tracepass.transports.service import Answer, Service, json_body
from evalr_tracepass.transports.transport import BatchState, Caps, check_rows

if TYPE_CHECKING:
    import httpx

ROUTE = "/v1/reflex/asynchronous_batches"

MOST_PAGES = 2 * LARGEST_BATCH
"""Of the results of one batch: with one row on each there are half as many."""

CURSORS = {"next_cursor": "cursor", "next_page_token": "page_token", "next_token": "token", "last_id": "after"}
"""How pages of results are asked for: by the name of what the last one said, the parameter that it goes into."""


@dataclass(frozen=True)
class BatchTransport:
    """The service's asynchronous batches.

    Attributes:
        service: where it is, and with whose keys.
        largest: rows of one upload, 10,000 at most.
    """

    service: Service = field(default_factory=Service)
    largest: int = LARGEST_BATCH
    name: str = field(default="batch", init=False)
    caps: Caps | None = field(default=None, init=False)
    durable: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not 1 <= self.largest <= LARGEST_BATCH:
            raise InputError(f"largest={self.largest!r} must be from 1 to {LARGEST_BATCH:,} rows")

    @asynccontextmanager
    async def connect(self, account: Account) -> AsyncIterator[BatchConnection]:
        """A connection with the key of an account."""
        async with self.service.client(account) as client:
            yield BatchConnection(self.service, client)


class BatchConnection:
    """The service, on behalf of one account."""

    def __init__(self, service: Service, client: httpx.AsyncClient) -> None:
        self._service = service
        self._client = client

    async def submit(self, rows: Sequence[Row], *, key: str) -> BatchState:
        """Upload rows. Tried again, it goes under the same key, so that it is queued and paid for once."""
        check_rows(rows)
        body = {"requests": [{"id": row.request_id, "model": list(row.models), "text": row.text} for row in rows]}
        return await self._state("POST", f"{ROUTE}/upload", **json_body(body, key))

    async def status(self, batch_id: str) -> BatchState:
        """Where a batch stands."""
        return await self._state("GET", f"{ROUTE}/{quote(batch_id, safe='')}")

    async def outcomes(self, batch_id: str) -> AsyncIterator[Outcome]:
        """What came back, page by page."""
        path = f"{ROUTE}/{quote(batch_id, safe='')}/results"
        asked: dict[str, str] = {}
        seen: set[tuple[tuple[str, str], ...]] = {()}
        for _ in range(MOST_PAGES):
            answer = await self._service.ask(self._client, "GET", path, params=asked)
            listed = answer.get("results", answer.get("data"))
            if not isinstance(listed, list):
                raise TransportError(f"GET {path}: the answer has no list of results")
            for found in listed:
                outcome = outcome_of(found)
                if outcome is not None:
                    yield outcome
            asked = next_page(answer)
            page = tuple(sorted(asked.items()))
            if page in seen:
                return
            seen.add(page)
        raise TransportError(f"GET {path}: its results do not end, after {MOST_PAGES:,} pages")

    async def _state(self, method: str, path: str, **options: Any) -> BatchState:
        answer = await self._service.ask(self._client, method, path, **options)
        state = state_of(answer, answer.retry_after)
        if state is None:
            raise TransportError(f"{method} {path}: the answer names no batch")
        return state


def next_page(answer: Answer) -> dict[str, str]:
    """The parameters that ask for the next page of results; none where this was the last.

    Of a link, only its parameters are taken: a key is never sent to another address.
    """
    if answer.get("has_more") is False:
        return {}
    link = answer.get("next", answer.get("next_page"))
    if isinstance(link, str) and link:
        return dict(parse_qsl(urlsplit(link).query)) if "?" in link else {"cursor": link}
    for said, parameter in CURSORS.items():
        found = answer.get(said)
        if found and isinstance(found, str | int) and (said != "last_id" or answer.get("has_more") is True):
            return {parameter: str(found)}
    return {}
