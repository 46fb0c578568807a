"""`evalr tracepass` as people type it: in this process, or in one of its own that a signal can end."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from evalr.cli import main


def ran(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what was said on stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = main(["tracepass", *arguments])
    return code, out.getvalue(), err.getvalue()


def parsed(folder: Path, *arguments: str) -> Any:
    """What --json prints."""
    code, out, err = ran(folder, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def begun(folder: Path, *arguments: str, **streams: Any) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TERM": "dumb"}
    piped: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "evalr.cli", "tracepass", *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **{**piped, **streams})


def conversation(name: str, *texts: str, user: str = "ada") -> dict[str, Any]:
    """One in which a person and an agent take turns, as a line of a log."""
    turns = [
        {"role": "person" if place % 2 == 0 else "agent", "text": text, "at": f"2026-11-01T09:0{place}:00Z"}
        for place, text in enumerate(texts)
    ]
    return {"id": name, "user": user, "request": texts[0], "turns": turns}


def write_lines(path: Path, *lines: dict[str, Any]) -> None:
    """A log, or more of one."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
