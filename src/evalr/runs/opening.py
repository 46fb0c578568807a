"""Opening an SQLite file that other processes may be making at this moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from time import monotonic, sleep

LOOK_AGAIN = 0.005
"""Seconds between two tries."""


def is_busy(error: sqlite3.Error) -> bool:
    """Whether SQLite gave up since another connection holds the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def once_free(prepare: Callable[[], None], patience: float) -> None:
    """Prepare a file, again and again for as long as others hold it.

    SQLite's own patience (`timeout`) does not reach everything: of two connections that turn a new file into one with
    a write-ahead log, or recover one, a connection is told at once that the file is locked.

    Args:
        prepare: opens no transaction that it leaves open, and may be called again after it failed.
        patience: seconds after which an error stands.

    Raises:
        sqlite3.Error: whatever else is wrong, or the file was held for longer than that.
    """
    until = monotonic() + patience
    while True:
        try:
            return prepare()
        except sqlite3.Error as error:
            if not is_busy(error) or monotonic() >= until:
                raise
        sleep(LOOK_AGAIN)
