"""How the command ends: one clear line and an exit code, and never a traceback for what a person can mend."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from evalr.errors import EvalrError
from evalr.estimates.words import safe_text

NOT_CLEARED, UNUSABLE = 1, 2
STOPPED, PIPE_CLOSED = 130, 141
"""What shells report of a program that was interrupted, and of one whose reader went away."""

LONGEST_MESSAGE = 4_000


def show_anything() -> None:
    """Let a terminal that cannot show a character show its escape, rather than end with an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class QuietGroup(TyperGroup):
    """The command, ending with a line on stderr and an exit code where something goes wrong."""

    def invoke(self, ctx: Any) -> Any:
        """Run what was asked for."""
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except EvalrError as error:
            print(f"evalr: {safe_text(str(error), longest=LONGEST_MESSAGE)}", file=sys.stderr)
            raise typer.Exit(UNUSABLE) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(STOPPED) from error
        except BrokenPipeError as error:
            # Python flushes stdout once more at its end, and would complain of the same pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from error
        return done
