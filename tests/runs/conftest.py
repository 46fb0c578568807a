"""A server that judges over real HTTP on loopback, as each test tells it to."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass(frozen=True)
class Reply:
    """What the server answers; with `cut`, it closes the connection instead."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False


@dataclass
class JudgeServer:
    """Counts the calls for each item, and answers the n-th call for one (from 1) with `script(item, n)`."""

    url: str = ""
    script: Callable[[str, int], Reply] = lambda item, n: Reply()
    calls: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, item: str) -> Reply:
        with self.lock:
            self.calls[item] += 1
            self.times.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            return self.script(item, self.calls[item])

    def end(self) -> None:
        with self.lock:
            self.at_once -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed cut their connections."""


@pytest.fixture
def judge_server() -> Iterator[JudgeServer]:
    judge = JudgeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            reply = judge.begin(self.path.rpartition("/")[2])
            time.sleep(reply.delay)
            judge.end()  # before the client can know of it, and send the next one
            if reply.cut:
                self.close_connection = True
                return
            body = b"yes"
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    judge.url = f"http://127.0.0.1:{server.server_port}"
    yield judge
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply
