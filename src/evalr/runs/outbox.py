"""Results on their way from a run to whoever asked for it: a bounded queue that can end."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from evalr.verdicts import Result


class Outbox:
    """Holds results until they are taken. Whoever puts waits while it is full, so that a slow reader slows the run."""

    def __init__(self, size: int) -> None:
        self.items: deque[Result[Any]] = deque()
        self._size = size
        self._ended = False
        self._taker: asyncio.Future[None] | None = None
        self._putters: deque[asyncio.Future[None]] = deque()

    async def put(self, result: Result[Any]) -> None:
        """Add a result, as soon as there is room."""
        await self.room()
        self.add(result)

    async def room(self) -> None:
        """Wait until there is room."""
        while len(self.items) >= self._size:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._putters.append(turn)
            await turn

    def add(self, result: Result[Any]) -> None:
        """Add a result, without waiting."""
        self.items.append(result)
        if self._taker is not None:
            self._wake_taker()

    def take(self) -> Result[Any]:
        """The next result, of those that are there."""
        result = self.items.popleft()
        if self._putters and len(self.items) <= self._size // 2:
            self._wake_putters()
        return result

    async def wait(self) -> bool:
        """Wait until there is a result to take, or there will be none: False."""
        while not self.items:
            if self._ended:
                return False
            self._taker = asyncio.get_running_loop().create_future()
            await self._taker
        return True

    def end(self) -> None:
        """No more results come."""
        self._ended = True
        self._wake_taker()

    def _wake_taker(self) -> None:
        if self._taker is not None and not self._taker.done():
            self._taker.set_result(None)
        self._taker = None

    def _wake_putters(self) -> None:
        while self._putters:
            turn = self._putters.popleft()
            if not turn.done():
                turn.set_result(None)
