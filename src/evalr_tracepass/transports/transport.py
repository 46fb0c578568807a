"""The protocol of transports: rows are submitted as a batch, which has a state, and outcomes once it has ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, runtime_checkable

from evalr.errors import InputError
from evalr.quoting import safe_text
from evalr_tracepass.outcomes import Outcome
from evalr_tracepass.records import LARGEST_BATCH, LONGEST_TEXT, Account, Row


class BatchState(NamedTuple):
    """Where a batch stands.

    Attributes:
        batch_id: as the service names it.
        status: in the service's own word.
        ended: whether its outcomes are there, as far as they will be.
        total: rows of it; 0 where the service does not say.
        completed: rows that came back.
        failed: rows that failed.
        retry_after: seconds after which the service wants to be asked again, None where it does not say.
    """

    batch_id: str
    status: str
    ended: bool
    total: int = 0
    completed: int = 0
    failed: int = 0
    retry_after: float | None = None


class Caps(NamedTuple):
    """How much one pass may send at most, for a transport that is meant for a look.

    Attributes:
        conversations: with at least one row.
        inputs: rows of each transform.
        predictions: in all.
    """

    conversations: int = 25
    inputs: int = 200
    predictions: int = 1_000


class Connection(Protocol):
    """A transport in use, on behalf of one account."""

    async def submit(self, rows: Sequence[Row], *, key: str) -> BatchState:
        """Send a batch. The same key stands for the same batch: one that was taken before is not paid for again.

        Raises:
            TransportError: it was not taken, or nobody knows.
        """

    async def status(self, batch_id: str) -> BatchState:
        """Where a batch stands.

        Raises:
            TransportError: the service cannot be asked, or does not know the batch.
        """

    def outcomes(self, batch_id: str) -> AsyncIterator[Outcome]:
        """What came back, in any order; a row may come twice, or not at all.

        Raises:
            TransportError: it cannot be read to its end.
        """


@runtime_checkable
class Transport(Protocol):
    """A way from rows to outcomes."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def largest(self) -> int:
        """Rows of one batch at most."""

    @property
    def caps(self) -> Caps | None:
        """How much one pass may send, None for as much as there is."""

    @property
    def durable(self) -> bool:
        """Whether a batch can be asked for by another process than the one that sent it."""

    def connect(self, account: Account) -> AbstractAsyncContextManager[Connection]:
        """A connection, for as long as it is needed."""


def check_rows(rows: Sequence[Row], *, largest: int = LARGEST_BATCH) -> None:
    """Refuse what a service would refuse, before anything is sent.

    Raises:
        InputError: there are no rows or too many, an id stands twice, a row has no text or model, or is too long.
    """
    if not rows:
        raise InputError("a batch needs at least one row")
    if len(rows) > largest:
        raise InputError(f"{len(rows):,} rows are more than the {largest:,} of one batch")
    seen: set[str] = set()
    for row in rows:
        shown = safe_text(row.request_id, longest=200)
        if row.request_id in seen:
            raise InputError(f"row {shown!r} stands twice in one batch")
        seen.add(row.request_id)
        if not row.models or not all(row.models):
            raise InputError(f"row {shown!r} names no model")
        if not row.text:
            raise InputError(f"row {shown!r} has no text")
        if len(row.text) > LONGEST_TEXT:
            raise InputError(f"row {shown!r} has {len(row.text):,} characters, more than {LONGEST_TEXT:,}")
