"""Results as a journal holds them: in the form of a log's result lines, and read back as they were.

A log's reader mends what it reads (a lone surrogate becomes U+FFFD, a number that is not finite becomes null). A
journal must not: whoever reads a result from it gets what the evaluator gave. So it writes the same fields as Python
spells JSON, in which such values have a spelling.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from evalr.errors import JournalError
from evalr.inputs import About
from evalr.plain import ascii_text, from_json_text, value_fields
from evalr.quoting import quoted, safe_text
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict, describe


def to_text(result: Result[Any], verdict_type: type[BaseModel]) -> str:
    """The line that stands for a result. It leaves out `about.repeat`, which is a part of the key.

    A value of a subclass of the verdict type has the name of its type beside it.

    Raises:
        JournalError: it would not be read back as it is, such as a value of another type than the promised one.
    """
    try:
        text = ascii_text(_fields(result, verdict_type))
        again = ascii_text(_fields(from_text(text, verdict_type), verdict_type))
    except (TypeError, ValueError, RecursionError, JournalError) as error:
        raise JournalError(f"{_named(result)} cannot be written to a journal: {error}", unsaved=(result,)) from error
    if again != text:
        wrong = "its values are changed when they are validated once more"
        raise JournalError(f"{_named(result)} would not be read back from a journal: {wrong}", unsaved=(result,))
    return text


def plain_fields(result: Result[Any]) -> dict[str, Any]:
    """A result in plain types, as a log's line has it; an unknown latency or cost is None."""
    verdict = result.verdict if isinstance(result, HandOff) else result
    kind = type(verdict.value) if isinstance(verdict, Verdict) else BaseModel
    fields: dict[str, Any] = from_json_text(ascii_text(_fields(result, kind)))
    del fields["type"]
    return {"latency": None, "cost": None, **fields}


def from_text(text: str, verdict_type: type[BaseModel], repeat: int | None = None) -> Result[Any]:
    """The result that a line stands for, with `repeat` in its `about`.

    Raises:
        JournalError: it is no such line, or its value is none of the verdict type.
    """
    try:
        return _result(from_json_text(text), verdict_type, repeat)
    except ValidationError as error:
        what = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, what["loc"]))
        raise JournalError(
            f"a stored verdict is no {verdict_type.__name__} ({safe_text(place)}: {safe_text(what['msg'])}): give the "
            "evaluator another version when its verdict type changes, so that it is asked again"
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JournalError(f"a stored result cannot be read, and may be damaged: {type(error).__name__}") from error


def _named(result: Result[Any]) -> str:
    return f"the result of {describe(result)} by {quoted(str(result.evaluator))}"


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _kind_named(name: str, verdict_type: type[BaseModel]) -> type[BaseModel]:
    """The kind of verdict of that name: one that is based on the promised type, the newest where one was replaced."""
    found: list[type[BaseModel]] = [verdict_type]
    for kind in found:
        found += kind.__subclasses__()
    for kind in reversed(found):
        if _name_of(kind) == name:
            return kind
    raise JournalError(f"a stored verdict is a {safe_text(name)}, which is not defined here: import it first")


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


def _fields(result: Result[Any], verdict_type: type[BaseModel]) -> dict[str, Any]:
    about = None if result.about is None else _about_fields(result.about)
    fields: dict[str, Any] = {
        "type": "result",
        "status": result.status,
        "evaluator": result.evaluator,
        "version": result.version,
        "about": about,
        "latency": result.latency,
        "cost": result.cost,
        "as_of": _time_text(result.as_of),
    }
    if isinstance(result, Verdict):
        fields["value"] = value_fields(result.value)
        kind = type(result.value)
        if kind is not verdict_type:
            fields["value_type"] = _name_of(kind)
            if _kind_named(fields["value_type"], verdict_type) is not kind:
                raise TypeError(f"there are several types named {fields['value_type']}")
        fields["confidence"] = None if result.confidence is None else dict(result.confidence)
        fields["flags"] = list(result.flags) or None
        fields["given_by"] = result.given_by
    elif isinstance(result, Failure):
        fields["error"] = result.error
    else:
        fields["reason"] = result.reason
        if isinstance(result, HandOff) and result.verdict is not None:
            fields["verdict"] = _fields(result.verdict, verdict_type)
    return {name: value for name, value in fields.items() if value is not None}


def _about_fields(about: About) -> dict[str, Any]:
    fields = about._asdict() | {"at": _time_text(about.at), "read_at": _time_text(about.read_at), "repeat": None}
    return {name: value for name, value in fields.items() if value is not None}


def _time_text(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat()


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


def _result(line: dict[str, Any], verdict_type: type[BaseModel], repeat: int | None) -> Result[Any]:
    get, status = line.get, line["status"]
    about = _about(line["about"], repeat) if "about" in line else None
    as_of = _time(line["as_of"]) if "as_of" in line else None
    if status == "verdict":
        kind = _kind_named(line["value_type"], verdict_type) if "value_type" in line else verdict_type
        value = kind.__pydantic_validator__.validate_python(line["value"], by_alias=False, by_name=True)
        evaluator, version = line["evaluator"], line["version"]
        told = (get("confidence"), get("latency"), get("cost"), as_of, tuple(get("flags", ())), get("given_by"))
        return Verdict(value, evaluator, version, about, *told)
    shared = (get("evaluator"), get("version"), about, get("latency"), get("cost"), as_of)
    if status == "failed":
        return Failure(line["error"], *shared)
    if status == "skipped":
        return Skip(line["reason"], *shared)
    if status != "handed_off":
        raise ValueError(status)
    inner = _result(line["verdict"], verdict_type, None) if "verdict" in line else None
    return HandOff(line["reason"], *shared, inner if isinstance(inner, Verdict) else None)


def _about(fields: dict[str, Any], repeat: int | None) -> About:
    get = fields.get
    return About(
        fields["kind"],
        get("id"),
        get("user"),
        get("session"),
        _time(get("at")),
        _time(get("read_at")),
        get("arm"),
        get("weight"),
        get("attributes"),
        repeat,
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
