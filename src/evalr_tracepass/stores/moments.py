"""Times as stores keep them: to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from evalr.inputs import Now, resolve_now

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


# Of a batch, many rows have the same times: those of their turn, and of their upload.
@lru_cache(maxsize=4_096)
def to_ms(time: datetime) -> int:
    """Milliseconds since 1970."""
    return (time - EPOCH) // _MILLISECOND


def clock(now: Now) -> datetime:
    """The time, as a store will give it back."""
    return from_ms(to_ms(resolve_now(now)))


def from_ms(found: int) -> datetime:
    """The time of milliseconds since 1970."""
    return EPOCH + found * _MILLISECOND
