"""A service of classifiers that keeps its promises badly, as an ASGI app, and traces to send to it.

It takes batches under idempotency keys as the real one does, counts what it bills, and can be told to delay, fail rows,
fail models, repeat, reorder, hold back, cut connections, refuse for a while, and break off its JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from evalr.inputs import Transcript, Turn
from evalr.runs.retries import Retry
from evalr.tracepass import Service, Signal, transform

START = datetime(2026, 9, 28, 9, tzinfo=UTC)
UPLOAD = "/v1/reflex/asynchronous_batches/upload"
PREDICT = "/v1/reflex/predict"
KEY = "sk-test-5b1c9e0a7f"

Never = Callable[[str], bool]


def never(_: str) -> bool:
    return False


async def no_sleep(_: float) -> None:
    """Waits for nothing, and lets others go on."""
    await asyncio.sleep(0)


@dataclass
class FakeReflex:
    """What it was told to do badly, and what it has done."""

    delay: int = 0
    """Questions that a batch answers with `running` before it has ended."""
    fail_row: Never = never
    fail_model: Never = never
    pending: Never = never
    """Rows that never come back, by id."""
    drop: Never = never
    """Rows that results leave out, by id."""
    repeat: bool = False
    reorder: bool = False
    page: int | None = None
    refuse: int = 0
    """Requests that are answered with 429 from now on."""
    cut_before: int = 0
    cut_after: int = 0
    """Requests whose connection is cut before, and after, they have done their work."""
    truncate: int = 0
    status: str = "completed"
    key: str = KEY
    quote: bool = False
    """Whether errors quote the text."""

    watch: Callable[[str], None] | None = None
    """Told `before upload`, `after upload` and so on, when a request has come and when its work is done."""

    uploads: list[str] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    billed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Predictions that are paid for, by text and model."""
    batches: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    by_key: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def service(self, **options: Any) -> Service:
        """How it is spoken to in this process, without a network."""
        return Service(
            **{
                "url": "http://reflex.test",
                "key": self.key,
                "transport": httpx.ASGITransport(self),
                "retry": Retry(tries=6, first=0.0, longest=0.0),
                "sleep": no_sleep,
                **options,
            }
        )

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        path = scope["path"]
        kind = {UPLOAD: "upload", PREDICT: "predict"}.get(path, "results" if path.endswith("/results") else "status")
        self.requests[kind] += 1
        self._tell(f"before {kind}")
        if self.refuse > 0:
            self.refuse -= 1
            await _answer(
                send, 429, {"error": {"type": "rate_limited", "message": "too many requests"}}, {"retry-after": "0"}
            )
            return
        if self.cut_before > 0:
            self.cut_before -= 1
            raise httpx.ReadError("cut")
        if headers.get("authorization") != f"Bearer {self.key}":
            await _answer(
                send, 401, {"error": {"type": "unauthorized", "message": f"no such key {headers.get('authorization')}"}}
            )
            return
        query = dict(each.split("=") for each in scope["query_string"].decode().split("&") if each)
        status, answer = self.do(kind, path, headers, json.loads(body) if body else None, query)
        self._tell(f"after {kind}")
        if self.cut_after > 0:
            self.cut_after -= 1
            raise httpx.ReadError("cut")
        await _answer(send, status, answer, half=self._truncates())

    def _tell(self, what: str) -> None:
        if self.watch is not None:
            self.watch(what)

    def _truncates(self) -> bool:
        if self.truncate <= 0:
            return False
        self.truncate -= 1
        return True

    def do(self, kind: str, path: str, headers: dict[str, str], body: Any, query: dict[str, str]) -> tuple[int, Any]:
        if kind == "upload":
            return self._upload(headers["idempotency-key"], body["requests"])
        if kind == "predict":
            return self._predict(headers["idempotency-key"], body)
        batch_id = path.split("/")[4]
        if batch_id not in self.batches:
            return 404, {"error": {"type": "not_found", "message": "unknown batch"}}
        if kind == "status":
            self.asked[batch_id] += 1
            return 200, self._state(batch_id)
        return 200, self._results(batch_id, int(query.get("cursor", 0)))

    def _upload(self, key: str, rows: list[dict[str, Any]]) -> tuple[int, Any]:
        self.uploads.append(key)
        ids = [row["id"] for row in rows]
        if not 0 < len(rows) <= 10_000 or len(set(ids)) < len(ids) or any(len(row["text"]) > 350_000 for row in rows):
            return 400, {"error": {"type": "invalid_request", "message": "rows"}}
        if key in self.by_key:
            batch_id = self.by_key[key]
            if self.batches[batch_id] != rows:
                return 422, {"error": {"type": "idempotency_conflict", "message": "another body under this key"}}
            return 200, self._state(batch_id)
        batch_id = self.by_key[key] = f"rbatch-{len(self.batches)}"
        self.batches[batch_id] = rows
        for row in rows:
            self.billed.update((row["text"], model) for model in row["model"])
        return 200, self._state(batch_id)

    def _predict(self, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.uploads.append(key)
        if self.fail_row(body["text"]):
            return 422, {"error": {"type": "input_too_long", "message": f"too many tokens in {body['text']}"}}
        if key not in self.answers:
            self.billed.update((body["text"], model) for model in body["models"])
            self.answers[key] = {"predictions": [self._prediction(model, body["text"]) for model in body["models"]]}
        return 200, self.answers[key]

    def _state(self, batch_id: str) -> dict[str, Any]:
        rows = self.batches[batch_id]
        done = self.asked[batch_id] > self.delay
        failed = sum(self.fail_row(row["text"]) for row in rows) if done else 0
        waiting = sum(self.pending(row["id"]) for row in rows)
        return {
            "id": batch_id,
            "object": "reflex.batch",
            "status": self.status if done else "queued",
            "request_counts": {
                "total": len(rows),
                "completed": len(rows) - failed - waiting if done else 0,
                "failed": failed,
            },
            "created_at": 1780000000,
        }

    def _results(self, batch_id: str, start: int) -> dict[str, Any]:
        found = [self._row(row) for row in self.batches[batch_id] if not self.drop(row["id"])]
        if self.repeat:
            found += found
        if self.reorder:
            random.Random(7).shuffle(found)
        end = len(found) if self.page is None else start + self.page
        more = {"has_more": True, "next_cursor": str(end)} if end < len(found) else {}
        return {**self._state(batch_id), "object": "reflex.batch.results", "results": found[start:end], **more}

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        said = f": {row['text']}" if self.quote else ""
        if self.pending(row["id"]):
            return {"id": row["id"], "status": "pending"}
        if self.fail_row(row["text"]):
            error = {
                "type": "input_too_long" if "long" in row["text"] else "overloaded",
                "message": f"too many tokens{said}",
            }
            return {"id": row["id"], "status": "failed", "error": error}
        predictions = [self._prediction(model, row["text"]) for model in row["model"]]
        return {"id": row["id"], "status": "completed", "predictions": predictions}

    def _prediction(self, model: str, text: str) -> dict[str, Any]:
        if self.fail_model(model):
            said = f" {text}" if self.quote else ""
            return {"model": model, "error": {"type": "inference_error", "message": f"failed{said}"}}
        bad = "bad" in text
        classes = [
            {"label": "good", "score": 0.1 if bad else 0.9, "selected": not bad},
            {"label": "bad", "score": 0.9 if bad else 0.1, "selected": bad},
        ]
        return {"model": model, "mode": "single_label", "classes": classes}


async def _answer(
    send: Any, status: int, answer: Any, headers: dict[str, str] | None = None, *, half: bool = False
) -> None:
    body = json.dumps(answer).encode()
    if half:
        body = body[: len(body) // 2]
    lines = [(b"content-type", b"application/json"), *((k.encode(), v.encode()) for k, v in (headers or {}).items())]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def served(fake: FakeReflex) -> Iterator[str]:
    """The service on loopback; its address."""
    import uvicorn

    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(fake, lifespan="off", log_level="critical"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)


# What is sent to it


def a_signal(model: str, by: str = "user_message", **more: Any) -> Signal:
    return Signal.model_validate(
        {
            "signal_id": f"{model}.{by}",
            "model": model,
            "display_name": model,
            "labels": ("good", "bad"),
            "fires_on": ("bad",),
            "transform": transform(by),
            **more,
        }
    )


def talk(number: int, *, turns: int = 4, start: datetime = START, words: str = "", user: str = "") -> Transcript:
    """A conversation in which every fifth message of a person is bad."""
    begun = start + timedelta(hours=number)
    return Transcript(
        id=f"convo:{number}",
        user=user or f"user{number % 7}",
        request="what was asked for",
        turns=[
            Turn(
                role="person" if place % 2 == 0 else "agent",
                text=f"{'bad' if (number + place) % 5 == 0 else 'fine'} {words}text {number}-{place}",
                id=f"event_{place}",
                at=begun + timedelta(minutes=place),
            )
            for place in range(turns)
        ],
    )


def talks(count: int, **options: Any) -> list[Transcript]:
    return [talk(number, **options) for number in range(count)]


def texts(traces: Iterable[Transcript], role: str = "person") -> list[str]:
    return [turn.text for trace in traces for turn in trace.turns if turn.role == role]
