"""`evalr report --html FILE`: where the page goes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalr.errors import InputError
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from evalr.reports.report import Report


def check_page(file: str, log: str) -> None:
    """See that a page can be made and written there, before a long log is read for it.

    Raises:
        InputError: it cannot be written, or would be written over the log.
        MissingExtraError: what pages need is not installed.
    """
    from evalr.reports.pages.rendering import check_installed

    check_installed()
    path = Path(file)
    shown = safe_text(file, longest=1_000)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--html {shown}: there is no such folder, or it is one itself: name a file such as out.html")
    if path.exists() and Path(log).exists() and path.samefile(log):
        raise InputError(f"--html {shown} is the log itself, which is only read")


def write_page(found: Report, file: str) -> None:
    """Write the page, and say where it is beside what was printed.

    Raises:
        InputError: it cannot be written.
    """
    page = found.to_html()
    shown = safe_text(file, longest=1_000)
    try:
        Path(file).write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--html {shown}: {error.strerror}") from error
    print(f"evalr: the page is in {shown}", file=sys.stderr)
