"""Shares, differences of shares and splits as people write them on the command line: one spelling for one meaning."""

from __future__ import annotations

import re
from math import isfinite

from evalr.errors import InputError
from evalr.estimates.words import value_words
from evalr.quoting import quoted

_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_SHARE = re.compile(rf"({_NUMBER})(%?)")
_POINTS = re.compile(rf"([+-]?{_NUMBER})pp")
_TIMES = re.compile(rf"x({_NUMBER})")
_WHOLE = re.compile(r"[0-9]{1,15}")

LIFT_RULE = "write 5pp or -5pp for percentage points, or x1.1 for 1.1 times the rate"
SPLIT_RULE = "write 90:10, or treatment=90,control=10 by name"


def read_share(text: str, option: str) -> float:
    """`70%` or `0.7`."""
    found = _SHARE.fullmatch(text)
    share = -1.0 if found is None else float(found[1]) / (100 if found[2] else 1)
    if not 0 <= share <= 1:
        meant = f"; did you mean {text}%?" if found and 1 < share <= 100 and not found[2] else ""
        raise InputError(f"{option} {quoted(text)} is not a share: write it as 70% or 0.7{meant}")
    return share


def read_amount(text: str, option: str) -> float:
    """`3` or `2.5`."""
    found = _SHARE.fullmatch(text)
    if found is None or found[2] or not isfinite(float(text)):
        raise InputError(f"{option} {quoted(text)} is not a number of 0 or more: write it as 3 or 2.5")
    return float(text)


def lifted(rate: float, lift: str) -> float:
    """What a rate becomes: `5pp` more percentage points, `-5pp` fewer, `x1.1` for 1.1 times the rate."""
    points, times = _POINTS.fullmatch(lift), _TIMES.fullmatch(lift)
    if points is not None:
        found = rate + float(points[1]) / 100
    elif times is not None:
        found = rate * float(times[1])
    else:
        raise InputError(f"--lift {quoted(lift)} {_two_readings(lift)}: {LIFT_RULE}")
    # what is off by less than a float can say was meant to be the end
    if not -1e-12 <= found <= 1 + 1e-12:
        room = value_words(1 - rate, "points") if found > 1 else value_words(-rate, "points")
        end = "100%" if found > 1 else "0%"
        raise InputError(
            f"from {value_words(rate, 'share')}, --lift {quoted(lift)} goes beyond {end}: {_room_words(room)}"
        )
    return min(1.0, max(0.0, found))


def _two_readings(lift: str) -> str:
    number = re.fullmatch(rf"[+-]?{_NUMBER}%?", lift)
    return "is not a lift" if number is None else "may mean points or a part of the rate"


def _room_words(room: str) -> str:
    return "there is no room at all" if room == "0.0pp" else f"there is room for {room}"


def read_parts(text: str, option: str, rule: str = SPLIT_RULE) -> list[float]:
    """`90:10`, of any number of arms; in percent, `90%:10%`, where all of it is."""
    found = [_SHARE.fullmatch(part) for part in text.split(":")]
    parts = [float(each[1]) if each else -1.0 for each in found]
    if not all(part >= 0 and isfinite(part) for part in parts) or len({each and each[2] for each in found}) > 1:
        raise InputError(f"{option} {quoted(text)} is not a split: {rule}")
    return parts


def read_by_arm(text: str, option: str) -> dict[str, float]:
    """`treatment=90,control=10`."""
    named = [part.rpartition("=") for part in text.split(",")]
    parts = read_parts(":".join(number for _, _, number in named), option)
    arms = [name.strip() for name, _, _ in named]
    if not all(arms):
        raise InputError(f"{option} {quoted(text)} names no arm for a part of it: {SPLIT_RULE}")
    _check_once(arms)
    return dict(zip(arms, parts, strict=True))


def read_count(text: str) -> tuple[str, int]:
    """`treatment=880`: an arm and how many users are in it."""
    arm, _, count = text.rpartition("=")
    if not arm or _WHOLE.fullmatch(count) is None:
        raise InputError(f"{quoted(text)} is not an arm and its users: write treatment=880, in whole numbers")
    return arm, int(count)


def read_counts(texts: list[str]) -> dict[str, int]:
    """`treatment=880`, `control=120`: users by arm, each arm once."""
    counted = [read_count(text) for text in texts]
    _check_once([arm for arm, _ in counted])
    return dict(counted)


def is_count(text: str) -> bool:
    """Whether a text reads as an arm and how many users are in it."""
    arm, _, count = text.rpartition("=")
    return bool(arm) and _WHOLE.fullmatch(count) is not None


def _check_once(arms: list[str]) -> None:
    twice = next((arm for arm in arms if arms.count(arm) > 1), None)
    if twice is not None:
        raise InputError(f"the arm {quoted(twice)} is named twice")
