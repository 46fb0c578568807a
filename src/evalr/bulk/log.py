"""A log that reads itself: rows where it can, and parts of it in several processes where it is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evalr.bulk.rows import row_pass
from evalr.bulk.spans import spans_of
from evalr.logs.jsonl import check_records, line_items
from evalr.logs.lines import Span
from evalr.logs.log import Item, Log
from evalr.logs.seen import Seen
from evalr.reports.reading import Progress, Reading
from evalr.tallies.numbering import Numbering


@dataclass
class BulkLog(Log):
    """One of evalr's own logs, which a `Reading` lets read itself: `evalr.reports.reading.ReadsItself`."""

    processes: int = 1

    def read_into(self, reading: Reading, progress: Progress | None) -> None:
        """Count everything in it, once: to the last digit as the items that it yields would be counted one by one."""
        numbering = Numbering()
        for track in reading.tracks:
            track.computed.share(numbering)
        spans = spans_of(Path(self.path), self.processes)
        if len(spans) < 2:
            read_lines(self, reading, numbering, progress)
        else:
            from evalr.bulk.parts import read_parts

            read_parts(self, reading, numbering, spans, progress)
            check_records(self)
        reading.users.update(key for key in numbering.keys if isinstance(key, str))


def bulk_log(path: Path, *, strict: bool = False, processes: int = 1) -> BulkLog:
    """The log at a path; nothing is read before it is asked for."""
    return BulkLog(str(path), "jsonl", partial(line_items, path), strict=strict, processes=processes)


def read_lines(
    log: Log,
    reading: Reading,
    numbering: Numbering,
    progress: Progress | None,
    *,
    span: Span | None = None,
    seen: Seen | None = None,
) -> Seen:
    """Read a log, or some of its lines, into a reading. Returns which subjects it has named.

    Who the users are is noted in the numbering too, as clusters that are texts.
    """
    known = Seen() if seen is None else seen
    rows = row_pass(reading, log, known, numbering, progress)

    def items(log: Log) -> Iterator[Item]:
        return line_items(Path(log.path), log, span=span, seen=known, rows=rows)

    before, log.items = log.items, items
    reading.read_each(log, progress)
    log.items = before  # which holds nothing
    return known
