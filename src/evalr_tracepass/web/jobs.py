"""What takes longer than a page may, in threads of its own: counting what a pass would send, and passes themselves."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Generic, TypeVar

from evalr.errors import EvalrError, error_words
from evalr_tracepass.records import Pass

T = TypeVar("T")

REMEMBERED = 32


class Counts(Generic[T]):
    """Answers that are worked out once, by what was asked, two at a time; whoever ends the process does not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, Future[T]] = OrderedDict()
        self._free = threading.Semaphore(2)

    def ask(self, key: Hashable, work: Callable[[], T], *, patience: float | None) -> T | None:
        """The answer, or None while it is being worked out, for whoever waits no longer. It raises what that raised."""
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = Future()
                threading.Thread(target=self._answer, args=(found, work), name="evalr counts", daemon=True).start()
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
        try:
            return found.result(patience)
        except StillRunning:
            return None
        except BaseException:
            with self._lock:
                self._known.pop(key, None)
            raise

    def _answer(self, found: Future[T], work: Callable[[], T]) -> None:
        with self._free:
            try:
                found.set_result(work())
            except BaseException as error:  # noqa: BLE001  it is raised where it is asked for
                found.set_exception(error)


@dataclass
class Job:
    """One pass that was begun here.

    Attributes:
        pass_id: which.
        asked: what was asked for, None where any other may be run beside it.
        found: the pass as it was last seen.
        error: why it stopped.
        has_ended: whether nothing is done for it any more.
    """

    pass_id: str
    asked: Hashable = None
    found: Pass | None = None
    error: str | None = None
    has_ended: bool = False

    def progress(self, found: Pass) -> None:
        """Take note of how far it is."""
        self.found = found


Work = Callable[[Job], Pass]


@dataclass
class Runner:
    """Runs passes one after the other, while pages go on being served.

    A process that ends leaves its pass as far as it had come: it can be resumed.
    """

    _queue: SimpleQueue[tuple[Job, Work]] = field(default_factory=SimpleQueue, repr=False)
    _jobs: dict[str, Job] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _thread: threading.Thread | None = None

    def start(self, pass_id: str, work: Work, *, asked: Hashable = None) -> Job:
        """Run a pass when those before it have ended. One that is being run already is left alone.

        So is one for which the same was asked, by another tab or a second click: it would be paid for twice.
        """
        with self._lock:
            for known in self._jobs.values():
                if not known.has_ended and (known.pass_id == pass_id or (asked is not None and known.asked == asked)):
                    return known
            job = self._jobs[pass_id] = Job(pass_id, asked)
            self._queue.put((job, work))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="evalr passes", daemon=True)
                self._thread.start()
        return job

    def job(self, pass_id: str) -> Job | None:
        """What is done here for a pass, or was."""
        return self._jobs.get(pass_id)

    def running(self) -> frozenset[str]:
        """The passes that are being run here, or wait for others."""
        return frozenset(each.pass_id for each in list(self._jobs.values()) if not each.has_ended)

    def _run(self) -> None:
        while True:
            job, work = self._queue.get()
            try:
                job.found = work(job)
            except EvalrError as error:
                job.error = str(error)
            except Exception as error:  # noqa: BLE001  a pass is told of on its page, and the next one must still run
                job.error = error_words(error)
            job.has_ended = True
