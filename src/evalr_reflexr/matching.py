"""Which events are meant: by type, by fields, or by a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, TypeAlias

from evalr.errors import InputError
from evalr_reflexr.envelopes import Envelope, is_own

Match: TypeAlias = str | Mapping[str, Any] | Callable[[Envelope], bool]
"""Events that are meant: by a type (`oncall:incident.resolved`, `incident.resolved` of any namespace, `*.resolved`), by
the values of fields (`{"type": "ticket.updated", "status": "closed"}`, dotted where nested), or by a function."""

Matches: TypeAlias = Match | Sequence[Match]
"""One or several: any of them will do."""


class Matcher:
    """Says of envelopes whether they are meant, and of types whether their envelopes can be."""

    def __init__(self, given: Matches, *, name: str, none: Callable[[str], bool] | None = None) -> None:
        """Read a caller's choice.

        Args:
            given: the choice.
            name: of the option, for messages.
            none: the types that are meant where the choice is empty; no type where None.
        """
        matches: list[Any] = [given]
        if isinstance(given, Iterable) and not isinstance(given, str | Mapping) and not callable(given):
            matches = list(given)
        for match in matches:
            wrong = not (isinstance(match, str | Mapping) or callable(match))
            if wrong or match in ("", {}):
                raise InputError(
                    f"{name}={match!r} names no events: give a type such as 'oncall:incident.resolved', fields such as "
                    "{'status': 'closed'}, or a function of an envelope"
                )
        self.given = tuple(matches)
        self.texts = tuple(match for match in matches if isinstance(match, str))
        self._fields = tuple(dict(match) for match in matches if isinstance(match, Mapping))
        self._functions = tuple(match for match in matches if callable(match))
        self._none = none if not matches else None
        self._known: dict[str, bool] = {}

    def could_be(self, type_name: str) -> bool:
        """Whether an event of this type can be one that is meant."""
        found = self._known.get(type_name)
        if found is None:
            found = self._known[type_name] = bool(
                self._functions or self._by_type(type_name) or any(_can_have(each, type_name) for each in self._fields)
            )
        return found

    @property
    def by_type_alone(self) -> bool:
        """Whether the type of an event decides."""
        return not self._fields and not self._functions

    def _by_type(self, type_name: str) -> bool:
        if self._none is not None:
            return self._none(type_name)
        return any(same_type(text, type_name) for text in self.texts)

    def __call__(self, envelope: Envelope) -> bool:
        """Whether this event is meant."""
        if not self.could_be(envelope.type):
            return False
        return (
            self._by_type(envelope.type)
            or any(_has(envelope, each) for each in self._fields)
            or any(function(envelope) for function in self._functions)
        )


def of_application(type_name: str) -> bool:
    """Whether an application publishes such events, and not reflexr itself."""
    return not is_own(type_name)


def _can_have(fields: Mapping[str, Any], type_name: str) -> bool:
    wanted = fields.get("type")
    return not isinstance(wanted, str) or same_type(wanted, type_name)


def _has(envelope: Envelope, fields: Mapping[str, Any]) -> bool:
    return all(
        same_type(wanted, envelope.type)
        if path == "type" and isinstance(wanted, str)
        else envelope.field(path) == wanted and isinstance(wanted, bool) == isinstance(envelope.field(path), bool)
        for path, wanted in fields.items()
    )


@lru_cache(maxsize=4096)
def same_type(pattern: str, type_name: str) -> bool:
    """Whether a type is meant by a pattern, in which `*` stands for anything.

    Older stores write types without their namespace: where one of the two has none, the rest decides.
    """
    if (":" in pattern) != (":" in type_name):
        pattern, type_name = pattern.rpartition(":")[2], type_name.rpartition(":")[2]
    return pattern == type_name or ("*" in pattern and fnmatchcase(type_name, pattern.replace("[", "[[]")))
