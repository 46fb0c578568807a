"""Monitors: the same signals run over what has ended since the last run, each conversation once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from evalr.background import run_sync
from evalr.errors import InputError, StoreError
from evalr.inputs import Transcript
from evalr_tracepass.passes import ENDED, Passes
from evalr_tracepass.planning import Plan, plan
from evalr_tracepass.records import Filters, Pass, Scope
from evalr_tracepass.rerunning import only_new
from evalr_tracepass.signals import Signal
from evalr_tracepass.stores.moments import clock
from evalr_tracepass.stores.store import MonitorState

SETTLE = timedelta(minutes=30)
OVERLAP = timedelta(hours=24)


async def monitor(
    passes: Passes,
    signals: Sequence[Signal],
    traces: Iterable[Transcript],
    *,
    name: str = "monitor",
    filters: Filters | None = None,
    settle: timedelta = SETTLE,
    overlap: timedelta = OVERLAP,
    agreed: Callable[[Plan], bool] | None = None,
) -> Pass | None:
    """Run signals over the conversations that have ended since the last run, all their turns. Call it on a schedule.

    The watermark is the time of a conversation's last turn, and not of its first: a long one is read once, when it has
    ended. What came into the log late is found as long as it ended within `overlap` before the watermark; what was read
    already is not read again. A run that was cut short is gone on with before anything new is looked for, and the
    watermark moves when it has ended. Without `passes.hash_key`, turns that were read are known by their ids.

    Args:
        passes: where they are kept, and how their rows are read.
        signals: what to look for, the same ones on each run.
        traces: the log, which may hold all that there is. Of an iterator, which can be read once, what comes before the
            first conversation that has something new is held until then; what can be read twice is not.
        name: of the monitor: another name has a watermark of its own.
        filters: which conversations.
        settle: a conversation whose last turn is this long ago has ended.
        overlap: how late a conversation may come into the log.
        agreed: asked of a plan that has something new to read, before its pass is begun; where it says no, nothing is.

    Returns:
        The pass; None where nothing is new, where `agreed` says no, or where another process has just begun one.

    Raises:
        InputError: a time is negative.
        TransportError: as `Passes.run`; the next run goes on with the pass.
    """
    if settle < timedelta(0) or overlap < timedelta(0):
        raise InputError("settle and overlap must be 0 or more")
    store, account = passes.store, passes.account

    def planned(state: MonitorState, until: datetime | None) -> Plan:
        since = None if state.watermark is None else state.watermark - overlap
        scope = Scope(kind="since_last_run", ended_since=since, ended_until=until, filters=filters or Filters())
        return plan(signals, scope=scope, hash_key=passes.hash_key)

    state = await asyncio.to_thread(store.monitor, account, name)
    if state.pass_id is not None:
        found = await _resumed(passes, state, traces)
        if found is not None:
            return await _moved(passes, state, found)
        # It was announced, and the process ended before it had begun.
        pass_id, until = state.pass_id, state.until
        made = planned(state, until)
    else:
        pass_id, until = str(uuid.uuid4()), clock(passes.now) - settle
        if state.watermark is not None and until is not None and until < state.watermark:
            until = state.watermark  # clocks that went back
        made = planned(state, until)
        ahead, traces = _looked_ahead(traces)
        if not await asyncio.to_thread(_has_new, passes, made, ahead):
            on = MonitorState(name, until, None, None)
            await asyncio.to_thread(store.move_monitor, account, state, on)
            return None
        if agreed is not None and not agreed(made):
            return None
        announced = state._replace(pass_id=pass_id, until=until)
        if not await asyncio.to_thread(store.move_monitor, account, state, announced):
            return None
        state = announced
    found = await passes.run(made, traces, rerun="new", pass_id=pass_id)
    return await _moved(passes, state, found)


def monitor_sync(
    passes: Passes,
    signals: Sequence[Signal],
    traces: Iterable[Transcript],
    *,
    name: str = "monitor",
    filters: Filters | None = None,
    settle: timedelta = SETTLE,
    overlap: timedelta = OVERLAP,
    agreed: Callable[[Plan], bool] | None = None,
) -> Pass | None:
    """As `monitor`, for callers that do not await; it works inside a running event loop, too."""
    return run_sync(
        monitor(passes, signals, traces, name=name, filters=filters, settle=settle, overlap=overlap, agreed=agreed)
    )


def _looked_ahead(traces: Iterable[Transcript]) -> tuple[Iterable[Transcript], Iterable[Transcript]]:
    """Traces to look ahead in, and the same from their beginning, once that was done."""
    if not isinstance(traces, Iterator):
        return traces, traces
    held: list[Transcript] = []

    def ahead() -> Iterator[Transcript]:
        for transcript in traces:
            held.append(transcript)
            yield transcript

    def again() -> Iterator[Transcript]:
        yield from held
        held.clear()
        yield from traces

    return ahead(), again()


def _has_new(passes: Passes, made: Plan, traces: Iterable[Transcript]) -> bool:
    return any(True for _ in only_new(made.rows(traces), passes.result_store, passes.account))


async def _resumed(passes: Passes, state: MonitorState, traces: Iterable[Transcript]) -> Pass | None:
    assert state.pass_id is not None
    try:
        return await passes.resume(state.pass_id, traces)
    except StoreError:
        known = await asyncio.to_thread(passes.store.passes, passes.account, limit=1_000)
        if any(each.id == state.pass_id for each in known):
            raise
        return None


async def _moved(passes: Passes, state: MonitorState, found: Pass) -> Pass:
    """Move the watermark, once the pass has ended."""
    if found.status in ENDED:
        on = MonitorState(state.name, state.until, None, None)
        await asyncio.to_thread(passes.store.move_monitor, passes.account, state, on)
    return found
