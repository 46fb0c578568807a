"""A process that runs a pass, or resumes it, for tests that kill it: `killed_pass.py JOB`, a `Job` as JSON.

Around a call of a store that writes, it can kill itself as `kill -9` would. What the pass came to is printed as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from typing import Any, NamedTuple

from reflex_service import KEY, a_signal, talks

from evalr.runs.retries import Retry
from evalr.tracepass import Account, BatchTransport, Passes, Service, clickhouse_results, open_store, plan

ME = Account("ann")
WRITES = frozenset({"add_pass", "save_pass", "add_batch", "add_failed", "save_batch", "settle", "write", "finish"})


class Job(NamedTuple):
    """What to run, and where.

    Attributes:
        store: of the lifecycle: a path, or an address of PostgreSQL.
        chdb: the folder of ClickHouse's engine, where results go there; "" where the store keeps them.
        url: of the service.
        count: conversations.
        largest: rows of one upload.
        kill: where it ends, like `before write` or `after finish`; "" is nowhere.
        nth: at the how manieth of these calls.
        resume: whether the pass was begun before.
    """

    store: str
    chdb: str
    url: str
    count: int
    largest: int
    kill: str = ""
    nth: int = 1
    resume: bool = False


class Killing:
    """A store whose process is killed around one of its calls."""

    def __init__(self, store: Any, job: Job) -> None:
        self._store = store
        self._kill = job.kill
        self._left = job.nth

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name not in WRITES:
            return call

        def killing(*arguments: Any, **options: Any) -> Any:
            self._pass(f"before {name}")
            came = call(*arguments, **options)
            self._pass(f"after {name}")
            return came

        return killing

    def _pass(self, place: str) -> None:
        self._left -= place == self._kill
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def done(job: Job) -> dict[str, Any]:
    """Run the pass, or go on with it; what it came to."""
    store = Killing(open_store(job.store), job)
    results = store
    if job.chdb:
        import clickhouse_connect

        client = clickhouse_connect.get_client(interface="chdb", path=job.chdb)
        results = Killing(clickhouse_results(client), job)
    service = Service(job.url, KEY, retry=Retry(first=0.01))
    passes = Passes(ME, store, BatchTransport(service, largest=job.largest), results=results, poll=0.01)
    with closing(store), closing(results):
        if job.resume:
            found = passes.resume_sync("p", talks(job.count))
        else:
            found = passes.run_sync(plan([a_signal("m1"), a_signal("m2")]), talks(job.count), pass_id="p")
        return {
            "status": found.status,
            "predictions": found.total_predictions,
            "results": [(each.request_id, each.reflex_model) for each in results.results(ME, passes="p")],
            "batches": [(each.number, each.status) for each in store.batches(ME, "p")],
            "listed": len(results.conversations(ME, limit=1_000)),
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(done(Job(*json.loads(sys.argv[1])))))
