"""Envelopes as JSON Lines, as reflexr's wire and its exports have them: one a line, plain or gzip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic_core import from_json

from evalr.logs.jsonl import DUPLICATE
from evalr.logs.lines import BYTE_ORDER_MARK, CUT_OFF, raw_lines
from evalr.logs.log import Log
from evalr.logs.reasons import NOT_JSON, Reason, without_lone_escapes
from evalr.logs.seen import Seen
from evalr_reflexr.envelopes import Envelope, Workspace
from evalr_reflexr.stores import Row, TypeFilter, missing, parsed, row_of

SIGNS = ("correlation_id", "workspace_id", "actor", "event")
SIGNS_IN_ORDER = ("correlation_id", "actor", "event")
"""Those that stand before what may be large in the event, also where fields are in alphabetical order."""

CLAIMED_LINES = 20


class WireLog:
    """A file of envelopes. They name their workspace and not their tenant."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ends: dict[Workspace, datetime] = {}

    @property
    def path(self) -> str:
        """The file's."""
        return str(self._path)

    @contextmanager
    def opened(self) -> Iterator[WireLog]:
        """Itself: the file is opened where it is read."""
        yield self

    def envelopes(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter
    ) -> Iterator[Envelope]:
        """See `OpenStore`. The first of several lines with one id is kept."""
        seen, known, found = Seen(), dict[str, None](), False
        for number, line in enumerate(raw_lines(self._path, log), start=1):
            if not line.strip():
                continue
            try:
                envelope = parsed(line.removeprefix(BYTE_ORDER_MARK), tenant=tenant, log=log)
                name = envelope.workspace.name
                if len(known) < 100:
                    known[name] = None
                if workspace not in (None, name):
                    continue
                found = True
                self.ends[envelope.workspace] = max(envelope.at, self.ends.get(envelope.workspace, envelope.at))
                if not seen.add((name, envelope.id)):
                    raise Reason(DUPLICATE)
            except Reason as reason:
                log.records += 1
                cut = str(reason) == NOT_JSON and not line.endswith(b"\n")
                log.skip(CUT_OFF if cut else str(reason), f"line {number}")
                continue
            if types(envelope.type):
                yield envelope
        if not found and not log.left_out.faults:
            raise missing(self.path, [Workspace(None, name) for name in known], tenant=None, workspace=workspace)

    def rows(
        self, log: Log, *, tenant: str | None, workspace: str | None, types: TypeFilter, fields: Sequence[str]
    ) -> Iterator[Row]:
        """See `OpenStore`."""
        for envelope in self.envelopes(log, tenant=tenant, workspace=workspace, types=types):
            yield row_of(envelope, fields)


def is_wire(head: bytes) -> bool:
    """Whether the first lines of a file hold an envelope; the last of them may be cut, inside of a large event."""
    *lines, cut = head.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    found = [line for piece in lines[:CLAIMED_LINES] if (line := piece.strip())]
    return any(_is_envelope(line, SIGNS) for line in found) or _is_envelope(cut, SIGNS_IN_ORDER)


def _is_envelope(line: bytes, signs: Sequence[str]) -> bool:
    try:
        record = from_json(without_lone_escapes(line)[0], allow_partial=True)
    except ValueError:
        return False
    return isinstance(record, dict) and all(sign in record for sign in signs) and isinstance(record["event"], dict)
