"""What a line of evalr's own log may be: its types, and how one is told from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from evalr.inputs import Exchange, History, Input, LearningUse, Session, Transcript, Turn
from evalr.logs.reasons import NO_TYPE, NOT_AN_OBJECT, Reason
from evalr.logs.results import ResultLine
from evalr.quoting import quoted


class Form(NamedTuple):
    """One type of line: its name, its model, and the fields that say that a line is of it, each or all together."""

    name: str
    model: type[Input | ResultLine]
    signs: tuple[str, ...]
    together: bool = False

    @property
    def mark(self) -> bytes:
        """What a line of it nearly always holds."""
        return f'"{self.signs[0]}"'.encode()

    @property
    def validate(self) -> Callable[..., Any]:
        """What reads its lines, without the steps in Python that the model's own method would add to each."""
        self.model.model_rebuild()  # models are built on first use
        return self.model.__pydantic_validator__.validate_json

    def is_told_by(self, record: Mapping[str, Any]) -> bool:
        """Whether a record without a type has the fields that say that it is of this one."""
        return (all if self.together else any)(sign in record for sign in self.signs)

    def agrees(self, others: Mapping[str, Any]) -> bool:
        """Whether the other fields of a line that reads as this form say that it is of no other."""
        return others["type"] == self.name if "type" in others else SIGNS.isdisjoint(others)


FORMS = (
    Form("session", Session, ("activities",)),
    Form("history", History, ("revisions",)),
    Form("exchange", Exchange, ("shadow", "served"), together=True),
    Form("learning", LearningUse, ("learning", "response"), together=True),  # it may have turns, too
    Form("transcript", Transcript, ("turns", "request")),
    Form("result", ResultLine, ("evaluator", "status")),
)
"""In this order they are asked whether a line without a type is theirs."""

BY_NAME = {form.name: form for form in FORMS}
SIGNS = {sign for form in FORMS for sign in form.signs}

PARTS_OF: dict[type[BaseModel], tuple[str, ...]] = {
    Session: ("activities",),
    History: ("revisions",),
    LearningUse: ("turns",),
    Transcript: ("turns",),
    Turn: ("tool_calls",),
    ResultLine: ("about", "verdict"),
}
"""The fields of each model that hold other models."""


EXPERIMENT = "experiment"
"""The type of the line with which the file of an experiment begins."""


def is_header(record: object) -> bool:
    """Whether a line says what those below it are, rather than what happened: it is no record."""
    return isinstance(record, dict) and record.get("type") == EXPERIMENT and "format" in record


def form_of(record: object) -> Form:
    """What a record says it is.

    Raises:
        Reason: it does not say so.
    """
    if not isinstance(record, dict):
        raise Reason(NOT_AN_OBJECT)
    if "type" in record:
        name = record["type"]
        if not isinstance(name, str):
            raise Reason("wrong type in 'type'")
        if name not in BY_NAME:
            raise Reason(f"unknown type {quoted(name)}")
        return BY_NAME[name]
    for form in FORMS:
        if form.is_told_by(record):
            return form
    raise Reason(NO_TYPE)
