"""Numbers as people read them: shares, durations, counts. Every printed estimate, table and report uses these."""

from __future__ import annotations

from datetime import timedelta
from math import floor, isfinite, log10
from typing import Literal

Unit = Literal["share", "seconds"] | str
"""What an estimate's value is in: a share of 0..1, seconds, or any other word, such as "turns"."""

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def duration_words(seconds: float) -> str:
    """A duration in its two largest units: `2m 10s`, `1h`, `3d 4h`, `0.4s`."""
    if seconds < 0:
        return "-" + duration_words(-seconds)
    if seconds < 10:
        return f"{_significant(seconds, 2)}s"
    whole = round(seconds)
    for index, (size, letter) in enumerate(_STEPS):
        if whole < size:
            continue
        if index + 1 == len(_STEPS):
            return f"{whole}{letter}"
        next_size, next_letter = _STEPS[index + 1]
        count, rest = divmod(round(whole / next_size), size // next_size)
        return f"{count}{letter} {rest}{next_letter}" if rest else f"{count}{letter}"
    return "0s"


def window_words(window: timedelta) -> str:
    """A window in full, as the command line takes it: `1h`, `14d`, `1h30m`, `0.5s`."""
    seconds = window.total_seconds()
    words = ""
    for size, letter in _STEPS[:-1]:
        count, seconds = divmod(seconds, size)
        if count:
            words += f"{int(count)}{letter}"
    return f"{words}{seconds:g}s" if seconds or not words else words


def number_words(value: float) -> str:
    """A plain number with three significant digits, or all of a whole number's."""
    if not isfinite(value):
        raise ValueError(f"{value} is not a number to print")
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    return _significant(value, 3)


def value_words(value: float | None, unit: Unit) -> str:
    """A value in its unit: `94.2%`, `2m 10s`, `3.41`; an em dash where there is none."""
    if value is None:
        return "—"
    if unit == "share":
        return f"{share_digits(value)}%"
    if unit == "seconds":
        return duration_words(value)
    return number_words(value)


def interval_words(low: float | None, high: float | None, unit: Unit) -> str:
    """An interval in brackets; `…` stands for a limit that the log does not reach, and no interval is empty."""
    if low is None and high is None:
        return ""
    if unit == "share":
        limits = ["…" if limit is None else share_digits(limit) for limit in (low, high)]
    else:
        limits = ["…" if limit is None else value_words(limit, unit) for limit in (low, high)]
    return f"[{limits[0]}, {limits[1]}]"


def share_digits(value: float) -> str:
    """A share in percent with one decimal, and never a 0 or 100 that is not one."""
    percent = 100 * value
    if 0 < percent < 0.05:
        return "<0.1"
    if 99.95 <= percent < 100:
        return ">99.9"
    return f"{percent:.1f}"


def count_words(count: int, noun: str) -> str:
    """`1 wait`, `8,310 waits`; a noun ending in y or s is expected to be given in a form that takes s, or as `x/xs`."""
    one, _, many = noun.partition("/")
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:,.{decimals}f}"
