"""What tells functions apart, as plain values: processes of one program agree on it, and pickle takes it."""

from __future__ import annotations

from collections.abc import Hashable
from types import CodeType
from typing import Any


def fingerprint(thing: Any) -> Hashable:
    """A function as where it is written, what it does and what it holds; a type as its name; anything else as it is.

    So a tally can be sent to another process though its summary was made with lambdas, and summaries that one function
    made alike are told apart only by what they were made with.
    """
    if isinstance(thing, type):
        return (thing.__module__, thing.__qualname__)
    code = getattr(thing, "__code__", None)
    if not isinstance(code, CodeType):
        return _held(thing)
    held = [cell.cell_contents for cell in thing.__closure__ or ()]
    held += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values(), getattr(thing, "__self__", None)]
    return (thing.__module__, _written(code), tuple(_held(value) for value in held))


def _held(value: Any) -> Hashable:
    """A value as itself where it can be compared quickly. Of a function only what it does: it may hold itself."""
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        return _written(code)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    found: Hashable = value
    return found


def _written(code: CodeType) -> Hashable:
    constants = tuple(_written(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return (code.co_qualname, code.co_firstlineno, code.co_code, code.co_names, constants)
