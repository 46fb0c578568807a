"""Text that fits: how wide a text is on a terminal, and how it breaks into lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int) -> str:
    """The text with spaces after it, to `width` columns."""
    return text + " " * (width - cells(text))


def shortened(text: str, width: int) -> str:
    """The text or, where it takes more than `width` columns, its beginning and its end: of a path, the name."""
    if cells(text) <= width:
        return text
    begin = _fitting(text, width // 3)
    end = _fitting(text[::-1], width - cells(begin) - 1)[::-1]
    return f"{begin}…{end}"


def _fitting(text: str, width: int) -> str:
    """As much of a text's beginning as fits."""
    used = 0
    for place, character in enumerate(text):
        used += cells(character)
        if used > width:
            return text[:place]
    return text


def packed(parts: Sequence[str], width: int, *, between: str = "  ·  ") -> Iterator[str]:
    """The parts in lines of at most `width` columns, broken between parts; only a longer part is broken within."""
    line = ""
    for part in parts:
        if line and cells(line) + cells(between) + cells(part) > width:
            yield from _broken(line, width)
            line = ""
        line += f"{between}{part}" if line else part
    yield from _broken(line, width)


def _broken(line: str, width: int) -> Iterator[str]:
    return wrapped(line, width) if cells(line) > width else iter((line,))


def wrapped(text: str, width: int, *, first: str = "", rest: str = "  ") -> Iterator[str]:
    """The text in lines of at most `width` columns, where its words allow it; at least one line.

    The first line begins with `first`, the others with `rest`.
    """
    line, used, empty = first, cells(first), True
    for word in text.split():
        size = cells(word)
        if not empty and used + 1 + size > width:
            yield line
            line, used, empty = rest, cells(rest), True
        line += word if empty else f" {word}"
        used += size if empty else 1 + size
        empty = False
    yield line.rstrip()
