"""A service over HTTP: its address, a key for each account, and requests that are tried again where that may help."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evalr.errors import InputError, MissingExtraError, TransportError
from evalr.runs.retries import TRANSIENT, Retry, classify, seconds_to_wait
from evalr_tracepass.error_words import kept_message, kept_type
from evalr_tracepass.records import Account

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "https://api.morphllm.com"
URL_VARIABLE = "MORPH_BASE_URL"
KEY_VARIABLE = "MORPH_API_KEY"

Keys = str | Mapping[str, str] | None

MOST_BYTES = 256_000_000

REFUSES_THE_KEY = frozenset({401, 403})


@dataclass(frozen=True)
class Service:
    """Where a service is, and how it is spoken to. Keys are held, sent to it, and shown nowhere.

    Args:
        url: its address; by default that in the environment variable MORPH_BASE_URL, or the public one.
        key: for every account, or by the id of the organisation, or of the user where there is none; by default that
            in the environment variable MORPH_API_KEY.
        timeout: seconds for one answer.
        most: bytes of one answer, unpacked, at most: it is held whole.
        retry: how often a request is tried, and how long it waits in between; it waits as long as the service says.
        transport: an httpx transport in place of the network.
        sleep: waits for so many seconds.
    """

    url: str | None = None
    key: Keys = field(default=None, repr=False)
    timeout: float = 60.0
    most: int = MOST_BYTES
    retry: Retry = field(default_factory=lambda: Retry(tries=6, first=0.5, longest=30.0), repr=False)
    transport: Any = field(default=None, repr=False)
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep, repr=False)

    def client(self, account: Account) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        """A client that speaks for an account.

        Raises:
            InputError: the address is none, or there is no key for the account.
            MissingExtraError: httpx is not installed.
        """
        return import_httpx().AsyncClient(  # type: ignore[no-any-return]  # it is imported where it is needed
            base_url=base_url(self.url or os.environ.get(URL_VARIABLE) or DEFAULT_URL),
            headers={"Authorization": f"Bearer {key_for(account, self.key)}"},
            timeout=self.timeout,
            transport=self.transport,
        )

    async def ask(self, client: httpx.AsyncClient, method: str, path: str, **options: Any) -> Answer:
        """What it answers: a JSON object.

        Raises:
            TransportError: it could not be reached, refused, or answered something else, after every try.
        """
        error: TransportError | None = None
        httpx = import_httpx()
        for tried in range(1, self.retry.tries + 1):
            try:
                return await _asked(client, method, path, options, self.most)
            except RefusedError as refused:
                error = refused
                fault = TRANSIENT if refused.status_code is None else self.retry.fault(_Said(refused))
                wait = self.retry.delay(tried, fault)
            except httpx.DecodingError as failed:
                error = TransportError(f"{method} {path}: {type(failed).__name__}")
                wait = self.retry.delay(tried, TRANSIENT)
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as failed:
                host = client.base_url.host
                error = TransportError(f"{method} {path}: {type(failed).__name__} at {host}, asked {tried} times")
                wait = self.retry.delay(tried, classify(failed))
            if wait is None:
                break
            await self.sleep(wait)
        if error is None:
            raise TransportError(f"{method} {path}: it was never asked")
        raise error


class Answer(dict[str, Any]):
    """A JSON object, and when the service wants to be asked again."""

    retry_after: float | None = None


class RefusedError(TransportError):
    """A service's answer that is none. What it says is masked, since it may quote what it was sent."""

    def __init__(self, message: str, status_code: int | None, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.headers = headers


class _Said(Exception):  # noqa: N818  it is only read
    """An answer's status and headers, as `classify` reads them; of evalr's own errors none is worth another try."""

    def __init__(self, refused: RefusedError) -> None:
        super().__init__()
        self.status_code = refused.status_code
        self.headers = refused.headers


async def _asked(client: httpx.AsyncClient, method: str, path: str, options: Mapping[str, Any], most: int) -> Answer:
    body = bytearray()
    async with client.stream(method, path, **options) as response:
        # Read by parts, since a few packed bytes may unpack to more than there is memory.
        async for part in response.aiter_bytes():
            body += part
            if len(body) > most:
                raise TransportError(f"{method} {path}: the answer is longer than {most:,} bytes")
    status = response.status_code
    found = _json(body)
    if not 200 <= status < 300:
        raise RefusedError(f"{method} {path}: {_why(status, found)}", status, dict(response.headers))
    if not isinstance(found, dict):
        raise RefusedError(f"{method} {path}: status {status}, but no whole JSON object", None, {})
    answer = Answer(found)
    answer.retry_after = seconds_to_wait(response.headers.get("retry-after"))
    return answer


def _json(body: bytearray) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _why(status: int, found: object) -> str:
    if status in REFUSES_THE_KEY:
        return f"the service refuses the key (status {status}): set {KEY_VARIABLE}, or pass key= in Python"
    said = found.get("error", found) if isinstance(found, dict) else None
    if not isinstance(said, dict):
        return f"status {status}"
    words = kept_message(said.get("message", said.get("detail")))
    return f"status {status}, {kept_type(said.get('type'))}" + (f": {words}" if words else "")


def json_body(body: object, key: str) -> dict[str, Any]:
    """A request's content under an idempotency key. What UTF-8 does not have, half of a surrogate pair, becomes `?`."""
    return {
        "content": json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
        "headers": {"Content-Type": "application/json", "Idempotency-Key": key},
    }


def base_url(url: str) -> str:
    """An address as a client takes it.

    Raises:
        InputError: it is none, or holds a password.
    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise InputError(f"a key is not given in the address: set {KEY_VARIABLE}, or pass key= in Python")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"url={url!r} must be an address such as {DEFAULT_URL}")
    return url.rstrip("/")


def key_for(account: Account, keys: Keys) -> str:
    """The key of an account.

    Raises:
        InputError: there is none, or it is none that a header can hold. The message does not show it.
    """
    owner = account.org or account.user
    found = keys.get(owner) if isinstance(keys, Mapping) else keys if keys is not None else os.environ.get(KEY_VARIABLE)
    if not found:
        raise InputError(f"there is no key for account {owner!r}: set {KEY_VARIABLE}, or pass key= in Python")
    if not (found.isascii() and found.isprintable() and " " not in found):
        raise InputError(f"the key for account {owner!r} holds a space, or what no header can: was it copied whole?")
    return found


def import_httpx() -> Any:
    """The library, where it is installed."""
    try:
        import httpx
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise MissingExtraError(
            "sending texts to a service needs httpx: pip install 'evalr[tracepass]'", name="httpx"
        ) from error
    return httpx
