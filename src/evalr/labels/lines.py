"""A dataset as lines of JSON: a header, then one line for each example, read back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from evalr.errors import DatasetError, InputError
from evalr.estimates.words import choice_words
from evalr.fields import verdict_fields
from evalr.inputs import Input
from evalr.labels.examples import Example
from evalr.plain import canonical_text, from_json_text, readable_text, value_fields
from evalr.quoting import quoted, safe_text

FORMAT = 1
M = TypeVar("M", bound=BaseModel)
HEADER = "dataset"


class Types(NamedTuple):
    """What the examples of a dataset hold: the type of their inputs, and of what is expected of them, if anything."""

    input: type[Input]
    verdict: type[BaseModel] | None


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


def header_line(name: str, types: Types, count: int) -> str:
    """The first line of a file: what it is, in which format, and how many examples follow."""
    verdict = None if types.verdict is None else types.verdict.__name__
    return readable_text(
        {
            "type": HEADER,
            "format": FORMAT,
            "name": name,
            "input": types.input.__name__,
            "verdict": verdict,
            "examples": count,
        }
    )


def example_fields(example: Example[Any]) -> dict[str, Any]:
    """What an example's line holds. Fields that say nothing are left out.

    Raises:
        InputError: its input holds what no file can.
    """
    group = None if example.group == example.input.user else example.group
    try:
        given = example.input.model_dump(mode="json", exclude_defaults=True)
    except PydanticSerializationError as error:
        raise InputError(
            f"the input of example {quoted(example.id)} cannot be stored: {safe_text(str(error))}"
        ) from None
    fields: dict[str, Any] = {
        "id": example.id,
        "input": given,
        "expected": None if example.expected is None else value_fields(example.expected),
        "reason": example.reason,
        "author": example.author,
        "group": group,
        "attributes": dict(example.attributes) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def example_line(example: Example[Any], types: Types) -> str:
    """The line of an example.

    Raises:
        InputError: it would not be read back as it is.
    """
    try:
        line = readable_text(example_fields(example))
        again = example_of(from_json_text(line), types)
    except (TypeError, ValueError, RecursionError) as error:  # pydantic's and ours are ValueErrors
        raise InputError(f"example {quoted(example.id)} cannot be stored: {safe_text(str(error))}") from error
    if again != example:
        raise InputError(
            f"example {quoted(example.id)} would not be read back as it is: its values are changed when they are "
            "validated once more"
        )
    return line


def example_hash(example: Example[Any], *, label: bool = True) -> bytes:
    """20 bytes that change with anything that an example holds; without `label`, with its id and input alone."""
    fields = example_fields(example)
    return digest(canonical_text(fields if label else {"id": fields["id"], "input": fields["input"]}))


def digest(text: str) -> bytes:
    """20 bytes that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


def numbered_lines(path: Path, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line of a file that is not empty, with its number. Only a line feed ends a line.

    Raises:
        DatasetError: a line is no JSON object.
    """
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = from_json_text(line)
        except (ValueError, RecursionError) as error:
            raise DatasetError(
                f"{path}, line {number}: not JSON, so the line is damaged or cut off ({safe_text(str(error))})"
            ) from None
        if not isinstance(fields, dict):
            raise DatasetError(f"{path}, line {number}: a {type(fields).__name__} where a JSON object was expected")
        yield number, fields


def check_header(path: Path, fields: dict[str, Any], what: str, format_version: int) -> None:
    """Raise DatasetError where the first line of a file is no header of that kind and format."""
    if fields.get("type") != what:
        raise DatasetError(f'{path}, line 1: no header with "type": "{what}"; the file is something else')
    found = fields.get("format")
    if found != format_version:
        raise DatasetError(
            f"{path}, line 1: format {safe_text(repr(found))}, and this evalr reads format {format_version}; use the "
            "evalr that wrote it"
        )


def example_of(fields: dict[str, Any], types: Types) -> Example[Any]:
    """The example that a line's fields stand for.

    Raises:
        InputError: a field is missing, unknown, or cannot be used.
    """
    unknown = next((name for name in fields if name not in _FIELDS), None)
    if unknown is not None:
        raise InputError(f"unknown field {quoted(unknown)}; {choice_words(unknown, _FIELDS)}")
    missing = [name for name in ("id", "input") if name not in fields]
    if missing:
        raise InputError(f"missing field {quoted(missing[0])}")
    given = _validated(types.input, fields["input"], "input")
    expected = fields.get("expected")
    if expected is not None:
        if types.verdict is None:
            raise InputError("it has a label, and the header names no verdict type")
        expected = _validated(types.verdict, expected, "expected")
    return Example(
        given,
        fields["id"],
        expected=expected,
        reason=fields.get("reason"),
        author=fields.get("author"),
        group=fields.get("group"),
        attributes=fields.get("attributes") or {},
    )


_FIELDS = ("id", "input", "expected", "reason", "author", "group", "attributes")


def _validated(model: type[BaseModel], fields: object, what: str) -> Any:
    try:
        return model.model_validate(fields, by_alias=False, by_name=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join((what, *map(str, first["loc"])))
        raise InputError(f"{safe_text(place)} is no {model.__name__}: {safe_text(first['msg'])}") from None


# ---------------------------------------------------------------------------------------------------------------------
# Types by their names
# ---------------------------------------------------------------------------------------------------------------------


def input_type_named(name: object, given: type[Input] | None) -> type[Input]:
    """The type of input that a header names: the one given, or one that is known here.

    Raises:
        InputError: it is another than the one given, or not known.
    """
    if given is not None:
        return _same(name, given, "input_type")
    found: list[type[Input]] = [Input]
    for kind in found:
        found += kind.__subclasses__()
    known = {kind.__name__: kind for kind in found[1:]}
    if not isinstance(name, str) or name not in known:
        raise InputError(f"inputs of type {safe_text(str(name))!r} are not known here: pass input_type=")
    return known[name]


def verdict_type_named(name: object, given: type[BaseModel] | None) -> type[BaseModel] | None:
    """The verdict type that a header names: the one given, or that of an installed measure.

    Raises:
        InputError: it is another than the one given, or not known.
    """
    if name is None or given is not None:
        return given if given is None or name is None else _same(name, given, "verdict_type")
    known = measured_types()
    if not isinstance(name, str) or name not in known:
        raise InputError(f"verdicts of type {safe_text(str(name))!r} are of no installed measure: pass verdict_type=")
    return known[name]


def _same(name: object, given: type[M], option: str) -> type[M]:
    if given.__name__ != name:
        raise InputError(f"it holds {safe_text(str(name))!r}, and {option}={given.__name__}")
    return given


@cache
def measured_types() -> dict[str, type[BaseModel]]:
    """The verdict types of the installed measures, by their names."""
    from evalr.measures.measure import installed_measures

    return {measure.verdict.__name__: measure.verdict for measure in installed_measures().loaded.values()}


def type_words(verdict_type: type[BaseModel] | None) -> str:
    """What tells a verdict type from any other: its name and its JSON schema.

    Raises:
        FieldTypeError: it cannot be read as a verdict type.
    """
    if verdict_type is None:
        return "none"
    verdict_fields(verdict_type)
    return f"{verdict_type.__name__} {canonical_text(verdict_type.model_json_schema())}"
