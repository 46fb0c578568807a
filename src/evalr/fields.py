"""The fields of a verdict type, read by their types: what scores, judges, labels and reports go by.

A field is a bool, a choice (Literal or Enum), several choices (a list of them), a number (bounded or not) or a text,
and each may also be None. Anything else is refused by name, since nothing downstream could say what it means.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import isfinite
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Lt
from pydantic import BaseModel

from evalr.errors import FieldTypeError

FieldKind = Literal["bool", "choice", "choices", "integer", "number", "text"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a verdict type.

    Attributes:
        name: as the verdict type has it.
        kind: how it is read; "integer" and "number" may have bounds.
        optional: whether None is a value of it.
        required: whether a verdict must give it.
        choices: for "choice" and "choices", the values in order.
        low: the smallest number that it takes, None where there is none.
        high: the largest.
        description: what its declaration says of it.
    """

    name: str
    kind: FieldKind
    optional: bool = False
    required: bool = True
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    description: str | None = None

    @property
    def bounded(self) -> bool:
        """Whether it is a number with both bounds, such as a rating."""
        return self.low is not None and self.high is not None


def verdict_fields(verdict_type: type[BaseModel]) -> tuple[Field, ...]:
    """The fields of a verdict type, in order, computed ones last.

    Raises:
        FieldTypeError: the type is no pydantic model, has no field, or a field of a type that cannot be read.
    """
    if not (isinstance(verdict_type, type) and issubclass(verdict_type, BaseModel)):
        raise FieldTypeError(f"{verdict_type!r} is not a verdict type: declare it as a pydantic model")
    return _fields(verdict_type)


@cache
def _fields(verdict_type: type[BaseModel]) -> tuple[Field, ...]:
    # A type may be named before it is defined: pydantic looks for it again at the first use, and so do we.
    if verdict_type.model_fields and not verdict_type.__pydantic_complete__:
        verdict_type.model_rebuild(raise_errors=False)
    found = [
        _read(
            verdict_type,
            name,
            info.annotation,
            tuple(info.metadata),
            required=info.is_required(),
            description=info.description,
        )
        for name, info in verdict_type.model_fields.items()
    ]
    found += [
        _read(verdict_type, name, info.return_type, (), required=False, description=info.description)
        for name, info in verdict_type.model_computed_fields.items()
    ]
    if not found:
        raise FieldTypeError(f"{verdict_type.__name__} has no fields: a verdict type needs at least one")
    return tuple(found)


def _read(
    owner: type, name: str, annotation: Any, metadata: tuple[Any, ...], *, required: bool, description: str | None
) -> Field:
    inner, constraints, optional = _unwrapped(annotation, metadata)

    def field(kind: FieldKind, **details: Any) -> Field:
        return Field(name, kind, optional=optional, required=required, description=description, **details)

    choices = _choices(inner)
    if choices:
        return field("choice", choices=choices)
    if get_origin(inner) is list:
        element, _, element_optional = _unwrapped(get_args(inner)[0], ())
        choices = _choices(element)
        if choices and not element_optional:
            return field("choices", choices=choices)
    if isinstance(inner, type) and not issubclass(inner, Enum):
        if issubclass(inner, bool):
            return field("bool")
        if issubclass(inner, int | float):
            low, high = _bounds(constraints, whole=issubclass(inner, int))
            return field("integer" if issubclass(inner, int) else "number", low=low, high=high)
        if issubclass(inner, str):
            return field("text")
    raise FieldTypeError(
        f"{owner.__name__}.{name}: {annotation!r} cannot be read as a verdict field; use bool, a Literal or Enum of "
        "texts or numbers, a list of one, int or float (with bounds where it has them) or str, each optionally None"
    )


def _unwrapped(annotation: Any, metadata: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], bool]:
    """The type inside Annotated, aliases and None, with the constraints met on the way."""
    optional = False
    while True:
        origin = get_origin(annotation)
        if hasattr(annotation, "__value__"):  # a `type` alias, which Python 3.11 does not have
            annotation = annotation.__value__
        elif origin is Annotated:
            annotation, *extra = get_args(annotation)
            metadata = (*metadata, *extra)
        elif origin in (Union, types.UnionType) and type(None) in get_args(annotation):
            optional = True
            annotation = Union[tuple(arm for arm in get_args(annotation) if arm is not type(None))]  # noqa: UP007
        elif origin is Literal and None in get_args(annotation):
            optional = True
            annotation = Literal[tuple(choice for choice in get_args(annotation) if choice is not None)]
        else:
            return annotation, metadata, optional


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The choices of a Literal or Enum whose values are plain, none for anything else."""
    choices: tuple[Any, ...] = ()
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        choices = tuple(annotation)
    values = [choice.value if isinstance(choice, Enum) else choice for choice in choices]
    return choices if all(isinstance(value, str | int | float) for value in values) else ()


def _bounds(metadata: tuple[Any, ...], *, whole: bool) -> tuple[float | None, float | None]:
    """Inclusive bounds. An exclusive bound of a whole number moves inward; of another number it stands as it is."""
    # As pydantic has it: of one kind the last counts, and of two kinds both do.
    last: dict[type, Any] = {type(constraint): constraint for constraint in _flat(metadata)}
    step = 1 if whole else 0
    lows = [last[Ge].ge] if Ge in last else []
    lows += [last[Gt].gt + step] if Gt in last else []
    highs = [last[Le].le] if Le in last else []
    highs += [last[Lt].lt - step] if Lt in last else []
    return max(filter(isfinite, lows), default=None), min(filter(isfinite, highs), default=None)


def _flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    for item in metadata:
        if isinstance(item, Interval):
            yield from item
        elif isinstance(inner := getattr(item, "metadata", None), list):  # a pydantic Field inside Annotated
            yield from inner
        else:
            yield item
