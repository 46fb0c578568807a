"""Locks on files, which the operating system takes away from a process that is no more.

A timeout could only guess: a process may sleep for longer than any, and wake up.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

LOOK_AGAIN = 0.005
"""Seconds between two tries for a lock that someone else holds."""

if sys.platform == "win32":

    def try_lock(file: int, *, shared: bool = False) -> bool:
        """Lock an open file until it is closed, and return whether that worked: False where someone else holds it.

        Raises:
            OSError: the file system has no locks.
        """
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def wait_for_lock(file: int) -> None:
        """Lock an open file until it is closed, after waiting for whoever holds it.

        Raises:
            OSError: the file system has no locks, or someone held it for over ten seconds.
        """
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_LOCK, 1)

else:

    def try_lock(file: int, *, shared: bool = False) -> bool:
        """Lock an open file until it is closed, and return whether that worked: False where someone else holds it.

        With `shared`, others may hold it in the same way: two who only look do not take each other for the holder.

        Raises:
            OSError: the file system has no locks.
        """
        # flock and not fcntl's record locks: those are lost as soon as the process closes the file anywhere else, and
        # do not tell two users of one process apart.
        import fcntl

        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait_for_lock(file: int) -> None:
        """Lock an open file until it is closed, after waiting for whoever holds it.

        Raises:
            OSError: the file system has no locks.
        """
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def file_lock(path: Path, *, patience: float = 30.0) -> Iterator[None]:
    """Hold the lock that a file stands for, after waiting for whoever holds it; the file is gone afterwards.

    Raises:
        TimeoutError: someone held it for longer than `patience` seconds.
        OSError: the file cannot be made, or its file system has no locks.
    """
    until = monotonic() + patience
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if try_lock(file) and is_at(path, file):
                break
            if monotonic() > until:
                raise TimeoutError(f"locked by another process for over {patience:g} seconds")
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        sleep(LOOK_AGAIN)
    try:
        yield
    finally:
        # Removed while it is held: whoever has waited for it finds that it is not there any more, and makes a new one.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(file)


def is_at(path: Path, file: int) -> bool:
    """Whether an open file is the one that has this path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
