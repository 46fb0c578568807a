"""Passes: signals run over traces, so that whatever is cut short goes on, and nothing is paid for twice."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from evalr.background import run_sync
from evalr.errors import InputError, TransportError
from evalr.inputs import Now, Transcript, utc_now
from evalr_tracepass.alerts import Alert, alerts_of
from evalr_tracepass.claiming import Check, claimed
from evalr_tracepass.planning import Plan, plan
from evalr_tracepass.records import INPUT_TOO_LONG, Account, Pass, PlanEstimate, Rerun
from evalr_tracepass.running import Run
from evalr_tracepass.signals import Signal
from evalr_tracepass.stores.moments import clock
from evalr_tracepass.stores.store import ItemStatus, PassStore, ResultStore
from evalr_tracepass.transports.transport import Transport

Notify = Callable[[Alert], Awaitable[object] | object]
"""Who is told of what fired."""

ENDED = ("complete", "partial_failure")


@dataclass(frozen=True)
class Passes:
    """The passes of one account: where they are kept, and how their rows come to classifiers.

    Whatever ends a pass early (an error, a cut connection, a killed process) leaves it as far as it had come: `resume`
    goes on from there. Rows are sent under a key that stands for them, so that a batch that was taken before a crash is
    not paid for again; classifiers of this process read at most one batch again, and of two processes that run one
    pass, one reads. Texts are kept nowhere: what has not been sent yet is made again from the traces.

    Attributes:
        account: whose.
        store: of passes.
        transport: how rows come to classifiers.
        results: of results; by default the store itself.
        hash_key: a secret of 16 bytes or more of this account, by which texts can be told again across passes. Without
            one, a text that has changed under its id counts as read.
        notify: who is told what fired, when a pass has ended. See `webhook` and `slack`.
        alert_on: the ids of the signals that are told of; by default all.
        progress: given the pass whenever it has come further.
        poll: seconds between two questions, at least; a service that says how long is asked no sooner.
        patience: seconds after which a pass that waits for a service is left running, for `sync`.
        lease: seconds for which a process that was killed while its own classifiers read keeps others from going on.
        now: the clock.
        sleep: waits for so many seconds.
    """

    account: Account
    store: PassStore
    transport: Transport
    results: ResultStore | None = None
    hash_key: bytes | None = field(default=None, repr=False)
    notify: Sequence[Notify] = ()
    alert_on: Sequence[str] | None = None
    progress: Callable[[Pass], object] | None = None
    poll: float = 2.0
    patience: float = 3_600.0
    lease: float = 10.0
    now: Now = utc_now
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep, repr=False)

    def __post_init__(self) -> None:
        self.account.checked()
        if self.lease <= 0:
            raise InputError(f"lease={self.lease!r} must be a positive number of seconds")
        if self.results is None and not all(hasattr(self.store, name) for name in ("write", "results", "finish")):
            raise InputError("this store keeps no results: pass one that does as results=")

    @property
    def result_store(self) -> ResultStore:
        """Where results are kept."""
        # `__post_init__` has seen to it. Not by `isinstance`, which does not see what a proxy has.
        return cast("ResultStore", self.store) if self.results is None else self.results

    def plan_of(self, found: Pass) -> Plan:
        """The plan of a pass, from what it keeps of its signals and its scope."""
        return plan(
            [Signal.model_validate(each) for each in found.selected_signals], scope=found.scope, hash_key=self.hash_key
        )

    # -- a pass from its beginning ------------------------------------------------------------------------------------

    async def run(
        self,
        made: Plan,
        traces: Iterable[Transcript],
        *,
        rerun: Rerun = "all",
        estimate: PlanEstimate | None = None,
        pass_id: str | None = None,
    ) -> Pass:
        """Run a plan over traces as a new pass, to its end or until `patience` is over.

        Args:
            made: what to look for, and in which traces.
            traces: to read; they stream, and no more than a batch is held.
            rerun: "all", or "new" for only what no pass has read.
            estimate: what the pass came to when it was decided upon.
            pass_id: of the new pass, where it was announced before.

        Returns:
            The pass: `complete`, `partial_failure` where some rows failed, or still `running`.

        Raises:
            TransportError: the service cannot be reached, or refuses. The pass is kept as `failed`, and can be resumed.
            InputError: a row names a model that is not configured, or the account has no key.
            StoreError: the store cannot be written.
        """
        if made.hash_key is None and self.hash_key is not None:
            made = replace(made, hash_key=self.hash_key)
        found = Pass(
            id=pass_id or str(uuid.uuid4()),
            account=self.account,
            status="ready",
            scope=made.scope,
            selected_signals=tuple(signal.to_dict() for signal in made.signals),
            transform_plan=tuple(group.to_dict() for group in made.groups),
            estimate=estimate or PlanEstimate(),
            total_inputs=0,
            total_predictions=0,
            completed_inputs=0,
            failed_inputs=0,
            error_message=None,
            created_at=clock(self.now),
            rerun=rerun,
        )
        async with self._claimed(found.id) as check:
            await asyncio.to_thread(self.store.add_pass, self.account, found)
            return await self._drive(self._run(found, made, check), traces)

    async def resume(self, pass_id: str, traces: Iterable[Transcript] | None = None) -> Pass:
        """Go on with a pass that was cut short. One that has ended stays as it is.

        Args:
            pass_id: which.
            traces: those that it was begun with. They are needed until all of its rows have been sent.

        Raises:
            InputError: rows are left to send, and there are no traces.
            TransportError: as `run`.
            StoreError: there is no such pass of this account, another process runs it, or the store cannot be used.
        """
        async with self._claimed(pass_id) as check:
            found = await asyncio.to_thread(self.store.get_pass, self.account, pass_id)
            run = self._run(found, self.plan_of(found), check)
            if found.status in ENDED:
                return await self._tell(found)
            return await self._drive(run, traces)

    async def sync(self, pass_id: str, *, give_up: bool = False) -> Pass:
        """Take what a service has for a pass by now, without waiting for more. Done twice, it changes nothing.

        Args:
            pass_id: which.
            give_up: record the rows that have still not come back as failed (`no_result`), which ends the pass. They
                can then be sent again by `retry`, and are paid for again.

        Raises:
            TransportError: as `run`.
            InputError: rows are left to send: `resume` it with its traces.
            StoreError: there is no such pass of this account, another process runs it, or the store cannot be used.
        """
        async with self._claimed(pass_id) as check:
            found = await asyncio.to_thread(self.store.get_pass, self.account, pass_id)
            if found.status in ENDED:
                return found
            run = self._run(found, self.plan_of(found), check)
            return await self._drive(run, None, wait=False, give_up=give_up)

    async def retry(self, pass_id: str, traces: Iterable[Transcript]) -> Pass:
        """Send the failed rows of a pass again, each to the models that failed on it, as a new batch of the same pass.

        What failed stays in the store as history. Rows that are too long would fail again, and are left as they are, as
        are rows whose text is not in the traces any more.

        Raises:
            InputError: the pass has not ended.
            TransportError: as `run`.
            StoreError: there is no such pass of this account, another process runs it, or the store cannot be used.
        """
        # Claimed whoever reads: what another process is sending again would be sent, and paid for, twice.
        async with claimed(self.store, self.account, pass_id, lease=self.lease) as check:
            return await self._retried(pass_id, traces, check)

    async def _retried(self, pass_id: str, traces: Iterable[Transcript], check: Check) -> Pass:
        found = await asyncio.to_thread(self.store.get_pass, self.account, pass_id)
        if found.status not in ENDED:
            raise InputError(f"pass {pass_id} has not ended: resume it first")
        run = self._run(found, self.plan_of(found), check)
        models: dict[str, tuple[str, ...]] = {}
        attempt = 0
        for each in await asyncio.to_thread(
            lambda: list(self.result_store.results(self.account, passes=pass_id, failed=True))
        ):
            attempt = max(attempt, each.attempt)
            if each.error_type != INPUT_TOO_LONG:
                models[each.request_id] = (*models.get(each.request_id, ()), each.reflex_model)
        if not models:
            totals = await asyncio.to_thread(self.result_store.totals, self.account, pass_id)
            # Nothing is failed any more where a retry was cut short after its results had been stored.
            if found.status != "partial_failure" or totals.failed:
                return found
            items = await asyncio.to_thread(self.store.items, self.account, pass_id)
            done: list[tuple[str, ItemStatus]] = [(item.request_id, "completed") for item in items]
            await asyncio.to_thread(self.store.settle, self.account, pass_id, done)
            return await self._drive(run, None)
        run.again(models)
        return await self._drive(run, traces)

    # -- the same for those who do not await --------------------------------------------------------------------------

    def run_sync(
        self,
        made: Plan,
        traces: Iterable[Transcript],
        *,
        rerun: Rerun = "all",
        estimate: PlanEstimate | None = None,
        pass_id: str | None = None,
    ) -> Pass:
        """As `run`, for callers that do not await; it works inside a running event loop, too."""
        return run_sync(self.run(made, traces, rerun=rerun, estimate=estimate, pass_id=pass_id))

    def resume_sync(self, pass_id: str, traces: Iterable[Transcript] | None = None) -> Pass:
        """As `resume`, for callers that do not await."""
        return run_sync(self.resume(pass_id, traces))

    def sync_sync(self, pass_id: str, *, give_up: bool = False) -> Pass:
        """As `sync`, for callers that do not await."""
        return run_sync(self.sync(pass_id, give_up=give_up))

    def retry_sync(self, pass_id: str, traces: Iterable[Transcript]) -> Pass:
        """As `retry`, for callers that do not await."""
        return run_sync(self.retry(pass_id, traces))

    # -- inside -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _claimed(self, pass_id: str) -> AsyncIterator[Check]:
        """Who may have classifiers of its own process read: a service tells by its keys what it was sent before."""
        if self.transport.durable:
            yield lambda: None
            return
        async with claimed(self.store, self.account, pass_id, lease=self.lease) as check:
            yield check

    def _run(self, found: Pass, made: Plan, check: Check) -> Run:
        return Run(
            found,
            made,
            self.account,
            self.store,
            self.result_store,
            self.transport,
            check=check,
            progress=self.progress,
            poll=self.poll,
            patience=self.patience,
            now=self.now,
            sleep=self.sleep,
        )

    async def _drive(
        self, run: Run, traces: Iterable[Transcript] | None, *, wait: bool = True, give_up: bool = False
    ) -> Pass:
        found = await run.drive(traces, wait=wait, give_up=give_up)
        return await self._tell(found) if found.status in ENDED else found

    async def _tell(self, found: Pass) -> Pass:
        """Tell of what fired since the last time. What was told is remembered, when everyone has been told."""
        if not self.notify:
            return found
        told = await asyncio.to_thread(self.store.alerted, self.account, found.id)
        alerts, attempt = await asyncio.to_thread(
            alerts_of, self.result_store, self.account, found, told, self.alert_on
        )
        refused: TransportError | None = None
        for alert in alerts:
            for notify in self.notify:
                try:
                    said = notify(alert)
                    if isinstance(said, Awaitable):
                        await said
                except TransportError as error:
                    refused = error  # the others are told all the same
        if refused is not None:
            raise refused
        if attempt > told:
            await asyncio.to_thread(self.store.save_alerted, self.account, found.id, attempt)
        return found
