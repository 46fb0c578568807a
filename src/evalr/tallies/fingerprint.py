"""What tells functions apart, as plain values: processes of one program agree on it, and pickle takes it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from types import CodeType
from typing import Any


def fingerprint(thing: Any, *, within: tuple[Any, ...] = ()) -> Hashable:
    """A function as what it does and what it holds; a type as its name; anything else as it is.

    So a tally can be sent to another process though its summary was made with lambdas, and summaries that one function
    made alike are told apart only by what they were made with. `within` are the functions that hold it: one that holds
    itself is not entered again.
    """
    if isinstance(thing, type):
        return (thing.__module__, thing.__qualname__)
    inside = (*within, thing)
    if isinstance(thing, partial):
        held = [thing.func, *thing.args, *(value for item in sorted(thing.keywords.items()) for value in item)]
        return ("partial", *(fingerprint(value, within=inside) for value in held))
    code = getattr(thing, "__code__", None)
    if not isinstance(code, CodeType):
        return _plain(thing)
    if thing in within:
        return _written(code)
    held = [cell.cell_contents for cell in thing.__closure__ or ()]
    held += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values(), getattr(thing, "__self__", None)]
    return (thing.__module__, _written(code), *(fingerprint(value, within=inside) for value in held))


def _plain(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    found: Hashable = value
    return found


def _written(code: CodeType) -> Hashable:
    # Not the line it stands on: a day's tallies still add when something was written above it since.
    constants = tuple(_written(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return (code.co_qualname, code.co_code, code.co_names, constants)
