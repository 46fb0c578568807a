"""Judging a period anew: a sample of its inputs, with progress that other processes can read."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from time import monotonic
from typing import Any, NamedTuple

from evalr.errors import InputError, JournalError, error_words
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Input, utc_now
from evalr.logs.log import NAMES, OTHERS, Item, Stored
from evalr.quoting import safe_text
from evalr.runs.budget import Budget, Ledger
from evalr.runs.engine import Engine, Terms
from evalr.runs.families import Families, FamilyPlan, Judges, Work
from evalr.runs.grading import Status, status_of
from evalr.runs.jobs import Job
from evalr.runs.journal import Journal, Spent
from evalr.runs.limiter import AT_ONCE, Limiter
from evalr.runs.progress import EVERY, Pace, Progress, ProgressLine, Watch
from evalr.runs.regeneration_progress import Attempt, Record, RegenerationStatus, State, joined
from evalr.runs.retries import Retry
from evalr.runs.running import Run, SyncRun, check_terms, limiter_for
from evalr.runs.sampling import Sample, Strata, Stratum, stratified_sample
from evalr.verdicts import Result

OUTSIDE, TIMELESS = "outside the period", "without a time"


class Regeneration(Run):
    """One regeneration: an async iterator over its results, as a `Run` is; `status` says how far it has come."""

    def __init__(self, engine: _Regenerating, journal: Journal | None) -> None:
        super().__init__(engine, journal)
        self._board = engine.board

    @property
    def name(self) -> str:
        """What `regeneration_status` knows it by."""
        return self._board.name

    @property
    def status(self) -> RegenerationStatus:
        """How far it has come."""
        return self._board.status()

    @property
    def sample(self) -> Sample[Any] | None:
        """How its inputs were chosen; None until they were, and where all are judged."""
        return self._board.sample


class SyncRegeneration(SyncRun):
    """One regeneration, for code that cannot await: an iterator over its results."""

    def __init__(self, run: Regeneration) -> None:
        super().__init__(run)
        self._regeneration = run

    @property
    def name(self) -> str:
        """What `regeneration_status` knows it by."""
        return self._regeneration.name

    @property
    def status(self) -> RegenerationStatus:
        """How far it has come."""
        return self._regeneration.status

    @property
    def sample(self) -> Sample[Any] | None:
        """How its inputs were chosen; None until they were, and where all are judged."""
        return self._regeneration.sample


def regenerate(
    inputs: Iterable[Item],
    judges: Judges,
    *,
    since: datetime | None,
    until: datetime | None,
    journal: Journal | str | os.PathLike[str],
    name: str | None = None,
    stratum: Strata = ("day", "arm"),
    n: int | None = 200,
    seed: str = "",
    tz: str | tzinfo = "UTC",
    again: bool = False,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    replay: bool = True,
    progress: Watch | bool | None = None,
) -> Regeneration:
    """Judge a period anew: at most `n` inputs of each stratum, by each judge family, and give the results.

    What the journal has an answer to is not asked, as long as the input and the judge's version are the same. So one
    that was killed goes on where it was, one that is finished asks nothing, and two at once ask each question once.
    Each result's `about.weight` says how many inputs of the period it stands for, so that rates are those of the whole.

        run = regenerate(log, {"outcome": judge}, since=first, until=last, journal="judged.db")
        results = [result async for result in run]
        print(run.status)

    Its progress is written into the journal twice a second; `regeneration_status` reads it in any process.

    Args:
        inputs: a log, or any iterable of inputs. It is read in a thread, once. Results that a log holds, and inputs of
            kinds that no family reads, are left out and counted.
        judges: who is asked, by family; see `Judges`.
        since: the period begins then, by when an input happened (`at`); None is without a beginning.
        until: it ends before then; None is without an end. Whole inputs are selected, and none is cut.
        journal: where it is on record: a path, or a `Journal`.
        name: what to call it; by default its period and its families.
        stratum: what puts an input into a stratum; see `Strata`.
        n: the most to judge of a stratum; None judges everything, and holds nothing.
        seed: another seed draws another sample.
        tz: the time zone of a stratum's days.
        again: ask everything again that was asked before it began. One that was ended early is gone on with.
        limit: how many calls there may be at once, or a `Limiter` with more to say.
        budget: what this attempt may spend.
        retry: how often failures that may pass are tried again.
        timeout: seconds for each question, all its tries together.
        replay: whether results that the journal had already are among those that are given.
        progress: called with a `Progress` about twice a second; True shows a line in a terminal.

    Returns:
        An async iterator over the results, whose `status` says how far it has come.

    Raises:
        InputError: an argument cannot be used; and, while it runs, an input that only some of the families read.
        DuplicateError: while it runs, two inputs have one subject.
        JournalError: the journal cannot be used.
    """
    _check_period(since, until)
    if not isinstance(inputs, Iterable):
        raise InputError(f"inputs must be a log or an iterable of inputs, not {type(inputs).__name__}")
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise InputError(f"n={n!r} must be a whole number from 1, or None to judge everything")
    families = Families(judges)
    named = _default_name(since, until, families) if name is None else name
    if not isinstance(named, str) or not named:
        raise InputError(f"name={name!r} must be a text")

    def draw(selected: Iterator[Input]) -> Sample[Input] | None:
        return None if n is None else stratified_sample(selected, stratum, n=n, seed=seed, tz=tz)

    draw(iter(()))  # so that a stratum which cannot be used is an error here
    check_terms(budget, retry, timeout)
    limiter = limiter_for(limit, families.evaluators)
    book = journal if isinstance(journal, Journal) else Journal(journal)
    board = _Board(without_lone_surrogates(named), _Period(since, until, again), families, book)
    watch = ProgressLine("regenerating") if progress is True else progress or None
    terms = Terms(
        journal=book,
        limiter=limiter,
        retry=Retry() if retry is None else retry,
        timeout=timeout,
        again=True,
        replay=replay,
        total=None,
        watch=None if watch is None else board.completing(watch),
        asked_after=board.asked_after,
        run=board.begun,
        told=board.hear,
    )
    engine = _Regenerating(board, inputs, draw, Ledger(budget), terms)
    return Regeneration(engine, None if book is journal else book)


def regenerate_sync(
    inputs: Iterable[Item],
    judges: Judges,
    *,
    since: datetime | None,
    until: datetime | None,
    journal: Journal | str | os.PathLike[str],
    name: str | None = None,
    stratum: Strata = ("day", "arm"),
    n: int | None = 200,
    seed: str = "",
    tz: str | tzinfo = "UTC",
    again: bool = False,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    replay: bool = True,
    progress: Watch | bool | None = None,
) -> SyncRegeneration:
    """As `regenerate`, from code that cannot await, in a notebook too: an iterator over the results."""
    run = regenerate(
        inputs,
        judges,
        since=since,
        until=until,
        journal=journal,
        name=name,
        stratum=stratum,
        n=n,
        seed=seed,
        tz=tz,
        again=again,
        limit=limit,
        budget=budget,
        retry=retry,
        timeout=timeout,
        replay=replay,
        progress=progress,
    )
    return SyncRegeneration(run)


# ---------------------------------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------------------------------


class _Regenerating(Engine):
    """A run that reads and samples its inputs first, and keeps its board up to date."""

    def __init__(
        self,
        board: _Board,
        inputs: Iterable[Item],
        draw: Callable[[Iterator[Input]], Sample[Input] | None],
        ledger: Ledger,
        terms: Terms,
    ) -> None:
        self.board = board
        self._items = inputs
        self._draw = draw
        board.summary = self.summary
        super().__init__(board.plan, self._works(), ledger, terms)

    async def run(self) -> None:
        """Do it all, and say in the end how it ended."""
        try:
            await self._regenerate()
        finally:
            self.outbox.end()  # also where it could not even begin

    async def _regenerate(self) -> None:
        board = self.board
        board.begin()
        telling: asyncio.Task[None] | None = None
        try:
            board.tell(board.status())
            telling = asyncio.get_running_loop().create_task(self._tell_often())
            await super().run()
            if telling.done():
                telling.result()
            board.state = "incomplete" if self.summary().not_done else "finished"
        except Exception as error:
            board.state, board.error = "failed", without_lone_surrogates(error_words(error))
            raise
        finally:
            if telling is not None:
                telling.cancel()
            board.end()

    async def _tell_often(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            # In a thread, since it may have to wait for what another process writes.
            await asyncio.to_thread(self.board.tell, self.board.status())

    async def _works(self) -> AsyncIterator[Work]:
        board = self.board
        selected = board.selected(self._items)

        def prepared() -> list[Work] | None:
            board.sample = self._draw(selected)
            return None if board.sample is None else [board.split(given) for given in board.sample]

        works = await asyncio.to_thread(prepared)
        if works is None:
            for given in selected:
                yield board.split(given)
        else:
            board.inputs_are_known()
            for work in works:
                yield work
        board.inputs_are_known()


class _Period(NamedTuple):
    since: datetime | None
    until: datetime | None
    again: bool

    def why_not(self, at: datetime | None) -> str | None:
        """Why what happened then is not in it; None where it is."""
        if at is None:
            return None if self.since is None and self.until is None else TIMELESS
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return OUTSIDE
        return None


class _Board:
    """What is known of a regeneration, and where that is written."""

    def __init__(self, name: str, period: _Period, families: Families, journal: Journal) -> None:
        self.name = name
        self.period = period
        self.families = families
        self.plan = FamilyPlan(families, "error")
        self.sample: Sample[Any] | None = None
        self.state: State = "running"
        self.error: str | None = None
        self.summary: Any = None
        self.judges = {
            named.name: [f"{each.name}@{each.version}" for each in named.evaluators] for named in families.families
        }
        self._journal = journal
        self._joined = joined(journal, name, self._plan_text())
        self.asked_after = _asked_after(period, self._joined)
        self._run: tuple[int, int] | None = None
        self._started_at = utc_now()
        self._ended_at: datetime | None = None
        self._writing = threading.Lock()
        self._spent: Spent | None = None
        self._read = self._inputs = self._questions = 0
        self._known = False
        self._left_out: Counter[str] = Counter()
        self._counts: dict[str, Counter[Status]] = {each: Counter() for each in families.names}
        self._nothing: dict[str, Counter[str]] = {}
        self._pace = Pace()
        self._rate: float | None = None

    def _plan_text(self) -> str:
        since, until, again = self.period
        return repr((since and since.astimezone(UTC).isoformat(), until and until.astimezone(UTC).isoformat(), again,
                     self.judges))  # fmt: skip

    # -- as it goes ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._run = self._journal.begin_run()

    def begun(self) -> tuple[int, int]:
        assert self._run is not None
        return self._run

    def end(self) -> None:
        """Write how it ended. Nothing is written after that, and others see that it is over."""
        run, _ = self.begun()
        if self.state == "running":  # neither finished nor failed: it was cancelled
            self.state = "interrupted"
        # A journal that has failed already cannot be told; whoever reads it finds that nobody is at work.
        broken = suppress(JournalError) if self.error is not None else nullcontext()
        try:
            with broken, self._writing:
                self._ended_at = utc_now()
                self._spent = self._journal.spent([run, *self._earlier()], since=self._before())
                self._write(self.status(), durable=True)
        finally:
            self._journal.end_run(run)

    def tell(self, status: RegenerationStatus) -> None:
        """Write how far it has come."""
        with self._writing:
            if self._ended_at is None:
                self._write(status, durable=False)

    def _write(self, status: RegenerationStatus, *, durable: bool) -> None:
        run, _ = self.begun()
        series = self._joined[0].record.series if self._joined else run
        record = Record(series, self._plan_text(), self._before(), self.asked_after, status)
        self._journal.note(run, self.name, record.to_text(), durable=durable)

    def _before(self) -> int:
        return self._joined[0].record.before if self._joined else self.begun()[1]

    def _earlier(self) -> list[int]:
        return [attempt.run for attempt in self._joined]

    # -- what is judged -----------------------------------------------------------------------------------------------

    def selected(self, items: Iterable[Item]) -> Iterator[Input]:
        """The inputs of the period that a family reads; the others are counted."""
        for position, item in enumerate(items):
            if self._ended_at is not None:
                return  # it was cancelled in the meantime
            self._read += 1
            if not isinstance(item, Input):
                if isinstance(item, Stored):
                    self._left_out["stored result"] += 1
                    continue
                kind = safe_text(type(item).__name__)
                raise InputError(f"item {position} is a {kind}, and evaluators read inputs such as Session")
            if not self.families.reads(item):
                self._left_out[f"{item.kind} that no judge reads"] += 1
                continue
            reason = self.period.why_not(item.about().at)
            if reason is None:
                yield item
            else:
                self._left_out[reason] += 1

    def split(self, given: Input) -> Work:
        work = self.families.split(given)
        self._inputs += 1
        self._questions += self.families.jobs_of(work)
        for name, reason in work.skipped.items():
            counts = self._nothing.setdefault(name, Counter())
            known = without_lone_surrogates(reason)
            counts[known if known in counts or len(counts) < NAMES else OTHERS] += 1
        return work

    def inputs_are_known(self) -> None:
        self._known = True

    def hear(self, job: Job, result: Result[Any], stored: bool) -> None:
        self._counts[self.families.family_of(job)][status_of(job, result)] += 1

    # -- what is said of it -------------------------------------------------------------------------------------------

    @property
    def total(self) -> int | None:
        return self._questions - self.plan.unmade if self._known else None

    def completing(self, watch: Watch) -> Watch:
        """The watch, told the total once it is known."""

        def tell(progress: Progress) -> None:
            total = self.total
            left = None if total is None or not progress.rate else max(0, total - progress.done) / progress.rate
            watch(replace(progress, total=total, left=left))

        return tell

    def status(self) -> RegenerationStatus:
        summary = self.summary()
        earlier = self._joined[0].record.status if self._joined else None
        spent = self._spent or Spent(summary.calls, summary.cost, summary.unknown_costs)
        sample = self.sample
        ended = self._ended_at is not None
        return RegenerationStatus(
            name=self.name,
            state=self.state,
            error=self.error,
            since=self.period.since,
            until=self.period.until,
            judges=self.judges,
            again=self.period.again,
            strata=() if sample is None else tuple(map(_storable, sample.strata)),
            read=self._read,
            left_out=dict(self._left_out) | ({} if sample is None else sample.left_out),
            inputs=self._inputs if self._known else None,
            total=self.total,
            done=sum(counts.total() for counts in self._counts.values()),
            families={name: dict(counts) for name, counts in self._counts.items()},
            nothing_to_ask={name: dict(counts) for name, counts in self._nothing.items()},
            not_done=dict(summary.not_done),
            from_journal=summary.from_journal,
            calls=spent.calls,
            cost=spent.cost,
            unknown_costs=spent.unknown_costs,
            attempts=len(self._joined) + 1,
            rate=None if ended else self._pace.rate(monotonic(), summary.results - summary.from_journal),
            process=os.getpid(),
            started_at=self._started_at if earlier is None else earlier.started_at,
            updated_at=self._ended_at or utc_now(),
            ended_at=self._ended_at,
        )


def _storable(stratum: Stratum) -> Stratum:
    return replace(stratum, name=tuple(part and without_lone_surrogates(part) for part in stratum.name))


def _asked_after(period: _Period, earlier: list[Attempt]) -> datetime | None:
    if not period.again:
        return None
    return earlier[0].record.asked_after if earlier else utc_now()


def _check_period(since: datetime | None, until: datetime | None) -> None:
    for name, time in (("since", since), ("until", until)):
        if time is not None and (not isinstance(time, datetime) or time.tzinfo is None):
            raise InputError(f"{name}={time!r} must be a datetime with its time zone")
    if since is not None and until is not None and since >= until:
        raise InputError(f"the period is empty: since={since.isoformat()} is not before until={until.isoformat()}")


def _default_name(since: datetime | None, until: datetime | None, families: Families) -> str:
    period = "all of the log" if since is until is None else f"{_moment(since)} to {_moment(until)}"
    return f"{period}: {', '.join(families.names)}"


def _moment(time: datetime | None) -> str:
    if time is None:
        return "any time"
    text = time.astimezone(UTC).isoformat().removesuffix("+00:00")
    return text.removesuffix("T00:00:00")
