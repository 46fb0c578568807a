"""Which results of a log give way to a later one of the same subject.

A log is read as a stream, so that what comes later must be known before. Only a log of results has such lines: a file
that has no result at its begin or end (where it is compressed, at its begin) is not looked through.
"""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from evalr.inputs import About
from evalr.logs.finding import GZIP, HEAD
from evalr.logs.lines import LINE_LIMIT
from evalr.logs.results import AboutLine, ResultLine, measure_of
from evalr.verdicts import LABELLED_BY, PEOPLE, Result

SUPERSEDED = "superseded"

_MARK = b'"supersedes"'
_RESULT = (b'"evaluator"', _MARK)


def result_key(measure: str, result: Result[Any]) -> tuple[Hashable, ...] | None:
    """What there is one result for: a subject, a measure, an evaluator, its version and which time it was asked.

    Of people, there is one for each who said something.

    None where the result is about nothing that has a name. No name is empty.
    """
    about = result.about
    if about is None or about.subject is None:
        return None
    return _spelled(about, measure, result)


def _spelled(about: About | AboutLine, measure: str, result: Result[Any] | ResultLine) -> tuple[Hashable, ...]:
    author = (about.attributes or {}).get(LABELLED_BY) if result.evaluator == PEOPLE else None
    subject = (about.kind, about.user, about.session, about.id)
    named = (*subject, measure, result.evaluator, result.version or "1", author)
    return (*(part if isinstance(part, str) else "" for part in named), about.repeat or 0)


def last_of_each(path: Path) -> dict[Hashable, int]:
    """For each key of which a result supersedes another one: the hash of the last such line.

    Nothing of what cannot be read twice, such as a pipe.
    """
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
        lines = _marked_in_gzip(path) if packed else _marked(path)
        return {key: hash(line) for line in lines if (key := _key(line)) is not None}
    except (OSError, ValueError, EOFError, zlib.error):
        return {}  # whoever reads it says what is wrong


def _marked(path: Path) -> Iterator[bytes]:
    """The lines of a file that have the mark."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        ends = b""
        for place in (0, max(0, size - HEAD)):
            file.seek(place)
            ends += file.read(HEAD)
        if not any(sign in ends for sign in _RESULT):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            place = whole.find(_MARK)
            while place >= 0:
                begin, end = whole.rfind(b"\n", 0, place) + 1, whole.find(b"\n", place)
                end = size if end < 0 else end
                if end - begin < LINE_LIMIT:
                    yield whole[begin:end].strip()
                place = whole.find(_MARK, end)


def _marked_in_gzip(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        if not any(sign in file.read(HEAD) for sign in _RESULT):
            return
        file.seek(0)
        while line := file.readline(LINE_LIMIT):
            if _MARK in line:
                yield line.strip()


def _key(line: bytes) -> Hashable | None:
    try:
        record = from_json(line)
        if not isinstance(record, dict) or record.get("supersedes") is not True:
            return None
        read = ResultLine.model_validate(record, extra="ignore")
    except (ValueError, ValidationError):
        return None
    measure, about = measure_of(read), read.about
    if measure is None or about is None or about.id is None:
        return None
    return _spelled(about, measure, read)
