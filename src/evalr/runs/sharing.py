"""One open journal for all of this process that use a file at the same time.

Connections of their own would wait for each other as those of other processes do: by looking again every so often.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from evalr.runs.journal import Journal

_lock = threading.Lock()
_open: dict[tuple[int, str], tuple[Journal, int]] = {}
"""By process and path: the journal, and how many use it. A forked child leaves its parent's alone."""


@contextmanager
def shared_journal(journal: Journal | str | os.PathLike[str]) -> Iterator[Journal]:
    """The journal itself, or that of a path, which is closed when nobody uses it any more."""
    if isinstance(journal, Journal):
        yield journal
        return
    place = (os.getpid(), os.path.abspath(journal))  # noqa: PTH100  a link stays a link, as in `Journal`
    with _lock:
        opened, users = _open.get(place) or (Journal(journal), 0)
        _open[place] = (opened, users + 1)
    try:
        yield opened
    finally:
        with _lock:
            opened, users = _open.pop(place)
            if users > 1:
                _open[place] = (opened, users - 1)
            else:
                opened.close()


def _forget() -> None:
    """In a forked child, the lock may have been held by a thread that is not here."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
