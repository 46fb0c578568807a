"""A process that runs a pass, for tests that kill it: `killed_pass.py STORE URL COUNT LARGEST WRITE`.

At its WRITE-th call of the store that writes, it kills itself as `kill -9` would; 0 is never.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from reflex_service import KEY, a_signal, talks

from evalr.runs.retries import Retry
from evalr.tracepass import Account, BatchTransport, Passes, Service, open_store, plan

WRITES = frozenset({"add_pass", "save_pass", "add_batch", "add_failed", "save_batch", "settle", "write", "finish"})


class Killing:
    def __init__(self, store: Any, at: int) -> None:
        self._store = store
        self._left = at

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name not in WRITES:
            return call

        def killing(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return killing


def main(place: str, url: str, count: str, largest: str, write: str) -> None:
    store = Killing(open_store(place), int(write))
    service = Service(url, KEY, retry=Retry(first=0.01))
    passes = Passes(Account("ann"), store, BatchTransport(service, largest=int(largest)), poll=0.01)
    passes.run_sync(plan([a_signal("m1"), a_signal("m2")]), talks(int(count)), pass_id="p")


if __name__ == "__main__":
    main(*sys.argv[1:])
