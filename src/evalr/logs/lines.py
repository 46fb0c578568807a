"""The lines of a file, as bytes: plain or gzip, in constant memory. Where there are none to read, an error says why."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from gzip import BadGzipFile, GzipFile
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, cast

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


def raw_lines(path: Path, log: Log) -> Iterator[bytes]:
    """Every line with its line end, so that counting them numbers them; one that is left out is yielded empty.

    Only a line feed ends a line: the other line ends of Unicode may stand inside a text.
    """
    try:
        raw = path.open("rb", buffering=0)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    with raw:
        status = os.fstat(raw.fileno())
        log.bytes_total = status.st_size if stat.S_ISREG(status.st_mode) else None
        packed = BufferedReader(raw, HEAD)
        try:
            compressed = packed.peek(2).startswith(GZIP)
            # A GzipFile reads lines in Python; around it, a BufferedReader reads them in C.
            file: BufferedReader[Any] = packed
            if compressed:
                file = BufferedReader(cast("RawIOBase", GzipFile(fileobj=packed)), HEAD)
            head = file.peek(HEAD)
        except (EOFError, BadGzipFile, zlib.error) as error:
            raise LogError(f"{path}: a damaged gzip file, of which nothing can be read") from error
        except OSError as error:
            raise unreadable(path, error) from error
        check_head(path, head)
        yield from _lines(path, file, log, raw.tell)


def _lines(path: Path, file: BufferedReader[Any], log: Log, position: Callable[[], int]) -> Iterator[bytes]:
    number = 0
    if file.peek(3).startswith(BYTE_ORDER_MARK):
        file.read(3)
    while True:
        try:
            line = file.readline(LINE_LIMIT)
            if len(line) == LINE_LIMIT and not line.endswith(b"\n"):
                line = b""
                _pass_over(file)
                log.records += 1
                log.skip(TOO_LONG, f"line {number + 1}")
            elif not line:
                break
        except EOFError:
            log.records += 1
            log.skip(CUT_OFF, f"line {number + 1}")
            break
        except (BadGzipFile, zlib.error):
            log.records += 1
            log.skip("damaged gzip", f"line {number + 1}")
            break
        except OSError as error:
            raise unreadable(path, error) from error
        number += 1
        if not number % PROGRESS_EVERY:
            log.bytes_read = position()
        yield line
    log.bytes_read = position()


def _pass_over(file: BufferedReader[Any]) -> None:
    """Read to the end of the line that was begun."""
    while (piece := file.readline(HEAD)) and not piece.endswith(b"\n"):
        pass


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
