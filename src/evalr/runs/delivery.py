"""Results on their way to a sink: tried again where it fails, and kept until it has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any

from evalr.errors import SinkError, error_words
from evalr.quoting import safe_text
from evalr.runs.cancelling import is_cancelled
from evalr.runs.sinks.sink import Sink
from evalr.verdicts import Result

TRIES = 4
FIRST_DELAY = 0.1
"""Seconds before the second try; each later one waits four times as long."""

PATIENCE = 30.0
"""Seconds that a sink has for one write."""

REST = 5.0
"""Seconds until it is tried again after all tries have failed, or sooner with the next results."""

MOST_TOGETHER = 500
"""Inputs whose results are written together at most."""


class Parcel:
    """The results of one input, and how many sinks do not have them yet."""

    def __init__(
        self, results: tuple[Result[Any], ...], sinks: int, delivered: Callable[[], None], *, superseding: bool
    ) -> None:
        self.results = results
        self.superseding = superseding
        self._left = sinks
        self._delivered = delivered

    def arrived(self) -> None:
        """Another sink has them."""
        self._left -= 1
        if not self._left:
            self._delivered()


class Outlet:
    """One sink, and what it does not have yet, in order. What waits for it goes there together."""

    def __init__(self, sink: Sink, changed: Callable[[], None]) -> None:
        self.sink = sink
        self.kept: list[Parcel] = []
        self.error: BaseException | None = None
        """Why the last write failed; None where it did not."""
        self._changed = changed
        self._given_up = 0
        self._busy = False
        self._wake = asyncio.Event()
        self._tried = asyncio.Event()

    def send(self, parcel: Parcel) -> None:
        """Hand it over, as soon as the sink takes it."""
        self.kept.append(parcel)
        self._wake.set()

    async def serve(self) -> None:
        """Write what there is to write, until it is cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self.kept:
                batch, self._busy = self._alike(), True
                written = await self._written(batch, TRIES) or await self._one_by_one(batch)
                self._given_up, self._busy = self._given_up + (not written), False
                self._tried.set()
                self._tried = asyncio.Event()
                self._changed()
                if not written:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(REST):
                            await self._wake.wait()
                    self._wake.clear()

    async def attempted(self) -> None:
        """Wait until the sink has everything, or has failed to take it once more."""
        # One that is being made now may be without what has just come.
        enough = self._given_up + 1 + self._busy
        self._wake.set()
        while self.kept and self._given_up < enough:
            await self._tried.wait()

    def _alike(self) -> list[Parcel]:
        kept = self.kept[:MOST_TOGETHER]
        first = kept[0].superseding
        return kept[: next((place for place, each in enumerate(kept) if each.superseding is not first), len(kept))]

    async def _one_by_one(self, batch: list[Parcel]) -> bool:
        """A result that a sink cannot take must not keep the others from it. Whether any was taken."""
        if len(batch) == 1:
            return False
        return any([await self._written([parcel], 1) for parcel in batch])

    async def _written(self, batch: list[Parcel], tries: int) -> bool:
        results = tuple(chain.from_iterable(parcel.results for parcel in batch))
        for tried in range(1, tries + 1):
            try:
                async with asyncio.timeout(PATIENCE):
                    await self.sink.write(results, superseding=batch[0].superseding)
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and is_cancelled():
                    raise
                self.error = error  # whatever a sink raises is told when it is asked for
                if tried < tries:
                    await asyncio.sleep(FIRST_DELAY * 4 ** (tried - 1))
            else:
                done = set(map(id, batch))
                self.kept = [parcel for parcel in self.kept if id(parcel) not in done]
                self.error = self.error if self.kept else None
                for parcel in batch:
                    parcel.arrived()
                return True
        return False

    def unsaved(self) -> tuple[Result[Any], ...]:
        """The results that the sink does not have."""
        return tuple(chain.from_iterable(parcel.results for parcel in list(self.kept)))

    def failure(self) -> SinkError:
        """What to raise for them."""
        unsaved, error = self.unsaved(), self.error or TimeoutError("not done yet")
        count = f"{len(unsaved):,} {'result' if len(unsaved) == 1 else 'results'}"
        return SinkError(
            f"{safe_text(type(self.sink).__name__)} does not have {count}: "
            f"{safe_text(error_words(error), longest=300)}; kept, and tried again with the next ones",
            unsaved=unsaved,
        )
