"""A process whose own classifier reads a pass, for tests that run several: `local_pass.py JOB`, a `Job` as JSON.

What the classifier is given is written to a file before it answers, a line for each text, with the process's id.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from reflex_service import a_signal, talks

from evalr.errors import StoreError
from evalr.tracepass import Account, LabelScore, LocalTransport, Passes, Prediction, open_store, plan

ME = Account("ann")
REFUSED = 3
"""The exit code of a process that another kept from going on."""


class Job(NamedTuple):
    """What to run, and where. `pause` is how long the classifier takes for a batch."""

    store: str
    log: str
    count: int
    largest: int
    pause: float
    lease: float
    resume: bool


class Slow:
    """A classifier that takes its time, and whose every reading can be told."""

    name, version, labels = "m1", "1", ("good", "bad")

    def __init__(self, job: Job) -> None:
        self._job = job

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        said = "".join(f"{os.getpid()} {text}\n" for text in texts)
        file = os.open(self._job.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, said.encode())
        os.close(file)
        time.sleep(self._job.pause)
        return [Prediction("m1", "single_label", (LabelScore("good", 0.75, True),)) for _ in texts]


def main(job: Job) -> int:
    local = LocalTransport({"m1": Slow(job)}, largest=job.largest)
    with closing(open_store(job.store)) as store:
        passes = Passes(ME, store, local, lease=job.lease)
        try:
            if job.resume:
                passes.resume_sync("p", talks(job.count))
            else:
                passes.run_sync(plan([a_signal("m1")]), talks(job.count), pass_id="p")
        except StoreError as error:
            sys.stderr.write(str(error))
            return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(Job(*json.loads(sys.argv[1]))))
