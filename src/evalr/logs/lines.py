"""The lines of a file, as bytes: plain or gzip, in constant memory. Where there are none to read, an error says why."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile, GzipFile
from io import BufferedReader, FileIO, RawIOBase
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from evalr.errors import LogError
from evalr.logs.finding import GZIP, HEAD, unreadable
from evalr.logs.log import Log

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes. A longer line is counted and left out, and never held in memory whole."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
OBJECT = re.compile(rb"\{\s*(?:[\"}]|$)")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

PROGRESS_EVERY = 1024

CUT_OFF = "cut off"
TOO_LONG = "line too long"
DAMAGED = "damaged gzip"


class Span(NamedTuple):
    """Some bytes of a plain file, from the begin of a line to the end of one; its head was checked."""

    begin: int
    end: int


def raw_lines(path: Path, log: Log, span: Span | None = None) -> Iterator[bytes]:
    """Every line with its line end, so that counting them numbers them; one that is left out is yielded empty.

    Only a line feed ends a line: the other line ends of Unicode may stand inside a text.

    Args:
        path: of the file.
        log: counts what is left out, and how far the file was read.
        span: only these lines of it, which are numbered from 1 as well.

    Raises:
        LogError: the file cannot be opened, or nothing in it could be a line of JSON.
    """
    try:
        raw = path.open("rb", buffering=0)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    with raw:
        file, begin = _opened(path, raw, log, span)
        for number in count(1):
            if number % PROGRESS_EVERY == 0 and log.bytes_total is not None:
                log.bytes_read = raw.tell() - begin
            try:
                line = file.readline(LINE_LIMIT)
                too_long = len(line) == LINE_LIMIT and not line.endswith(b"\n")
                if too_long:
                    _pass_over(file)
            except (EOFError, BadGzipFile, zlib.error) as error:
                log.records += 1
                log.skip(CUT_OFF if isinstance(error, EOFError) else DAMAGED, f"line {number}")
                break
            except OSError as error:
                raise unreadable(path, error) from error
            if not line:
                break
            if too_long:
                log.records += 1
                log.skip(TOO_LONG, f"line {number}")
                line = b""
            yield line
        if log.bytes_total is not None:
            log.bytes_read = raw.tell() - begin


def _opened(path: Path, raw: FileIO, log: Log, span: Span | None) -> tuple[BufferedReader[Any], int]:
    """A file where its lines begin, and that place among its bytes as they are stored."""
    status = os.fstat(raw.fileno())
    log.bytes_total = status.st_size if stat.S_ISREG(status.st_mode) else None
    begin = 0
    try:
        if span is None:
            file = unpacked(raw)
            check_head(path, file.peek(HEAD))
        else:
            log.bytes_total, begin = span.end - span.begin, raw.seek(span.begin)
            file = BufferedReader(_Until(raw, span.end), HEAD)
        if begin == 0 and file.peek(3).startswith(BYTE_ORDER_MARK):
            file.read(3)
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise LogError(f"{path}: a damaged gzip file, of which nothing can be read") from error
    except OSError as error:
        raise unreadable(path, error) from error
    return file, begin


def _pass_over(file: BufferedReader[Any]) -> None:
    """Read to the end of the line that was begun."""
    while (piece := file.readline(HEAD)) and not piece.endswith(b"\n"):
        pass


class _Unpacked(RawIOBase):
    """What a gzip file holds, in the pieces in which it can be read: what comes before a damage is not lost with it."""

    def __init__(self, packed: BufferedReader[Any]) -> None:
        self._file = GzipFile(fileobj=packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read1(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class _Until(RawIOBase):
    """A file that ends before it does."""

    def __init__(self, file: FileIO, end: int) -> None:
        self._file, self._left = file, end - file.tell()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(min(len(buffer), self._left)) or b""
        buffer[: len(piece)] = piece
        self._left -= len(piece)
        return len(piece)


def unpacked(raw: FileIO) -> BufferedReader[Any]:
    """A file's bytes, decompressed where it is gzip, whatever its name says."""
    packed = BufferedReader(raw, HEAD)
    return BufferedReader(_Unpacked(packed), HEAD) if packed.peek(2).startswith(GZIP) else packed


def check_head(path: Path, head: bytes) -> None:
    """Raise LogError where the first bytes of a file say that it is not JSON Lines at all."""
    if head.startswith(UTF_16):
        raise LogError(f"{path} is UTF-16: save it as UTF-8, for example with  iconv -f UTF-16 -t UTF-8")
    lines = [line for piece in head.removeprefix(BYTE_ORDER_MARK).split(b"\n") if (line := piece.strip())]
    if not lines:
        return
    if is_document(lines):
        raise LogError(
            f"{path} is one JSON document, not JSON Lines: write one object on each line, for example with  "
            "jq -c '.[]'  for an array"
        )
    # A block of NUL bytes is what a crash leaves in a log that is otherwise sound, so they alone decide nothing.
    if not any(OBJECT.match(line) for line in lines):
        what = "is not text" if b"\0" in head else "is not JSON Lines: none of its first lines is a JSON object"
        raise LogError(f"{path} {what}; a log of this kind holds one JSON object on each line")


def is_document(lines: list[bytes]) -> bool:
    """Whether lines look like one JSON document, printed over several lines or as one array."""
    first = lines[0]
    return first in (b"{", b"[", b"[{") or (first.startswith(b"[{") and len(lines) == 1)
