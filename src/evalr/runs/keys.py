"""What a stored result is the answer to: keys that are the same in every process, for the same question only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from pydantic import BaseModel

from evalr.errors import InputError
from evalr.inputs import Input
from evalr.quoting import safe_text

_SIZE = 20
_encoded = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode


MaybeSubject = tuple[str, str | None, str | None, str | None]
"""As a subject, but the id is None where an input has none."""


class Key(NamedTuple):
    """One question: which evaluator, of which input, which time.

    Attributes:
        subject: (kind, user, session, id) of the input; the id is None where it has none.
        evaluator: its name.
        version: its version.
        input: what `input_hash` gives.
        repeat: which time the input is judged, from 1.
        as_of: the reading time, where the answer depends on one.
        place: of several equal inputs without an id, which one, from 1.
    """

    subject: MaybeSubject
    evaluator: str
    version: str
    input: bytes
    repeat: int = 1
    as_of: datetime | None = None
    place: int = 1

    def digest(self) -> bytes:
        """20 bytes that stand for it."""
        as_of = None if self.as_of is None else self.as_of.astimezone(UTC).isoformat()
        parts = [*self.subject, self.evaluator, self.version, self.input.hex(), self.repeat, as_of, self.place]
        return blake2b(_encoded(parts).encode(), digest_size=_SIZE).digest()


def input_hash(given: Input) -> bytes:
    """20 bytes that change with any field of an input, and are the same in every process and version of Python.

    Fields that are None do not count, so that a field which a later version adds changes nothing until it is used. The
    order of a map's entries does not count either.

    Raises:
        InputError: a field holds something whose content cannot be read, such as an object of a class of one's own.
    """
    try:
        return blake2b(_encoded(_plain(given)).encode(), digest_size=_SIZE).digest()
    except RecursionError:
        raise InputError(f"a {safe_text(given.kind)} is nested too deeply to be hashed, or holds itself") from None


@cache
def _names(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(sorted(model.model_fields))


_LEAVES = frozenset({str, int, float, bool, type(None)})


def _plain(value: Any) -> Any:
    """The value as JSON holds it, where what JSON cannot tell apart is marked with its type."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is datetime:
        return "\0t" + (value if value.tzinfo is None or value.tzinfo is UTC else value.astimezone(UTC)).isoformat()
    if kind is list:
        return [item if type(item) in _LEAVES else _plain(item) for item in value]
    if kind is dict:
        return _mapping(value) if value else value
    if isinstance(value, BaseModel):
        # Read field by field, since what is dumped leaves out excluded fields, and those of subclasses.
        found = {}
        for name in _names(type(value)):
            part = getattr(value, name)
            if part is not None:
                found[name] = part if type(part) in _LEAVES else _plain(part)
        return found if not value.model_extra else {**found, **_mapping(value.model_extra)}
    return _marked(value)


def _mapping(value: Mapping[Any, Any]) -> Any:
    if all(type(name) is str for name in value):
        return {name: _plain(part) for name, part in value.items()}
    pairs = sorted(([_plain(name), _plain(part)] for name, part in value.items()), key=_encoded)
    return ["\0map", pairs]


def _marked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, Enum):
        return ["\0enum", type(value).__name__, _plain(value.value)]
    if isinstance(value, set | frozenset):
        return ["\0set", sorted((_plain(item) for item in value), key=_encoded)]
    if isinstance(value, tuple):
        return ["\0tuple", *(_plain(item) for item in value)]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return ["\0bytes", bytes(value).hex()]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    for basic in (bool, int, float, str):
        if isinstance(value, basic):
            return _plain(basic(value))
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return ["\0" + type(value).__name__, to_jsonable_python(value, inf_nan_mode="constants")]
    except (PydanticSerializationError, ValueError, TypeError):
        raise InputError(
            f"an input holds a {safe_text(type(value).__name__)}, whose content cannot be hashed: a journal needs "
            "fields made of texts, numbers, times, lists, maps and models"
        ) from None
