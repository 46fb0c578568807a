"""What a process does that reads one part of a log: it is told over its standard input, and answers over its output."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import IO, Any, ClassVar, NamedTuple, Protocol

from evalr.bulk.log import read_lines
from evalr.bulk.sending import send_reading
from evalr.bulk.spans import lines_before
from evalr.errors import EvalrError, InputError, error_words
from evalr.logs.lines import Span
from evalr.logs.log import Log
from evalr.logs.seen import Seen
from evalr.measures.measure import Measure, installed_measures
from evalr.reports.reading import Reading, Track
from evalr.summaries import Key
from evalr.tallies.numbering import Numbering

EVERY = 0.1
"""Seconds between two words about how far it is."""


class Progressed(NamedTuple):
    """How much of its part a process has read."""

    records: int
    bytes: int


Say = Callable[[object], None]


class Part(Protocol):
    """A part of a log, as it is sent to the process that reads it.

    Attributes:
        answers: how many it gives.
    """

    answers: ClassVar[int]

    def read(self, say: Say, file: IO[bytes]) -> None:
        """Read it.

        Args:
            say: called with each answer, the first of which is its account: what must be known before its results
                count. With `Progressed` it is called now and then before.
            file: to write the results to, where they are large: whoever asked reads them from there, after the answers.
        """


class Account(NamedTuple):
    """What must be known of a part before its results count.

    Attributes:
        log: its account.
        hashes: of the subjects that it named.
        unsure: whether a marker failed, which might have been seen before.
    """

    log: Log
    hashes: array[int]
    unsure: bool


class Before(NamedTuple):
    """What came before a part in its log, as far as it matters to it.

    Attributes:
        hashes: of subjects that were named already, as the bytes of 64-bit numbers.
        names: that are known already: reasons, measures with refused results, fields.
        marked: for each measure, whether its marker was seen.
    """

    hashes: bytes = b""
    names: tuple[list[str], ...] = ([], [], [])
    marked: tuple[bool, ...] = ()


class Job(NamedTuple):
    """What every process of one pass over a log must know."""

    path: str
    kind: str
    strict: bool
    measures: tuple[tuple[str | tuple[str, str], Mapping[str, Any]], ...]
    """Where each is found, and its settings."""
    now: datetime
    by: Key | None
    cluster: Key | None
    since: datetime | None
    until: datetime | None
    details: bool

    @classmethod
    def of(cls, log: Log, reading: Reading) -> Job:
        """The job of reading a log into readings like this one.

        Raises:
            InputError: another process could not find a measure or a key.
        """
        installed = installed_measures().loaded
        measures = tuple((_where(track.measure, installed), track.settings) for track in reading.tracks)
        asked = ((track.asked_by, track.cluster, track.details) for track in reading.tracks)
        by, cluster, details = next(asked, (None, None, False))
        for what, key in (("by", by), ("cluster", cluster)):
            if getattr(key, "__module__", None) == "__main__":
                raise InputError(f"{what} cannot be sent to other processes: define it in a module, or use processes=1")
        period = reading.since, reading.until
        return cls(log.path, log.kind, log.strict, measures, reading.now, by, cluster, *period, details)

    def reading(self, marked: tuple[bool, ...] = ()) -> Reading:
        """An empty reading."""
        installed = installed_measures().loaded
        tracks = [
            Track(
                _measure(where, installed),
                settings,
                now=self.now,
                by=self.by,
                cluster=self.cluster,
                details=self.details,
            )
            for where, settings in self.measures
        ]
        for track, seen in zip(tracks, marked, strict=False):
            track.marked |= seen
        return Reading(tracks, now=self.now, since=self.since, until=self.until)


def _where(measure: Measure, installed: Mapping[str, Measure]) -> str | tuple[str, str]:
    """Where another process finds a measure: under its name among those installed, or as a name in a module."""
    if installed.get(measure.name) is measure:
        return measure.name
    module: str = getattr(measure.summaries, "__module__", "")
    if module in sys.modules and module != "__main__":
        for name, value in vars(sys.modules[module]).items():
            if value is measure:
                return module, name
    raise InputError(
        f"the measure {measure.name!r} cannot be sent to other processes: give it a name in a module that they can "
        "import, or use processes=1"
    )


def _measure(where: str | tuple[str, str], installed: Mapping[str, Measure]) -> Measure:
    if isinstance(where, str):
        return installed[where]
    module, name = where
    __import__(module)
    found: Measure = getattr(sys.modules[module], name)
    return found


@dataclass
class PartLog(Log):
    """The account of one part of a file: its reader numbers the lines of the part, and this names those of the file."""

    begin: int = 0

    def skip(self, reason: str, place: str) -> None:
        """See `Log.skip`."""
        word, number = place.split()
        super().skip(reason, f"{word} {int(number) + self._lines_before}")

    @cached_property
    def _lines_before(self) -> int:
        return lines_before(Path(self.path), self.begin)

    def __getstate__(self) -> dict[str, Any]:
        """The account alone."""
        return {**vars(self), "items": None}


@dataclass(frozen=True, slots=True)
class LinesPart:
    """Some lines of one of evalr's own logs, and what came before them."""

    answers: ClassVar[int] = 1
    job: Job
    span: Span
    before: Before

    def read(self, say: Say, file: IO[bytes]) -> None:
        """See `Part`."""
        job, before = self.job, self.before
        log = PartLog(job.path, job.kind, lambda log: iter(()), strict=job.strict, begin=self.span.begin)
        for counts, names in zip((log.left_out.counts, log.refused, log.unknown_fields), before.names, strict=True):
            counts.update(dict.fromkeys(names, 0))
        reading, numbering = job.reading(before.marked), Numbering()
        for track in reading.tracks:
            track.computed.share(numbering)
        said = monotonic()

        def progress(records: int, share: float | None) -> None:
            nonlocal said
            if monotonic() - said > EVERY:
                said = monotonic()
                say(Progressed(log.records, log.bytes_read))

        known = Seen.of(array("q", before.hashes))
        seen = read_lines(log, reading, numbering, progress, span=self.span, seen=known)
        say(Progressed(log.records, log.bytes_read))
        say(Account(log, seen.hashes(), any(track.unsure for track in reading.tracks)))
        send_reading(numbering, reading, file)


MARK = b"\0evalr answers\0"
"""What comes before the answers of a process: Python may print to the same place as it begins."""


def work() -> None:
    """Read one part of a log: the whole life of a process that `Processes` has started."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        elsewhere = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
        os.dup2(elsewhere, sys.stdout.fileno())  # what a measure prints is no answer

        def say(answer: object) -> None:
            pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()

        try:
            answers.write(MARK)
            order = _order()
            Thread(target=_end_with_who_waits, args=(os.dup(sys.stdin.fileno()),), daemon=True).start()
            os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())  # what asks for input meets its end
            order.read(say, answers)
        except BaseException as error:  # noqa: BLE001  whatever it is, the process that waits for this one must know
            try:
                say(_as_sent(error))
            except OSError:
                os._exit(1)  # nobody waits any more


def _end_with_who_waits(told: int) -> None:
    """End this process as soon as the one that asked has ended, however it did."""
    os.read(told, 1)
    os._exit(1)


def _order() -> Part:
    """What this process is asked for.

    Raises:
        InputError: it names what this process cannot find.
    """
    try:
        order: Part = pickle.load(sys.stdin.buffer)
    except Exception as error:  # what cannot be read back raises anything
        raise InputError(
            f"what a report is asked for cannot be sent to other processes ({error_words(error)}): name keys as texts, "
            "or use processes=1"
        ) from error
    return order


def _as_sent(error: BaseException) -> BaseException:
    """An error as another process can read it, with where it came from."""
    if not isinstance(error, EvalrError):
        error.add_note("In a process that read a part of the log:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  another package's error may not survive the journey
        told = EvalrError(error_words(error))
        told.__notes__ = list(getattr(error, "__notes__", ()))
        return told
    return error
