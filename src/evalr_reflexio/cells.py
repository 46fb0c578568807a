"""What single cells of a log mean: times, flags, JSON, names. Each either says it or raises `Reason`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from pydantic_core import from_json

from evalr.input_fields import EARLIEST, LATEST
from evalr.inputs import Role
from evalr.logs.reasons import Reason, without_lone_escapes
from evalr.quoting import quoted
from evalr_reflexio.rows import Reference, ToolUse

FIRST_YEAR, END_YEAR = EARLIEST.year, LATEST.year
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Unreadable:
    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE: Final = _Unreadable()
"""What is in a request's metadata that is no JSON, or nested too deeply."""

KINDS_OF_LEARNING = frozenset(("profile", "user_playbook", "agent_playbook"))
KINDS_OF_CITATION = KINDS_OF_LEARNING | {"playbook"}
IMPACTS = ("positive", "neutral", "negative")
DIAGNOSES = ("content_defect", "application_failure", "external_failure", "no_issue", "unknown")
ACTIONS = ("click", "scroll", "type")
NO_ACTION = "none"

ROLES: Final[Mapping[str, Role]] = {
    "User": "person",
    "Agent": "agent",
    "user": "person",
    "human": "person",
    "person": "person",
    "agent": "agent",
    "assistant": "agent",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "internal": "system",
}


def role_of(raw: str) -> Role | None:
    """The role that a free text names; None where it is none that is known."""
    return ROLES.get(raw) or ROLES.get(raw.strip().casefold())


def instant(value: Any) -> datetime:
    """A time as any release writes it: ISO text, with or without a zone (then UTC), or seconds since 1970."""
    if type(value) is str:
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            time = _from_number(value)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    else:
        time = _from_number(value)
    if not FIRST_YEAR <= time.year < END_YEAR:
        raise Reason("absurd time")
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def _from_number(value: Any) -> datetime:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Reason("no time" if value is None else "unreadable time")
    try:
        return _EPOCH + timedelta(seconds=float(value))
    except (ValueError, OverflowError):
        raise Reason("unreadable time") from None


def name_of(value: Any, what: str) -> str:
    """A text that is not empty, or a whole number as one."""
    if type(value) is str and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Reason(f"no {what}" if value in (None, "") else f"wrong type in {quoted(what)}")


def text_of(value: Any) -> str:
    """A text; "" where there is none."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def text_or_none(value: Any) -> str | None:
    """A text, or None where there is none or nothing in it."""
    if type(value) is str:
        return value or None
    return None if value is None else text_of(value) or None


def whole_of(value: Any, what: str) -> int:
    """A whole number."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    raise Reason(f"wrong type in {quoted(what)}")


def count_of(value: Any, what: str) -> int | None:
    """A whole number from 0; None where there is none."""
    if value is None:
        return None
    number = whole_of(value, what)
    if number < 0:
        raise Reason(f"wrong value in {quoted(what)}")
    return number


def flag_of(value: Any, what: str) -> bool | None:
    """A flag as SQLite (0 or 1) or JSON keeps it; None where there is none."""
    if value is None or isinstance(value, bool):
        return value
    if value in (0, 1):
        return bool(value)
    raise Reason(f"wrong value in {quoted(what)}")


def json_of(value: Any, what: str) -> Any:
    """What a cell of JSON holds, or is: over HTTP it is no text any more. None where it is empty."""
    if value is None or value in ("", "null"):
        return None
    if not isinstance(value, str | bytes | bytearray):
        return value
    try:
        return from_json(value, allow_inf_nan=False)
    except ValueError:
        return _mended(value, what)


def _mended(value: str | bytes | bytearray, what: str) -> Any:
    """JSON in which half a character stands, as where an emoji was cut in two: it is read as U+FFFD."""
    mended, count = without_lone_escapes(value.encode() if isinstance(value, str) else bytes(value))
    try:
        return from_json(mended if count else b"", allow_inf_nan=False)
    except ValueError:
        raise Reason(f"unreadable {what}") from None


def metadata_of(value: Any) -> Any:
    """A request's metadata as JSON holds it. What cannot be read is `UNREADABLE`, which is no fault: it is untagged."""
    if value is None or isinstance(value, dict | list | bool | int | float):
        return value
    try:
        return from_json(value)
    except (ValueError, TypeError):
        pass
    try:
        return _mended(value, "metadata")
    except Reason:
        return UNREADABLE


def _list(value: Any, what: str) -> list[Any]:
    if type(value) is str and value:
        try:
            found = from_json(value, allow_inf_nan=False)
        except ValueError:
            found = _mended(value, what)
    else:
        found = json_of(value, what)
    if type(found) is list:
        return found
    if found is None:
        return []
    raise Reason(f"unreadable {what}")


def tools_of(value: Any) -> Sequence[ToolUse]:
    """The calls of tools in a turn."""
    found = _list(value, "tools_used")
    try:
        tools = [ToolUse(each["tool_name"], each.get("tool_data"), each.get("status")) for each in found]
    except (TypeError, KeyError, AttributeError):
        raise Reason("unreadable tools_used") from None
    for tool in tools:
        if type(tool.name) is not str or not (tool.status is None or type(tool.status) is str):
            raise Reason("unreadable tools_used")
    return tools


def are_tools(value: Any) -> bool:
    """Whether `tools_of` can read calls of tools, which are not made of them."""
    try:
        found = _list(value, "tools_used")
    except Reason:
        return False
    for each in found:
        if type(each) is not dict or type(each.get("tool_name")) is not str:
            return False
        status = each.get("status")
        if status is not None and type(status) is not str:
            return False
    return True


def citations_of(value: Any) -> Sequence[Reference]:
    """The learnings that an answer cites, each once."""
    return _known_citations(value) if type(value) is str else _citations(value)


def learnings_of(value: Any) -> Sequence[Reference]:
    """The learnings that an answer was given, each once."""
    return _known_learnings(value) if type(value) is str else _learnings(value)


def _citations(value: Any) -> Sequence[Reference]:
    return references_of(value, "citations", "real_id", KINDS_OF_CITATION)


def _learnings(value: Any) -> Sequence[Reference]:
    return references_of(value, "retrieved_learnings", "learning_id", KINDS_OF_LEARNING)


def references_of(value: Any, what: str, id_name: str, kinds: frozenset[str]) -> Sequence[Reference]:
    """The learnings that a turn names, each once."""
    found = _list(value, what)
    try:
        named = [Reference(each["kind"], each[id_name]) for each in found]
        is_plain = kinds.issuperset([kind for kind, _ in named])
    except (TypeError, KeyError):
        raise Reason(f"unreadable {what}") from None
    if not is_plain:
        raise Reason(f"unreadable {what}")
    for place, (kind, name) in enumerate(named):
        if type(name) is not str or not name:
            named[place] = Reference(kind, name_of(name, id_name))
    return tuple(named) if len(named) < 2 or len(set(named)) == len(named) else tuple(dict.fromkeys(named))


# The answers of a session, and of many, are given the same few learnings: the text is then the same, too.
_known_citations = lru_cache(maxsize=1024)(_citations)
_known_learnings = lru_cache(maxsize=1024)(_learnings)


def texts_of(value: Any, what: str) -> list[str] | None:
    """A list of texts; None where there is none."""
    found = json_of(value, what)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise Reason(f"unreadable {what}")
    return found


def diagnosis_of(value: Any) -> tuple[str, str | None, list[int]] | None:
    """(category, reason, interactions that it cites); None where there is none."""
    found = json_of(value, "diagnosis")
    if found is None:
        return None
    if not isinstance(found, dict) or found.get("category") not in DIAGNOSES:
        raise Reason("unreadable diagnosis")
    cited = found.get("evidence_interaction_ids") or []
    if not isinstance(cited, list) or not all(type(each) is int for each in cited):
        raise Reason("unreadable diagnosis")
    return found["category"], text_or_none(found.get("reason")), cited
