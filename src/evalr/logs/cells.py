"""What a cell of a frame holds: whether it is missing, the name that it is, the time that it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Literal
from uuid import UUID

from evalr.logs.reasons import Reason

Epoch = Literal["s", "ms", "us", "ns"]
"""What a number that is a time counts since 1970 (UTC): seconds, or thousandths, millionths, billionths of them."""

NAIVE = "naive time"
NUMBER = "number for a time"
NO_HOUR = "date without a time of day"
ABSURD = "absurd time"
UNREADABLE = "unreadable time"

_PER_SECOND: dict[Epoch, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_START = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_DATE = len("2026-09-28")


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, an empty text, or what a library writes instead, such as NaN, NaT and NA."""
    if value is None:
        return True
    kind = type(value)
    if kind is str:
        return not value
    if kind is int or kind is bool:
        return False
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | date) or (kind.__module__ == "numpy" and value.ndim == 0):
        return bool(value != value)  # noqa: PLR0124  which is how a NaN and a NaT are known
    return kind.__name__ == "NAType"


def plain(value: Any) -> Any:
    """The value as Python has it, where it is a single one of NumPy's, or a choice of an enumeration."""
    if isinstance(value, Enum):
        return value.value
    if type(value).__module__ == "numpy":
        return value.tolist()
    return value


def to_name(value: Any) -> Any:
    """The value as a name: whole numbers without the point that a column gets where others are missing."""
    if type(value) is str:
        return value
    value = plain(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float | Decimal) and isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, int | UUID):
        return str(value)
    return value.isoformat() if isinstance(value, date) else value


def to_groups(value: Any) -> list[Any]:
    """The names of a cell that may hold several."""
    if type(value) is str:
        return [value]
    value = plain(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_name(each) for each in value if not is_missing(each)]
    return [to_name(value)]


class Times:
    """Reads cells as times.

    A time with a zone is what it is. A naive one is read by the clock of `zone`: a time that this clock skipped does
    not exist, and of one that it showed twice the first is taken (or the second, where the time itself says so by its
    `fold`), and counted. A number is a time only where `epoch` says what it counts. Digits beyond microseconds are cut.
    """

    def __init__(self, zone: tzinfo | None, epoch: Epoch | None) -> None:
        self.zone, self.epoch = zone, epoch
        self.twice: Counter[str] = Counter()

    def read(self, value: Any) -> datetime:
        """The time in UTC.

        Raises:
            Reason: it is none.
        """
        time = self._time(value)
        try:
            if time.tzinfo is None:
                time = self._localised(time)
            return time.astimezone(UTC)
        except (OverflowError, ValueError):
            raise Reason(ABSURD) from None

    def _time(self, value: Any) -> datetime:
        if type(value) is datetime:
            return value
        if isinstance(value, datetime):
            as_python = getattr(value, "to_pydatetime", None)  # of a pandas Timestamp
            return value if as_python is None else as_python(warn=False)
        if isinstance(value, str):
            return _from_text(value)
        if type(value).__module__ == "numpy":
            value = value.tolist() if value.dtype.kind != "M" else _from_numpy(value)
            if isinstance(value, datetime):
                return value
        if isinstance(value, date):
            raise Reason(NO_HOUR)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return self._from_number(value)
        raise Reason(UNREADABLE)

    def _from_number(self, value: float | Decimal) -> datetime:
        if self.epoch is None:
            raise Reason(NUMBER)
        try:
            # In whole numbers where it is one: a float has no digits for a billionth of a second of today.
            whole, rest = divmod(value, _PER_SECOND[self.epoch])
            part = round(rest * 1_000_000 / _PER_SECOND[self.epoch])
            return _START + timedelta(seconds=int(whole), microseconds=int(part))
        except (ArithmeticError, ValueError):
            raise Reason(ABSURD) from None

    def _localised(self, naive: datetime) -> datetime:
        if self.zone is None:
            raise Reason(NAIVE)
        given = naive.replace(tzinfo=self.zone)
        if given.astimezone(UTC).astimezone(self.zone).replace(tzinfo=None, fold=0) != naive.replace(fold=0):
            raise Reason("time that the clock skipped")
        if naive.fold == 0 and given.utcoffset() != given.replace(fold=1).utcoffset():
            self.twice[str(self.zone)] += 1
        return given


def _from_text(text: str) -> datetime:
    text = text.strip()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise Reason(UNREADABLE) from None
    if len(text) <= _LONGEST_DATE:
        raise Reason(NO_HOUR)
    return time


def _from_numpy(value: Any) -> date:
    if isinstance(day := value.tolist(), date):
        return day  # or a time: both are dates to Python
    try:
        time = value.astype("datetime64[us]").tolist()
    except OverflowError:
        raise Reason(ABSURD) from None
    if not isinstance(time, datetime):
        raise Reason(ABSURD)
    return time
