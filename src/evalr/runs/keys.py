"""What a stored result is the answer to: keys that are the same in every process, for the same question only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic import BaseModel

from evalr.errors import InputError
from evalr.inputs import Input
from evalr.quoting import safe_text

_SIZE = 20

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
        # Quoted, so that no text can run into the next, and in ASCII, which is spelled alike everywhere.
        asked = f"{self.subject!a}{self.evaluator!a}{self.version!a}{as_of!a}"
        return _digest(f"{asked}{self.repeat}/{self.place}/{self.input.hex()}")


def input_hash(given: Input) -> bytes:
    """20 bytes that change with any field of an input, and are the same in every process and version of Python.

    Fields that are None do not count, so that a field which a later version adds changes nothing until it is used. The
    order of a map's entries does not count either.

    Raises:
        InputError: a field holds something whose content cannot be read, such as an object of a class of one's own.
    """
    parts: list[str] = []
    try:
        _spell(given, parts.append)
    except RecursionError:
        raise InputError(f"a {safe_text(given.kind)} is nested too deeply to be hashed, or holds itself") from None
    return _digest("".join(parts))


def _digest(spelled: str) -> bytes:
    return blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


@cache
def _fields_of(kind: type) -> tuple[tuple[str, str], ...] | None:
    """The fields of a kind of model and how each is spelled; None where it is none.

    Cached, since a model is not quick to tell.
    """
    return tuple((name, f"{name}=") for name in sorted(kind.model_fields)) if issubclass(kind, BaseModel) else None


def _spell(value: Any, put: Callable[[str], object]) -> None:
    """Spell a value so that no other is spelled alike: each part with its type and, where it has one, its length."""
    kind: Any = type(value)
    if kind is str:
        put(f"s{len(value)}:{value}")
    elif kind is datetime:
        put(f"t{(value if value.tzinfo is None or value.tzinfo is UTC else value.astimezone(UTC)).isoformat()};")
    elif kind is list:
        put(f"l{len(value)}:")
        for item in value:
            _spell(item, put)
    elif kind is dict:
        _spell_map(value, put)
    elif kind in _SCALARS:
        put(f"x{value:x};" if kind is int else f"{value!r};")
    elif (names := _fields_of(kind)) is None:
        _spell_other(value, put)
    else:
        _spell_model(value, names, put)


_EMPTY: dict[type, str] = {list: "l0:", dict: "m0:"}
_SCALARS = frozenset({int, float, bool, type(None)})


def _spell_model(value: Any, names: tuple[tuple[str, str], ...], put: Callable[[str], object]) -> None:
    # Read field by field, since what is dumped leaves out excluded fields, and those of subclasses.
    held = value.__dict__
    if len(held) != len(names):  # one of them is read when it is needed
        held = {name: getattr(value, name) for name, _ in names}
    put("{")
    for name, spelled in names:
        part = held[name]
        if part is not None:
            # Most are texts, or empty: these are spelled without another call.
            if type(part) is str:
                put(f"{spelled}s{len(part)}:{part}")
            elif not part and type(part) in _EMPTY:
                put(spelled + _EMPTY[type(part)])
            else:
                put(spelled)
                _spell(part, put)
    if value.__pydantic_extra__:
        _spell_map(value.__pydantic_extra__, put)
    put("}")


def _spell_map(value: Mapping[Any, Any], put: Callable[[str], object]) -> None:
    put(f"m{len(value)}:")
    if value:
        for name, part in sorted([(_spelled(name), part) for name, part in value.items()], key=itemgetter(0)):
            put(name)
            _spell(part, put)


def _spelled(value: Any) -> str:
    parts: list[str] = []
    _spell(value, parts.append)
    return "".join(parts)


def _spell_other(value: Any, put: Callable[[str], object]) -> None:
    name = f"@{type(value).__name__}:"
    if isinstance(value, Mapping):
        _spell_map(value, put)
    elif isinstance(value, Enum):
        put(name)
        _spell(value.value, put)
    elif isinstance(value, set | frozenset):
        put(f"@set{len(value)}:")
        put("".join(sorted(_spelled(item) for item in value)))
    elif isinstance(value, tuple):
        put("@tuple:")
        _spell(list(value), put)
    elif isinstance(value, list):
        _spell(list(value), put)
    elif isinstance(value, bytes | bytearray | memoryview):
        put(f"@bytes:{bytes(value).hex()};")
    elif is_dataclass(value) and not isinstance(value, type):
        put(name)
        _spell_map({field.name: getattr(value, field.name) for field in fields(value)}, put)
    else:
        put(name)
        _spell(_basic(value), put)


def _basic(value: Any) -> Any:
    """What an instance of another class stands for, in types that can be spelled."""
    for basic in (int, float, str):
        if isinstance(value, basic):
            return basic(value)
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        found = to_jsonable_python(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, TypeError):
        found = value
    if type(found) is type(value):
        raise InputError(
            f"an input holds a {safe_text(type(value).__name__)}, whose content cannot be hashed: a journal needs "
            "fields made of texts, numbers, times, lists, maps and models"
        )
    return found
