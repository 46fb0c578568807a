"""Running evaluators over many inputs: results as they come, and nothing lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence, Sized
from types import TracebackType
from typing import Any, Literal, Self

from evalr.background import run_sync
from evalr.errors import InputError
from evalr.evaluators import Evaluator
from evalr.inputs import Input
from evalr.quoting import safe_text
from evalr.runs.account import RunSummary
from evalr.runs.budget import Budget, Ledger
from evalr.runs.engine import Engine, Terms
from evalr.runs.jobs import Planner
from evalr.runs.journal import Journal
from evalr.runs.limiter import AT_ONCE, Limiter
from evalr.runs.progress import ProgressLine, Watch
from evalr.runs.retries import Retry
from evalr.verdicts import Result

Inputs = Iterable[Input] | AsyncIterable[Input]
"""What is judged: any iterable, a log among them, or an async one. It is read as the run goes on, and never listed."""


class Run(AsyncIterator[Result[Any]]):
    """One run: an async iterator over its results, in the order in which they are there.

    It begins at the first `anext`, and works on while the results so far are looked at. Left early, by a `break`, an
    error or an interrupt, it ends by itself; `async with` waits for that. Calls in flight are then cancelled.
    """

    def __init__(self, engine: Engine, journal: Journal | None) -> None:
        self._engine = engine
        self._own_journal = journal
        self._outbox = engine.outbox
        self._task: asyncio.Task[None] | None = None
        self._over = False

    @property
    def summary(self) -> RunSummary:
        """What it has done so far."""
        return self._engine.summary()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Result[Any]:
        outbox = self._outbox
        if not outbox.items and not await self._more():
            raise StopAsyncIteration
        return outbox.take()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End it, and wait until nothing of it goes on. What was acknowledged is in the journal."""
        self._over = True
        self._outbox.items.clear()
        task = self._task
        if task is None:
            self._close_journal()
            return
        task.cancel()
        # Not `await task`, which could not tell a cancelled run from a cancelled caller.
        await asyncio.wait([task])
        self._outbox.items.clear()  # what ended while it was being cancelled is in the journal, and is not given
        self._close_journal()

    async def _more(self) -> bool:
        if self._over:
            return False
        if self._task is None:
            self._begin()
        if await self._outbox.wait():
            return True
        self._over = True
        try:
            if self._task is not None:
                await self._task  # raises what ended it
        finally:
            self._close_journal()
        return False

    def _begin(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise InputError("evaluate_all needs an event loop of asyncio; elsewhere, use evaluate_all_sync") from None
        self._task = loop.create_task(self._engine.run(), name="evalr run")
        # Its error is raised where its results are taken, or nowhere, where nobody takes them any more.
        self._task.add_done_callback(_retrieve)
        journal = self._own_journal
        if journal is not None:
            self._task.add_done_callback(lambda _: journal.close())

    def _close_journal(self) -> None:
        if self._own_journal is not None:
            self._own_journal.close()

    def __del__(self) -> None:
        task = getattr(self, "_task", None)
        if task is None:
            if getattr(self, "_own_journal", None) is not None:
                self._close_journal()
        elif not task.done():
            with contextlib.suppress(RuntimeError):  # its loop is closed, and it with it
                task.get_loop().call_soon_threadsafe(task.cancel)


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()


class SyncRun(Iterator[Result[Any]]):
    """One run, for code that cannot await: an iterator over its results. It works in a notebook, too."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._taken: list[Result[Any]] = []

    @property
    def summary(self) -> RunSummary:
        """What it has done so far."""
        return self._run.summary

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Result[Any]:
        if not self._taken:
            self._taken = run_sync(_taken(self._run))
        if not self._taken:
            raise StopIteration
        return self._taken.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, and wait until nothing of it goes on."""
        self._taken = []
        run_sync(self._run.aclose())


async def _taken(run: Run) -> list[Result[Any]]:
    """All the results that are there, the last first, after waiting for one; none where there are no more."""
    try:
        found = [await anext(run)]
    except StopAsyncIteration:
        return []
    while run._outbox.items:
        found.append(run._outbox.take())
    found.reverse()
    return found


def evaluate_all(
    evaluators: Evaluator[Any, Any] | Sequence[Evaluator[Any, Any]],
    inputs: Inputs,
    *,
    journal: Journal | str | os.PathLike[str] | None = None,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | Ledger | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    repeats: int = 1,
    duplicates: Literal["error", "first"] = "error",
    failures: Literal["again", "keep"] = "again",
    replay: bool = True,
    progress: Watch | bool | None = None,
    total: int | None = None,
) -> Run:
    """Ask each evaluator of each input, many at once, and give the results as they come.

    One result for each input, evaluator and repeat: a verdict, a failure, a skip or a hand-off, with the input's
    subject in its `about`. Neither inputs nor results are held.

        async for result in evaluate_all(judge, log, journal="judged.db", limit=16):
            ...

    Args:
        evaluators: one or several, each of another name and version.
        inputs: an iterable or an async iterable of inputs. It is read as the run goes on.
        journal: where results are kept, so that a later run over the same inputs does only what remains: a path, or a
            `Journal`. What is in it is not asked again, as long as the input (every field but its weight), the
            evaluator's version and, where it matters, the reading time are the same. A pending verdict is asked again.
        limit: how many calls there may be at once, or a `Limiter` with more to say.
        budget: what the run may spend. When it is used up, the rest is counted in `summary.not_done`.
        retry: how often failures that may pass are tried again; `Retry(tries=1)` for never.
        timeout: seconds for one item, all its tries together, without waiting. One whose time is up is a failure. A
            sync function cannot be stopped: its thread is left alone, and its result is lost.
        repeats: how often each input is judged; `about.repeat` says which time it was, from 1.
        duplicates: a second input with the subject of another is left out where it is equal; where it differs, it is an
            error that names both, or, with "first", left out, too.
        failures: failures in the journal are asked "again", or "keep" and count as done.
        replay: whether results that the journal had already are among those that are given.
        progress: called with a `Progress` about twice a second; True shows a line in a terminal.
        total: how many inputs there are, where that is known and `len(inputs)` does not say it.

    Returns:
        An async iterator. Its `summary` says what was done, also while it runs.

    Raises:
        InputError: an argument cannot be used; and, while it runs, an input that an evaluator does not read.
        DuplicateError: while it runs, two inputs have one subject, and differ. Calls in flight are waited for first.
        JournalError: the journal cannot be used.
    """
    several = list(evaluators) if isinstance(evaluators, Sequence) else [evaluators]
    check_evaluators(several)
    _check_options(repeats, duplicates, failures, progress)
    check_terms(budget, retry, timeout)
    limiter = limiter_for(limit, several)
    if not isinstance(inputs, Iterable | AsyncIterable):
        raise InputError(f"inputs must be an iterable of inputs, not {type(inputs).__name__}")
    if total is None and isinstance(inputs, Sized):
        total = len(inputs)
    pinned = [pin() if (pin := getattr(each, "pinned", None)) is not None else each for each in several]
    book = journal if journal is None or isinstance(journal, Journal) else Journal(journal)
    terms = Terms(
        journal=book,
        limiter=limiter,
        retry=Retry() if retry is None else retry,
        timeout=timeout,
        again=failures == "again",
        replay=replay,
        total=None if total is None else total * len(several) * repeats,
        watch=ProgressLine() if progress is True else progress or None,
    )
    ledger = budget if isinstance(budget, Ledger) else Ledger(budget)  # which two runs may share
    engine = Engine(Planner(pinned, repeats, duplicates), inputs, ledger, terms)
    return Run(engine, None if book is journal else book)


def evaluate_all_sync(
    evaluators: Evaluator[Any, Any] | Sequence[Evaluator[Any, Any]],
    inputs: Inputs,
    *,
    journal: Journal | str | os.PathLike[str] | None = None,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | Ledger | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    repeats: int = 1,
    duplicates: Literal["error", "first"] = "error",
    failures: Literal["again", "keep"] = "again",
    replay: bool = True,
    progress: Watch | bool | None = None,
    total: int | None = None,
) -> SyncRun:
    """As `evaluate_all`, from code that cannot await, in a notebook too: an iterator over the results.

    The work, reading the inputs included, is done in the one background thread of the process; see `run_sync`.
    """
    run = evaluate_all(
        evaluators,
        inputs,
        journal=journal,
        limit=limit,
        budget=budget,
        retry=retry,
        timeout=timeout,
        repeats=repeats,
        duplicates=duplicates,
        failures=failures,
        replay=replay,
        progress=progress,
        total=total,
    )
    return SyncRun(run)


def check_evaluators(evaluators: Sequence[Any]) -> None:
    """Refuse what is no evaluator, and two of one name and version.

    Raises:
        InputError: there is none, or one cannot be used.
    """
    if not evaluators:
        raise InputError("evaluate_all needs at least one evaluator")
    names = set()
    for each in evaluators:
        if not isinstance(each, Evaluator):
            raise InputError(f"{each!r} is no evaluator: it needs a name, a version, a verdict_type and evaluate()")
        named = (each.name, each.version)
        if named in names:
            raise InputError(
                f"two evaluators are named {each.name!r}, version {each.version!r}: their results would mix"
            )
        names.add(named)


def _check_options(repeats: object, duplicates: object, failures: object, progress: object) -> None:
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise InputError(f"repeats={repeats!r} must be a whole number from 1")
    if duplicates not in ("error", "first"):
        raise InputError(
            f"duplicates={duplicates!r} must be 'error' or 'first': which of several inputs is the latest is only "
            "known when all were read"
        )
    if failures not in ("again", "keep"):
        raise InputError(f"failures={failures!r} must be 'again' or 'keep'")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InputError(f"progress={safe_text(repr(progress))} must be True, or a function of a Progress")


def check_terms(budget: object, retry: object, timeout: object) -> None:
    """Refuse what is no budget, since a run without one spends what it likes; and so for the other two.

    Raises:
        InputError: one is neither None nor what it is called, or a timeout is not above 0.
    """
    if not (budget is None or isinstance(budget, Budget | Ledger)):
        raise InputError(f"budget={safe_text(repr(budget))} must be a Budget, such as Budget(calls=100), or None")
    if not (retry is None or isinstance(retry, Retry)):
        raise InputError(f"retry={safe_text(repr(retry))} must be a Retry, such as Retry(tries=3), or None")
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout < float("inf")):
        raise InputError(f"timeout={timeout!r} must be seconds, above 0")


def limiter_for(limit: int | Limiter, evaluators: Iterable[Any]) -> Limiter:
    """The limiter that a run over these evaluators has.

    Raises:
        InputError: it goes by tokens, and one of them does not say what a call takes.
    """
    limiter = limit if isinstance(limit, Limiter) else Limiter(limit)
    if limiter.tokens_per_minute is not None:
        silent = [each.name for each in evaluators if getattr(each, "expected_tokens", None) is None]
        if silent:
            raise InputError(
                f"tokens_per_minute needs to know what a call takes: evaluator {silent[0]!r} has no expected_tokens"
            )
    return limiter
