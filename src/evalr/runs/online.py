"""Online evaluation: an application hands in what happened, goes on at once, and verdicts come when it is whole."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

from evalr.background import run_sync
from evalr.errors import InputError, SpoolError
from evalr.evaluators import Evaluator
from evalr.inputs import Input, Now, resolve_now, utc_now
from evalr.quoting import safe_text
from evalr.runs.budget import Budget, Ledger
from evalr.runs.engine import Terms
from evalr.runs.jobs import content_hash
from evalr.runs.journal import Journal
from evalr.runs.judging import Unready, Work, Worker, put_held
from evalr.runs.limiter import AT_ONCE, Limiter
from evalr.runs.online_summary import Counts, OnlineSummary
from evalr.runs.readiness import Readiness, last_event
from evalr.runs.retries import Retry
from evalr.runs.running import check_evaluators, check_terms
from evalr.runs.sampling import check_rate, is_in, key_reader, own_digest, weighed
from evalr.runs.sinks.sink import Sink
from evalr.runs.waiting import QUICK, Reading, Waiting
from evalr.summaries.keys import Key
from evalr.verdicts import Result

Submitted = Literal["waiting", "held", "unsampled", "unchanged", "outdated", "refused"]
"""What became of an input that was submitted.

"waiting": it will be judged when it is ready; with a spool, it is in the file. "held": it will be, too, but the spool
could not be written just now, and until it can, the input is in memory alone. "unsampled": it is not in the sample.
"unchanged": the same waits, or has been judged. "outdated": a reading of it that goes on for longer does, or has been.
"refused": it will not be judged, and `summary.refused` says why.
"""


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

    What waits is in memory, and lost with the process. With a `spool`, a file, it is on disk when `submit` returns
    "waiting": whatever ends the process, the next one that opens the spool judges it. A result is done with once every
    sink has it. So after a crash a sink may get a result again, and none is lost; readers count one for each subject.

    Args:
        evaluators: one or several, each of another name and version.
        sinks: where results go; one or several.
        sample: the share of inputs that is judged, from 0 to 1, by a hash; each stands for 1 / share (its `weight`).
        sample_by: what is in or out as a whole, such as "user"; by default each input by itself. See `sample`.
        seed: another seed draws another sample.
        ready: when an input is ready.
        spool: a file in which inputs wait. Several processes may share one.
        max_waiting: the most inputs that may wait in memory, or be in work; the next is refused. A spool has no limit,
            but for those that are held in memory until it can be written.
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
        self._max_waiting = max_waiting
        self._limiter = limit if isinstance(limit, Limiter) else Limiter(limit)
        self._ledger = Ledger(budget)
        self._retry = Retry() if retry is None else retry
        self._timeout = timeout
        self._now = now
        self._journal_given = journal
        self._spool = spool

        self._lock = threading.Lock()
        self._counts = Counts()
        self._at_end: dict[str, Any] | None = None
        self._process = os.getpid()
        self._open(journal)
        self._worker: Worker | None = None
        self._closing = False
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
        self._counts.add(submitted=1)
        if what == "refused":
            self._counts.refuse(reason)
        elif what not in ("waiting", "held"):
            self._counts.add(**{what: 1})
        if what not in ("waiting", "held", "replaced"):
            return what  # type: ignore[return-value]  # one of the others
        self._begin().look()
        return "held" if what == "held" else "waiting"

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
        if self._at_end is not None:
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
                lost = await asyncio.shield(self._release())
                if lost:
                    warnings.warn(lost, stacklevel=2)

    def close_sync(self, timeout: float | None = None, *, unready: Unready = "leave") -> OnlineSummary:
        """As `close`, from code that cannot await."""
        return run_sync(self.close(timeout, unready=unready))

    async def _release(self) -> str | None:
        """Close the files, and return what to say of what is lost."""
        if self._spool is not None:
            await asyncio.to_thread(self._put_held)
        lost = self._lost()
        self._at_end = self._standing()
        if self._spool is None:
            self._waiting.close()
        else:
            await asyncio.to_thread(self._waiting.close)
        if self._journal is not None and self._journal is not self._journal_given:
            self._journal.close()
        _open.discard(self)
        return lost

    def _put_held(self) -> None:
        with contextlib.suppress(SpoolError):  # what is still held is said to be lost
            put_held(self._waiting, self._counts, QUICK)

    @property
    def summary(self) -> OnlineSummary:
        """What has been done so far."""
        standing = self._standing() if self._at_end is None else self._at_end
        return replace(self._counts.copy(), **standing)

    def _standing(self) -> dict[str, Any]:
        """What is not done yet."""
        standing = {"waiting": self._waiting.count(), "held": self._waiting.held}
        worker = self._worker
        return standing if worker is None else standing | worker.standing()

    @property
    def unsaved(self) -> tuple[Result[Any], ...]:
        """The results that a sink does not have; one that several do not have is among them several times."""
        worker = self._worker
        return () if worker is None else tuple(result for outlet in worker.outlets for result in outlet.unsaved())

    # -- the background -----------------------------------------------------------------------------------------------

    def _begin(self) -> Worker:
        if self._worker is not None:
            return self._worker
        loop = _background_loop()  # before the lock, which work of that loop may wait for
        with self._lock:
            if self._worker is None:
                self._worker = Worker(self._work(), loop)
            return self._worker

    def _work(self) -> Work:
        terms = Terms(
            journal=self._journal,
            limiter=self._limiter,
            retry=self._retry,
            timeout=self._timeout,
            again=True,
            replay=True,
            total=None,
            watch=None,
        )
        return Work(
            self._waiting, self._evaluators, self._sinks, self._ready, self._now, self._ledger, terms, self._counts
        )

    def _renew_after_fork(self) -> None:
        """In a forked child nobody is at work, and what waits in memory is the parent's to judge."""
        if self._process == os.getpid():
            return
        self._lock = threading.Lock()
        with self._lock:
            self._process = os.getpid()
            _inherited.append((self._waiting, self._journal, self._worker))
            self._worker = None
            self._counts = Counts()
            self._open(self._journal_given)

    def _lost(self) -> str | None:
        """What to say of inputs and results that end with the process; None where none do."""
        counts = self.summary
        waiting = counts.held if self._spool is not None else counts.waiting + counts.in_work
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
            online._put_held()
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
