"""What commands print: lines for people, or JSON for programs, and how wide the terminal is."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def print_lines(lines: Iterable[str], fields: dict[str, Any], *, json: bool) -> None:
    """Print lines, or with `json` the same in plain types."""
    if json:
        from json import dumps

        print(dumps(fields, indent=2, allow_nan=False))
    else:
        print("\n".join(lines))


def screen_width() -> int:
    """Of the terminal, between what a table needs and what an eye follows; 100 where there is none."""
    if not sys.stdout.isatty():
        return 100
    from shutil import get_terminal_size

    return min(max(get_terminal_size().columns, 60), 120)


def has_color() -> bool:
    """Whether stdout shows bold and dim, and nobody said not to (no-color.org)."""
    from os import environ

    return sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
