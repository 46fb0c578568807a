"""Whose a `CancelledError` is."""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Whether the current task was told to stop. Where it was not, a CancelledError is the called code's own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
