"""The background of online evaluation: takes what is ready, has it judged, and hands the results over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar

from evalr.errors import EvalrError, JournalError, SinkError, SpoolError, error_words
from evalr.evaluators import Evaluator
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Input, Now, resolve_now
from evalr.quoting import safe_text
from evalr.runs.budget import Ledger
from evalr.runs.delivery import Outlet, Parcel
from evalr.runs.engine import Engine, Terms
from evalr.runs.jobs import Planner
from evalr.runs.online_summary import Counts
from evalr.runs.readiness import Readiness
from evalr.runs.running import Run
from evalr.runs.sinks.sink import Sink
from evalr.runs.waiting import PATIENCE, Entry, Waiting
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict

P = ParamSpec("P")
T = TypeVar("T")

Unready = Literal["leave", "wait", "judge"]
"""What `drain` does with inputs that are not ready yet: leave them, wait until they are, or judge them as they are."""

LOOK = 5.0
"""Seconds between two looks at what other processes, or a sink that failed, may have changed."""

MOST_KEPT = 1_000
"""Inputs whose results a sink does not take; beyond this many, no more are judged until it does."""

FIRST_DELAY, LAST_DELAY = timedelta(seconds=1), timedelta(minutes=1)
"""How long an input waits after the journal failed: twice as long each time."""

HELD_LOOK = 0.1
"""Seconds until those that are held are put into the spool again, after that has failed."""

LONGEST_LOOK = timedelta(days=1)
"""The most that an input waits whose verdict is pending: as long as it had to be quiet at first, then twice as long."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be judged, by whom, and who is to know of it."""

    waiting: Waiting
    evaluators: Sequence[Evaluator[Any, Any]]
    sinks: Sequence[Sink]
    ready: Readiness
    now: Now
    ledger: Ledger
    terms: Terms
    counts: Counts


class Worker:
    """Does the work. All of it happens in one event loop, but for what a spool may take its time for."""

    def __init__(self, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._waiting = work.waiting
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evalr-spool")
        self.in_work = 0
        self._taking = False
        self._judging: set[asyncio.Task[None]] = set()
        self._settling: set[asyncio.Task[None]] = set()
        self._everything = 0
        self._used_up: str | None = None
        self._trouble: EvalrError | None = None
        self._delay = FIRST_DELAY
        self._throttled_before = work.terms.limiter.throttled
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self.outlets = [Outlet(sink, self._changed.set) for sink in work.sinks]
        self._at_once = 2 * work.terms.limiter.at_once
        self._serving: list[asyncio.Task[None]] = []
        loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        for work in (self._serve(), *(outlet.serve() for outlet in self.outlets)):
            self._serving.append(self._loop.create_task(work, name="evalr online"))

    def look(self) -> None:
        """See what is ready; in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the process does
            self._loop.call_soon_threadsafe(self._wake.set)

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """The work's result, from whichever loop this is."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _stored(self, ask: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """What those that wait are asked, in a thread where they are in a file: others may keep that locked."""
        if self._waiting.path is None:
            return ask(*args, **options)
        try:
            asked = self._loop.run_in_executor(self._thread, partial(ask, *args, **options))
        except RuntimeError:  # the process ends, and threads have ended
            raise asyncio.CancelledError from None
        return await asked

    def standing(self) -> dict[str, Any]:
        """What is not done yet, and why inputs that are ready wait; by the names of the summary's attributes."""
        not_done = {} if self._used_up is None else {self._used_up: self._waiting.count()}
        not_done |= {"cannot be read back from the spool": self._waiting.unreadable}
        return {
            "in_work": self.in_work,
            "undelivered": sum(len(outlet.unsaved()) for outlet in self.outlets),
            "not_done": {reason: count for reason, count in not_done.items() if count},
        }

    # -- taking -------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        while True:
            self._wake.clear()
            taken = 0
            self._taking = True
            try:
                if self._waiting.held:
                    await self._stored(put_held, self._waiting, self._work.counts)
                taken = await self._take()
            except SpoolError as error:
                self._trouble = error
            finally:
                self._taking = False
            if not taken:
                self._changed.set()
                await self._rest()

    async def _take(self) -> int:
        room = self._at_once - len(self._judging)
        if room <= 0 or self._held_back():
            return 0
        now = None if self._everything else resolve_now(self._work.now)
        entries = await self._stored(self._waiting.take, now, room)
        for entry in entries:
            self.in_work += 1
            task = self._loop.create_task(self._judge(entry))
            self._judging.add(task)
            task.add_done_callback(self._judged)
        return len(entries)

    def _judged(self, task: asyncio.Task[None]) -> None:
        self._judging.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._trouble = error if isinstance(error, EvalrError) else SpoolError(error_words(error))
        self._wake.set()
        self._changed.set()

    def _held_back(self) -> bool:
        return self._used_up is not None or any(len(outlet.kept) >= MOST_KEPT for outlet in self.outlets)

    async def _rest(self) -> None:
        """Wait until there may be something to do."""
        seconds = 60.0 if self._waiting.path is None else HELD_LOOK if self._waiting.held else LOOK
        if not self._held_back() and len(self._judging) < self._at_once:
            with contextlib.suppress(SpoolError):  # it is told when it is taken from
                if (ready := await self._stored(self._waiting.next_ready)) is not None:
                    left = (ready - resolve_now(self._work.now)).total_seconds()
                    seconds = min(max(left, 0.001), seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            with contextlib.suppress(SpoolError):
                await self._stored(self._waiting.take_over)

    # -- judging ------------------------------------------------------------------------------------------------------

    async def _judge(self, entry: Entry) -> None:
        asked = [each for each in self._work.evaluators if entry.names is None or _named(each) in entry.names]
        results, left, failed = await self._results(entry, asked)
        pending = [each for each in asked if each not in left and _is_pending(each, results)]
        again = {_named(each) for each in (*left, *pending)}
        ready = resolve_now(self._work.now)
        if failed:
            ready += self._delay
            self._delay = min(2 * self._delay, LAST_DELAY)
        elif pending:
            ready += min(max(self._work.ready.quiet, FIRST_DELAY) * 2 ** min(entry.looks, 20), LONGEST_LOOK)

        def delivered() -> None:
            self._delivered(entry, again, ready, judged=bool(pending) and not left)

        if not results:
            delivered()
            return
        parcel = Parcel(results, len(self.outlets), delivered, superseding=entry.supersedes)
        for outlet in self.outlets:
            outlet.send(parcel)

    async def _results(
        self, entry: Entry, asked: list[Evaluator[Any, Any]]
    ) -> tuple[tuple[Result[Any], ...], list[Evaluator[Any, Any]], bool]:
        """The results, the evaluators that have none and are to be asked again, and whether the journal failed."""
        results: list[Result[Any]] = []
        left: list[Evaluator[Any, Any]] = []
        failed, engine = False, None
        try:
            pinned = [pin() if (pin := getattr(each, "pinned", None)) is not None else each for each in asked]
            engine = Engine(Planner(pinned, 1, "error"), [entry.given], self._work.ledger, self._work.terms)
            async with Run(engine, None) as run:
                async for result in run:
                    results.append(result)  # noqa: PERF401  what came before an error counts
            left = _missing(asked, results) if len(results) < len(asked) else []
        except JournalError as error:
            results += [each for each in error.unsaved if isinstance(each, Verdict | Failure | Skip | HandOff)]
            left = _missing(asked, results)
            self._trouble, failed = error, True
        except Exception as error:  # noqa: BLE001  whatever an evaluator's own code raises is this input's failure
            if len(asked) == 1:
                results.append(_failure(asked[0], entry.given, error))
            for each in _missing(asked, results):  # which of several it was shows when each is asked by itself
                found, unanswered, broken = await self._results(entry, [each])
                results += found
                left += unanswered
                failed |= broken
        if engine is not None:
            run_summary = engine.summary()
            self._work.counts.add_run(
                run_summary,
                over_ceiling=self._work.ledger.over_ceiling,
                throttled=self._work.terms.limiter.throttled - self._throttled_before,
            )
            if run_summary.not_done and left and not failed:
                self._used_up = next(iter(run_summary.not_done))
        if not failed:
            self._delay = FIRST_DELAY
            self._trouble = None if isinstance(self._trouble, JournalError) else self._trouble
        return tuple(results), left, failed

    # -- handing over -------------------------------------------------------------------------------------------------

    def _delivered(self, entry: Entry, again: set[str], ready: datetime, *, judged: bool) -> None:
        """Every sink has the results of an entry, as far as there are any."""
        task = self._loop.create_task(self._settle(entry, again, ready, judged=judged))
        self._settling.add(task)
        task.add_done_callback(self._settled)

    async def _settle(self, entry: Entry, again: set[str], ready: datetime, *, judged: bool) -> None:
        waits = True
        while True:
            try:
                if again:
                    waits = await self._stored(self._waiting.give_back, entry, ready, again, judged=judged)
                else:
                    await self._stored(self._waiting.done, [entry])
                break
            except SpoolError as error:  # it stays in the file, and is judged again if the process ends by now
                self._trouble = error
                self._changed.set()
                await asyncio.sleep(LOOK)
        counts = self._work.counts
        if again:
            counts.add(replaced=not waits)
        else:
            counts.add(judged=1, superseding=entry.supersedes)
        self.in_work -= 1

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._settling.discard(task)
        self._wake.set()  # another reading of it may wait
        self._changed.set()

    # -- the end ------------------------------------------------------------------------------------------------------

    async def drained(self, timeout: float | None, unready: Unready) -> None:  # noqa: ASYNC109
        """As `Online.drain`."""
        self._everything += unready == "judge"
        limit = asyncio.timeout(timeout)
        before = self._trouble  # which may have passed by now, and is no reason to stop
        self._wake.set()
        try:
            async with limit:
                while not await self._is_idle(unready, before):
                    await self._changed.wait()
                    self._changed.clear()
                await asyncio.gather(*(outlet.attempted() for outlet in self.outlets))
                while self._settling and self._trouble in (None, before):
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._everything -= unready == "judge"
        self._raise()

    async def _is_idle(self, unready: Unready, before: EvalrError | None) -> bool:
        for task in self._serving:
            if task.done():
                task.result()  # raises what ended it
        if self._is_at_work():
            return False
        if self._held_back() or self._trouble not in (None, before):
            return True
        # What is judged and found too soon to tell is not waited for: that may take as long as people do.
        ready = await self._stored(self._waiting.next_ready, fresh=unready != "leave")
        if self._is_at_work() or self._waiting.held:
            return False
        return ready is None or (unready == "leave" and ready > resolve_now(self._work.now))

    def _is_at_work(self) -> bool:
        return self._taking or bool(self._judging)

    def _raise(self) -> None:
        trouble, self._trouble = self._trouble, None
        failures = [outlet.failure() for outlet in self.outlets if outlet.kept and outlet.error is not None]
        if failures:
            unsaved = tuple(result for failure in failures for result in failure.unsaved)
            raise SinkError("; ".join(map(str, failures)), unsaved=unsaved) from trouble
        if trouble is not None:
            raise trouble

    async def end(self) -> None:
        """Stop, and close every sink. What is in work is cancelled.

        Raises:
            SinkError: a sink could not be closed.
        """
        tasks = [*self._judging, *self._serving]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._settling:
            await asyncio.wait(self._settling, timeout=PATIENCE)
        for task in self._settling:
            task.cancel()
        self._thread.shutdown(wait=False)
        failures: list[str] = []
        for outlet in self.outlets:
            try:
                await outlet.sink.close()
            except Exception as error:  # noqa: BLE001  whatever a sink raises must not keep the others open
                name = safe_text(type(outlet.sink).__name__)
                failures.append(f"{name} could not be closed: {safe_text(error_words(error), longest=300)}")
        if failures:
            raise SinkError("; ".join(failures))


def put_held(waiting: Waiting, counts: Counts, patience: float = PATIENCE) -> None:
    """Put those that are held into the spool, and count what became of them.

    Raises:
        SpoolError: it cannot be written. They are still held.
    """
    while (put := waiting.put_held(patience)) is not None:
        if put != "added":
            counts.add(**{put: 1})


def _named(evaluator: Evaluator[Any, Any]) -> str:
    return f"{evaluator.name}@{evaluator.version}"


def _missing(asked: list[Evaluator[Any, Any]], results: Sequence[Result[Any]]) -> list[Evaluator[Any, Any]]:
    there = {f"{result.evaluator}@{result.version}" for result in results}
    return [each for each in asked if _named(each) not in there]


def _is_pending(evaluator: Evaluator[Any, Any], results: Sequence[Result[Any]]) -> bool:
    pending: Callable[[Any], bool] | None = getattr(evaluator, "pending", None)
    own = _named(evaluator)
    return pending is not None and any(
        isinstance(result, Verdict) and f"{result.evaluator}@{result.version}" == own and pending(result.value)
        for result in results
    )


def _failure(evaluator: Evaluator[Any, Any], given: Input, error: Exception) -> Failure:
    words = without_lone_surrogates(error_words(error))
    return Failure(words, evaluator.name, evaluator.version, given.about(), exception=error)
