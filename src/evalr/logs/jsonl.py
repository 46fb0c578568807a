"""evalr's own log: JSON Lines, one input or result on each line, as its model dumps it.

A `type` (session, history, transcript, result) may name what a line is; where there is none, its fields decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from evalr.errors import LogError
from evalr.inputs import About, History, Input, Session, Transcript
from evalr.logs.lines import BYTE_ORDER_MARK, CUT_OFF, UTF_16, is_document, raw_lines
from evalr.logs.log import Item, Log, Stored, quoted
from evalr.logs.reasons import NOT_AN_OBJECT, fault, text_fault, without_lone_escapes
from evalr.logs.results import ResultLine, measure_of, missing_part, to_result
from evalr.logs.seen import Seen
from evalr.measures import installed_measures

CLAIMED_LINES = 20
"""How many lines of a file are looked at to say whether it is a log of this kind."""

DUPLICATE = "duplicate id"
NO_TYPE = "neither type nor activities, revisions or turns"


class Form(NamedTuple):
    """One type of line: its name, its model, and the fields of which each says that a line is of it."""

    name: str
    model: type[Input | ResultLine]
    signs: tuple[str, ...]


FORMS = (
    Form("session", Session, ("activities",)),
    Form("history", History, ("revisions",)),
    Form("transcript", Transcript, ("turns", "request")),
    Form("result", ResultLine, ("status", "evaluator")),
)
BY_NAME = {form.name: form for form in FORMS}


class Reason(Exception):  # noqa: N818
    """Why a line is left out."""


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each type of line, by its name."""
    return {form.name: form.model.model_json_schema() for form in FORMS}


def to_line(item: Item) -> str:
    """An input or a stored result as one line of a log, without a line end; it reads back equal."""
    if isinstance(item, Stored):
        from evalr.logs.results import to_result_line

        return to_result_line(item).model_dump_json(exclude_none=True)
    return item.model_dump_json()


@dataclass(frozen=True)
class JsonlReader:
    """Reads evalr's own log."""

    name: str = "jsonl"
    describes: str = "evalr's JSON Lines: sessions, histories, transcripts and results"

    def claim(self, path: Path, head: bytes) -> float:
        """Sure where the first line that is an object is of one of its types."""
        head = head.removeprefix(BYTE_ORDER_MARK)
        if b"\0" in head:
            return 0.05 if head.startswith(UTF_16) else 0.0
        lines = [line for piece in head.split(b"\n") if (line := piece.strip())]
        claims = [_claim_line(line) for line in lines[:CLAIMED_LINES]]
        # The low claim is for the error that says what to do about such a file.
        return max(claims, default=0.0) or (0.05 if lines and is_document(lines) else 0.0)

    def open(self, path: Path, *, strict: bool = False) -> Log:
        """The log; nothing is read before it is iterated over."""
        return Log(str(path), self.name, partial(_items, path), strict=strict)


reader = JsonlReader()


def _claim_line(line: bytes) -> float:
    try:
        # The head may end inside a line.
        record = from_json(line, allow_partial=True)
        form = form_of(record)
    except (ValueError, Reason):
        return 0.0
    if form.model is ResultLine and "evaluator" not in record and "type" not in record:
        return 0.0
    try:
        form.model.model_validate(record, extra="ignore")
    except ValidationError:
        return 0.5
    return 0.9


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
        if any(sign in record for sign in form.signs):
            return form
    raise Reason(NO_TYPE)


def _items(path: Path, log: Log) -> Iterator[Item]:
    seen = Seen()
    for number, line in enumerate(raw_lines(path, log), start=1):
        if not line.strip():
            continue
        log.records += 1
        try:
            item = _item(line, log)
        except Reason as reason:
            log.skip(str(reason), f"line {number}")
            continue
        if not _is_new(item, seen):
            log.skip(DUPLICATE, f"line {number}")
            continue
        yield item
        if isinstance(item, Transcript):
            session = item.session()
            if session is not None and _is_new(session, seen):
                log.derived += 1
                yield session
    if not log.records:
        raise LogError(f"{path}: there are no records in it")


def _is_new(item: Item, seen: Seen) -> bool:
    if isinstance(item, Stored):
        about: About | None = item.result.about
        subject = None if about is None else about.subject
        return subject is None or seen.add((*subject, item.measure, item.result.evaluator))
    subject = item.about().subject
    return subject is None or seen.add(subject)


def _item(line: bytes, log: Log) -> Item:
    try:
        record = from_json(line)
    except ValueError as error:
        line, found = without_lone_escapes(line)
        try:
            record = from_json(line)
        except ValueError:
            cut_off = not line.endswith(b"\n")
            raise Reason(CUT_OFF if cut_off else text_fault(line, str(error))) from None
        log.repaired["lone surrogates"] += found
    form = form_of(record)
    try:
        given = form.model.model_validate_json(line, extra="allow")
        _settle(given, log)
        if isinstance(given, Input):
            return given
        return _stored(given)
    except ValidationError as error:
        raise Reason(fault(error)) from None


def _settle(given: BaseModel, log: Log, path: str = "") -> None:
    """Count and drop the fields that the models do not know."""
    for name in given.__pydantic_extra__ or ():
        if path or name != "type":
            log.ignore_field(f"{path}{quoted(name)[1:-1]}")
    object.__setattr__(given, "__pydantic_extra__", None)
    for name in type(given).model_fields:
        value = getattr(given, name)
        for inner in value if isinstance(value, list) else (value,):
            if isinstance(inner, BaseModel):
                _settle(inner, log, f"{path}{name}.")


def _stored(line: ResultLine) -> Stored:
    missing = missing_part(line)
    if missing is not None:
        raise Reason(f"missing field {quoted(missing)}")
    name = measure_of(line)
    if name is None:
        raise Reason("missing field 'measure'")
    verdict_type = verdict_types().get(name)
    if verdict_type is None:
        raise Reason(f"unknown measure {quoted(name)}")
    return Stored(name, to_result(line, verdict_type))


@cache
def verdict_types() -> Mapping[str, type[BaseModel]]:
    """The verdict type of each installed measure, by the measure's name."""
    return {name: measure.verdict for name, measure in installed_measures().loaded.items()}
