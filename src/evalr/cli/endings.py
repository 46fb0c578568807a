"""How the command ends: one clear line and an exit code, and never a traceback for what a person can mend."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import typer

from evalr.cli.added import OpenGroup
from evalr.errors import EvalrError
from evalr.estimates import gates
from evalr.quoting import safe_text

NOT_CLEARED, UNUSABLE = gates.NOT_CLEARED, gates.UNUSABLE
STOPPED, PIPE_CLOSED = 130, 141
"""What shells report of a program that was interrupted, and of one whose reader went away."""

LONGEST_MESSAGE = 4_000


def show_anything() -> None:
    """Let a terminal that cannot show a character show its escape, rather than end with an error.

    What is said to a stream that was closed before the command began is said to nobody.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def unwritable(error: OSError) -> int:
    """Say that the output cannot be written, as to a disk that is full. Returns the exit code."""
    _drop_output()
    what = "the output" if error.filename is None else error.filename
    print(f"evalr: {safe_text(str(what))} cannot be written: {error.strerror or error}", file=sys.stderr)
    return UNUSABLE


def _drop_output() -> None:
    """Python flushes stdout once more at its end, and would complain of the same fault."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class QuietGroup(OpenGroup):
    """The command, ending with a line on stderr and an exit code where something goes wrong."""

    def invoke(self, ctx: Any) -> Any:
        """Run what was asked for."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except EvalrError as error:
            print(f"evalr: {safe_text(str(error), longest=LONGEST_MESSAGE)}", file=sys.stderr)
            raise typer.Exit(UNUSABLE) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(STOPPED) from error
        except BrokenPipeError as error:
            _drop_output()
            raise typer.Exit(PIPE_CLOSED) from error
