"""What the contracts check with."""

from __future__ import annotations

from pydantic import BaseModel

from evalr.errors import FieldTypeError
from evalr.fields import verdict_fields


def expect(condition: bool, message: str) -> None:
    """Fail the test with the message where the condition does not hold."""
    # Not an assert statement: a contract is no test module, and must hold under python -O too.
    if not condition:
        raise AssertionError(message)


def is_one_line(text: object) -> bool:
    """Whether it is a text that can be printed in one line, and not empty."""
    return isinstance(text, str) and bool(text.strip()) and text.isprintable()


def expect_readable(verdict_type: type[BaseModel]) -> None:
    """Fail the test where scores, judges and reports could not read every field of a verdict type."""
    try:
        verdict_fields(verdict_type)
    except FieldTypeError as error:
        raise AssertionError(str(error)) from error
