"""Passes that are begun from a page: what is asked before, and the work that is done for them."""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Iterator, Sequence

from evalr.errors import LogError
from evalr.inputs import Transcript
from evalr_tracepass.passes import Passes
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import Pass, Rerun
from evalr_tracepass.storable import storable
from evalr_tracepass.web.desk import Desk
from evalr_tracepass.web.jobs import Job
from evalr_tracepass.web.panel import Ahead, look_ahead
from evalr_tracepass.web.snapshot import Entry, Snapshot


def ahead_of(
    desk: Desk, snapshot: Snapshot, entries: Sequence[Entry], made: Plan, *, patience: float | None
) -> Ahead | None:
    """What a plan comes to, or None while that is being counted, for whoever waits no longer."""
    key = _asked(snapshot, entries, made)
    return desk.counts.ask(key, lambda: look_ahead(desk, snapshot, entries, made), patience=patience)


def begin(desk: Desk, snapshot: Snapshot, entries: Sequence[Entry], made: Plan, rerun: Rerun) -> str:
    """Begin a pass, unless the very same one has been begun and not ended. Returns its id."""

    def work(job: Job) -> Pass:
        ahead = ahead_of(desk, snapshot, entries, made, patience=None)
        estimate = None if ahead is None else ahead.estimate
        traces = snapshot.transcripts(entries)
        return _passes(desk, job).run_sync(made, traces, rerun=rerun, estimate=estimate, pass_id=job.pass_id)

    asked = (_asked(snapshot, entries, made), rerun)
    return desk.runner.start(str(uuid.uuid4()), work, asked=asked).pass_id


def _asked(snapshot: Snapshot, entries: Sequence[Entry], made: Plan) -> Hashable:
    """By which two plans for the same conversations are the same."""
    return (snapshot.number, made.scope, tuple(entry.key for entry in entries), tuple(map(str, made.groups)))


def resume(desk: Desk, found: Pass) -> None:
    """Go on with a pass that was cut short."""
    desk.runner.start(found.id, lambda job: _passes(desk, job).resume_sync(found.id, _transcripts(desk, found)))


def retry(desk: Desk, found: Pass) -> None:
    """Send what failed in a pass again."""
    desk.runner.start(found.id, lambda job: _passes(desk, job).retry_sync(found.id, _transcripts(desk, found)))


def _passes(desk: Desk, job: Job) -> Passes:
    kept = desk.kept
    return Passes(
        kept.account,
        kept.store,
        desk.transport,
        results=kept.results_store,
        progress=job.progress,
        poll=desk.poll,
    )


def _transcripts(desk: Desk, found: Pass) -> Iterator[Transcript]:
    """The conversations of a pass, as the log has them now."""
    snapshot = desk.reading.snapshot
    if snapshot is None:
        raise LogError("the log has not been read yet: try again in a moment")
    ids = frozenset(found.scope.convo_ids)
    return snapshot.transcripts(entry for entry in snapshot.entries if not ids or storable(entry.convo_id) in ids)
