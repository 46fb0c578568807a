"""Rows: whole inputs as plain dicts, for measures that are to be fast on millions of them.

A row is what a validated line holds, under the names that the input's fields have; fields that it does not name are
absent. The types are the input's own, so that a line is a row exactly where it is an input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from evalr.input_fields import Attributes, Name, Time
from evalr.inputs import Input, Role, Session

RowReader: TypeAlias = Callable[[Any, datetime], None]
"""Adds to its columns what the evaluator says of one row, or of the parts of it, at its reading time."""


class ActivityRow(TypedDict):
    """An `Activity`."""

    at: Time
    role: Role
    kind: Annotated[Name, Field(default="message")]
    ref: NotRequired[Name | None]


class SessionRow(TypedDict):
    """A `Session`. Its activities are in the order of their times, and none is later than the reading time."""

    id: Name
    user: NotRequired[Name | None]
    arm: NotRequired[Name | None]
    at: NotRequired[Time | None]
    read_at: NotRequired[Time | None]
    attributes: NotRequired[Attributes]
    weight: NotRequired[Annotated[float | None, Field(gt=0, allow_inf_nan=False)]]
    activities: list[ActivityRow]


class RowForm(NamedTuple):
    """How the rows of one type of input look."""

    model: type[Input]
    row: Any
    """The type of a row."""
    events: str
    """Its field of events, which have times."""
    event: Any
    """The type of one event."""


ROW_FORMS: Mapping[type[Input], RowForm] = {Session: RowForm(Session, SessionRow, "activities", ActivityRow)}
"""The types of input that have a row form."""


class OpenSince:
    """Since when the proposals of a row have been open, as its activities go by; see `OpenProposals`."""

    __slots__ = ("_named", "_unnamed")

    def __init__(self) -> None:
        self._named: dict[str, datetime] = {}
        self._unnamed: deque[datetime] = deque()

    def see(self, activity: ActivityRow) -> datetime | None:
        """Take the next activity in. Returns since when the proposal that it resolves was open, if it resolves one."""
        kind, ref = activity["kind"], activity.get("ref")
        if kind == "proposal":
            if activity["role"] != "agent":
                return None
            if ref is None:
                self._unnamed.append(activity["at"])
            else:
                self._named.setdefault(ref, activity["at"])
        elif kind == "resolution":
            if ref is not None:
                return self._named.pop(ref, None)
            if self._unnamed:
                return self._unnamed.popleft()
        return None

    def oldest(self) -> datetime | None:
        """Since when the one that has been open for longest is open, if one is."""
        named = next(iter(self._named.values()), None)
        if not self._unnamed:
            return named
        return self._unnamed[0] if named is None else min(named, self._unnamed[0])

    def close(self) -> list[datetime]:
        """Take out and return all that are still open."""
        left = [*self._named.values(), *self._unnamed]
        self._named.clear()
        self._unnamed.clear()
        return left
