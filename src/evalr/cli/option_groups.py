"""Options that several commands share: a dataclass whose fields they are, taken as one argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer reads it: an argument whose type is a dataclass stands for the options that its fields are.

    Two groups of one command have no field of the same name.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    options: dict[str, Parameter] = {}
    for name, given in signature(command).parameters.items():
        if name in groups:
            options |= _options(groups[name])
        else:
            options[name] = Parameter(
                name, Parameter.KEYWORD_ONLY, default=given.default, annotation=hints.get(name, Parameter.empty)
            )

    @wraps(command)
    def grouped(**given: Any) -> None:
        made = {name: group(**{each: given.pop(each) for each in _options(group)}) for name, group in groups.items()}
        command(**given, **made)

    grouped.__signature__ = Signature(list(options.values()))  # type: ignore[attr-defined]  # what `signature` looks at
    grouped.__annotations__ = {name: each.annotation for name, each in options.items()}
    return grouped


def _options(group: Any) -> dict[str, Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return {
        each.name: Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(group)
    }
