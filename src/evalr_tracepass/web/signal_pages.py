"""One's own signals: what each inspects, when it fires, and the form that keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from evalr.errors import InputError
from evalr.inputs import utc_now
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import SIGNALS, Available
from evalr_tracepass.records import InputKind
from evalr_tracepass.signals import Signal
from evalr_tracepass.transforms import CATALOGUE, Transform
from evalr_tracepass.web.asking import Query
from evalr_tracepass.web.desk import INSPECTS, Desk

BASES: dict[str, str] = {
    "user_chat": "user_message",
    "agent_chat": "assistant_message",
    "full_trace": "full_conversation",
}
"""What is sent of a trace, by what a signal is to inspect."""

LONGEST_NAME = 80
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")


class Draft(NamedTuple):
    """What the form of a signal holds, as it was typed."""

    signal_id: str = ""
    name: str = ""
    model: str = ""
    inspects: str = "user_chat"
    transform: str = ""
    max_tokens: str = ""
    tools: bool = False
    fires_on: str = ""
    threshold: str = ""
    ticked: bool = False
    monitor: bool = False


def draft_of(fields: Query) -> Draft:
    """The form as it was sent."""
    text = {
        name: fields.get(name, "").strip()
        for name in ("signal_id", "name", "model", "inspects", "transform", "max_tokens", "fires_on", "threshold")
    }
    flags = {name: fields.get(name, "") == "1" for name in ("tools", "ticked", "monitor")}
    return Draft(**text, **flags)  # type: ignore[arg-type]  # texts and flags by their names


def draft_from(own: Signal) -> Draft:
    """The form of a signal as it is."""
    made = own.transform
    base = CATALOGUE.get(BASES[made.input_kind])
    is_base = base is not None and made.kind == base.kind
    known = next((each.id for each in CATALOGUE.values() if each.kind == made.kind), "")
    thresholds = {own.thresholds[label] for label in own.fires_on if label in own.thresholds}
    return Draft(
        own.signal_id,
        own.display_name,
        own.model,
        made.input_kind,
        "" if is_base else made.id if made.id in CATALOGUE else known,
        "" if made.max_tokens is None else str(made.max_tokens),
        made.include_tool_calls and is_base,
        ", ".join(own.fires_on),
        str(thresholds.pop()) if len(thresholds) == 1 else "",
        own.enabled_by_default,
        own.monitor,
    )


def signal_of(desk: Desk, draft: Draft) -> Signal:
    """The signal that a form describes; one that was there before goes on as a new version of what it read.

    Raises:
        InputError: it cannot be one; the message says which field.
    """
    own = desk.kept.store.signals(desk.kept.account)
    before = own.get(draft.signal_id)
    if not draft.name or len(draft.name) > LONGEST_NAME:
        raise InputError(f"Name: write one of at most {LONGEST_NAME} characters.")
    name = draft.signal_id if before is not None else _NOT_A_NAME.sub("-", draft.name.lower()).strip("-")
    if not name:
        raise InputError("Name: write one with letters or digits of the Latin alphabet, which make its id.")
    if before is None and (name in SIGNALS or name in own or name in desk.own):
        raise InputError(f"Name: there is a signal {name!r} already.")
    fires_on = tuple(dict.fromkeys(part.strip() for part in draft.fires_on.split(",") if part.strip()))
    reflex = desk.reflexes.get(draft.model)
    threshold = _number(draft.threshold)
    try:
        return Signal(
            signal_id=name,
            model=draft.model,
            display_name=draft.name,
            category="custom" if before is None else before.category,
            labels=tuple(reflex.labels) if reflex is not None else (),
            fires_on=fires_on,
            transform=_transform(name, draft, None if before is None else before.transform),
            thresholds={} if threshold is None else dict.fromkeys(fires_on, threshold),
            enabled_by_default=draft.ticked,
            monitor=draft.monitor,
            precision=None if before is None else before.precision,
            created=utc_now() if before is None or before.created is None else before.created,
            updated=utc_now(),
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "signal"
        raise InputError(f"{safe_text(where)}: {safe_text(first['msg'], longest=200)}") from None


def _number(text: str) -> float | None:
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise InputError("Threshold: write a score from 0 to 1, or nothing.")
    return found


def _transform(name: str, draft: Draft, before: Transform | None) -> Transform:
    """What the signal reads: one of the catalogue as it is, or one of its own, with a version for every change."""
    if draft.inspects not in BASES:
        raise InputError("What should this signal inspect? Choose one of the three.")
    base = CATALOGUE.get(draft.transform) or CATALOGUE[BASES[draft.inspects]]
    if draft.tools and base.kind != "full_conversation":
        raise InputError("Tool context is for signals that inspect the Full trace.")
    if draft.max_tokens and not (draft.max_tokens.isascii() and draft.max_tokens.isdigit()):
        raise InputError("Maximum tokens: write a whole number of 16 or more, or nothing.")
    changed: dict[str, Any] = {}
    if draft.max_tokens:
        changed["max_tokens"] = int(draft.max_tokens)
    if draft.tools:
        changed |= {"include_tool_calls": True, "include_tool_results": True}
    if not changed:
        return base
    made = Transform.model_validate({**base.model_dump(), **changed, "id": f"{name}.{base.id}"})
    if before is None or before.id != made.id:
        return made
    same = before.model_copy(update={"version": made.version}) == made
    return made.model_copy(update={"version": before.version if same else before.version + 1})


class Line(NamedTuple):
    """One row of the list of signals."""

    signal: Signal
    inspects: str
    reason: str | None
    origin: str


def signal_lines(desk: Desk) -> list[Line]:
    """Every signal: those that come with it, those of a file, and one's own of the store."""
    stored = desk.kept.store.signals(desk.kept.account)
    return [
        Line(each.signal, INSPECTS[each.signal.transform.input_kind], each.reason, _origin(each, stored, desk.own))
        for each in desk.available(desk.signals())
    ]


def _origin(each: Available, stored: Mapping[str, Signal], of_file: Mapping[str, Signal]) -> str:
    name = each.signal.signal_id
    return "custom" if name in stored else "file" if name in of_file else "built-in"


def models_of(desk: Desk) -> list[tuple[str, str]]:
    """The classifiers that a signal of one's own can have, each with its labels."""
    if desk.reflexes:
        return [(name, ", ".join(each.labels)) for name, each in sorted(desk.reflexes.items())]
    return [(each.model, ", ".join(each.labels)) for each in SIGNALS.values() if each.category != "heuristic"]


def inspect_choices() -> list[tuple[InputKind, str, str]]:
    """What a signal may inspect, and what that is."""
    return [(kind, words, CATALOGUE[BASES[kind]].description) for kind, words in INSPECTS.items()]
