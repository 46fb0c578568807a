"""An OpenAI-compatible server on loopback that answers as each test scripts it."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dspy

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
GOOD = '{"completed": true, "quality": 4, "reason": "all there"}'


@dataclass(frozen=True)
class Answer:
    """What the server answers; with `cut`, it closes the connection instead."""

    text: str | None = GOOD
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    finish: str = "stop"
    usage: dict[str, int] | None = field(default_factory=lambda: dict(USAGE))
    choices: int = 1
    message: str = "scripted"

    def body(self, model: str) -> bytes:
        if self.status != 200:
            said: dict[str, Any] = {"error": {"message": self.message, "type": "scripted"}}
        else:
            choice = {
                "index": 0,
                "finish_reason": self.finish,
                "message": {"role": "assistant", "content": self.text},
            }
            said = {"id": "c1", "object": "chat.completion", "created": 1, "model": model}
            said["choices"] = [choice] * self.choices
            if self.usage is not None:
                said["usage"] = self.usage
        return json.dumps(said).encode()


@dataclass(frozen=True)
class Asked:
    """One request, and what a model could make of it."""

    body: dict[str, Any]

    @property
    def system(self) -> str:
        return self._content("system")

    @property
    def user(self) -> str:
        return self._content("user")

    def _content(self, role: str) -> str:
        """Of the last message of a role, the text."""
        content = [message["content"] for message in self.body["messages"] if message["role"] == role][-1]
        return content if isinstance(content, str) else "".join(part["text"] for part in content)

    @property
    def data(self) -> dict[str, str]:
        """The judged texts by their names, read as the prompt says."""
        return dict(self._blocks())

    @property
    def outside(self) -> str:
        """The message without what stands between its marks."""
        text = self.user
        for name, content in self._blocks():
            text = text.replace(f"begin {name}>>>\n{content}\n", f"begin {name}>>>\n", 1)
        return text

    def _blocks(self) -> list[tuple[str, str]]:
        mark = self.user.split("\n", 1)[0].removeprefix("The mark of this message is ").rstrip(".")
        pattern = rf"^<<<{mark} begin (\w+)>>>\n(.*?)\n<<<{mark} end \1>>>$"
        return [(found[1], found[2]) for found in re.finditer(pattern, self.user, re.DOTALL | re.MULTILINE)]


Script = Callable[[Asked, int], Answer | str]


@dataclass
class ModelServer:
    """Answers the n-th request (from 1) with `script(asked, n)`; a text is an answer as it is.

    With `together`, the first answers wait until so many requests are there at once, or for twenty seconds.
    """

    script: Script = lambda asked, n: Answer()
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    together: int = 0
    at_once: int = 0
    most_at_once: int = 0

    def lm(self, model: str = "openai/gpt-4o-mini", **options: Any) -> dspy.LM:
        """dspy's own client of it."""
        import dspy  # not for those who only need the server

        return dspy.LM(model, api_base=f"http://127.0.0.1:{self.port}/v1", api_key="none", **options)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled when the server stops: its clients may keep their connections open.
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = re.search(rb"content-length: *(\d+)", head)
                asked = Asked(json.loads(await reader.readexactly(int(length[1]) if length else 0)))
                self.asked.append(asked)
                said = self.script(asked, len(self.asked))
                answer = Answer(said) if isinstance(said, str) else said
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                await asyncio.sleep(answer.delay)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._gathered(), timeout=20)
                self.at_once -= 1
                if answer.cut:
                    break
                body = answer.body(asked.body["model"])
                headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
                lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
                await writer.drain()
        writer.close()

    async def _gathered(self) -> None:
        while self.most_at_once < self.together:  # noqa: ASYNC110  where it is 0, nobody waits
            await asyncio.sleep(0.01)


@contextmanager
def running(server: ModelServer) -> Iterator[ModelServer]:
    """The server, in a thread with a loop of its own."""
    begun = threading.Event()
    ends: list[Callable[[], object]] = []

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=256)
        server.port = listening.sockets[0].getsockname()[1]
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))
        begun.set()
        await stop.wait()
        listening.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert begun.wait(10)
    try:
        yield server
    finally:
        ends[0]()
        thread.join(10)
