"""ClickHouse's engine behind HTTP on loopback, for clickhouse-connect's own client; a process has one engine.

There is no server of ClickHouse to be had as a package, so that its engine answers here: `clickhouse_server.py FOLDER`
prints its port, and lets in the user `default` with the password `secret`.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PASSWORD = "secret"
WRONG_PASSWORD = 516


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server, without its user and password."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, __file__, str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()
            server.wait(timeout=20)


def main(folder: str) -> None:
    """Serve until the process is ended."""
    import chdb

    engine = chdb.connect(folder)
    alone = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self._body()
            query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
            given = self._form(body) | {name: values[0] for name, values in query.items()}
            if not self._is_known():
                self._answer(403, b"Code: 516. DB::Exception: wrong password", code=WRONG_PASSWORD)
                return
            try:
                with alone:
                    self._answer(200, _asked(engine, given, body))
            except RuntimeError as error:
                self._answer(500, str(error).encode(), code=_code(str(error)))

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "lz4":
                import lz4.frame

                return bytes(lz4.frame.decompress(body))
            if self.headers.get("Content-Encoding") == "zstd":
                import zstandard

                return zstandard.ZstdDecompressor().decompressobj().decompress(body)
            return body

        def _form(self, body: bytes) -> dict[str, str]:
            """The fields of a form, as which a client sends what is too long for an address."""
            kind = self.headers.get("Content-Type", "")
            if not kind.startswith("multipart/form-data"):
                return {}
            parts: Any = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body).get_payload()
            return {
                part.get_param("name", header="content-disposition"): part.get_payload(decode=True).decode()
                for part in parts
            }

        def _is_known(self) -> bool:
            said = self.headers.get("Authorization", "").removeprefix("Basic ")
            return base64.b64decode(said) == f"default:{PASSWORD}".encode()

        def _answer(self, status: int, content: bytes, code: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-ClickHouse-Summary", json.dumps({}))
            self.send_header("X-ClickHouse-Format", "TabSeparated")
            if code is not None:
                self.send_header("X-ClickHouse-Exception-Code", str(code))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)  # noqa: T201  its caller reads it
    server.serve_forever()


def _asked(engine: Any, given: dict[str, str], body: bytes) -> bytes:
    """What the engine says to a request: a query in the address or the body, or rows to be inserted."""
    query = given.get("query")
    if query is None:
        head, _, rows = body.partition(b"\n")
        if head.startswith(b"INSERT INTO") and head.rstrip().endswith(b"FORMAT Native"):
            return _inserted(engine, head.decode(), rows)
        query = body.decode()
    if database := given.get("database"):
        engine.query(f"USE {database}")
    values = {name.removeprefix("param_"): value for name, value in given.items() if name.startswith("param_")}
    return bytes(engine.query(query, "TabSeparated", params=values).bytes())


def _inserted(engine: Any, head: str, rows: bytes) -> bytes:
    with tempfile.NamedTemporaryFile(suffix=".native") as file:
        file.write(rows)
        file.flush()
        engine.query(head.replace("FORMAT Native", f"FROM INFILE '{file.name}' FORMAT Native"))
    return b""


def _code(said: str) -> int:
    digits = said.partition("Code: ")[2].partition(".")[0]
    return int(digits) if digits.isdigit() else 1


if __name__ == "__main__":
    main(*sys.argv[1:])
