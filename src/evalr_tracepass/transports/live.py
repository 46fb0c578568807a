"""The live preview over HTTP: one request for each row, at once and capped, before a batch is worth its wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from evalr.errors import InputError, TransportError
from evalr_tracepass.outcomes import Outcome
from evalr_tracepass.records import Account, ErrorInfo, Row
from evalr_tracepass.transports.answers import predictions_of
from evalr_tracepass.transports.service import RefusedError, Service, json_body
from evalr_tracepass.transports.transport import BatchState, Caps, check_rows

if TYPE_CHECKING:
    import httpx

ROUTE = "/v1/reflex/predict"

OF_THE_ROW = frozenset({400, 413, 415, 422})
"""Statuses that say something of one text, and nothing of the next."""


@dataclass(frozen=True)
class LivePreview:
    """Predictions at once, for a look. No pass by it sends more than its caps.

    Attributes:
        service: where it is, and with whose keys.
        caps: how much one pass sends at most.
        largest: rows whose results are stored together, so that a crash loses so many at most.
        together: requests at once.
    """

    service: Service = field(default_factory=Service)
    caps: Caps | None = field(default_factory=Caps)
    largest: int = 25
    together: int = 8
    name: str = field(default="live", init=False)
    durable: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.largest < 1 or self.together < 1:
            raise InputError("largest and together must be whole numbers from 1")

    @asynccontextmanager
    async def connect(self, account: Account) -> AsyncIterator[LiveConnection]:
        """A connection with the key of an account."""
        async with self.service.client(account) as client:
            yield LiveConnection(self, client)


class LiveConnection:
    """The service, on behalf of one account."""

    def __init__(self, transport: LivePreview, client: httpx.AsyncClient) -> None:
        self._service = transport.service
        self._client = client
        self._slots = asyncio.Semaphore(transport.together)
        self._ended: dict[str, list[Outcome]] = {}

    async def submit(self, rows: Sequence[Row], *, key: str) -> BatchState:
        """Have every row read. What was read before the service refused the rest is kept.

        Raises:
            TransportError: the service refuses every row, as it does with a wrong key.
        """
        check_rows(rows)
        refusals: list[TransportError] = []
        found = await asyncio.gather(*(self._outcome(row, key, refusals) for row in rows))
        if refusals and all(outcome.status == "failed" for outcome in found):
            raise refusals[0]
        self._ended[key] = list(found)
        return await self.status(key)

    async def status(self, batch_id: str) -> BatchState:
        """Ended, since `submit` has waited for it."""
        found = self._ended.get(batch_id, ())
        failed = sum(outcome.status == "failed" for outcome in found)
        return BatchState(batch_id, "completed", True, len(found), len(found) - failed, failed)

    async def outcomes(self, batch_id: str) -> AsyncIterator[Outcome]:
        """What came back, once."""
        for outcome in self._ended.pop(batch_id, ()):
            yield outcome

    async def _outcome(self, row: Row, key: str, refusals: list[TransportError]) -> Outcome:
        async with self._slots:
            if refusals:
                return _unread(row)
            try:
                answer = await self._service.ask(
                    self._client,
                    "POST",
                    ROUTE,
                    **json_body({"models": list(row.models), "text": row.text}, f"{key}:{_short(row.request_id)}"),
                )
            except RefusedError as refused:
                if refused.status_code in OF_THE_ROW:
                    return Outcome(
                        row.request_id, "failed", error=ErrorInfo(f"status_{refused.status_code}", str(refused))
                    )
                refusals.append(refused)
                return _unread(row)
            except TransportError as error:
                refusals.append(error)
                return _unread(row)
        return Outcome(row.request_id, "completed", predictions_of(answer))


def _unread(row: Row) -> Outcome:
    return Outcome(row.request_id, "failed", error=ErrorInfo("unavailable", "the service is unavailable"))


def _short(request_id: str) -> str:
    return blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
