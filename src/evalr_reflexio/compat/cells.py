"""Cells as Reflexio's own types take them: what those refuse breaks its whole answer, and is a Reason here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from evalr.logs.reasons import Reason
from evalr.quoting import quoted
from evalr_reflexio.cells import KINDS_OF_LEARNING

STATUS_LENGTH = 100

LARGEST = 2**63 - 1
"""No whole number in an SQLite database is larger."""

REGULAR_VS_SHADOW = frozenset(
    ("regular_is_better", "regular_is_slightly_better", "shadow_is_better", "shadow_is_slightly_better", "tied")
)


def json_of(text: Any, what: str) -> Any:
    """What a cell of JSON holds; None where there is nothing in it."""
    if not text:
        return None
    try:
        return from_json(text)
    except (ValueError, TypeError):
        pass
    try:
        return json.loads(text)  # which takes a half of a surrogate pair, as Reflexio does
    except (ValueError, TypeError, RecursionError):
        raise Reason(f"unreadable {what}") from None


def whole_of(value: Any, what: str) -> int:
    """A whole number, also as a text or a float of one."""
    if type(value) is int:
        return value
    try:
        number = int(value) if isinstance(value, str) else value
        if int(number) == number and abs(number) <= LARGEST:
            return int(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise Reason(f"wrong type in {quoted(what)}")


def count_of(value: Any, what: str) -> int:
    """A whole number from 0."""
    number = whole_of(value, what)
    if number < 0:
        raise Reason(f"wrong value in {quoted(what)}")
    return number


def name_of(value: Any, what: str) -> str:
    """A text."""
    if type(value) is not str:
        raise Reason(f"wrong type in {quoted(what)}")
    return value


def name_or_none(value: Any, what: str) -> str | None:
    """A text, or None."""
    return None if value is None else name_of(value, what)


def tags_of(text: Any) -> list[str] | None:
    """The tags of a verdict; None where it has none yet."""
    found = json_of(text, "tags")
    if found is not None and not (isinstance(found, list) and all(type(each) is str for each in found)):
        raise Reason("unreadable tags")
    return found


def regular_vs_shadow_of(value: Any) -> str | None:
    """What releases up to 0.2.23 said of both answers of a session."""
    if value and value not in REGULAR_VS_SHADOW:
        raise Reason("wrong value in 'regular_vs_shadow'")
    return value or None


def tools_of(text: Any) -> list[dict[str, Any]]:
    """The tools of a turn."""
    found = json_of(text, "tools_used")
    return [_tool(each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _tool(given: Mapping[str, Any]) -> dict[str, Any]:
    data = given.get("tool_data", {})
    if type(given.get("tool_name")) is not str or not isinstance(data, dict):
        raise Reason("unreadable tools_used")
    status = given.get("status", "")
    return {
        "tool_name": given["tool_name"],
        "tool_data": data,
        "status": "" if status is None else str(status)[:STATUS_LENGTH],
    }


def learnings_of(text: Any) -> list[dict[str, Any]]:
    """The learnings that an answer was given."""
    found = json_of(text, "retrieved_learnings")
    return [_learning(each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _learning(given: Mapping[str, Any]) -> dict[str, Any]:
    name = given.get("learning_id")
    if given.get("kind") not in KINDS_OF_LEARNING or type(name) is not str or not name:
        raise Reason("unreadable retrieved_learnings")
    kept = ("kind", "learning_id", "exposure_receipt", "exposure_receipt_digest")
    return {key: given[key] for key in kept if given.get(key) is not None}
