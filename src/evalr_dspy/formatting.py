"""What a judge is shown of an input: its fields as texts, within a budget of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from evalr.errors import InputError
from evalr.inputs import Input, ToolCall, Turn

BUDGET = 16_000
"""Tokens of an input that a judge is shown, unless told otherwise."""

SMALLEST_BUDGET = 200

NOT_RECORDED = "(not recorded)"

_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
"""Those that JSON leaves as they are."""

TRUNCATED = "truncated"
"""The flag of a verdict whose judge was not shown everything."""


K = TypeVar("K", int, str)


class Shown(NamedTuple):
    """An input as texts by its fields, and whether anything was left out of them."""

    texts: dict[str, str]
    truncated: bool


@dataclass(frozen=True)
class Formatter:
    """How an input becomes texts: those of its own type's fields, one JSON object a line where a field is a list.

    Where they are more than the budget, long fields share it. Of a list the first, the last and the target items stay
    (cut in the middle where even they are too long), then the latest ones that fit; what is left out is said in place.

    Args:
        fields: which fields are shown, in this order.
        budget: how many tokens, at four bytes each.
        target: the field, or else the attribute, that holds the id of the items to keep, or several of them.
    """

    fields: tuple[str, ...]
    budget: int = BUDGET
    target: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.budget, int) or isinstance(self.budget, bool) or self.budget < SMALLEST_BUDGET:
            raise InputError(f"budget={self.budget!r} must be a whole number of tokens, at least {SMALLEST_BUDGET}")
        if not isinstance(self.target, str | None):
            raise InputError(f"target={self.target!r} must be the name of a field or an attribute")

    @property
    def version(self) -> str:
        """Changes whenever a text may."""
        return f"1:{','.join(self.fields)}:{self.budget}:{self.target or ''}"

    def __call__(self, given: Input) -> Shown:
        """The texts of an input."""
        targets = self._targets(given)
        lines = {name: _lines(getattr(given, name), targets) for name in self.fields}
        needed = {name: sum(tokens(line) + 1 for line in each.texts) for name, each in lines.items()}
        allowed = shares(needed, self.budget)
        texts = {name: _fitted(each, allowed[name]) for name, each in lines.items()}
        return Shown(texts, any(allowed[name] < needed[name] for name in self.fields))

    def _targets(self, given: Input) -> frozenset[str]:
        if self.target is None:
            return frozenset()
        found = getattr(given, self.target, None) or given.attributes.get(self.target)
        ids = [found] if isinstance(found, str) else found or ()
        if not isinstance(ids, list | tuple | set | frozenset) or not all(isinstance(each, str) for each in ids):
            raise InputError(f"target={self.target!r} must be a field or an attribute that holds ids")
        return frozenset(ids)


def own_fields(kind: type[Input]) -> tuple[str, ...]:
    """The fields that a type of input has of its own: a judge is told of no user, arm, session or time of reading."""
    return tuple(name for name in kind.model_fields if name not in Input.model_fields and name != "session")


def tokens(text: str) -> int:
    """About how many tokens a text is: a quarter of its bytes in UTF-8, whatever the model's own tokenizer says."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def shares(needed: Mapping[K, int], budget: int) -> dict[K, int]:
    """What each gets of a budget: all that it needs where there is enough, else no more than any other gets."""
    left = budget
    got: dict[K, int] = {}
    for place, (name, need) in enumerate(sorted(needed.items(), key=lambda item: item[1])):
        got[name] = min(need, left // (len(needed) - place))
        left -= got[name]
    return got


# ---------------------------------------------------------------------------------------------------------------------
# One field
# ---------------------------------------------------------------------------------------------------------------------


class _Lines(NamedTuple):
    texts: list[str]
    kept: frozenset[int]
    """Those that stay in any case."""


def _lines(value: object, targets: frozenset[str]) -> _Lines:
    if isinstance(value, list) and value and all(isinstance(item, BaseModel) for item in value):
        marked = {place for place, item in enumerate(value) if getattr(item, "id", None) in targets}
        texts = [_json(_item(place, item, place in marked)) for place, item in enumerate(value)]
        return _Lines(texts, frozenset({0, len(value) - 1} | marked))
    if value is None or value == []:
        return _Lines([NOT_RECORDED], frozenset({0}))
    return _Lines([value if isinstance(value, str) else _json(to_jsonable_python(value))], frozenset({0}))


def _item(place: int, item: BaseModel, target: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"number": place + 1}
    if target:
        shown["target"] = True
    if isinstance(item, Turn):
        return shown | _turn(item)
    return shown | item.model_dump(mode="json", exclude_defaults=True)


def _turn(turn: Turn) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": turn.role, "text": turn.text}
    if turn.kind != "message":
        shown["kind"] = turn.kind
    if turn.tool_calls:
        shown["tool_calls"] = [_call(call) for call in turn.tool_calls]
    return shown


def _call(call: ToolCall) -> dict[str, Any]:
    """A tool's call with its status, which a judge is told of even where nobody recorded it."""
    shown: dict[str, Any] = {"name": call.name, "status": call.status or "not recorded"}
    details = {"error": call.error, "arguments": call.arguments, "result": call.result}
    return shown | {name: detail for name, detail in details.items() if detail is not None}


def _json(value: object) -> str:
    """In one line, so that no text of an item can look like an item of its own."""
    return _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


# ---------------------------------------------------------------------------------------------------------------------
# Leaving out
# ---------------------------------------------------------------------------------------------------------------------


def _fitted(lines: _Lines, allowed: int) -> str:
    sizes = [tokens(text) + 1 for text in lines.texts]
    if sum(sizes) <= allowed:
        return "\n".join(lines.texts)
    kept = shares({place: sizes[place] for place in lines.kept}, allowed)
    chosen = {place: cut(lines.texts[place], kept[place]) for place in lines.kept}
    left = allowed - sum(kept.values())
    for place in range(len(lines.texts) - 1, -1, -1):
        if place not in chosen and sizes[place] <= left:
            chosen[place] = lines.texts[place]
            left -= sizes[place]
    return "\n".join(_with_gaps(chosen, len(lines.texts)))


def _with_gaps(chosen: Mapping[int, str], count: int) -> Iterable[str]:
    missing = 0
    for place in range(count):
        if place not in chosen:
            missing += 1
            continue
        if missing:
            yield _json({"left_out_here": missing})
            missing = 0
        yield chosen[place]


def cut(text: str, allowed: int) -> str:
    """A text of no more than so many tokens: two thirds of them from its beginning, the others from its end."""
    size = tokens(text)
    if size <= allowed:
        return text
    keep = len(text) * allowed // size
    while keep > 0:
        shown = _cut_to(text, keep)
        if tokens(shown) <= allowed:
            return shown
        keep = keep * 49 // 50
    return _cut_to(text, 0)


def _cut_to(text: str, keep: int) -> str:
    end = keep // 3
    left_out = f" [… {len(text) - keep:,} characters left out …] "
    return text[: keep - end] + left_out + text[len(text) - end :]
