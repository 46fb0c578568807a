"""Passes that are begun from a page: what is asked before, and the work that is done for them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from evalr.errors import LogError
from evalr.inputs import Transcript
from evalr_tracepass.passes import Passes
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import Pass, PlanEstimate, Rerun
from evalr_tracepass.web.desk import Desk
from evalr_tracepass.web.jobs import Job
from evalr_tracepass.web.panel import Ahead, Ordered, entries_of, look_ahead, plan_of
from evalr_tracepass.web.snapshot import Snapshot


def ahead_of(desk: Desk, snapshot: Snapshot, ordered: Ordered, *, patience: float) -> Ahead | None:
    """What a panel comes to, or None while that is being counted.

    Raises:
        InputError: it cannot be run so.
        LogError: the log cannot be read.
    """
    entries, scope = entries_of(desk, snapshot, ordered)
    made = plan_of(desk, ordered, scope)
    passes = tuple((each.id, each.status) for each in desk.kept.passes())
    key = (id(snapshot), scope, tuple(entry.key for entry in entries), tuple(map(str, made.groups)), passes)
    return desk.counts.ask(key, lambda: look_ahead(desk, snapshot, entries, made), patience=patience)


def begin(desk: Desk, snapshot: Snapshot, ordered: Ordered, rerun: Rerun, ahead: Ahead | None) -> str:
    """Begin a pass. Returns its id.

    Raises:
        InputError: it cannot be run so.
    """
    entries, scope = entries_of(desk, snapshot, ordered)
    made = plan_of(desk, ordered, scope)
    pass_id = str(uuid.uuid4())

    def work(job: Job) -> Pass:
        estimate = look_ahead(desk, snapshot, entries, made).estimate if ahead is None else ahead.estimate
        return _run(desk, job, made, snapshot.transcripts(entries), rerun, estimate)

    desk.runner.start(pass_id, work)
    return pass_id


def resume(desk: Desk, found: Pass) -> None:
    """Go on with a pass that was cut short."""
    desk.runner.start(found.id, lambda job: _passes(desk, job).resume_sync(found.id, _transcripts(desk, found)))


def retry(desk: Desk, found: Pass) -> None:
    """Send what failed in a pass again."""
    desk.runner.start(found.id, lambda job: _passes(desk, job).retry_sync(found.id, _transcripts(desk, found)))


def _run(desk: Desk, job: Job, made: Plan, traces: Iterator[Transcript], rerun: Rerun, estimate: PlanEstimate) -> Pass:
    return _passes(desk, job).run_sync(made, traces, rerun=rerun, estimate=estimate, pass_id=job.pass_id)


def _passes(desk: Desk, job: Job, **options: Any) -> Passes:
    return Passes(desk.kept.account, desk.kept.store, desk.transport, progress=job.progress, **options)


def _transcripts(desk: Desk, found: Pass) -> Iterator[Transcript]:
    """The conversations of a pass, as the log has them now."""
    snapshot = desk.reading.snapshot
    if snapshot is None:
        raise LogError("the log has not been read yet: try again in a moment")
    ids = frozenset(found.scope.convo_ids)
    return snapshot.transcripts(entry for entry in snapshot.entries if not ids or entry.convo_id in ids)
