"""Processes that read parts of a log: started, listened to, and stopped.

Each is a new Python, and no copy of this one: nothing is forked, the program's main module is not imported, and so no
`if __name__ == "__main__"` is needed. All of one pass share a hash seed, drawn at random for it, so that they agree on
the hashes of subjects and nobody who writes a log can know them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from queue import Empty, Queue
from secrets import randbelow
from threading import Thread
from types import TracebackType
from typing import IO, Any, Self

from evalr.bulk.sending import receive_reading
from evalr.bulk.worker import MARK, Part, Progressed
from evalr.errors import EvalrError, InputError, RecordError, error_words
from evalr.reports.reading import Reading
from evalr.tallies.numbering import Numbering

PROGRAM = (
    "import pickle, signal, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # who waits for it decides
    "sys.path[:] = pickle.load(sys.stdin.buffer)\n"
    "from evalr.bulk.worker import work\n"
    "work()\n"
)
PATIENCE = 0.2
"""Seconds without a word before interruptions are looked for, which some systems do not let through while waiting."""


MOST = 128
"""Processes: each is a Python of its own, with some 40 MB before it has read anything."""


def check_processes(processes: object) -> None:
    """Raise InputError for what is no number of processes."""
    if isinstance(processes, bool) or not isinstance(processes, int) or not 1 <= processes <= MOST:
        raise InputError(f"processes={processes!r} must be a whole number from 1 to {MOST}")


class Processes:
    """The processes of one pass over a log. Use it in `with`: all of them have ended when it is left."""

    def __init__(
        self, told: Callable[[int, int], None] | None = None, heard: Callable[[Any], Any] | None = None
    ) -> None:
        """Nothing is started yet.

        Args:
            told: called now and then with the records, and the bytes, that all of them have read.
            heard: makes of each answer, as soon as it is there and in a thread of its own, the one that is given.
        """
        if not sys.executable or getattr(sys, "frozen", False):
            raise InputError("no Python program can be started from here to read a part of the log: use processes=1")
        self._told, self._heard = told, heard
        self._seed = str(1 + randbelow(2**32 - 1))
        self._answers: Queue[tuple[int, Any]] = Queue()
        self._children: list[subprocess.Popen[bytes]] = []
        self._listeners: list[Thread] = []
        self._read: dict[Hashable, Progressed] = {}
        self._places: list[Hashable] = []
        self._given: defaultdict[int, deque[Any]] = defaultdict(deque)

    def start(self, part: Part, place: Hashable) -> int:
        """Have a part read. Returns the number of the process that does.

        Args:
            part: with all that the process has to know.
            place: of the part in its log, by which one that is read again is known.

        Raises:
            InputError: the part cannot be sent to another process.
            EvalrError: the machine starts no more.
        """
        order = _packed(part)
        try:
            child = subprocess.Popen(
                [sys.executable, "-P", *(f"-W{option}" for option in sys.warnoptions), "-c", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONHASHSEED": self._seed},
                start_new_session=True,  # an interrupt is for the process that waits
            )
        except OSError as error:
            raise EvalrError(f"no more processes can be started ({error_words(error)}): use fewer") from error
        number = len(self._children)
        self._children.append(child)
        self._places.append(place)
        listener = Thread(
            target=_listen, args=(number, child, order, part.answers, self._heard, self._answers), daemon=True
        )
        self._listeners.append(listener)
        listener.start()
        return number

    def answer(self, number: int) -> Any:
        """The next answer of a process, or the first record that was refused with `strict`: wait for it.

        Raises:
            EvalrError: a process ended without an answer.
            Exception: any other that the reading of the part raised.
        """
        while not self._given[number]:
            try:
                place, answer = self._answers.get(timeout=PATIENCE)
            except Empty:
                continue
            if isinstance(answer, Progressed):
                self._tell(place, answer)
            else:
                self._given[place].append(answer)
        answer = self._given[number].popleft()
        if isinstance(answer, BaseException) and not isinstance(answer, RecordError):
            raise answer
        return answer

    def merge(self, number: int, reading: Reading, numbering: Numbering) -> None:
        """Count in a reading what was counted in a part that has given its answers. Its process then ends.

        Until then the process holds it, and hands it over piece by piece: of several, one at a time.
        """
        child = self._children[number]
        assert child.stdout is not None
        try:
            reading.merge(receive_reading(child.stdout, numbering))
        except (OSError, EOFError, pickle.UnpicklingError):
            raise _ended(child) from None
        self.stop(number)

    def stop(self, number: int) -> None:
        """End a process, whatever it is at."""
        child = self._children[number]
        child.kill()
        self._listeners[number].join()
        child.wait()
        for file in (child.stdin, child.stdout):
            if file is not None:
                with suppress(OSError):  # it ended before it was told all
                    file.close()

    def _tell(self, place: int, progressed: Progressed) -> None:
        self._read[self._places[place]] = progressed
        if self._told is not None:
            every = self._read.values()
            self._told(sum(each.records for each in every), sum(each.bytes for each in every))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.kill()
        for number in range(len(self._children)):
            self.stop(number)


def _packed(part: Part) -> bytes:
    """What a process is told, after where modules are found."""
    try:
        return pickle.dumps(list(sys.path)) + pickle.dumps(part)
    except Exception as error:  # what cannot be pickled raises anything
        raise InputError(
            f"what a report is asked for cannot be sent to other processes ({error_words(error)}): name keys as texts, "
            "or use processes=1"
        ) from error


def _listen(
    number: int,
    child: subprocess.Popen[bytes],
    order: bytes,
    count: int,
    heard: Callable[[Any], Any] | None,
    answers: Queue[tuple[int, Any]],
) -> None:
    """Tell a process what to do, and pass on so many answers, in a thread of its own."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(order)
        child.stdin.flush()  # and left open: its end tells the process that nobody waits any more
        _pass_over(child.stdout)
        while count:
            answer = pickle.load(child.stdout)
            answers.put((number, answer if heard is None else heard(answer)))
            count = 0 if isinstance(answer, BaseException) else count - (not isinstance(answer, Progressed))
    except Exception:  # noqa: BLE001  what is no pickle raises anything, and who waits must know
        answers.put((number, _ended(child)))


def _pass_over(file: IO[bytes]) -> None:
    """Read what was printed before the answers begin.

    Raises:
        EOFError: there are none.
    """
    read = b""
    while read != MARK:
        byte = file.read(1)
        if not byte:
            raise EOFError
        read = (read + byte)[-len(MARK) :]


def _ended(child: subprocess.Popen[bytes]) -> EvalrError:
    """The error for a process that gave no answer."""
    try:
        code = child.wait(timeout=1)
    except subprocess.TimeoutExpired:  # it is there, and says what nobody can read
        child.kill()
        code = child.wait()
    return EvalrError(f"a process that read a part of the log ended with code {code} before it was done")
