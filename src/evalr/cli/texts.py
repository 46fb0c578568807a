"""What people write on the command line, read: lengths of time, times, settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from evalr.errors import InputError
from evalr.input_fields import EARLIEST, LATEST

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LENGTH = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[wdhms])+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([wdhms])")

LENGTH_RULE = "write a length of time as 90s, 10m, 1h, 1h30m, 2d or 2w"
TIME_RULE = (
    "write a time as 2026-09-28T09:00:00Z, with an offset such as +02:00, or as a date, which begins at midnight UTC"
)


def read_arms(text: str) -> tuple[str, str]:
    """`treatment:holdout` as the names of two arms."""
    treatment, colon, control = text.partition(":")
    if not (treatment and colon and control) or ":" in control:
        raise InputError(f"{text!r} does not name two arms: write treatment:control, by the names that they have")
    return treatment, control


def read_length(text: str) -> timedelta:
    """`90s`, `1h30m`, `2w` as a timedelta."""
    if not _LENGTH.fullmatch(text):
        raise InputError(f"{text!r} is not a length of time: {LENGTH_RULE}")
    parts = _PART.findall(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    units = [unit for _, unit in parts]
    if len(set(units)) < len(units):
        raise InputError(f"{text!r} names a unit twice: {LENGTH_RULE}")
    try:
        length = timedelta(seconds=seconds)
    except OverflowError as error:
        raise InputError(f"{text!r} is too long a time") from error
    if not length:
        raise InputError(f"{text!r} is no time at all: {LENGTH_RULE}")
    return length


def read_time(text: str) -> datetime:
    """An ISO 8601 time with its zone, or a date, which stands for its midnight in UTC."""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            found = datetime.combine(date.fromisoformat(text), time(), UTC)
        else:
            found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{text!r} is not a time: {TIME_RULE}") from error
    if found.tzinfo is None:
        raise InputError(f"{text!r} has no time zone: {TIME_RULE}")
    if not EARLIEST <= found < LATEST:
        raise InputError(f"{text!r} is not in the years from {EARLIEST.year} to {LATEST.year - 1}")
    return found


def read_setting(text: str, defaults: Mapping[str, Any]) -> tuple[str, Any]:
    """`threshold=0.3` as a name and a value of the kind that the setting's default is of."""
    name, equals, value = text.partition("=")
    if not equals or name not in defaults:
        raise InputError(
            f"--set {text}: write NAME=VALUE, where NAME is one of {', '.join(sorted(defaults)) or 'none'}"
        )
    return name, _as_default(name, value, defaults[name])


def _as_default(name: str, value: str, default: Any) -> Any:
    if isinstance(default, timedelta):
        return read_length(value)
    if isinstance(default, tuple):
        return (value,)
    if isinstance(default, bool):
        if value not in ("true", "false"):
            raise InputError(f"--set {name}={value}: write true or false")
        return value == "true"
    if isinstance(default, int | float):
        try:
            return type(default)(value)
        except ValueError as error:
            raise InputError(f"--set {name}={value}: write a number, such as {default}") from error
    return value
