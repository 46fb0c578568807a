"""Why a record cannot be used, in a few words that are the same for every record with the same fault."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evalr.quoting import quoted

NOT_JSON = "not JSON"
NOT_UTF_8 = "not UTF-8"
TOO_LARGE = "number too large"
TOO_DEEP = "nested too deeply"
NOT_AN_OBJECT = "not a JSON object"
NO_TYPE = "neither type nor activities, revisions, turns, shadow or learning"

_MISFITS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number", "value_error")
_any_time = TypeAdapter(datetime)


class Reason(Exception):  # noqa: N818  it is no error: the log goes on
    """Why a record is left out."""


def fault(error: ValidationError, *within: str) -> str:
    """The first thing that is wrong with a record, such as `naive time`, `missing field 'id'` or `unknown role 'x'`."""
    first = error.errors(include_url=False, include_context=False)[0]
    # Inside a union the place goes on with the validator's own words, which have brackets.
    place = [part for part in first["loc"] if isinstance(part, str) and "[" not in part]
    name = ".".join((*within, *place))
    if first["type"] == "missing":
        return f"missing field {quoted(name)}"
    if first["type"] == "time":
        return time_fault(first["input"])
    if place and place[-1] in ("role", "status") and isinstance(first["input"], str):
        return f"unknown {place[-1]} {quoted(first['input'])}"
    if first["input"] == "":
        return f"empty field {quoted(name)}"
    return f"wrong {'value' if first['type'] in _MISFITS else 'type'} in {quoted(name)}"


def time_fault(given: Any) -> str:
    """What is wrong with a time: it is naive, absurd (before 1900 or after 2199), or cannot be read."""
    try:
        time = _any_time.validate_python(given)
    except ValidationError:
        return "unreadable time"
    return "naive time" if time.tzinfo is None else "absurd time"


def text_fault(line: bytes, message: str) -> str:
    """Why a line is not JSON."""
    for sign, reason in (("recursion", TOO_DEEP), ("out of range", TOO_LARGE)):
        if sign in message:
            return reason
    try:
        line.decode()
    except UnicodeDecodeError:
        return NOT_UTF_8
    return NOT_JSON


_ESCAPE = re.compile(
    rb"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)


def without_lone_escapes(line: bytes) -> tuple[bytes, int]:
    r"""A line of JSON with each escape of a lone surrogate, such as `\ud83d`, as `\ufffd`, and how many there were."""
    found = 0

    def mended(match: re.Match[bytes]) -> bytes:
        nonlocal found
        escape = match[0]
        if len(escape) == 6 and escape[:2] == b"\\u":
            found += 1
            return b"\\ufffd"
        return escape

    return _ESCAPE.sub(mended, line), found
