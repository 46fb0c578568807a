"""Values as plain JSON, from which they are read back as they were: lone surrogates and infinities, too.

Logs mend what they read (a lone surrogate becomes U+FFFD, a number that is not finite null). What keeps a verdict must
not: whoever reads it gets what was given.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from numbers import Integral, Real
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json


def value_fields(value: BaseModel) -> dict[str, Any]:
    """The fields of a verdict by name, as `json_text` takes them."""
    own = {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    extra = {name: _plain(part) for name, part in (value.model_extra or {}).items()}
    return {**own, **extra}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, BaseModel):
        return value_fields(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _number(value: Any) -> Any:
    """A number of another library as Python has it."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


ascii_text = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=_number).encode
"""JSON in ASCII alone, so that nothing in it could end a line."""

_readable = json.JSONEncoder(ensure_ascii=False, default=_number).encode
_sorted = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=_number).encode
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def readable_text(value: Any) -> str:
    """JSON that people can read in any script, with an escape for what many a program takes for the end of a line."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", _readable(value))


def canonical_text(value: Any) -> str:
    """JSON that is the same for equal values, in whatever order their maps were filled."""
    return _sorted(value)


def from_json_text(text: str | bytes) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return from_json(text)
    except ValueError:  # the quick reader has no lone surrogates
        return json.loads(text)
