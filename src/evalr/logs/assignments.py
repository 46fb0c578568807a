"""Assignments of users to arms, from the file that an application or a warehouse exports: CSV or JSON Lines."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Iterator
from gzip import BadGzipFile
from itertools import chain
from os import PathLike
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from evalr.errors import InputError, LogError, RecordError
from evalr.inputs import Assignment
from evalr.logs.finding import unreadable
from evalr.logs.lines import BYTE_ORDER_MARK, LINE_LIMIT, UTF_16, unpacked
from evalr.logs.reasons import NOT_AN_OBJECT, fault, text_fault
from evalr.quoting import quoted

DELIMITERS = (",", ";", "\t")
SHOWN_COLUMNS = 20

Line = tuple[int, str]
"""Its number, from 1, and its text with the line end."""


def read_assignments(
    path: str | PathLike[str], *, user_column: str = "user", arm_column: str = "arm"
) -> list[Assignment]:
    """Who was assigned to which arm, from a file of CSV or JSON Lines with a row for each assignment, plain or gzip.

    For `summary.lift(results, assignments=read_assignments("assignments.csv"), weights=...)`. A row without an arm is
    an assignment to None, which is counted as such. A row that cannot be read is an error and never left out: counts
    without it would be those of another experiment.

    In CSV the first line names the columns, which a comma, a semicolon or a tab sets apart; blanks around a cell are no
    part of it. In JSON Lines each line is an object. Other columns are not read.

    Args:
        path: of the file, UTF-8.
        user_column: the name of the column that says who.
        arm_column: the name of the column that says which arm.

    Returns:
        One for each row, in their order. One user may have several.

    Raises:
        LogError: it cannot be opened, has no assignments in it, or lacks a column.
        RecordError: a row cannot be used; the message names its line.
        InputError: both columns are the same.
    """
    if user_column == arm_column:
        raise InputError(f"the columns of users and of arms are both {quoted(user_column)}: name two")
    path = Path(path)
    lines = _lines(path)
    first = next(((number, text) for number, text in lines if text.strip()), None)
    if first is None:
        raise LogError(f"{path} is empty: there are no assignments to read")
    if first[1].lstrip().startswith("["):
        raise LogError(f"{path} is one JSON document, not JSON Lines: write one object on each line")
    read = _from_json if first[1].lstrip().startswith("{") else _from_csv
    assignments = list(read(path, first, lines, user_column, arm_column))
    if not assignments:
        raise LogError(f"{path}: there are no assignments below its first line")
    return assignments


# ---------------------------------------------------------------------------------------------------------------------
# Lines
# ---------------------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[Line]:
    try:
        raw = path.open("rb", buffering=0)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    number = 0
    with raw:
        try:
            with unpacked(raw) as file:
                while line := file.readline(LINE_LIMIT):
                    number += 1
                    yield number, _decoded(path, number, line)
        except (EOFError, BadGzipFile, zlib.error) as error:
            raise _bad_row(path, number + 1, "the gzip file is damaged or cut off here") from error
        except OSError as error:
            raise unreadable(path, error) from error


def _decoded(path: Path, number: int, line: bytes) -> str:
    if number == 1:
        if line.startswith(UTF_16):
            raise LogError(f"{path} is UTF-16: save it as UTF-8, for example with  iconv -f UTF-16 -t UTF-8")
        line = line.removeprefix(BYTE_ORDER_MARK)
    if len(line) == LINE_LIMIT and not line.endswith(b"\n"):
        raise _bad_row(path, number, "the line is too long")
    if b"\0" in line:
        raise _bad_row(path, number, "it holds a NUL, which no text does")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise _bad_row(path, number, "not UTF-8") from error


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


def _from_json(path: Path, first: Line, lines: Iterator[Line], user: str, arm: str) -> Iterator[Assignment]:
    names: list[str] = []
    arms = False
    for number, text in chain([first], lines):
        if not text.strip():
            continue
        try:
            row = from_json(text)
        except ValueError as error:
            raise _bad_row(path, number, text_fault(text.encode(), str(error))) from error
        if not isinstance(row, dict):
            raise _bad_row(path, number, NOT_AN_OBJECT)
        if user not in row:
            raise _no_column(f"{path}, line {number}", user, "user_column", row)
        names, arms = names or list(row), arms or arm in row
        yield _assignment(path, number, row[user], row.get(arm), user)
    if not arms:
        raise _no_column(f"{path}", arm, "arm_column", names)


def _from_csv(path: Path, first: Line, lines: Iterator[Line], user: str, arm: str) -> Iterator[Assignment]:
    begin = end = first[0]

    def texts() -> Iterator[str]:
        nonlocal end
        for number, text in chain([first], lines):
            end = number
            yield text

    # a row may have line ends within its quotes, and then takes several lines
    rows = csv.reader(texts(), delimiter=_delimiter(first[1], user, arm), strict=True)
    header: list[str] = []
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not header:
                header = _columns(path, cells, user, arm)
            elif any(cells):
                if len(cells) != len(header):
                    raise _bad_row(path, begin, f"{len(cells)} cells, where the first line has {len(header)}")
                found = dict(zip(header, cells, strict=True))
                yield _assignment(path, begin, found[user], found[arm], user)
            begin = end + 1
    except csv.Error as error:
        raise _bad_row(path, begin, f"no row of CSV can be read from here ({error})") from error


def _delimiter(line: str, user: str, arm: str) -> str:
    for delimiter in DELIMITERS:
        try:
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            continue
        if {user, arm} <= {cell.strip() for cell in cells}:
            return delimiter
    return max(DELIMITERS, key=line.count)


def _columns(path: Path, names: list[str], user: str, arm: str) -> list[str]:
    for name, option in ((user, "user_column"), (arm, "arm_column")):
        if name not in names:
            raise _no_column(f"{path}", name, option, names)
        if names.count(name) > 1:
            raise LogError(f"{path}: {names.count(name)} columns are named {quoted(name)}: name them apart")
    return names


def _assignment(path: Path, number: int, user: object, arm: object, user_column: str) -> Assignment:
    if user is None or user == "":
        raise _bad_row(path, number, f"no user in {quoted(user_column)}")
    try:
        return Assignment.model_validate({"user": user, "arm": None if arm == "" else arm})
    except ValidationError as error:
        raise _bad_row(path, number, fault(error)) from error


def _bad_row(path: Path, number: int, reason: str) -> RecordError:
    return RecordError(f"{path}, line {number}: {reason}; mend it: counts without it would be those of another split")


def _no_column(where: str, name: str, option: str, names: Iterable[str]) -> LogError:
    known = list(names)
    shown = ", ".join(quoted(each) for each in known[:SHOWN_COLUMNS]) + (", …" if len(known) > SHOWN_COLUMNS else "")
    flag = f"--{option.replace('_', '-')}"
    return LogError(f"{where}: no column {quoted(name)}; there are: {shown}. Name it: {flag}, or {option}= in Python")
