"""evalr's own log: JSON Lines, one input or result on each line, as its model dumps it.

A `type` (session, history, exchange, learning, transcript, result) may name what a line is; where there is none, its
fields decide.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from evalr.errors import InputError, LogError
from evalr.inputs import Input, Transcript, Turn
from evalr.logs.forms import FORMS, PARTS_OF, Form, form_of, is_header
from evalr.logs.lines import BYTE_ORDER_MARK, CUT_OFF, UTF_16, Span, is_document, raw_lines
from evalr.logs.log import Item, Log, Stored
from evalr.logs.reasons import Reason, fault, text_fault, without_lone_escapes
from evalr.logs.results import ResultLine, measure_of, missing_part, to_result, to_result_line
from evalr.logs.seen import Seen
from evalr.logs.superseding import SUPERSEDED, last_of_each, result_key
from evalr.measures import installed_measures
from evalr.quoting import quoted
from evalr.verdicts import Result

CLAIMED_LINES = 20
"""How many lines of a file are looked at to say whether it is a log of this kind."""

TO_EXPLAIN = 0.05
"""The claim to a file that is none of this kind, but for which the reader's error says what to do."""

DUPLICATE = "duplicate id"

TOOL = "tool"
"""Of a turn: the tool that it calls, or answers for."""


def to_line(item: Item | Result[Any]) -> str:
    """An input or a result as one line of a log, without a line end; it reads back equal.

    A result that is not `Stored` belongs to the measure of its evaluator's name.

    Raises:
        InputError: it is a part of an input, such as a `Wait`, or a result of nobody: a log has no lines for these.
    """
    if isinstance(item, Input):
        if not isinstance(item, tuple(form.model for form in FORMS)):
            raise InputError(f"a log has no lines for a {type(item).__name__}: write what it is a part of")
        return item.model_dump_json()
    if not isinstance(item, Stored):
        if item.evaluator is None:
            raise InputError("this result names no evaluator: write it as Stored(measure, result)")
        item = Stored(item.evaluator, item)
    return to_result_line(item).model_dump_json(exclude_none=True)


@dataclass(frozen=True)
class JsonlReader:
    """Reads evalr's own log."""

    name: str = "jsonl"
    describes: str = "evalr's JSON Lines: sessions, histories, transcripts, answers and results"

    def claim(self, path: Path, head: bytes) -> float:
        """Sure where the first line that is an object is of one of its types."""
        head = head.removeprefix(BYTE_ORDER_MARK)
        if b"\0" in head:
            return TO_EXPLAIN if head.startswith(UTF_16) else 0.0
        lines = [line for piece in head.split(b"\n") if (line := piece.strip())]
        if lines and is_document(lines):
            return TO_EXPLAIN
        return max((_claim_line(line) for line in lines[:CLAIMED_LINES]), default=0.0)

    def open(self, path: Path, *, strict: bool = False) -> Log:
        """The log; nothing is read before it is iterated over."""
        return Log(str(path), self.name, partial(line_items, path), strict=strict)


reader = JsonlReader()


def _claim_line(line: bytes) -> float:
    try:
        # The head may end inside a line.
        record = from_json(line, allow_partial=True)
        if is_header(record):
            return 0.9
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


class Rows(Protocol):
    """What takes lines as they are, before they become inputs; see `evalr.bulk`."""

    def take(self, line: bytes) -> bool | None:
        """Whether what the line holds is new; None where it must be read as any other line."""

    def flush(self) -> None:
        """Finish what was taken so far: what is yielded next comes after it."""


def line_items(
    path: Path, log: Log, *, span: Span | None = None, seen: Seen | None = None, rows: Rows | None = None
) -> Iterator[Item]:
    """What the lines of a log hold, each subject once.

    Args:
        path: of the file.
        log: gets the account.
        span: only these lines of it. That there are none is no error then.
        seen: subjects that count as named already.
        rows: takes what lines it can; these are not yielded.
    """
    seen, lines, last = Seen() if seen is None else seen, _Lines(log), last_of_each(path)
    take = None if rows is None else rows.take
    for number, line in enumerate(raw_lines(path, log, span), start=1):
        if take is not None:
            new = take(line)
            if new is not None:
                log.records += 1
                if not new:
                    log.skip(DUPLICATE, f"line {number}")
                continue
        try:
            given = lines.read(line)
            if given is None:
                continue
            item = _stored(given, log) if isinstance(given, ResultLine) else given
        except Reason as reason:
            log.records += 1
            log.skip(str(reason), f"line {number}")
            continue
        log.records += 1
        if not _is_wanted(item, line, number, log, seen, last):
            continue
        if rows is not None:
            rows.flush()
        yield item
        if isinstance(item, Transcript):
            session = item.session()
            if session is not None and _is_new(session, seen):
                log.derived += 1
                yield session
    if rows is not None:
        rows.flush()
    if span is None:
        check_records(log)


def check_records(log: Log) -> None:
    """Raise LogError where a log that was read had none."""
    if not log.records:
        raise LogError(f"{log.path}: there are no records in it")


def _is_new(item: Item, seen: Seen) -> bool:
    if isinstance(item, Stored):
        key = result_key(item.measure, item.result)
        return key is None or seen.add(key)
    if item.id is None:
        return True
    # No name is empty. Ids of what is no part of a session are their own, whatever else the log says.
    subject = (item.kind, item.user or "", item.id)
    return seen.add((*subject, item.about().session or "") if item.is_part else subject)


def _is_wanted(item: Item, line: bytes, number: int, log: Log, seen: Seen, last: Mapping[Hashable, int]) -> bool:
    """Whether an item is the one that counts of its subject; where it is not, the log is told why."""
    if last and isinstance(item, Stored):
        key = result_key(item.measure, item.result)
        if key in last and last[key] != hash(line.strip()):
            log.leave_out(SUPERSEDED, f"line {number}")
            return False
    if not _is_new(item, seen):
        log.skip(DUPLICATE, f"line {number}")
        return False
    return True


class _Lines:
    """Reads one line after the other, each first as the one before it was read: most lines of a log are alike."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._take(FORMS[0])
        self._extra: Literal["allow"] | None = None  # None refuses unknown fields, and is the fastest

    def _take(self, form: Form) -> None:
        self._form, self._mark, self._validate = form, form.mark, form.validate

    def read(self, line: bytes) -> Input | ResultLine | None:
        """What a line holds, or None where it is blank, or a header.

        Raises:
            Reason: it cannot be used.
        """
        extra = self._extra
        if self._mark in line:
            try:
                given = self._validate(line, extra=extra)
            except ValidationError:
                return self._read_with_care(line)
            if not given.model_fields_set.isdisjoint(self._form.signs):
                if extra is None:
                    return given  # type: ignore[no-any-return]  # as its form says
                if self._form.agrees(given.__pydantic_extra__):
                    return self._settled(given)
        return self._read_with_care(line)

    def _read_with_care(self, line: bytes) -> Input | ResultLine | None:
        if not line.strip():
            return None
        repaired, record = 0, None
        line = line.removeprefix(BYTE_ORDER_MARK)  # where files were put together
        try:
            record = from_json(line)
        except ValueError as error:
            line, repaired = without_lone_escapes(line)
            try:
                record = from_json(line)
            except ValueError:
                raise Reason(text_fault(line, str(error)) if line.endswith(b"\n") else CUT_OFF) from None
        if is_header(record):
            return None
        form = form_of(record)
        if form is not self._form:
            self._take(form)
        try:
            given = self._validate(line, extra="allow")
        except ValidationError as error:
            if form.model is ResultLine:
                _refuse(record.get("measure") or record.get("evaluator"), self._log)
            raise Reason(fault(error)) from None
        if repaired:
            self._log.repaired["lone surrogates"] += repaired
        return self._settled(given)

    def _settled(self, given: Input | ResultLine) -> Input | ResultLine:
        self._extra = "allow" if settle(given, self._log) else None
        return given


def settle(given: BaseModel, log: Log, path: str = "") -> bool:
    """Count and take out the fields that the models do not know. Returns whether there were any."""
    extras = given.__pydantic_extra__
    found = bool(extras)
    if extras:
        kept = _keep_tool(given, extras)
        for name in extras:
            if name != kept and (path or name != "type"):
                log.ignore_field(path + quoted(name)[1:-1])
        given.model_fields_set.difference_update(extras)
    # Also where there were none: an input read with an empty set of extras is not equal to one made without.
    object.__setattr__(given, "__pydantic_extra__", None)
    for part in PARTS_OF.get(type(given), ()):
        value = getattr(given, part)
        for inner in value if isinstance(value, list) else () if value is None else (value,):
            found |= settle(inner, log, f"{path}{part}.")
    return found


def _keep_tool(given: BaseModel, extras: Mapping[str, Any]) -> str | None:
    """Keep the name of the tool that a turn calls or answers for, which logs of agents have beside its role.

    It goes to the turn's metadata, where readers of traces look for it. Returns the field that was kept.
    """
    tool = extras.get(TOOL)
    if not isinstance(given, Turn) or not isinstance(tool, str) or TOOL in given.metadata:
        return None
    given.metadata[TOOL] = tool
    given.model_fields_set.add("metadata")
    return TOOL


def _stored(line: ResultLine, log: Log) -> Stored:
    missing, name = missing_part(line), measure_of(line)
    if missing is not None:
        _refuse(name, log)
        raise Reason(f"missing field {quoted(missing)}")
    if name is None:
        raise Reason("missing field 'measure'")
    verdict_type = verdict_types().get(name)
    if verdict_type is None:
        raise Reason(f"unknown measure {quoted(name)}")
    try:
        return Stored(name, to_result(line, lambda value: _value(value, verdict_type, log)))
    except ValidationError as error:
        _refuse(name, log)
        raise Reason(fault(error, "value")) from None


def _refuse(name: object, log: Log) -> None:
    """Count a result under its measure; one that is not installed is told of by its name already."""
    if isinstance(name, str) and name in verdict_types():
        log.refuse_result(name)


def _value(fields: dict[str, Any], verdict_type: type[BaseModel], log: Log) -> BaseModel:
    computed = verdict_type.model_computed_fields
    given = {name: value for name, value in fields.items() if name not in computed}
    # By way of JSON, since a strict type takes texts for enumerations only from there.
    value = verdict_type.model_validate_json(to_json(given), extra="allow", by_alias=True, by_name=True)
    if verdict_type.model_config.get("extra") != "allow":
        settle(value, log, "value.")
    return value


@cache
def verdict_types() -> Mapping[str, type[BaseModel]]:
    """The verdict type of each installed measure, by the measure's name."""
    return {name: measure.verdict for name, measure in installed_measures().loaded.items()}
