"""The work of one run: a planner that reads inputs, workers that ask, and a journal that everything goes through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import Any

from evalr.errors import InputError, JournalError, error_words
from evalr.estimates.words import duration_words
from evalr.evaluators import calls_of
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Clock, utc_now
from evalr.runs.account import RunSummary
from evalr.runs.budget import Ledger
from evalr.runs.cancelling import is_cancelled
from evalr.runs.jobs import Job, Plan, batches
from evalr.runs.journal import Begun, Elsewhere, Found, Journal, Outcome, Settled, stands
from evalr.runs.limiter import Limiter, Ticket
from evalr.runs.lines import from_text, to_text
from evalr.runs.outbox import Outbox
from evalr.runs.progress import EVERY, Pace, Progress, Watch
from evalr.runs.recording import JournalRecorder, NoJournal, Recorder
from evalr.runs.retries import Fault, Retry
from evalr.verdicts import NO_VERDICT, Failure, Result, Verdict

LOOK_AGAIN = 0.1
"""Seconds between two looks at items that another run is at work on."""

THREADS = 40
"""How many threads anyio has by itself."""

_ANSWERED = Fault("permanent")


@dataclass(frozen=True, slots=True)
class Terms:
    """How a run is done.

    Attributes:
        journal: where it is on record.
        limiter: what says how many calls there may be at once.
        retry: what is tried again.
        timeout: seconds for one item.
        again: whether failures in the journal are asked again.
        replay: whether results in the journal are given, too.
        total: how many items there are.
        watch: called with its progress.
        asked_after: answers in the journal that were asked for no later than that are asked for again.
        now: when a call is made.
        run: makes the number of the run, and of the last call before it, where whoever asks begins and ends it.
        told: called with each job, its result and whether that was in the journal.
    """

    journal: Journal | None
    limiter: Limiter
    retry: Retry
    timeout: float | None
    again: bool
    replay: bool
    total: int | None
    watch: Watch | None
    asked_after: datetime | None = None
    now: Clock = utc_now
    run: Callable[[], tuple[int, int]] | None = None
    told: Callable[[Job, Result[Any], bool], object] | None = None


class Engine:
    """One run. `run` does it, and puts results into `outbox`."""

    def __init__(self, planner: Plan, inputs: Iterable[Any] | AsyncIterable[Any], ledger: Ledger, terms: Terms) -> None:
        self.outbox = Outbox(max(64, 2 * terms.limiter.at_once))
        self._summary = RunSummary()
        self._planner = planner
        self._inputs = inputs
        self._ledger = ledger
        self._terms = terms
        self._recorder: Recorder = NoJournal()
        # More workers than calls at once: some wait before they try again, or for the journal.
        self._workers = 2 * terms.limiter.at_once
        self._todo: asyncio.Queue[Job | None] = asyncio.Queue(terms.limiter.at_once)
        self._elsewhere: list[Job] = []
        self._open = 0
        self._idle = asyncio.Event()
        self._in_flight: set[int] = set()
        self._refused: Exception | None = None
        self._stopped = False
        self._unsaved: list[Result[Any]] = []
        self._begun = monotonic()
        self._throttled_before = terms.limiter.throttled
        self._pace = Pace()
        self._watched = terms.watch

    def summary(self) -> RunSummary:
        """What the run has done so far."""
        summary = self._summary
        if not summary.finished:
            summary.seconds = monotonic() - self._begun
        summary.throttled = self._terms.limiter.throttled - self._throttled_before
        summary.over_ceiling = self._ledger.over_ceiling
        return summary.copy()

    async def run(self) -> None:
        """Do it all. When it has returned, or raised, nothing of it goes on."""
        self._begun = monotonic()
        try:
            terms = self._terms
            if terms.journal is not None:
                run = None if terms.run is None else terms.run()
                self._recorder = JournalRecorder(
                    terms.journal, again=terms.again, asked_after=terms.asked_after, now=terms.now, run=run
                )
            _let_threads_keep_up(self._terms.limiter.at_once)
            try:
                await self._work_together()
            finally:
                self._recorder.close(self._in_flight)
            self.summary()
            self._summary.finished = self._refused is None
        finally:
            self.outbox.end()
            self._report(over=True)
        if self._refused is not None:
            raise self._refused

    async def _work_together(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch())
                workers = [tasks.create_task(self._work()) for _ in range(self._workers)]
                await self._plan()
                for _ in workers:
                    await self._todo.put(None)
                await asyncio.gather(*workers)
                watching.cancel()
        except BaseExceptionGroup as group:
            raise self._first_of(group) from None

    def _first_of(self, group: BaseExceptionGroup[BaseException]) -> BaseException:
        """The error that ended it all: what the others raised came of that."""
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, JournalError) and self._unsaved:
            return JournalError(str(error), unsaved=tuple(self._unsaved))
        return error

    # -- inputs -------------------------------------------------------------------------------------------------------

    async def _plan(self) -> None:
        """Give every job to the workers, or its answer to the outbox."""
        position = 0
        try:
            async with aclosing(batches(self._inputs)) as stream:
                async for batch in stream:
                    jobs: list[Job] = []
                    try:
                        for given in batch:
                            found = self._planner.jobs(position, given)
                            if found is None:
                                self._summary.duplicates += 1
                            else:
                                jobs += found
                            position += 1
                    finally:
                        # What came before an input that is refused was fine.
                        await self._give_out(jobs)
                    if self._stopped:
                        break
                    if self._elsewhere:
                        await self._look_again()
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001  what inputs raise ends the run when calls in flight are back
            self._refused = error
        while self._open or self._elsewhere:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN if self._elsewhere else None):
                    await self._idle.wait()
            if self._elsewhere:
                await asyncio.sleep(LOOK_AGAIN)
                await self._look_again()

    async def _give_out(self, jobs: list[Job]) -> None:
        known = await self._recorder.look_up([job.digest for job in jobs])
        await self.outbox.room()
        for job in jobs:
            found = known.get(job.digest)
            if found is None or not self._stands(found, job):
                self._open += 1
                self._idle.clear()
                await self._todo.put(job)
            elif (result := self._answer(found, job)) is not None:
                self.outbox.add(result)

    def _stands(self, found: Found, job: Job) -> bool:
        return stands(found, self._since(job), again=self._terms.again, asked_after=self._terms.asked_after)

    def _since(self, job: Job) -> int:
        """The number of the last call whose answer is not new."""
        since = self._recorder.since
        return since if job.since is None else min(since, job.since)

    async def _look_again(self) -> None:
        """See what became of items that another run was at work on."""
        waiting, self._elsewhere = self._elsewhere, []
        await self._give_out(waiting)

    # -- calls --------------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while (job := await self._todo.get()) is not None:
            try:
                await self._settle(job)
            finally:
                self._open -= 1
                if not self._open:
                    self._idle.set()

    async def _settle(self, job: Job) -> None:
        """Ask until there is an answer, or a reason to have none."""
        if self._stopped:
            self._summary.leave_undone("the run was ended by an error")
            return
        calls = max(1, calls_of(job.evaluator, job.given))
        reason = await self._ledger.reserve(calls)
        if reason is not None:
            self._summary.leave_undone(reason)
            return
        item: int | None = None
        tried, spent = 0, 0.0
        while True:
            ticket = await self._terms.limiter.acquire(_tokens(job))
            fault, cost = _ANSWERED, None
            try:
                if item is None:
                    if (reason := self._ledger.used_up()) is not None:
                        self._ledger.give_back(calls)
                        self._summary.leave_undone(reason)
                        return
                    begun = await self._recorder.begin(job.key, job.digest, self._since(job))
                    if not isinstance(begun, Begun):
                        self._ledger.give_back(calls)
                        await self._leave_to_others(begun, job)
                        return
                    call, item = begun.call, begun.item
                    self._summary.in_doubt += begun.doubted
                else:
                    call = await self._recorder.begin_again(item)
                tried += 1
                self._summary.calls += calls
                self._summary.retried += calls if tried > 1 else 0
                try:
                    result, seconds, timed_out = await self._called(job, call, spent)
                except InputError as error:
                    # An input that it does not read: a mistake of whoever calls, and no failure of the evaluator.
                    self._refused, self._stopped = self._refused or error, True
                    self._ledger.settle(None, calls)
                    self._summary.count_cost(None, calls)
                    return
                spent += seconds
                cost = result.cost
                fault = self._fault(result, timed_out)
            finally:
                self._release(ticket, fault, tried)
            self._ledger.settle(cost, calls)
            self._summary.count_cost(cost, calls)
            delay = None if timed_out else self._delay(result, tried, fault, spent, calls)
            if delay is None:
                self._summary.timed_out += timed_out
                await self._finish(job, call, item, result)
                return
            self._recorder.note(Outcome(call, item, "retried", 0, cost, self._line(job, result)))
            await asyncio.sleep(delay)

    async def _called(self, job: Job, call: int, spent: float) -> tuple[Result[Any], float, bool]:
        """The result of one call, the seconds that it took, and whether the item's time was up."""
        timeout = self._terms.timeout
        self._in_flight.add(call)
        begun = monotonic()
        limit = asyncio.timeout(None if timeout is None else max(0.0, timeout - spent))
        timed_out = False
        try:
            async with limit:
                given: object = await job.evaluator.evaluate(job.given)
        except InputError:
            raise
        except TimeoutError as error:
            timed_out = limit.expired()
            given = self._timed_out(job) if timed_out else _failure(error)
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            given = _failure(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  an evaluator that raises, or wants to end the process,
            given = _failure(error)  # has failed for this input, and no other
        seconds = monotonic() - begun
        self._in_flight.discard(call)
        if not isinstance(given, (Verdict, *NO_VERDICT)):
            given = Failure(f"returned {type(given).__name__} where a result was promised")
        return _stamped(given, job, seconds), seconds, timed_out

    def _timed_out(self, job: Job) -> Failure:
        within = duration_words(self._terms.timeout or 0.0)
        words = f"timed out: {job.named()} had no result within {within}"
        return Failure(without_lone_surrogates(words), exception=TimeoutError(words))

    def _fault(self, result: Result[Any], timed_out: bool) -> Fault:
        if timed_out:
            return Fault("throttled")
        return self._terms.retry.fault(result.exception) if isinstance(result, Failure) else _ANSWERED

    def _release(self, ticket: Ticket, fault: Fault, tried: int) -> None:
        patient = fault.retry_after is not None and fault.retry_after <= self._terms.retry.patience
        self._terms.limiter.release(
            ticket,
            answered=tried > 0 and fault is _ANSWERED,
            throttled=fault.kind == "throttled",
            after=fault.retry_after if patient else None,
        )

    def _delay(self, result: Result[Any], tried: int, fault: Fault, spent: float, calls: int) -> float | None:
        """The seconds until another try, for which there is a budget then; None where there is none."""
        timeout = self._terms.timeout
        if not isinstance(result, Failure) or (timeout is not None and spent >= timeout):
            return None
        delay = self._terms.retry.delay(tried, fault)
        return None if delay is None or self._ledger.try_reserve(calls) is not None else delay

    # -- answers ------------------------------------------------------------------------------------------------------

    async def _finish(self, job: Job, call: int, item: int, result: Result[Any]) -> None:
        pending = is_pending(job, result)
        settled: Settled = 1 if pending or isinstance(result, Failure) else 2
        try:
            line = self._line(job, result)
            await self._recorder.finish(Outcome(call, item, result.status, settled, result.cost, line))
        except JournalError:
            self._unsaved.append(result)
            raise
        self._summary.count(result.status, pending=pending, stored=False)
        self._tell(job, result, stored=False)
        await self.outbox.put(result)

    def _line(self, job: Job, result: Result[Any]) -> str | None:
        return None if self._terms.journal is None else to_text(result, job.evaluator.verdict_type)

    async def _leave_to_others(self, begun: Found | Elsewhere, job: Job) -> None:
        if isinstance(begun, Elsewhere):
            # What that call comes to is as new as what this run would ask, be it a failure.
            self._elsewhere.append(job._replace(since=begun.call - 1))
        else:
            result = self._answer(begun, job)
            if result is not None:
                await self.outbox.put(result)

    def _answer(self, found: Found, job: Job) -> Result[Any] | None:
        """What the journal has, or None where nobody asked to see it."""
        self._summary.count(found.status, pending=_is_pending_status(found), stored=True)
        if not self._terms.replay and self._terms.told is None:
            return None
        result = from_text(found.line, job.evaluator.verdict_type, job.repeat)
        about, weight = result.about, job.given.weight
        if about is not None and about.weight != weight:  # which is that of the sample it was in back then
            result = replace(result, about=about._replace(weight=weight))
        self._tell(job, result, stored=True)
        return result if self._terms.replay else None

    def _tell(self, job: Job, result: Result[Any], *, stored: bool) -> None:
        if self._terms.told is not None:
            self._terms.told(job, result, stored)

    # -- progress -----------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while self._watched is not None:
            self._report()
            await asyncio.sleep(EVERY)

    def _report(self, *, over: bool = False) -> None:
        watch, self._watched = self._watched, None  # one that raises is not called again
        if watch is None:
            return
        summary, total = self.summary(), self._terms.total
        done = summary.results + sum(summary.not_done.values())
        rate = self._pace.rate(monotonic(), summary.results - summary.from_journal)
        left = None if total is None or not rate else max(0, total - done) / rate
        watch(Progress(done, total, rate, left, summary, over))
        self._watched = watch


def _failure(error: BaseException) -> Failure:
    return Failure(without_lone_surrogates(error_words(error)), exception=error)


def _stamped(result: Result[Any], job: Job, seconds: float) -> Result[Any]:
    """The result with whatever it does not say itself: whose it is, of what, and how long it took."""
    about = result.about
    if about is None or job.repeat is not None:
        about = job.about()
    stamp: dict[str, Any] = {} if about is result.about else {"about": about}
    if result.latency is None:
        stamp["latency"] = seconds
    if not isinstance(result, Verdict):
        stamp |= {} if result.evaluator is not None else {"evaluator": job.evaluator.name}
        stamp |= {} if result.version is not None else {"version": job.evaluator.version}
    return replace(result, **stamp) if stamp else result


def is_pending(job: Job, result: Result[Any]) -> bool:
    """Whether a result is a verdict that is too soon to tell."""
    asked = getattr(job.evaluator, "pending", None)
    return asked is not None and isinstance(result, Verdict) and bool(asked(result.value))


def _is_pending_status(found: Found) -> bool:
    return found.settled == 1 and found.status == Verdict.status


def _tokens(job: Job) -> int:
    expected = getattr(job.evaluator, "expected_tokens", None)
    return 0 if expected is None else int(expected(job.given))


def _let_threads_keep_up(at_once: int) -> None:
    """Let as many sync functions run in threads as there may be calls at once."""
    if at_once > THREADS:
        from anyio.to_thread import current_default_thread_limiter

        threads = current_default_thread_limiter()
        threads.total_tokens = max(threads.total_tokens, at_once)
