"""What became of a draft: all that the measures of drafts ask before they compare texts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from evalr.inputs import Draft, History, Now, Revision

WINDOW = timedelta(days=14)
"""How long people have to work on what an agent wrote, unless told otherwise."""


class Fate(NamedTuple):
    """What became of a draft within its window, as seen at a reading time.

    Attributes:
        decided: whether it can change no more: its window has passed, or the agent has written again.
        stood: for how long it was looked at: until the agent wrote again, its window ended, or it was read.
        superseded: whether the agent wrote again in that time.
        followed: the last revision that people made of it in that time.
    """

    decided: bool
    stood: timedelta
    superseded: bool
    followed: Revision | None


def fate_of(draft: Draft, window: timedelta, now: datetime | None) -> Fate:
    """What became of it. A person's revision at exactly the window is in time; `now=None` is after everything."""
    stood = window if now is None else min(window, max(timedelta(0), now - draft.written))
    superseded = draft.superseded
    if superseded is not None and now is not None and superseded > now:
        superseded = None
    decided = stood == window or superseded is not None
    replaced_after = None if superseded is None else superseded - draft.written
    if replaced_after is not None:
        stood = min(window, replaced_after)
    people = (revision for revision in reversed(draft.people) if revision.at - draft.written <= stood)
    return Fate(decided, stood, replaced_after == stood, next(people, None))


def split_drafts(history: History, now: Now | None) -> Iterator[Draft]:
    """The split of every measure that reads drafts: one function, so that a report reads each draft's texts once."""
    return history.each_draft(now=now)
