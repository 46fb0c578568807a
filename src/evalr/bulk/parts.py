"""A log in parts, each read by a process of its own, and put together into what one process would have found.

What a part finds depends on what came before it in three ways only: which subjects were named already, which names a
full list of names has, and whether a marker was seen. Each part is read as if nothing came before it. Where that would
have made a difference, which it does in few logs, the part is read again, told what did.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain

from evalr.bulk.processes import Processes
from evalr.bulk.worker import Account, Before, Job, LinesPart
from evalr.errors import RecordError
from evalr.logs.lines import Span
from evalr.logs.log import NAMES, Log
from evalr.reports.reading import Progress, Reading, share_read
from evalr.tallies.numbering import Numbering


def read_parts(
    log: Log, reading: Reading, numbering: Numbering, spans: Sequence[Span], progress: Progress | None
) -> None:
    """Read the parts of a log into a reading that is empty, each in a process of its own.

    Raises:
        InputError: a measure, a setting or a key cannot be sent to another process.
        EvalrError: a process ended before its part was read.
        Exception: what reading a part raised. Of records that are refused with `strict`, the first of the log.
    """
    job = Job.of(log, reading)
    log.bytes_total = sum(span.end - span.begin for span in spans)

    def told(records: int, size: int) -> None:
        log.bytes_read = size
        if progress is not None:
            progress(records, share_read(log))

    with Processes(told) as processes:
        for span in spans:
            processes.start(LinesPart(job, span, Before()), span)
        known: list[array[int]] = []
        for number, span in enumerate(spans):
            place, found = number, processes.answer(number)
            before = _before(log, reading, known, found) if number else None
            if before is not None:
                processes.stop(number)
                place = processes.start(LinesPart(job, span, before), span)
                found = processes.answer(place)
            if isinstance(found, RecordError):
                raise found
            log.merge(found.log)
            processes.merge(place, reading, numbering)
            known.append(found.hashes)


def _before(log: Log, reading: Reading, known: Sequence[array[int]], found: Account | RecordError) -> Before | None:
    """What came before a part, where that would have made a difference to what was found in it."""
    every = chain.from_iterable(known)
    if isinstance(found, Account):
        # Some are named twice now: read again, these are known already, and no others are met that are known.
        hashes = array("q", set(found.hashes).intersection(every))
        if not (hashes or found.unsure or _too_many_names(log, found.log)):
            return None
    else:  # it stopped, perhaps not at the first that is refused: it knows of no subject that comes again
        hashes = array("q", every)
    names = tuple(list(counts) for counts in _names(log))
    return Before(hashes.tobytes(), names, tuple(track.marked for track in reading.tracks))


def _names(log: Log) -> tuple[Mapping[str, int], ...]:
    """What is counted by names that a log gives, of which it may give two hundred each."""
    return log.left_out.counts, log.refused, log.unknown_fields


def _too_many_names(log: Log, part: Log) -> bool:
    """Whether names would have been put together under one, had the part known those of before."""
    return any(len({*known, *own}) >= NAMES for known, own in zip(_names(log), _names(part), strict=True))
