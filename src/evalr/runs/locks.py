"""Who is alive: a lock on a file, which the operating system takes away from a process that is no more."""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path
from time import sleep

from evalr.errors import JournalError
from evalr.locking import LOOK_AGAIN, is_at, try_lock

TRIES = 100
"""How often a lock is tried to be made, while others look at it or remove the folder."""

_held: weakref.WeakSet[LivenessLock] = weakref.WeakSet()


class LivenessLock:
    """Held from when it is made until `release`, or until its process ends, however it ends.

    Raises:
        JournalError: the file system has no locks, as some that are mounted over a network.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        for _ in range(TRIES):
            self._file = _made(path)
            try:
                if try_lock(self._file) and is_at(path, self._file):
                    break
            except OSError as error:
                os.close(self._file)
                raise _no_locks(path, error) from error
            os.close(self._file)  # somebody has looked at it just now, or has removed it
            sleep(LOOK_AGAIN)
        else:
            raise JournalError(f"{path}: another run holds this lock, though it should be new")
        _held.add(self)

    def release(self) -> None:
        """Let go of it and remove its file."""
        if self._file < 0:
            return
        # Removed while it is held: whoever finds no file knows that nobody holds the lock.
        with contextlib.suppress(OSError):
            self.path.unlink()
        self._forget()
        with contextlib.suppress(OSError):  # others have their locks there
            self.path.parent.rmdir()

    def _forget(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def is_held(path: Path) -> bool:
    """Whether anyone alive, in this process or another, holds the lock.

    Raises:
        JournalError: that cannot be told.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise JournalError(
            f"{path}: {error.strerror or error}; whether the run that made it is alive is unknown"
        ) from error
    try:
        return not try_lock(file, shared=True)
    except OSError as error:
        raise _no_locks(path, error) from error
    finally:
        os.close(file)


def remove_dead(folder: Path) -> None:
    """Remove the locks that killed processes left in a folder; nobody holds what is not there either."""
    with contextlib.suppress(OSError):  # there is no such folder, or it is not ours to tidy up
        for path in list(folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # somebody else has removed it
                _remove_if_dead(path)


def _remove_if_dead(path: Path) -> None:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if try_lock(file) and is_at(path, file):  # removed while it is held, as in `release`
            path.unlink()
    finally:
        os.close(file)


def _made(path: Path) -> int:
    try:
        for _ in range(TRIES):
            # Another run may end at this moment, and remove the empty folder: between its being made here and its being
            # used, or between `mkdir` finding that it is there and looking at what it is.
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                path.parent.mkdir(exist_ok=True)
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        what = error.strerror or error
        raise JournalError(f"{path}: {what}; a run keeps a lock file beside its journal") from error


def _no_locks(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path}: the file system has no locks ({error.strerror or error}), so that two runs could judge one item; "
        "keep the journal on a local disk"
    )


def _forget_all() -> None:
    """A forked child shares its parent's locks, and would keep them after the parent's end."""
    for lock in list(_held):
        lock._forget()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
