"""When an input is whole enough to be judged: after a while in which nothing more happened, or at its end.

A session has no last line: another turn may come. Judged too soon it is judged unfinished, and judged by when it began
a long one is never seen again. So what counts here is its latest event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from evalr.errors import InputError
from evalr.inputs import Input, Session

QUIET = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Readiness:
    """When an input is ready to be judged: when it has been quiet for a while, or is at its end.

    What comes later makes it wait again, and be judged again. A session that was `closed`, with nothing after that, is
    at its end.

    Args:
        quiet: how long nothing has happened; ten minutes by default. At exactly that, it is ready.
        ended: of an input, whether it is at its end for a reason that `closed` does not say.
    """

    quiet: timedelta = QUIET
    ended: Callable[[Any], bool] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.quiet, timedelta) or self.quiet < timedelta(0):
            raise InputError(f"quiet={self.quiet!r} must be a timedelta, not below 0")

    def ready_at(self, given: Input, arrived: datetime) -> datetime:
        """When it is ready, if nothing more happens.

        Args:
            given: the input.
            arrived: when it was seen. It stands in for the time of the last event where that is not known, or is yet to
                come: with a clock that is ahead, a session would never be quiet.
        """
        last = last_event(given)
        if last is None or last > arrived:
            last = arrived
        return last if self._is_over(given) else last + self.quiet

    def is_ready(self, given: Input, now: datetime) -> bool:
        """Whether it is ready at `now`."""
        return self.ready_at(given, now) <= now

    def became_ready(self, given: Input, *, since: datetime, now: datetime) -> bool:
        """Whether it became ready after `since`, and by `now`: what a job that looks now and then judges at `now`.

        With `since` the `now` of the look before, each reading of an input becomes ready in one look, however long ago
        it began. Where events arrive late, look a while further back, and leave out what has been judged.
        """
        return since < self.ready_at(given, now) <= now

    def _is_over(self, given: Input) -> bool:
        return is_closed(given) or (self.ended is not None and self.ended(given))


def is_closed(given: Input) -> bool:
    """Whether it is a session whose last activity has closed it."""
    return isinstance(given, Session) and bool(given.activities) and given.activities[-1].kind == "closed"


def last_event(given: Input) -> datetime | None:
    """The time of the last thing that happened in an input; its own time where it has no events.

    None where the last event has no time: when the input began says nothing of when it ended.
    """
    events = next((found for name in _EVENTS if isinstance(found := getattr(given, name, None), list)), None)
    if not events:
        return given.about().at
    if events[-1].at is None:
        return None
    times: list[datetime] = [event.at for event in events if event.at is not None]
    return max(times)


_EVENTS = ("activities", "turns", "revisions")
