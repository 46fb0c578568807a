"""When calls begin: a moment apart, since those that begin together wait for each other's work ever after.

Sixty-four calls that begin at once are sent when the work of all sixty-four is done, are answered at once, and begin
the next sixty-four at once. A moment apart, the work for one falls into the waiting of the others.
"""

from __future__ import annotations

import asyncio
import time

APART = 0.0015
"""Seconds: somewhat more than the work for one call takes."""

AT_ONCE = 4
"""So many calls after a pause begin without waiting, so that few wait where they come in no order of their own."""


class Pace:
    """Turns for calls, of all judges and event loops of the process: they share its one interpreter."""

    def __init__(self, apart: float = APART, at_once: int = AT_ONCE) -> None:
        self._apart = apart
        self._slack = (at_once - 1) * apart
        self._next = 0.0

    async def turn(self) -> None:
        """Wait until this call may begin."""
        now = time.monotonic()
        mine = max(now - self._slack, self._next)
        self._next = mine + self._apart
        if mine > now:
            await asyncio.sleep(mine - now)


PACE = Pace()
