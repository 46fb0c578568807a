"""The local transport: classifiers of this process, asked in threads, many texts at once."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr_tracepass.error_words import kept_error
from evalr_tracepass.outcomes import UNREADABLE, Outcome
from evalr_tracepass.records import Account, ErrorInfo, Prediction, Reflex, Row
from evalr_tracepass.transports.transport import BatchState, Caps

WRONG_COUNT = ErrorInfo("wrong_count", "the classifier gave another number of predictions than texts")


@dataclass(frozen=True)
class LocalTransport:
    """Classifiers that run here. What they raise is a failure of the texts that they were given, and of no others.

    Attributes:
        reflexes: by their aliases.
        largest: rows of one batch. What a batch brings is stored when it is whole, so that a crash loses one at most.
        together: texts of one call.
        threads: calls at once.
    """

    reflexes: Mapping[str, Reflex]
    largest: int = 2_500
    together: int = 250
    threads: int = 4
    name: str = field(default="local", init=False)
    caps: Caps | None = field(default=None, init=False)
    durable: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        for name in ("largest", "together", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)!r} must be a whole number from 1")

    @asynccontextmanager
    async def connect(self, account: Account) -> AsyncIterator[LocalConnection]:
        """A connection to the classifiers."""
        yield LocalConnection(self)


class LocalConnection:
    """Batches of a process, each held until its outcomes are taken."""

    def __init__(self, transport: LocalTransport) -> None:
        self._transport = transport
        self._slots = asyncio.Semaphore(transport.threads)
        self._ended: dict[str, list[Outcome]] = {}

    async def submit(self, rows: Sequence[Row], *, key: str) -> BatchState:
        """Have every model read its rows.

        Raises:
            InputError: a row names a model that is not there.
        """
        by_model: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            for model in row.models:
                by_model[model].append(place)
        for model in by_model:
            if model not in self._transport.reflexes:
                raise InputError(
                    f"no classifier is configured as {model!r}; {choice_words(model, self._transport.reflexes)}"
                )
        found: list[list[Prediction]] = [[] for _ in rows]
        calls = [(model, places) for model, all_of in by_model.items() for places in self._parts(all_of)]
        answers = await asyncio.gather(
            *(self._predictions(model, [rows[place].text for place in places]) for model, places in calls)
        )
        for (_, places), predictions in zip(calls, answers, strict=True):
            for place, prediction in zip(places, predictions, strict=True):
                found[place].append(prediction)
        self._ended[key] = [
            Outcome(row.request_id, "completed", tuple(predictions))
            for row, predictions in zip(rows, found, strict=True)
        ]
        return await self.status(key)

    async def status(self, batch_id: str) -> BatchState:
        """Ended, since `submit` has waited for it."""
        rows = len(self._ended.get(batch_id, ()))
        return BatchState(batch_id, "completed", True, rows, rows)

    async def outcomes(self, batch_id: str) -> AsyncIterator[Outcome]:
        """What the classifiers said, once."""
        for outcome in self._ended.pop(batch_id, ()):
            yield outcome

    def _parts(self, places: Sequence[int]) -> Iterator[Sequence[int]]:
        for start in range(0, len(places), self._transport.together):
            yield places[start : start + self._transport.together]

    async def _predictions(self, model: str, texts: list[str]) -> list[Prediction]:
        reflex = self._transport.reflexes[model]
        async with self._slots:
            try:
                if inspect.iscoroutinefunction(reflex.predict):
                    said = await reflex.predict(texts)
                else:
                    said = await asyncio.to_thread(reflex.predict, texts)
                    if inspect.isawaitable(said):
                        said = await said
                said = list(said)
            except Exception as error:  # noqa: BLE001  whatever a classifier raises is its failure
                failed = kept_error(type(error).__name__, str(error))
                if len(texts) == 1:
                    return [Prediction(model, error=failed, version=reflex.version)]
                said = None
        if said is None:
            # One text that cannot be read must not fail the others that were given with it.
            return [each for text in texts for each in await self._predictions(model, [text])]
        if len(said) != len(texts):
            return [Prediction(model, error=WRONG_COUNT, version=reflex.version) for _ in texts]
        return [_named(each, model, reflex.version) for each in said]


def _named(prediction: Prediction, model: str, version: str) -> Prediction:
    if not isinstance(prediction, Prediction):
        return Prediction(model, error=UNREADABLE, version=version)
    if prediction.model == model and prediction.version:
        return prediction
    return prediction._replace(model=model, version=prediction.version or version)
