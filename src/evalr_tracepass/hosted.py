"""A model of the service as a Reflex: asked at once, to calibrate a signal, or to read texts without a pass."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from evalr.errors import InputError
from evalr_tracepass.outcomes import NO_PREDICTION
from evalr_tracepass.records import INPUT_TOO_LONG, LONGEST_TEXT, Account, ErrorInfo, Prediction
from evalr_tracepass.transports.answers import predictions_of
from evalr_tracepass.transports.live import OF_THE_ROW, ROUTE
from evalr_tracepass.transports.service import RefusedError, Service, json_body

if TYPE_CHECKING:
    import httpx

_EMPTY = ErrorInfo("no_text", "there is nothing to read")


@dataclass(frozen=True)
class ServiceReflex:
    """A model behind the service's live route, one request for each text.

    Every text is paid for each time that it is read: a pass, which pays once, sends its rows by `BatchTransport`.

    Attributes:
        name: its alias.
        labels: what it tells apart.
        account: on whose behalf, and with whose key.
        service: where it is.
        version: of the model, where it is known; what the service says of a prediction goes before.
        together: requests at once.
    """

    kind: ClassVar[str] = "service"

    name: str
    labels: tuple[str, ...]
    account: Account
    service: Service = field(default_factory=Service)
    version: str = ""
    together: int = 8

    def __post_init__(self) -> None:
        if self.together < 1:
            raise InputError("together must be a whole number from 1")

    async def predict(self, texts: Sequence[str], /) -> list[Prediction]:
        """One prediction for each text; what the service refuses of one text is the failure of that text.

        Raises:
            TransportError: it cannot be reached, or refuses them all, as it does with a wrong key.
        """
        slots, run = asyncio.Semaphore(self.together), uuid.uuid4().hex
        async with self.service.client(self.account) as client:
            return list(
                await asyncio.gather(
                    *(self._one(client, slots, text, f"{run}:{place}") for place, text in enumerate(texts))
                )
            )

    async def _one(self, client: httpx.AsyncClient, slots: asyncio.Semaphore, text: str, key: str) -> Prediction:
        if not text.strip():
            return Prediction(self.name, error=_EMPTY, version=self.version)
        if len(text) > LONGEST_TEXT:
            error = ErrorInfo(INPUT_TOO_LONG, f"{len(text):,} characters are more than {LONGEST_TEXT:,}")
            return Prediction(self.name, error=error, version=self.version)
        async with slots:
            try:
                body = json_body({"models": [self.name], "text": text}, key)
                answer = await self.service.ask(client, "POST", ROUTE, **body)
            except RefusedError as refused:
                if refused.status_code not in OF_THE_ROW:
                    raise
                error = ErrorInfo(f"status_{refused.status_code}", str(refused))
                return Prediction(self.name, error=error, version=self.version)
        found = next((each for each in predictions_of(answer) if each.model == self.name), None)
        if found is None:
            return Prediction(self.name, error=NO_PREDICTION, version=self.version)
        return found if found.version else found._replace(version=self.version)
