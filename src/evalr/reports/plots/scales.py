"""The axis of a number: what it is in, and where it begins.

A time begins at 0, and a difference has its 0 in sight. A share or a score may begin elsewhere, since points and not
bars say where it is; it is then said that it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from evalr.estimates.estimate import Estimate
from evalr.estimates.words import Unit, plural

_PERCENT = {"share": "%", "signed share": "% (net)", "points": "percentage points", "change": "% change"}
_TIMES = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))
_NARROWEST_SHARE = 20.0
"""In percent: less would make much of little."""


class Scale(NamedTuple):
    """An axis.

    `at` puts a value on it; `low` and `high` are its ends, in its own unit.
    """

    title: str
    factor: float
    low: float
    high: float
    difference: bool
    """Whether 0 means that there is none, so that a line is drawn there."""

    def at(self, value: float | None) -> float | None:
        """Where a value is."""
        return None if value is None else round(value * self.factor, 6)

    def spec(self) -> dict[str, Any]:
        """The scale of an encoding."""
        return {"domain": [self.low, self.high], "nice": False, "zero": False}

    def words(self) -> str:
        """What stands beside the axis: what it is in, and where it begins if that is not at 0."""
        cut = not self.difference and self.low > 0
        return f"{self.title}, from {self.low:g} and not from 0" if cut else self.title


def scale_of(unit: Unit, values: Iterable[float | None]) -> Scale:
    """The axis that holds all values."""
    known = [value for value in values if value is not None]
    least, most = min(known, default=0.0), max(known, default=0.0)
    if unit == "seconds":
        reach = max(abs(least), abs(most))
        size, title = next(((size, title) for size, title in _TIMES if reach >= 2 * size), _TIMES[-1])
        high = _above(reach / size)
        return Scale(title, 1 / size, -high if least < 0 else 0.0, high, least < 0)
    if unit in _PERCENT:
        least, most = 100 * least, 100 * most
        if unit == "share":
            return Scale("%", 100, *_share_ends(least, most), False)
        reach = _above(max(abs(least), abs(most), 1.0))
        return Scale(_PERCENT[unit], 100, -reach, reach, True)
    title = unit if unit in ("number", "score", "nats") else plural(unit) if not unit.endswith("s") else unit
    if least < 0:
        reach = _above(max(abs(least), abs(most)))
        return Scale(title, 1, -reach, reach, True)
    room = (most - least) * 0.15
    near_zero = least < most / 2 or not room
    return Scale(title, 1, 0.0 if near_zero else _below(least - room), _above(most + (0 if near_zero else room)), False)


def scale_for(estimates: Iterable[Estimate], *, difference: bool = False) -> Scale:
    """The axis that holds estimates of one unit, with their intervals; of differences, with 0 in its middle."""
    listed = list(estimates)
    unit = listed[0].unit if listed else "share"
    scale = scale_of(unit, (limit for each in listed for limit in (each.value, each.low, each.high)))
    if not difference or scale.difference:
        return scale
    return scale._replace(low=-scale.high, difference=True)


def _share_ends(least: float, most: float) -> tuple[float, float]:
    low, high = max(0.0, 10 * ((least - 2) // 10)), min(100.0, -10 * ((-most - 2) // 10))
    if high - low < _NARROWEST_SHARE:
        low, high = (high - _NARROWEST_SHARE, high) if high >= _NARROWEST_SHARE else (0.0, _NARROWEST_SHARE)
    return (0.0, high) if low <= high / 3 else (low, high)


def _above(value: float) -> float:
    """A round number a little above."""
    return _round(value * 1.05)


def _below(value: float) -> float:
    return max(0.0, -_round(-value) if value < 0 else _step(value) * (value // _step(value)))


def _round(value: float) -> float:
    if value <= 0:
        return 1.0
    step = _step(value)
    return float(f"{step * -(-value // step):.6g}")


def _step(value: float) -> float:
    from math import floor, log10

    return float(10 ** (floor(log10(value))) / 5)
