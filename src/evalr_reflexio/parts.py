"""A large database read in parts by several processes, and put together into what one would have found.

Each process opens the database by itself, and reads the sessions of a span of time. A part that was read of another
state of the database, or whose rows are also in another part, is read again by the process that asked.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self

from evalr.bulk.processes import Processes
from evalr.bulk.worker import Job, Say
from evalr.errors import EvalrError
from evalr.logs.further import ReportTerms
from evalr.logs.log import NAMES, Item
from evalr.reports.reading import Reading
from evalr_reflexio.answers.gathering import Gathering
from evalr_reflexio.answers.impact import fewer_collections
from evalr_reflexio.arms import SHOWN_VALUES, Arms
from evalr_reflexio.config import Config
from evalr_reflexio.log import Options, ReflexioLog
from evalr_reflexio.places import open_store
from evalr_reflexio.store import Placed, Span

if TYPE_CHECKING:
    from evalr_reflexio.log_pass import LogPass

LARGE = 128 << 20
"""Bytes of a database that several processes read where nobody says how many: to start one takes half a second."""

OPEN = "open"
PATIENCE = 1.0
"""Seconds to wait for a lock: one who writes may wait for the process that asks, which then reads it all."""

_MET_AGAIN = (EvalrError, OSError, MemoryError)
"""What may go wrong in another process: with the log, and then it is met again here; or with that process alone."""

OWN = 0.32
"""How much longer Reflexio's own figures take than the estimates, which are made meanwhile; to read it all takes 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPart:
    """The sessions of a span of time, for the process that reads them.

    Attributes:
        job: what is read into.
        options: how the log is read.
        arms: what puts sessions into arms.
        config: what is known of the organisation.
        terms: what the report asks for, where it asks for all measures.
        span: of whose sessions.
        key: of `Placed`.
        has_own_figures: whether to compute what Reflexio itself does, of all sessions, too.
    """

    answers: ClassVar[int] = 3
    job: Job
    options: Options
    arms: Arms | None
    config: Config
    terms: ReportTerms | None
    span: Span
    key: bytes
    has_own_figures: bool

    def read(self, say: Say, file: IO[bytes]) -> None:
        """See `evalr.bulk.worker.Part`: that the log is open, its account with the results, and Reflexio's figures."""
        from evalr_reflexio.counting import ReportSums, counts_alone
        from evalr_reflexio.log_pass import LogPass

        with open_store(self.job.path, wait=PATIENCE) as store, fewer_collections():
            say(OPEN)
            log = ReflexioLog(self.job.path, self.job.kind, _no_items)
            log.terms = self.terms
            reading = self.job.reading()
            log.sums = ReportSums(reading) if counts_alone(reading) else None
            placed = Placed(self.key)
            log_pass = LogPass(store, self.options, self.arms, self.config, log, placed)
            for item in log_pass.items_in(self.span):
                reading.read_one(item)
            placed.mended_texts = store.queries.mended_texts
            store.check_unchanged()
            if log.sums is not None:
                log.sums.fill()
            say(PartAccount(log, reading, log_pass.notes, log_pass.gatherings(), placed))
            say(log_pass.own_figures(self.terms) if self.terms is not None and self.has_own_figures else None)


@dataclass(frozen=True, slots=True)
class PartAccount:
    """What was found in a part.

    Attributes:
        log: its account.
        reading: what was counted.
        notes: of the pass.
        gatherings: what answers are made of, where the report asks for all measures.
        placed: what of the log is in its sessions.
    """

    log: ReflexioLog
    reading: Reading
    notes: Counter[str]
    gatherings: list[Gathering]
    placed: Placed


class PartsElsewhere:
    """The parts of a pass over a log that other processes read. Use it in `with`: they have ended when it is left.

    Args:
        log_pass: the pass.
    """

    def __init__(self, log_pass: LogPass) -> None:
        self._pass, self._placed = log_pass, log_pass.placed
        self._stack = ExitStack()
        self._processes: Processes | None = None
        self._started: list[SessionsPart] = []
        self._readings: list[Reading] = []
        self._has_own: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def spans(self) -> Iterator[Span]:
        """What is left to be read here: a part of the log, and then those that were not read as they should be."""
        reading = self._pass.log.reading
        mine, *others = [Span()] if reading is None else self._cut()
        if reading is not None and others:
            self._start(others, reading)
        if self._processes is None:
            yield Span()
            return
        yield mine
        for number, part in enumerate(self._started):
            if not self._merge(self._processes, number, part):
                self._processes.stop(number)
                yield part.span

    def fill(self) -> None:
        """Put what was counted elsewhere into the reading that has what was counted here."""
        while self._readings and self._pass.log.reading is not None:
            self._pass.log.reading.merge(self._readings.pop(0))

    def own_figures(self, terms: ReportTerms) -> Mapping[str, Any]:
        """What Reflexio itself computes of the log."""
        if self._processes is not None and self._has_own is not None:
            with suppress(*_MET_AGAIN):
                figures: Mapping[str, Any] = self._processes.answer(self._has_own)
                return figures
        return self._pass.own_figures(terms)

    def _cut(self) -> list[Span]:
        """The spans of all processes, this one's first: one alone where there is nothing to be gained."""
        store, log = self._pass.store, self._pass.log
        own = OWN if self._wants_own_figures() else 0.0
        processes = self._pass.options.processes
        if processes is None:
            processes = min(_cores(), 3 if own else 2) if store.size >= LARGE else 1
        if processes < 2 or log.strict or not store.is_newest():
            return [Span()]
        last = max(0.0, (1 + own) / processes - own)
        return store.cut([*[(1 - last) / (processes - 1)] * (processes - 1), last])

    def _wants_own_figures(self) -> bool:
        return self._pass.options.compat is not None and self._pass.log.terms is not None

    def _start(self, spans: Sequence[Span], reading: Reading) -> None:
        log_pass = self._pass
        try:
            job = Job.of(log_pass.log, reading)
            processes = self._stack.enter_context(Processes(heard=self._heard))
            for span in spans:
                part = SessionsPart(
                    job=job,
                    options=replace(log_pass.options, arms=None, config=None),
                    arms=log_pass.arms,
                    config=log_pass.config,
                    terms=log_pass.log.terms,
                    span=span,
                    key=self._placed.key,
                    has_own_figures=span.end is None and self._wants_own_figures(),
                )
                processes.start(part, span)
                self._started.append(part)
            self._processes = processes
        except EvalrError:
            if log_pass.options.processes is not None:
                raise
            self._stack.close()  # what cannot be sent, or no process that starts: all is read here

    def _heard(self, answer: Any) -> Any:
        """An answer, as soon as it is there: where a process has opened the log, whether it reads the same as here."""
        return self._pass.store.is_newest() if answer == OPEN else answer

    def _merge(self, processes: Processes, number: int, part: SessionsPart) -> bool:
        """Count a part in, but for its results. Returns whether it is what would have been found here."""
        try:
            if not processes.answer(number):
                return False
            account: PartAccount = processes.answer(number)
        except _MET_AGAIN:
            return False
        log_pass, log = self._pass, self._pass.log
        if not self._placed.has_none_of(account.placed) or _is_full(log, account.log):
            return False
        log.merge(account.log)
        log_pass.notes.update(account.notes)
        for mine, theirs in zip(log_pass.gatherings(), account.gatherings, strict=True):
            mine.merge(theirs)
        self._placed.merge(account.placed)
        self._readings.append(account.reading)
        if part.has_own_figures:
            self._has_own = number
        return True


def _is_full(log: ReflexioLog, part: ReflexioLog) -> bool:
    """Whether names were put together under one that would not have been, had the part known those of before."""
    of_values = (len(values) >= SHOWN_VALUES for values in part.arms.seen.values())
    return len({*log.left_out.counts, *part.left_out.counts}) >= NAMES or any(of_values)


def _no_items(log: object) -> Iterator[Item]:
    return iter(())


def _cores() -> int:
    """How many of the machine's cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
