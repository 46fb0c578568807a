"""A server on loopback that answers as Reflexio's HTTP API does, from answers that the real one gave."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reflexio_writing import answer


@dataclass
class Reflexio:
    """What the server has, how it misbehaves, and what it was asked."""

    sessions: list[Any] = field(default_factory=lambda: answer("requests_all")["sessions"])
    outcomes: list[Any] = field(default_factory=lambda: answer("success_results")["agent_success_evaluation_results"])
    learnings: list[Any] = field(default_factory=lambda: answer("learning_results")["results"])
    customers: list[Any] = field(default_factory=lambda: answer("session_outcomes")["session_outcomes"])
    key: str | None = None
    missing: frozenset[str] = frozenset()
    busy: int = 0
    garbage: bytes | None = None
    status: int = 200
    forever: str = ""
    refusal: dict[str, Any] | None = None
    asked: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def answer(self, route: str, asked: dict[str, Any]) -> tuple[int, Any]:
        self.asked[route] += 1
        self.bodies.append({"route": route, **asked})
        if self.busy:
            self.busy -= 1
            return 429, {"detail": "slow down"}
        if route in self.missing:
            return 404, {"detail": "Not Found"}
        if self.refusal is not None:
            return 200, self.refusal
        if route == "/api/get_requests":
            if self.forever == "requests":
                return 200, {"success": True, "sessions": self.sessions[:20], "has_more": True}
            found = [each for each in self.sessions if any(_within(r["request"], asked) for r in each["requests"])]
            page = found[asked["offset"] : asked["offset"] + asked["top_k"]]
            more = len(found) > asked["offset"] + asked["top_k"]
            return 200, {"success": True, "sessions": page, "has_more": more}
        if route == "/api/get_agent_success_evaluation_results":
            if self.forever == "outcomes":
                return 200, {"success": True, "agent_success_evaluation_results": self.outcomes[: asked["limit"]]}
            rows = [row for row in self.outcomes if _within(row, asked)][: asked["limit"]]
            return 200, {"success": True, "agent_success_evaluation_results": rows}
        if route == "/api/get_retrieved_learning_evaluation_results":
            rows = [row for row in self.learnings if _within(row, asked, "interaction_created_at")][: asked["limit"]]
            return 200, {"success": True, "results": rows}
        if route == "/api/get_session_outcomes":
            if self.forever == "customers":
                return 200, {"success": True, "session_outcomes": self.customers[: asked["top_k"]]}
            page = self.customers[asked["offset"] : asked["offset"] + asked["top_k"]]
            return 200, {"success": True, "session_outcomes": page}
        if route == "/api/evaluations/shadow_comparisons/recent":
            return 200, {"verdicts": answer("shadow_recent_100")["verdicts"][: int(asked["limit"])]}
        if route == "/api/retrieval_experiments":
            return 200, answer("experiments")
        return 404, {"detail": "Not Found"}


def _within(row: dict[str, Any], asked: dict[str, Any], name: str = "created_at") -> bool:
    begin, end = (datetime.fromisoformat(asked[key]).timestamp() for key in ("start_time", "end_time"))
    return row.get(name) is not None and begin <= row[name] <= end


@contextmanager
def running(server: Reflexio) -> Iterator[Reflexio]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            self.reply(self.path, json.loads(self.rfile.read(length)))

        def do_GET(self) -> None:
            route, _, query = self.path.partition("?")
            self.reply(route, dict(part.split("=") for part in query.split("&") if part))

        def reply(self, route: str, asked: dict[str, Any]) -> None:
            if server.key is not None and self.headers.get("authorization") != f"Bearer {server.key}":
                status, said = 401, {"detail": "no"}
            else:
                status, said = server.answer(route, asked)
            if server.garbage is not None:
                status, body = server.status, server.garbage
            else:
                body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            if status == 429:
                self.send_header("retry-after", "0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{httpd.server_port}"
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
