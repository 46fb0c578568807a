"""A log put in the order of its chains: events of a chain lie far apart, and a log may be larger than the memory."""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from types import TracebackType
from typing import Any

from evalr_reflexr.envelopes import Envelope, Workspace

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

CACHE_KIB = 8_192
FETCHED = 200


class Scratch(AbstractContextManager["Scratch"]):
    """Envelopes in a file of its own, which SQLite takes away when it is closed; memory holds a few MiB of it.

    The store itself has been let go of by the time that anything is yielded: whoever takes the chains may take long.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._workspaces: dict[Workspace, int] = {}
        for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{CACHE_KIB}", "temp_store = FILE"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("CREATE TABLE events (workspace INTEGER, chain TEXT, seq INTEGER, body BLOB)")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def fill(self, envelopes: Iterable[Envelope]) -> None:
        """Take envelopes in, in any order."""
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", map(self._row, envelopes))
        self._db.execute("COMMIT")

    def _row(self, envelope: Envelope) -> tuple[int, str, int, bytes]:
        number = self._workspaces.setdefault(envelope.workspace, len(self._workspaces))
        at = (envelope.at - EPOCH) // MICROSECOND
        # Parsed JSON alone, of which marshal takes every kind of value.
        body: Any = (envelope.id, at, envelope.type, envelope.actor, envelope.causation, envelope.event)
        return number, envelope.chain, envelope.seq, marshal.dumps(body)

    def chains(self) -> Iterator[list[Envelope]]:
        """The envelopes of each chain in the order of the log; the chains in the order of their first envelopes."""
        execute = self._db.execute
        execute("CREATE INDEX by_chain ON events (workspace, chain, seq)")
        execute(
            "CREATE TABLE firsts AS SELECT workspace, chain, min(seq) AS first FROM events GROUP BY workspace, chain "
            "ORDER BY workspace, first"
        )
        # CROSS JOIN keeps SQLite to this order of the loops, so that nothing is sorted again.
        cursor = execute(
            "SELECT firsts.rowid, workspace, chain, seq, body FROM firsts CROSS JOIN events USING (workspace, chain) "
            "ORDER BY firsts.rowid, seq"
        )
        cursor.arraysize = FETCHED
        names = list(self._workspaces)
        for _, rows in groupby(_each(cursor), key=itemgetter(0)):
            yield _forward([_envelope(names[number], chain, seq, body) for _, number, chain, seq, body in rows])


def _forward(chain: list[Envelope]) -> list[Envelope]:
    """The chain with times that never go back, as reflexr writes them: where a clock did, the last time stands."""
    if any(later.at < envelope.at for envelope, later in pairwise(chain)):
        times = accumulate((envelope.at for envelope in chain), max)
        return [envelope._replace(at=at) for envelope, at in zip(chain, times, strict=True)]
    return chain


def _each(cursor: sqlite3.Cursor) -> Iterator[tuple[int, int, str, int, bytes]]:
    while rows := cursor.fetchmany():
        yield from rows


def _envelope(workspace: Workspace, chain: str, seq: int, body: bytes) -> Envelope:
    name, at, type_name, actor, causation, event = marshal.loads(body)  # written by `_row`, and by nobody else
    return Envelope(workspace, seq, name, EPOCH + timedelta(microseconds=at), type_name, actor, chain, causation, event)
