"""A fork waits until no thread is inside SQLite: of its own locks, those held then are held in the child for ever."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

PATIENCE = 1.0
"""Seconds to wait for one who has a lock; a fork then goes on, as without this."""


class Lock(Protocol):
    """A lock of `threading`."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, and say whether that was possible in time."""

    def release(self) -> None:
        """Give it back."""


_known: WeakSet[Lock] = WeakSet()
_taken: list[Lock] = []


def quiet_at_forks(*locks: Lock) -> None:
    """Have forks wait for locks, under which alone something asks SQLite, for as long as there are any."""
    _known.update(locks)


def _take() -> None:
    _taken.extend(lock for lock in list(_known) if lock.acquire(timeout=PATIENCE))


def _give_back() -> None:
    while _taken:
        _taken.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_give_back, after_in_child=_give_back)
