"""Claims: of two processes that run one pass, which one does."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from evalr.errors import StoreError
from evalr_tracepass.records import Account
from evalr_tracepass.stores.store import PassStore

BEATS = 4
"""How often a claim is made anew before it would lapse."""

Check = Callable[[], None]
"""Raises StoreError where the claim is another's by now."""


@asynccontextmanager
async def claimed(store: PassStore, account: Account, pass_id: str, *, lease: float) -> AsyncIterator[Check]:
    """A pass that no other process runs as long as this one does.

    A claim lapses `lease` seconds after its process has been killed: so long is waited for it, and one that is still
    made anew then belongs to a process that lives.

    Raises:
        StoreError: another process has it, or the store cannot be written.
    """
    owner = uuid.uuid4().hex
    await _take(store, account, pass_id, owner, lease)
    beat = _Heartbeat(store, account, pass_id, owner, lease)
    beat.start()
    try:
        yield beat.check
    finally:
        beat.ended.set()
        await asyncio.to_thread(beat.join)
        await asyncio.to_thread(store.release, account, pass_id, owner)


async def _take(store: PassStore, account: Account, pass_id: str, owner: str, lease: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + 1.25 * lease
    while not await asyncio.to_thread(store.claim, account, pass_id, owner, lease):
        if loop.time() >= until:
            raise StoreError(f"another process runs pass {pass_id}: let it come to its end, or stop it")
        await asyncio.sleep(lease / 20)


class _Heartbeat(threading.Thread):
    """Makes a claim anew, in a thread: a classifier may hold up the event loop for longer than a claim lasts."""

    def __init__(self, store: PassStore, account: Account, pass_id: str, owner: str, lease: float) -> None:
        super().__init__(name=f"claim on pass {pass_id}", daemon=True)
        self.ended = threading.Event()
        self._claim: Callable[[], bool] = lambda: store.claim(account, pass_id, owner, lease)
        self._every = lease / BEATS
        self._pass_id = pass_id
        self._error: StoreError | None = None

    def run(self) -> None:
        while not self.ended.wait(self._every):
            try:
                if not self._claim():
                    self._error = StoreError(f"another process has taken pass {self._pass_id} over")
                    return
            except StoreError as error:
                self._error = error
                return

    def check(self) -> None:
        """See `Check`."""
        if self._error is not None:
            raise self._error
