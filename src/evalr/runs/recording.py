"""How a run writes its journal: in a thread of its own, and what comes in while it writes in one transaction.

A transaction waits for the disk, and may wait for another process; neither may hold up calls that are in flight.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from evalr.errors import JournalError
from evalr.inputs import Clock, utc_now
from evalr.runs.journal import Batch, Begun, Elsewhere, Found, Journal, Outcome
from evalr.runs.keys import Key

if TYPE_CHECKING:
    from asyncio import Future


class Recorder(Protocol):
    """What a run asks, and tells, of what is on record."""

    since: int
    """The number of the last call before the run."""

    async def look_up(self, keys: Sequence[bytes]) -> dict[bytes, Found]:
        """The latest answers to those questions that have one."""

    async def begin(self, key: Key, digest: bytes, since: int) -> Begun | Found | Elsewhere:
        """Claim an item and write down its first call, unless there is no need to call, or no right to.

        Answers of calls after `since` are new.
        """

    async def begin_again(self, item: int) -> int:
        """Write down another call of a claimed item. Returns its number."""

    async def finish(self, outcome: Outcome) -> None:
        """Write down what came of an item, and let go of it."""

    def note(self, outcome: Outcome) -> None:
        """Write down what came of a call that is tried again."""

    def close(self, made: Iterable[int]) -> None:
        """Write what is left to write, and end the run; `made` are the calls that were cancelled in flight."""


class NoJournal:
    """Nothing is on record, and nothing is put there."""

    since = 0

    def __init__(self) -> None:
        self._calls = 0

    async def look_up(self, keys: Sequence[bytes]) -> dict[bytes, Found]:
        """Nothing."""
        return {}

    async def begin(self, key: Key, digest: bytes, since: int) -> Begun | Found | Elsewhere:
        """Every item may begin."""
        return Begun(await self.begin_again(0), 0, 0)

    async def begin_again(self, item: int) -> int:
        """Calls are numbered all the same."""
        self._calls += 1
        return self._calls

    async def finish(self, outcome: Outcome) -> None:
        """Nothing to do."""

    def note(self, outcome: Outcome) -> None:
        """Nothing to do."""

    def close(self, made: Iterable[int]) -> None:
        """Nothing to do."""


class _Entry(NamedTuple):
    write: Callable[[Batch], Any]
    waiting: Future[Any] | None
    outcome: bool
    """Whether it is written even when the run is ending."""


class JournalRecorder:
    """Puts a run on record in its journal. Made and used in an event loop.

    `run` is the number of a run that whoever made it ends, and of the last call before it; by default the recorder
    begins a run and ends it.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        again: bool,
        asked_after: datetime | None = None,
        now: Clock = utc_now,
        run: tuple[int, int] | None = None,
    ) -> None:
        import asyncio

        self._journal = journal
        self._again = again
        self._asked_after = asked_after
        self._now = now
        self._end = journal.end_run if run is None else journal.give_back
        self._run, self.since = journal.begin_run() if run is None else run
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evalr-journal")
        self._entries: list[_Entry] = []
        self._writing = False
        self._failed: JournalError | None = None

    async def look_up(self, keys: Sequence[bytes]) -> dict[bytes, Found]:
        """As the protocol says."""
        return self._journal.look_up(keys)  # in place: it takes less time than a thread's turn

    async def begin(self, key: Key, digest: bytes, since: int) -> Begun | Found | Elsewhere:
        """As the protocol says."""

        def write(batch: Batch) -> Begun | Found | Elsewhere:
            return batch.begin(key, digest, self._run, since, again=self._again, asked_after=self._asked_after)

        begun: Begun | Found | Elsewhere = await self._put(write)
        return begun

    async def begin_again(self, item: int) -> int:
        """As the protocol says."""
        call: int = await self._put(lambda batch: batch.call(item, self._run))
        return call

    async def finish(self, outcome: Outcome) -> None:
        """As the protocol says."""
        await self._put(lambda batch: batch.add(outcome, release=True), outcome=True)

    def note(self, outcome: Outcome) -> None:
        """As the protocol says."""
        self._append(_Entry(lambda batch: batch.add(outcome, release=False), None, True))

    def close(self, made: Iterable[int]) -> None:
        """As the protocol says. It waits for the disk rather than for the loop, which may be ending, too."""
        self._thread.shutdown(wait=True)
        left = [entry for entry in self._entries if entry.outcome]
        self._entries = []
        if self._failed is not None:
            # What could not be written will not be now; the run's claims fall to whoever finds it ended.
            with contextlib.suppress(JournalError):
                self._end(self._run, made)
            return
        try:
            if left:
                self._write(left)
        finally:
            self._end(self._run, made)

    # -- groups of entries --------------------------------------------------------------------------------------------

    async def _put(self, write: Callable[[Batch], Any], *, outcome: bool = False) -> Any:
        if self._failed is not None:
            raise self._failed
        waiting: Future[Any] = self._loop.create_future()
        self._append(_Entry(write, waiting, outcome))
        return await waiting

    def _append(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if not self._writing:
            self._writing = True
            self._loop.call_soon(self._next)  # what else comes in this turn of the loop goes along

    def _next(self) -> None:
        # Calls that wait to begin go first, since they need not wait for the disk: outcomes gather in the meantime.
        beginning = [entry for entry in self._entries if not entry.outcome]
        entries = beginning or self._entries
        self._entries = [entry for entry in self._entries if entry.outcome] if beginning else []
        if not entries:
            self._writing = False
            return
        try:
            done = self._thread.submit(self._write, entries)
        except RuntimeError:  # closed in the meantime, and `close` has what is left
            self._entries = entries + self._entries
            return

        def report(done: ThreadFuture[list[Any]]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                self._loop.call_soon_threadsafe(self._written, entries, done)

        done.add_done_callback(report)

    def _write(self, entries: list[_Entry]) -> list[Any]:
        with self._journal.writing(durable=any(entry.outcome for entry in entries), now=self._now) as batch:
            return [entry.write(batch) for entry in entries]

    def _written(self, entries: list[_Entry], done: ThreadFuture[list[Any]]) -> None:
        error = done.exception()
        if error is not None:
            self._failed = error if isinstance(error, JournalError) else None
            for entry in entries:
                if entry.waiting is not None and not entry.waiting.done():
                    entry.waiting.set_exception(error)
        else:
            for entry, value in zip(entries, done.result(), strict=True):
                if entry.waiting is not None and not entry.waiting.done():
                    entry.waiting.set_result(value)
        self._next()
