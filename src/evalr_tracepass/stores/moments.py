"""Times as stores keep them: to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_ms(time: datetime) -> int:
    """Milliseconds since 1970."""
    return (time - EPOCH) // _MILLISECOND


def from_ms(found: int) -> datetime:
    """The time of milliseconds since 1970."""
    return EPOCH + found * _MILLISECOND
