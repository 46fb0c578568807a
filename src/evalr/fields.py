"""The fields of a verdict type, read by their types: what scores, judges, labels and reports go by.

A field is a bool, a choice (Literal or Enum), several choices (a list of them), a number (bounded or not) or a text, and each
may also be None. Anything else is refused by name, since nothing downstream could say what it means.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
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
        low, high: the inclusive bounds of a number, None where it has none.
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


@cache
def verdict_fields(verdict_type: type[BaseModel]) -> tuple[Field, ...]:
    """The fields of a verdict type, in order, computed ones last.

    Raises:
        FieldTypeError: the type is no pydantic model, has no field, or a field of a type that cannot be read.
    """
    if not (isinstance(verdict_type, type) and issubclass(verdict_type, BaseModel)):
        raise FieldTypeError(f"{verdict_type!r} is not a verdict type: declare it as a pydantic model")
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
    if choices is not None:
        return field("choice", choices=choices)
    if get_origin(inner) is list:
        element, _, element_optional = _unwrapped(get_args(inner)[0], ())
        choices = _choices(element)
        if choices is not None and not element_optional:
            return field("choices", choices=choices)
    if isinstance(inner, type):
        if issubclass(inner, bool):
            return field("bool")
        if issubclass(inner, int | float):
            low, high = _bounds(constraints, whole=issubclass(inner, int))
            return field("integer" if issubclass(inner, int) else "number", low=low, high=high)
        if issubclass(inner, str):
            return field("text")
    raise FieldTypeError(
        f"{owner.__name__}.{name}: {annotation!r} cannot be read as a verdict field; use bool, a Literal or Enum, a list of "
        "one of these, int or float (with bounds where it has them) or str, each optionally None"
    )


def _unwrapped(annotation: Any, metadata: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], bool]:
    """The type inside Annotated, aliases and `| None`, with the constraints met on the way."""
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
            annotation = Union[tuple(arm for arm in get_args(annotation) if arm is not type(None))]
        else:
            return annotation, metadata, optional


def _choices(annotation: Any) -> tuple[Any, ...] | None:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(annotation)
    return None


def _bounds(metadata: tuple[Any, ...], *, whole: bool) -> tuple[float | None, float | None]:
    """Inclusive bounds. An exclusive bound of a whole number moves inward; of another number it stands as it is."""
    low: float | None = None
    high: float | None = None
    step = 1 if whole else 0
    for constraint in _flat(metadata):
        if isinstance(constraint, Ge):
            low = constraint.ge  # type: ignore[assignment]
        elif isinstance(constraint, Gt):
            low = constraint.gt + step  # type: ignore[operator]
        elif isinstance(constraint, Le):
            high = constraint.le  # type: ignore[assignment]
        elif isinstance(constraint, Lt):
            high = constraint.lt - step  # type: ignore[operator]
    return low, high


def _flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    for item in metadata:
        if isinstance(item, Interval):
            yield from item
        elif isinstance(inner := getattr(item, "metadata", None), list):  # a pydantic Field inside Annotated
            yield from inner
        else:
            yield item
