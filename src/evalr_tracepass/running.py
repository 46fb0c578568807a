"""Running one pass: rows are stored as a batch before they are sent, and results before the batch is closed.

A batch is `prepared` with its rows and its key, then sent, then `sent` with the service's id, and `ended` when its
results are stored. Cut anywhere, the next process finds the last of these, and does the next again: under the same key
it is the same batch, and a result that is there already is not written twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from evalr.errors import InputError, TransportError
from evalr.inputs import Now, Transcript
from evalr_tracepass.outcomes import Outcome, explode
from evalr_tracepass.planning import Plan, Rows
from evalr_tracepass.records import Account, ErrorInfo, Item, Pass, Result, Row
from evalr_tracepass.rerunning import only_new
from evalr_tracepass.storable import storable_row
from evalr_tracepass.stores.moments import clock
from evalr_tracepass.stores.store import Batch, ItemStatus, PassStore, ResultStore
from evalr_tracepass.taking_over import is_taken_over, taken_over
from evalr_tracepass.transports.transport import BatchState, Caps, Connection, Transport

OVER_THE_CAPS = "row beyond what a preview sends"
NOT_IN_TRACES = ErrorInfo("not_in_traces", "the text is not in the traces")
NO_RESULT = ErrorInfo("no_result", "the service has no result for the row")

NEVER_COMES = frozenset({"failed", "error", "errored", "cancelled", "canceled", "expired", "aborted"})
"""Words for a batch of which no more results will come, whatever its counts say."""

MOST_CHARACTERS = 50_000_000
"""Of the texts of one batch: as many as are held at once."""

LONGEST_PAUSE = 30.0


class Run:
    """One pass on its way."""

    def __init__(
        self,
        found: Pass,
        made: Plan,
        account: Account,
        store: PassStore,
        results: ResultStore,
        transport: Transport,
        *,
        check: Callable[[], None],
        progress: Callable[[Pass], object] | None,
        poll: float,
        patience: float,
        now: Now,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self.found = found
        self._plan = made
        self._account = account
        self._store = store
        self._results = results
        self._transport = transport
        self._check = check
        self._progress = progress
        self._poll = poll
        self._patience = patience
        self._now = now
        self._sleep = sleep
        self._number = 0
        self._attempt = 0
        self._again: dict[str, tuple[str, ...]] | None = None
        self._open: dict[int, BatchState] = {}
        self._counts: Counter[str] | None = None

    def again(self, models: Mapping[str, tuple[str, ...]]) -> None:
        """Send only these rows, by their ids, to these models."""
        self._again = dict(models)

    async def drive(self, traces: Iterable[Transcript] | None, *, wait: bool, give_up: bool) -> Pass:
        """Do what is left to do."""
        batches = await self._call(self._store.batches, self.found.id)
        self._number = max((batch.number + 1 for batch in batches), default=0)
        self._attempt = 0 if self._again is None else max((batch.attempt + 1 for batch in batches), default=1)
        lost = [each for each in batches if self._is_lost(each)]
        if give_up:
            await self._give_up(lost)
            lost = []
        left = self._again is not None or not self.found.planned
        if traces is None and (lost or left) and not (give_up and self.found.planned):
            raise InputError(
                f"pass {self.found.id} has rows that were never sent, and whose texts are kept nowhere: resume it with "
                "the traces that it was begun with"
            )
        try:
            await self._save(status="running", started_at=self.found.started_at or clock(self._now), error_message=None)
            async with self._transport.connect(self._account) as connection:
                if traces is not None and (lost or left):
                    await self._send(connection, traces, lost, left=left)
                await self._wait(connection, wait=wait, give_up=give_up)
        except (TransportError, InputError) as error:
            await self._save(status="failed", error_message=str(error)[:500])
            raise
        return self.found

    # -- sending ------------------------------------------------------------------------------------------------------

    def _is_lost(self, batch: Batch) -> bool:
        """Whether nobody knows if it was sent, or what came back went with the process that sent it."""
        return batch.status == "prepared" or (batch.status == "sent" and not self._transport.durable)

    async def _send(
        self, connection: Connection, traces: Iterable[Transcript], batches: Sequence[Batch], *, left: bool
    ) -> None:
        """Send what was lost, under its own keys, and what is left, in new batches; what ends at once is collected."""
        lost = _Lost()
        for batch in batches:
            lost.add(batch, await self._call(self._store.items, self.found.id, number=batch.number))
        again = self._again
        known = await self._asked() if again is None and (batches or self._number) else {}
        rows = self._plan.rows(traces)
        counted = _Counted(rows, self._transport.caps if left and again is None else None)

        def unsent() -> Iterator[Row]:
            """Rows that are in no batch; those of lost batches are set aside as they come by."""
            for row in map(storable_row, rows):
                if again is not None:
                    models = again.get(row.request_id)
                    if models is not None and row.error is None:
                        yield row._replace(item=row.item._replace(selected_models=models))
                elif lost.takes(row) or row.request_id in known:
                    counted.spared(row, known.get(row.request_id, row.models))
                elif left:
                    yield row
                if not left and lost.is_whole:
                    return

        stream = unsent()
        if again is None and self.found.rerun == "new":
            stream = counted.new(stream, self._results, self._account)
        await self._send_new(connection, counted.capped(stream), counted)
        for batch in batches:
            await self._submit(connection, batch, lost.rows(batch), lost.items(batch))
        if left and again is None:
            await self._save(
                planned=True,
                estimate=counted.estimate(self.found),
                total_inputs=counted.inputs,
                total_predictions=counted.predictions,
                answered=counted.answered,
            )

    async def _send_new(self, connection: Connection, stream: Iterable[Row], counted: _Counted) -> None:
        together: list[Row] = []
        too_long: list[Row] = []
        characters = 0
        for row in stream:
            counted.taken(row)
            of = together if row.error is None else too_long
            of.append(row)
            characters += len(row.text)
            if len(too_long) >= self._transport.largest:
                await self._fail(too_long)
                too_long = []
            if len(together) >= self._transport.largest or characters >= MOST_CHARACTERS:
                await self._submit_new(connection, together)
                together, characters = [], 0
        await self._fail(too_long)
        if together:
            await self._submit_new(connection, together)

    async def _asked(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = await self._call(self._store.asked, self.found.id)
        return found

    async def _fail(self, rows: Sequence[Row]) -> None:
        """Keep rows that cannot be sent, as failures of all their models."""
        if not rows:
            return
        results_of = self._exploding("", 0, None)
        results = [
            result
            for row in rows
            for result in results_of(row.item, Outcome(row.request_id, "failed", error=row.error))
        ]
        # Results first: rows that are known are not looked at again.
        await self._call(self._results.write, results)
        await self._call(self._store.add_failed, self.found.id, [row.item for row in rows])
        self._counts = None

    async def _submit_new(self, connection: Connection, rows: Sequence[Row]) -> None:
        number = self._number
        self._number += 1
        batch = Batch(
            self.found.id,
            number,
            self._attempt,
            batch_key(self.found.id, number),
            "prepared",
            "",
            "",
            clock(self._now),
        )
        items = [row.item for row in rows]
        if not self._transport.durable:
            await self._read_here(connection, batch, rows, items)
            return
        await self._call(self._store.add_batch, batch, items)
        await self._submit(connection, batch, rows, items)

    async def _read_here(
        self, connection: Connection, batch: Batch, rows: Sequence[Row], items: Sequence[Item]
    ) -> None:
        """Have rows read by what goes with this process: until its results are stored, the batch has not been."""
        state = await connection.submit(rows, key=batch.key)
        outcomes = {outcome.request_id: outcome async for outcome in connection.outcomes(state.batch_id)}
        for item in items:
            outcomes.setdefault(item.request_id, Outcome(item.request_id, "failed", error=NO_RESULT))
        self._check()
        ended = batch._replace(status="ended", batch_id=state.batch_id, said=state.status)
        statuses = [_settled(outcomes[item.request_id]) for item in items]
        await self._call(self._results.write, self._exploded(ended, items, outcomes))
        await self._call(self._store.add_batch, ended, items, statuses=statuses)
        # Rows that have been in no batch are added to what is known: a count of all, each time, would take ever longer.
        known = None if self._again else self._counts
        if known is not None:
            known.update(statuses)
        await self._count(known)

    async def _submit(self, connection: Connection, batch: Batch, rows: Sequence[Row], items: Sequence[Item]) -> None:
        """Send a batch, under its key, and save its id."""
        if not rows:
            outcomes = {item.request_id: Outcome(item.request_id, "failed", error=NOT_IN_TRACES) for item in items}
            await self._close(batch, items, outcomes)
            return
        state = await connection.submit(rows, key=batch.key)
        batch = batch._replace(status="sent", batch_id=state.batch_id, said=state.status)
        if self._transport.durable:
            await self._call(self._store.save_batch, batch)
        self._open[batch.number] = state
        if state.ended:
            await self._collect(connection, batch, state, items, give_up=not self._transport.durable)
        else:
            await self._count()

    # -- collecting ---------------------------------------------------------------------------------------------------

    async def _wait(self, connection: Connection, *, wait: bool, give_up: bool) -> None:
        """Ask for batches until all have ended, and then end the pass."""
        waited, pause = 0.0, self._poll
        while True:
            batches = await self._call(self._store.batches, self.found.id)
            sent = [each for each in batches if each.status == "sent"]
            asked: list[float] = []
            for batch in sent:
                state = await connection.status(batch.batch_id)
                self._open[batch.number] = state
                if state.retry_after is not None:
                    asked.append(state.retry_after)
                if state.status != batch.said:
                    batch = batch._replace(said=state.status)
                    await self._call(self._store.save_batch, batch)
                if state.ended or give_up:
                    await self._collect(connection, batch, state, None, give_up=give_up)
            batches = await self._call(self._store.batches, self.found.id)
            if all(each.status == "ended" for each in batches) and self.found.planned:
                await self._end()
                return
            await self._count()
            if not wait or waited >= self._patience:
                return
            if max(asked, default=0.0) > self._patience - waited:
                return  # it wants to be asked later than this waits
            rest = max(pause, *asked) if asked else pause
            await self._sleep(rest)
            waited += rest
            pause = min(LONGEST_PAUSE, pause * 1.5)

    async def _collect(
        self,
        connection: Connection,
        batch: Batch,
        state: BatchState,
        items: Sequence[Item] | None,
        *,
        give_up: bool,
    ) -> None:
        """Store what came back of a batch, and close it when that is all."""
        outcomes: dict[str, Outcome] = {}
        listed = set()
        never = state.status in NEVER_COMES
        try:
            async for outcome in connection.outcomes(batch.batch_id):
                listed.add(outcome.request_id)
                before = outcomes.get(outcome.request_id)
                if outcome.status != "pending" and (before is None or before.status == "failed"):
                    outcomes[outcome.request_id] = outcome
        except TransportError:
            if not (give_up or never):
                raise
        if items is None:
            items = await self._call(self._store.items, self.found.id, number=batch.number)
        left = [item.request_id for item in items if item.request_id not in outcomes]
        # What an ended batch does not even list, though it lists as many rows as it says it has, it never had.
        whole = state.ended and 0 < state.total <= len(listed)
        for request_id in left:
            if give_up or never or (whole and request_id not in listed):
                outcomes[request_id] = Outcome(request_id, "failed", error=NO_RESULT)
        if left and any(request_id not in outcomes for request_id in left):
            await self._keep(batch, items, outcomes)
            self._open.pop(batch.number, None)  # what it says it has read is stored, and is counted there
        else:
            await self._close(batch, items, outcomes)

    async def _keep(self, batch: Batch, items: Sequence[Item], outcomes: Mapping[str, Outcome]) -> None:
        there = [item for item in items if item.request_id in outcomes]
        await self._call(self._results.write, self._exploded(batch, there, outcomes))
        statuses = [(item.request_id, _settled(outcomes[item.request_id])) for item in there]
        await self._call(self._store.settle, self.found.id, statuses)

    def _exploded(self, batch: Batch, items: Iterable[Item], outcomes: Mapping[str, Outcome]) -> Iterator[Result]:
        """The results of rows that have come back, as they are written: a store holds few at a time."""
        results_of = self._exploding(batch.batch_id, batch.attempt, batch.created_at)
        for item in items:
            yield from results_of(item, outcomes[item.request_id])

    async def _close(self, batch: Batch, items: Sequence[Item], outcomes: Mapping[str, Outcome]) -> None:
        await self._keep(batch, items, outcomes)
        await self._call(self._store.save_batch, batch._replace(status="ended"))
        self._open.pop(batch.number, None)
        await self._count()

    async def _give_up(self, lost: Sequence[Batch]) -> None:
        """Close batches of which nobody knows whether they were sent."""
        for batch in lost:
            items = await self._call(self._store.items, self.found.id, number=batch.number)
            await self._close(
                batch, items, {each.request_id: Outcome(each.request_id, "failed", error=NO_RESULT) for each in items}
            )

    def _exploding(
        self, batch_id: str, attempt: int, created_at: datetime | None
    ) -> Callable[[Item, Outcome], list[Result]]:
        """What makes the results of a row that came back."""
        return partial(
            explode,
            signals=self._plan.signal_by,
            run_id=self.found.id,
            batch_id=batch_id,
            attempt=attempt,
            created_at=created_at or self.found.created_at,
        )

    # -- where it stands ----------------------------------------------------------------------------------------------

    async def _count(self, known: Counter[str] | None = None) -> None:
        """Save how far the pass has come: rows that are stored, and those that the service says it has read."""
        counts = Counter(await self._call(self._store.counts, self.found.id)) if known is None else known
        self._counts = counts
        completed = counts["completed"] + sum(state.completed for state in self._open.values())
        failed = counts["failed"] + sum(state.failed for state in self._open.values())
        total = sum(counts.values())
        await self._save(
            completed_inputs=min(completed, total),
            failed_inputs=min(failed, total),
            total_inputs=max(self.found.total_inputs, total),
        )

    async def _end(self) -> None:
        if self._takes_over:
            await self._call(self._take_over)
        counts = await self._call(self._store.counts, self.found.id)
        ended = self.found._replace(
            status="partial_failure" if await self._call(self._has_failed) else "complete",
            completed_inputs=counts["completed"],
            failed_inputs=counts["failed"],
            completed_at=clock(self._now),
        )
        # Listed first: a crash in between lists it again.
        await self._call(self._results.finish, ended)
        await self._save(**ended._asdict())

    def _has_failed(self, account: Account) -> bool:
        """Whether anything failed in the pass itself: what was too long for an earlier one is no failure of this."""
        failed = self._results.totals(account, self.found.id).failed
        if not failed or not self._takes_over:
            return bool(failed)
        # To their end: a store reads as long as they are asked for.
        records = self._results.results(account, passes=self.found.id, failed=True)
        return sum(not is_taken_over(each, self.found) for each in records) > 0

    @property
    def _takes_over(self) -> bool:
        return self.found.rerun == "new" and self.found.answered > 0

    def _take_over(self, account: Account) -> None:
        earlier = list(taken_over(self._results, account, self.found, self._plan))
        self._results.write(account, earlier)

    async def _save(self, **changes: Any) -> None:
        changed = self.found._replace(**changes)
        if changed != self.found:
            self.found = changed
            await self._call(self._store.save_pass, changed)
            if self._progress is not None:
                self._progress(changed)

    async def _call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """A call of a store on behalf of the account, in a thread: it may wait for a disk or a server."""
        return await asyncio.to_thread(function, self._account, *arguments, **options)


def _settled(outcome: Outcome) -> ItemStatus:
    return "failed" if outcome.status == "failed" else "completed"


def batch_key(pass_id: str, number: int) -> str:
    """The idempotency key of a batch: of the first, the pass's own."""
    return f"trace-pass:{pass_id}" if number == 0 else f"trace-pass:{pass_id}:{number}"


def capped(rows: Iterable[Row], caps: Caps, *, over: Callable[[Row], object] = lambda _: None) -> Iterator[Row]:
    """As many rows as caps let through; `over` is given the others."""
    conversations: set[tuple[str, str]] = set()
    inputs: Counter[str] = Counter()
    predictions = 0
    for row in rows:
        item = row.item
        who = (item.user, item.convo_id)
        if (
            (who not in conversations and len(conversations) >= caps.conversations)
            or inputs[item.transform_id] >= caps.inputs
            or predictions + len(row.models) > caps.predictions
        ):
            over(row)
            continue
        conversations.add(who)
        inputs[item.transform_id] += 1
        predictions += len(row.models)
        yield row


class _Lost:
    """Batches that are to be sent again, as they were: their rows, as they come by in the traces."""

    def __init__(self) -> None:
        self._waiting: dict[str, Item] = {}
        self._items: dict[int, list[Item]] = {}
        self._rows: dict[str, Row] = {}

    def add(self, batch: Batch, items: list[Item]) -> None:
        """Wait for the rows of a batch."""
        self._items[batch.number] = items
        self._waiting.update((item.request_id, item) for item in items)

    @property
    def is_whole(self) -> bool:
        """Whether every row has come by."""
        return not self._waiting

    def takes(self, row: Row) -> bool:
        """Set a row aside that belongs to one; one whose text has changed is another text, and is not sent."""
        item = self._waiting.pop(row.request_id, None)
        if item is None:
            return False
        hashes = {item.input_hash, row.item.input_hash} - {""}
        if row.error is None and len(hashes) < 2:
            self._rows[row.request_id] = row._replace(item=item)
        return True

    def items(self, batch: Batch) -> list[Item]:
        """The rows of a batch, without their texts, in order."""
        return self._items[batch.number]

    def rows(self, batch: Batch) -> list[Row]:
        """Those of its rows that have come by, in the order in which they were sent."""
        return [self._rows[item.request_id] for item in self.items(batch) if item.request_id in self._rows]


class _Counted:
    """What a pass takes of the rows that its plan makes."""

    def __init__(self, rows: Rows, caps: Caps | None) -> None:
        self.inputs = self.predictions = self.answered = 0
        self._rows = rows
        self._caps = caps
        self._over = 0

    def taken(self, row: Row) -> None:
        """Count a row that is sent, or fails before it could be."""
        self.inputs += 1
        self.predictions += len(row.models)

    def spared(self, row: Row, models: Sequence[str]) -> None:
        """Count a row that is in a batch already, for these of its models."""
        self.inputs += 1
        self.predictions += len(models)
        self.answered += len(row.models) - len(models)

    def new(self, rows: Iterable[Row], results: ResultStore, account: Account) -> Iterator[Row]:
        """Those that no pass has read."""
        asked = 0

        def seen() -> Iterator[Row]:
            nonlocal asked
            for row in rows:
                asked += len(row.models)
                yield row

        kept = 0
        for row in only_new(seen(), results, account):
            kept += len(row.models)
            yield row
        self.answered += asked - kept

    def capped(self, rows: Iterable[Row]) -> Iterator[Row]:
        """As many as the caps let through; the others are counted."""
        return iter(rows) if self._caps is None else capped(rows, self._caps, over=self._passed_over)

    def _passed_over(self, _: Row) -> None:
        self._over += 1

    def estimate(self, found: Pass) -> Any:
        """What was planned, with what was left out."""
        planned = self._rows.estimate(rate=found.estimate.rate)
        if not self._over:
            return planned
        return planned.model_copy(update={"left_out": {**planned.left_out, OVER_THE_CAPS: self._over}})
