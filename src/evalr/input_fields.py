"""The types of an input's fields: what each lets in, and what it becomes.

Each is checked in the validator's compiled code: a Python call per field would halve the reading speed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from numbers import Integral
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import (
    CoreSchema,
    PydanticSerializationError,
    core_schema,
    from_json,
    to_json,
    to_jsonable_python,
)

EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)

TIME_RULE = (
    "a time needs its zone and a year from 1900 to 2199: write it as 2026-09-28T09:00:00Z or with an offset such as "
    "+02:00; in Python, datetime(..., tzinfo=UTC)"
)


def _to_utc(time: datetime) -> datetime:
    return time.astimezone(UTC)


class _TimeType:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        aware = core_schema.datetime_schema(tz_constraint="aware", ge=EARLIEST, lt=LATEST)
        # Python compares and subtracts times of one zone by the clock on the wall, an hour off when that clock changes.
        # Only Python's own times have such zones: a text has an offset, and needs no call.
        text = core_schema.chain_schema([core_schema.str_schema(strict=True), aware])
        other = core_schema.no_info_after_validator_function(_to_utc, aware)
        given = core_schema.json_or_python_schema(
            json_schema=aware, python_schema=core_schema.union_schema([text, other], mode="left_to_right")
        )
        return core_schema.custom_error_schema(given, "time", custom_error_message=TIME_RULE)


def without_lone_surrogates(text: str) -> str:
    """The text with each lone surrogate, which no file or database can store, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _repaired_text(value: object) -> str:
    if isinstance(value, str) and value:
        return without_lone_surrogates(value)
    raise ValueError("not a text")


def _repaired_name(value: object) -> str:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    # What stands for a missing number in a frame (NaN) is no name.
    if whole or (isinstance(value, float | Decimal) and isfinite(value)):
        return str(value)
    return _repaired_text(value)


class _TextType:
    """A text that can be stored anywhere: lone surrogates are replaced on the way in."""

    min_length = 0
    numbers = False
    rule = "must be a text"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        # The length limit makes the compiled check refuse a lone surrogate, which only then costs a Python call.
        clean = core_schema.str_schema(min_length=cls.min_length)
        repair = core_schema.no_info_plain_validator_function(_repaired_name if cls.numbers else _repaired_text)
        either = core_schema.union_schema([clean, repair], mode="left_to_right")
        return core_schema.custom_error_schema(either, "text", custom_error_message=cls.rule)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        length = {"minLength": cls.min_length} if cls.min_length else {}
        return {"type": ["string", "number"] if cls.numbers else "string", **length}


class _NameType(_TextType):
    """An id or a name: not empty; a number in a log counts as its text."""

    min_length = 1
    numbers = True
    rule = "must be a text that is not empty, or a number"


class _GroupsType(_NameType):
    rule = "must be a text, a number or a list of them, none of them empty"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        one = super().__get_pydantic_core_schema__(source, handler)
        either = core_schema.union_schema([one, core_schema.list_schema(one)], mode="left_to_right")
        return core_schema.custom_error_schema(either, "text", custom_error_message=cls.rule)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        one = super().__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [one, {"type": "array", "items": one}]}


def _no_text(value: object) -> object:
    return "" if value is None else value


class _TurnTextType(_TextType):
    """Logs write null where an agent only called tools."""

    rule = "must be a text or null"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = super().__get_pydantic_core_schema__(source, handler)
        empty = core_schema.chain_schema(
            [core_schema.none_schema(), core_schema.no_info_plain_validator_function(_no_text)]
        )
        either = core_schema.union_schema([text, empty], mode="left_to_right")
        return core_schema.custom_error_schema(either, "text", custom_error_message=cls.rule)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": ["string", "null"]}


def _as_json(value: object) -> Any:
    return from_json(to_json(value, inf_nan_mode="null"))


def _storable(value: object) -> Any:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    try:
        try:
            return _as_json(value)
        except PydanticSerializationError:  # a lone surrogate in it, if nothing worse
            import json

            text = json.dumps(value, ensure_ascii=False, default=to_jsonable_python)
            return _as_json(from_json(without_lone_surrogates(text)))
    except (TypeError, ValueError, RecursionError):
        raise ValueError("must be made of what JSON holds: texts, numbers, true, false, null, lists, maps") from None


class _OpenType:
    """What else a log says, as JSON holds it, so that it reads back equal: NaN and infinities become null."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(_storable, handler(source))


Time = Annotated[datetime, _TimeType]
"""A time with its zone, from 1900 to 2199, kept in UTC."""

Text = Annotated[str, _TextType]
"""Any text. A lone surrogate, which nothing can store, becomes U+FFFD."""

TurnText = Annotated[str, _TurnTextType]
"""As `Text`; null, as logs write where an agent only called tools, becomes the empty text."""

Name = Annotated[str, _NameType]
"""A text that is not empty. A number in a log becomes its text."""

Groups = Annotated[str | list[str], _GroupsType]
"""One name or several."""

Attributes = dict[Name, Groups]
"""One name or several by name, such as `{"agent": "writer", "topic": ["billing", "refunds"]}`."""

Open = Annotated[Any, _OpenType]
"""Whatever JSON holds. NaN and infinities become null."""

OpenMap = Annotated[dict[str, Any], _OpenType]
"""Whatever a JSON object holds, as `Open`."""
