"""The command `evalr`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0 where all is well, 1 for a gate not cleared, 2 for misuse, 130 when stopped."""
    try:
        from evalr.cli.app import app
    except KeyboardInterrupt:
        return 130
    from evalr.cli.endings import show_anything, unwritable

    show_anything()
    try:
        app(list(sys.argv[1:] if arguments is None else arguments), prog_name="evalr")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except OSError as error:
        return unwritable(error)
    return 0
