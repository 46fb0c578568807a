"""Online evaluation: an application hands in what happened, goes on at once, and verdicts come when it is whole."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from evalr.background import run_sync
from evalr.errors import EvalrError, InputError, JournalError, SinkError, SpoolError, error_words
from evalr.evaluators import Evaluator
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Input, Now, resolve_now, utc_now
from evalr.quoting import safe_text
from evalr.runs.account import RunSummary
from evalr.runs.budget import Budget, Ledger
from evalr.runs.delivery import Outlet, Parcel
from evalr.runs.engine import Engine, Terms
from evalr.runs.jobs import Planner, content_hash
from evalr.runs.journal import Journal
from evalr.runs.limiter import AT_ONCE, Limiter
from evalr.runs.readiness import Readiness, last_event
from evalr.runs.retries import Retry
from evalr.runs.running import Run, check_evaluators, check_terms
from evalr.runs.sampling import check_rate, is_in, key_reader, own_digest, weighed
from evalr.runs.sinks.sink import Sink
from evalr.runs.waiting import Entry, Reading, Waiting
from evalr.summaries.keys import Key
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict

T = TypeVar("T")

Submitted = Literal["waiting", "unsampled", "unchanged", "outdated", "refused"]
"""What became of an input that was submitted.

"waiting": it will be judged when it is ready. "unsampled": it is not in the sample. "unchanged": the same waits, or has
been judged. "outdated": a reading of it that goes on for longer does, or has been. "refused": it will not be judged,
and `summary.refused` says why.
"""

Unready = Literal["leave", "wait", "judge"]
"""What `drain` does with inputs that are not ready yet: leave them, wait until they are, or judge them as they are."""

LOOK = 5.0
"""Seconds between two looks at what other processes, or a sink that failed, may have changed."""

MOST_KEPT = 1_000
"""Inputs whose results a sink does not take; beyond this many, no more are judged until it does."""

FIRST_DELAY, LAST_DELAY = timedelta(seconds=1), timedelta(minutes=1)
"""How long an input waits after the journal failed: twice as long each time."""

LONGEST_LOOK = timedelta(days=1)
"""The most that an input waits whose verdict is pending: as long as it had to be quiet at first, then twice as long."""


@dataclass(slots=True)
class OnlineSummary:
    """What was submitted, and what became of it. Everything is in one of the counts.

    `submitted` is the sum of `unsampled`, `unchanged`, `outdated`, `replaced`, `refused`, `judged`, `waiting` and
    `in_work`, less what waited in the spool at the beginning.

    Attributes:
        submitted: inputs that were handed in.
        unsampled: those that are not in the sample.
        unchanged: those of which the same waited, or had been judged.
        outdated: those of which a later reading waited, or had been judged.
        replaced: those in whose place a later reading came before they were judged.
        refused: those that were not taken, by the reason.
        judged: those that were judged, and whose results every sink has.
        superseding: those of the judged of which an earlier reading had been judged.
        waiting: those that wait.
        in_work: those that are being judged, or whose results a sink does not have yet.
        not_done: of those that wait, how many for another reason than that they are not ready yet, by the reason.
        undelivered: results that a sink does not have.
        runs: the results, and what they cost.
    """

    submitted: int = 0
    unsampled: int = 0
    unchanged: int = 0
    outdated: int = 0
    replaced: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    judged: int = 0
    superseding: int = 0
    waiting: int = 0
    in_work: int = 0
    not_done: dict[str, int] = field(default_factory=dict)
    undelivered: int = 0
    runs: RunSummary = field(default_factory=RunSummary)

    def __str__(self) -> str:
        counts = (
            ("not in the sample", self.unsampled),
            ("unchanged", self.unchanged),
            ("outdated", self.outdated),
            ("replaced by a later reading", self.replaced),
            ("waiting", self.waiting),
            ("in work", self.in_work),
        )
        superseding = f" ({self.superseding:,} once more)" if self.superseding else ""
        parts = [f"{self.submitted:,} submitted: {self.judged:,} judged{superseding}"]
        parts[0] += "".join(f", {count:,} {name}" for name, count in counts if count)
        parts[0] += "".join(f", {count:,} refused: {reason}" for reason, count in self.refused.items())
        parts += [f"{count:,} not done: {reason}" for reason, count in self.not_done.items()]
        parts += [f"{self.undelivered:,} results undelivered"] if self.undelivered else []
        return " · ".join([*parts, str(self.runs)])


class Online:
    """Judges what an application hands in, in the background, when it is whole.

        online = Online(judge, sinks=JsonlSink("verdicts.jsonl"), sample=0.1)
        ...
        online.submit(session)  # in a handler, whenever something happened; it is back at once
        ...
        online.close_sync()  # when the application ends

    `submit` takes each reading of a session as it is by then. Until it is ready (see `Readiness`), each takes the place
    of the one before. When it is, every evaluator judges it, and every sink gets the results. A reading that comes
    later is judged, too, when it is ready, and its verdicts supersede the earlier ones.

    What waits is in memory, and lost with the process. With a `spool`, a file, it is on disk before `submit` is back:
    whatever ends the process, the next one that opens the spool judges it. A result is done with once every sink has
    it. So after a crash a sink may get a result again, and none is lost; readers count one for each subject.

    Args:
        evaluators: one or several, each of another name and version.
        sinks: where results go; one or several.
        sample: the share of inputs that is judged, from 0 to 1, by a hash; each stands for 1 / share (its `weight`).
        sample_by: what is in or out as a whole, such as "user"; by default each input by itself. See `sample`.
        seed: another seed draws another sample.
        ready: when an input is ready.
        spool: a file in which inputs wait. Several processes may share one.
        max_waiting: the most inputs that may wait in memory, or be in work; the next is refused. A spool has no limit.
        journal: as for `evaluate_all`: what is in it is not asked again.
        limit: as for `evaluate_all`.
        budget: what may be spent in all. When it is used up, inputs wait.
        retry: as for `evaluate_all`.
        timeout: as for `evaluate_all`.
        now: the clock that says what is ready.

    Raises:
        InputError: an argument cannot be used.
        JournalError: the journal cannot be used.
        SpoolError: the spool cannot be used.
    """

    def __init__(
        self,
        evaluators: Evaluator[Any, Any] | Sequence[Evaluator[Any, Any]],
        *,
        sinks: Sink | Sequence[Sink],
        sample: float = 1.0,
        sample_by: Key | None = None,
        seed: str = "",
        ready: Readiness | None = None,
        spool: str | os.PathLike[str] | None = None,
        max_waiting: int = 10_000,
        journal: Journal | str | os.PathLike[str] | None = None,
        limit: int | Limiter = AT_ONCE,
        budget: Budget | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        now: Now = utc_now,
    ) -> None:
        self._evaluators = list(evaluators) if isinstance(evaluators, Sequence) else [evaluators]
        check_evaluators(self._evaluators)
        self._sinks: list[Sink] = list(sinks) if isinstance(sinks, Sequence) else [sinks]
        _check(self._sinks, max_waiting)
        check_rate(sample)
        check_terms(budget, retry, timeout)
        self._rate, self._seed, self._key_of = sample, seed, key_reader(sample_by)
        self._ready = Readiness() if ready is None else ready
        self._max_waiting = None if spool is not None else max_waiting
        self._limiter = limit if isinstance(limit, Limiter) else Limiter(limit)
        self._ledger = Ledger(budget)
        self._retry = Retry() if retry is None else retry
        self._timeout = timeout
        self._now = now
        self._journal_given = journal
        self._spool = spool

        self._lock = threading.Lock()
        self._counts = OnlineSummary()
        self._process = os.getpid()
        self._open(journal)
        self._worker: _Worker | None = None
        self._closing = False
        self._closed = False
        _open.add(self)

    def _open(self, journal: Journal | str | os.PathLike[str] | None) -> None:
        self._waiting = Waiting(self._spool)
        try:
            self._journal = journal if journal is None or isinstance(journal, Journal) else Journal(journal)
        except BaseException:
            self._waiting.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_sync()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- what the application calls -----------------------------------------------------------------------------------

    def submit(self, given: Input, *, ended: bool = False) -> Submitted:
        """Hand in an input as it is now. It may be called in any thread, and in an event loop: it waits for no judge.

        Args:
            given: the input, whole, as it would be read from a log now.
            ended: whether it is at its end, and ready at once.

        Raises:
            InputError: it is no input, or of a type that an evaluator does not read.
        """
        self._check_type(given)
        self._renew_after_fork()
        what, reason = self._put(given, ended=ended)
        with self._lock:
            counts = self._counts
            counts.submitted += 1
            if what == "refused":
                counts.refused[reason] = counts.refused.get(reason, 0) + 1
            elif what == "replaced":
                counts.replaced += 1
            elif what != "waiting":
                setattr(counts, what, getattr(counts, what) + 1)
        if what not in ("waiting", "replaced"):
            return what  # type: ignore[return-value]  # one of the others
        self._begin().look()
        return "waiting"

    def _put(self, given: Input, *, ended: bool) -> tuple[Submitted | Literal["replaced"], str]:
        if self._closing:
            return "refused", "closed"
        try:
            if not is_in(self._key_of(given), self._rate, self._seed):
                return "unsampled", ""
            now = resolve_now(self._now)
            ready = now if ended else self._ready.ready_at(given, now)
            given = weighed(given, 1 / self._rate)
            key = None if given.id is None else own_digest(given)
            put = self._waiting.put(
                Reading(given, key, content_hash(given), last_event(given), ready), most=self._max_waiting
            )
        except SpoolError as error:
            return "refused", str(error)
        except InputError as error:
            return "refused", safe_text(str(error), longest=300)
        if put == "full":
            return "refused", f"{self._max_waiting:,} are waiting"
        return ("waiting" if put == "added" else put), ""

    def _check_type(self, given: object) -> None:
        if not isinstance(given, Input):
            raise InputError(
                f"a {safe_text(type(given).__name__)} was submitted, and evaluators read inputs such as Session or "
                "Transcript"
            )
        for evaluator in self._evaluators:
            types = getattr(evaluator, "input_type", None)
            if types is not None and not isinstance(given, types):
                names = " or ".join(each.__name__ for each in (types if isinstance(types, tuple) else (types,)))
                raise InputError(
                    f"a {safe_text(type(given).__name__)} was submitted, and evaluator {evaluator.name!r} reads "
                    f"{names}: submit only inputs of that type"
                )

    async def drain(self, timeout: float | None = None, *, unready: Unready = "leave") -> OnlineSummary:  # noqa: ASYNC109
        """Wait until everything that is ready has been judged, and every sink has the results.

        Args:
            timeout: seconds to wait at most. What is not done by then goes on.
            unready: what to do with inputs that are not ready yet.

        Returns:
            What was done, and what was not.

        Raises:
            SinkError: a sink failed, several times; `unsaved` has the results that it does not have. They are kept, and
                go there with the next ones.
            JournalError: the journal failed; what it was needed for waits.
            SpoolError: the spool failed; what is in it is judged again.
        """
        if unready not in ("leave", "wait", "judge"):
            raise InputError(f"unready={unready!r} must be 'leave', 'wait' or 'judge'")
        if self._closed:
            return self.summary
        self._renew_after_fork()
        worker = self._begin()
        await worker.awaited(worker.drained(timeout, unready))
        return self.summary

    def drain_sync(self, timeout: float | None = None, *, unready: Unready = "leave") -> OnlineSummary:
        """As `drain`, from code that cannot await."""
        return run_sync(self.drain(timeout, unready=unready))

    async def close(self, timeout: float | None = None, *, unready: Unready = "leave") -> OnlineSummary:  # noqa: ASYNC109
        """As `drain`, and then end: what is submitted from now on is refused.

        What waits in memory by then is lost, with a warning that says how much. What is in a spool stays there.

        Raises:
            SinkError: as `drain`, or a sink could not be closed. All else is closed all the same.
            JournalError: as `drain`.
            SpoolError: as `drain`.
        """
        if self._closing:
            return self.summary
        self._renew_after_fork()
        self._closing = True
        try:
            return await self.drain(timeout, unready=unready)
        finally:
            try:
                if self._worker is not None:
                    await self._worker.awaited(self._worker.end())
            finally:
                self._release()

    def close_sync(self, timeout: float | None = None, *, unready: Unready = "leave") -> OnlineSummary:
        """As `close`, from code that cannot await."""
        return run_sync(self.close(timeout, unready=unready))

    def _release(self) -> None:
        """Close the files, and say what is lost."""
        lost = self._lost()
        self._counts, self._closed = self.summary, True
        self._waiting.close()
        if self._journal is not None and self._journal is not self._journal_given:
            self._journal.close()
        _open.discard(self)
        if lost:
            warnings.warn(lost, stacklevel=3)

    @property
    def summary(self) -> OnlineSummary:
        """What has been done so far."""
        with self._lock:
            counts = replace(
                self._counts,
                refused=dict(self._counts.refused),
                not_done=dict(self._counts.not_done),
                runs=self._counts.runs.copy(),
            )
        if self._closed:
            return counts
        counts.waiting = self._waiting.count()
        worker = self._worker
        if worker is not None:
            counts.in_work = worker.in_work
            counts.undelivered = sum(len(outlet.unsaved()) for outlet in worker.outlets)
            counts.not_done = worker.not_done()
        return counts

    @property
    def unsaved(self) -> tuple[Result[Any], ...]:
        """The results that a sink does not have; one that several do not have is among them several times."""
        worker = self._worker
        return () if worker is None else tuple(result for outlet in worker.outlets for result in outlet.unsaved())

    # -- the background -----------------------------------------------------------------------------------------------

    def _begin(self) -> _Worker:
        if self._worker is not None:
            return self._worker
        loop = _background_loop()  # before the lock, which work of that loop may wait for
        with self._lock:
            if self._worker is None:
                self._worker = _Worker(self, loop)
            return self._worker

    def _renew_after_fork(self) -> None:
        """In a forked child nobody is at work, and what waits in memory is the parent's to judge."""
        if self._process == os.getpid():
            return
        self._lock = threading.Lock()
        with self._lock:
            self._process = os.getpid()
            _inherited.append((self._waiting, self._journal, self._worker))
            self._worker = None
            self._counts = OnlineSummary()
            self._open(self._journal_given)

    def _lost(self) -> str | None:
        """What to say of inputs and results that end with the process; None where none do."""
        counts = self.summary
        waiting = 0 if self._spool is not None else counts.waiting + counts.in_work
        parts = [f"{_counted(waiting, 'input')} submitted and not judged"] if waiting else []
        parts += [f"{_counted(counts.undelivered, 'result')} not delivered"] if counts.undelivered else []
        if not parts:
            return None
        return (
            f"{' and '.join(parts)}; drain(unready='judge') judges what waits, and a spool keeps it for the next start"
        )


def _counted(count: int, noun: str) -> str:
    return f"1 {noun} was" if count == 1 else f"{count:,} {noun}s were"


_open: weakref.WeakSet[Online] = weakref.WeakSet()
_inherited: list[object] = []
"""What a forked child must not close: to SQLite that would look as if the parent had."""


def _tell_what_is_lost() -> None:
    for online in list(_open):
        if online._process == os.getpid():
            lost = online._lost()
            if lost:
                warnings.warn(f"the process ends, and {lost}; call close() before", stacklevel=1)


atexit.register(_tell_what_is_lost)


def _check(sinks: Iterable[object], max_waiting: object) -> None:
    found = list(sinks)
    if not found:
        raise InputError("Online needs at least one sink for its results to go to, such as MemorySink()")
    for sink in found:
        if not isinstance(sink, Sink):
            raise InputError(f"{safe_text(repr(sink))} is no sink: it needs `async def write(results)` and `close()`")
    if isinstance(max_waiting, bool) or not isinstance(max_waiting, int) or max_waiting < 1:
        raise InputError(f"max_waiting={max_waiting!r} must be a whole number from 1")


def _background_loop() -> asyncio.AbstractEventLoop:
    async def own() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    try:
        return run_sync(own())
    except InputError:  # this is work of that loop itself
        return asyncio.get_running_loop()


class _Worker:
    """Takes what is ready, has it judged, and hands the results over. All of it happens in one event loop."""

    def __init__(self, online: Online, loop: asyncio.AbstractEventLoop) -> None:
        self._online = online
        self._loop = loop
        self.in_work = 0
        self._judging: set[asyncio.Task[None]] = set()
        self._everything = 0
        self._used_up: str | None = None
        self._trouble: EvalrError | None = None
        self._delay = FIRST_DELAY
        self._throttled_before = online._limiter.throttled
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self.outlets = [Outlet(sink, self._changed.set) for sink in online._sinks]
        self._at_once = 2 * online._limiter.at_once
        self._terms = Terms(
            journal=online._journal,
            limiter=online._limiter,
            retry=online._retry,
            timeout=online._timeout,
            again=True,
            replay=True,
            total=None,
            watch=None,
        )
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

    def not_done(self) -> dict[str, int]:
        """Why inputs that are ready wait."""
        waiting = self._online._waiting
        found = {} if self._used_up is None else {self._used_up: waiting.count()}
        found |= {"cannot be read back from the spool": waiting.unreadable}
        return {reason: count for reason, count in found.items() if count}

    # -- taking -------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        while True:
            self._wake.clear()
            taken = 0
            try:
                taken = self._take()
            except SpoolError as error:
                self._trouble = error
            if not taken:
                self._changed.set()
                await self._rest()

    def _take(self) -> int:
        room = self._at_once - len(self._judging)
        if room <= 0 or self._held_back():
            return 0
        now = None if self._everything else resolve_now(self._online._now)
        entries = self._online._waiting.take(now, room)
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
        waiting = self._online._waiting
        seconds = 60.0 if waiting.path is None else LOOK
        if not self._held_back() and len(self._judging) < self._at_once:
            with contextlib.suppress(SpoolError):  # it is told when it is taken from
                if (ready := waiting.next_ready()) is not None:
                    left = (ready - resolve_now(self._online._now)).total_seconds()
                    seconds = min(max(left, 0.001), seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            with contextlib.suppress(SpoolError):
                waiting.take_over()

    # -- judging ------------------------------------------------------------------------------------------------------

    async def _judge(self, entry: Entry) -> None:
        asked = [each for each in self._online._evaluators if entry.names is None or _named(each) in entry.names]
        results, left, failed = await self._results(entry, asked)
        pending = [each for each in asked if each not in left and _is_pending(each, results)]
        again = {_named(each) for each in (*left, *pending)}
        ready = resolve_now(self._online._now)
        if failed:
            ready += self._delay
            self._delay = min(2 * self._delay, LAST_DELAY)
        elif pending:
            ready += min(max(self._online._ready.quiet, FIRST_DELAY) * 2 ** min(entry.looks, 20), LONGEST_LOOK)

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
            engine = Engine(Planner(pinned, 1, "error"), [entry.given], self._online._ledger, self._terms)
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
            self._count(run_summary)
            if run_summary.not_done and left and not failed:
                self._used_up = next(iter(run_summary.not_done))
        if not failed:
            self._delay = FIRST_DELAY
            self._trouble = None if isinstance(self._trouble, JournalError) else self._trouble
        return tuple(results), left, failed

    def _count(self, run: RunSummary) -> None:
        online = self._online
        with online._lock:
            total = online._counts.runs
            for each in fields(RunSummary):
                value = getattr(run, each.name)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    setattr(total, each.name, getattr(total, each.name) + value)
            # These are of all the runs that share them.
            total.over_ceiling = online._ledger.over_ceiling
            total.throttled = online._limiter.throttled - self._throttled_before

    # -- handing over -------------------------------------------------------------------------------------------------

    def _delivered(self, entry: Entry, again: set[str], ready: datetime, *, judged: bool) -> None:
        """Every sink has the results of an entry, as far as there are any."""
        waiting, counts = self._online._waiting, self._online._counts
        waits = True
        try:
            if again:
                waits = waiting.give_back(entry, ready, again, judged=judged)
            else:
                waiting.done([entry])
        except SpoolError as error:  # it stays in the file, and is judged again
            self._trouble = error
            return
        with self._online._lock:
            if again:
                counts.replaced += not waits
            else:
                counts.judged += 1
                counts.superseding += entry.supersedes
        self.in_work -= 1
        self._wake.set()  # another reading of it may wait

    # -- the end ------------------------------------------------------------------------------------------------------

    async def drained(self, timeout: float | None, unready: Unready) -> None:  # noqa: ASYNC109
        """As `Online.drain`."""
        self._everything += unready == "judge"
        limit = asyncio.timeout(timeout)
        before = self._trouble  # which may have passed by now, and is no reason to stop
        self._wake.set()
        try:
            async with limit:
                while not self._is_settled(unready, before):
                    self._changed.clear()
                    await self._changed.wait()
                await asyncio.gather(*(outlet.attempted() for outlet in self.outlets))
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._everything -= unready == "judge"
        self._raise()

    def _is_settled(self, unready: Unready, before: EvalrError | None) -> bool:
        for task in self._serving:
            if task.done():
                task.result()  # raises what ended it
        if self._judging:
            return False
        if self._held_back() or self._trouble not in (None, before):
            return True
        # What is judged and found too soon to tell is not waited for: that may take as long as people do.
        ready = self._online._waiting.next_ready(fresh=unready != "leave")
        return ready is None or (unready == "leave" and ready > resolve_now(self._online._now))

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
        failures: list[str] = []
        for outlet in self.outlets:
            try:
                await outlet.sink.close()
            except Exception as error:  # noqa: BLE001  whatever a sink raises must not keep the others open
                name = safe_text(type(outlet.sink).__name__)
                failures.append(f"{name} could not be closed: {safe_text(error_words(error), longest=300)}")
        if failures:
            raise SinkError("; ".join(failures))


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
