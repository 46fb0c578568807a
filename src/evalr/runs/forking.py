"""A fork waits until no thread is inside SQLite: of its own locks, those held then are held in the child for ever."""

from __future__ import annotations

import os
from collections.abc import Sequence
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


class Locked(Protocol):
    """What asks SQLite under locks alone."""

    @property
    def locks(self) -> Sequence[Lock]:
        """All of them."""


_known: WeakSet[Locked] = WeakSet()
_taken: list[Lock] = []


def quiet_at_forks(what: Locked) -> None:
    """Have forks wait for it."""
    _known.add(what)


def _take() -> None:
    for each in list(_known):
        _taken.extend(lock for lock in each.locks if lock.acquire(timeout=PATIENCE))


def _give_back() -> None:
    while _taken:
        _taken.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take, after_in_parent=_give_back, after_in_child=_give_back)
