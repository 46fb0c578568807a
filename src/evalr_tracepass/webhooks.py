"""Webhooks: alerts by HTTP, signed as Standard Webhooks are, so that a receiver's library can check them.

The signature covers the id, the time and the body. A receiver that refuses old times, and ids that it has had, cannot
be told the same twice by someone who listened.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from evalr.errors import InputError, TransportError
from evalr.inputs import Now, resolve_now, utc_now
from evalr.runs.retries import Fault, Retry, classify
from evalr_tracepass.alerts import Alert, slack_body
from evalr_tracepass.transports.service import base_url, import_httpx

PREFIX = "whsec_"
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True)
class Webhook:
    """Tells an address of alerts, by POST. Made by `webhook` and `slack`; give it to `Passes(notify=[...])`."""

    url: str = field(repr=False)  # an address may be a secret itself
    secret: bytes | None = field(repr=False)
    body: Callable[[Alert], Mapping[str, Any]]
    retry: Retry = field(repr=False)
    timeout: float
    transport: Any = field(repr=False)
    now: Now = field(repr=False)
    sleep: Callable[[float], Awaitable[object]] = field(repr=False)

    async def __call__(self, alert: Alert) -> None:
        """Deliver an alert.

        Raises:
            TransportError: it was not taken, after every try. The next run of the pass's `resume` tells it again.
        """
        content = json.dumps(self.body(alert), ensure_ascii=False).encode()
        httpx = import_httpx()
        async with httpx.AsyncClient(timeout=self.timeout, transport=self.transport) as client:
            said = ""
            for tried in range(1, self.retry.tries + 1):
                headers = {"Content-Type": "application/json"}
                if self.secret is not None:
                    headers |= signed(self.secret, alert.id, content, now=self.now)
                fault: Fault
                try:
                    # What it answers beyond its status is not read: it may be anything, and without an end.
                    async with client.stream("POST", self.url, content=content, headers=headers) as response:
                        pass
                except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                    said, fault = type(error).__name__, classify(error)
                else:
                    if response.is_success:
                        return
                    said, fault = f"status {response.status_code}", classify(_Status(response))
                wait = self.retry.delay(tried, fault)
                if wait is None:
                    break
                await self.sleep(wait)
        raise TransportError(f"a webhook does not take alert {alert.id}: {said}")


class _Status(Exception):  # noqa: N818  it is only read
    def __init__(self, response: Any) -> None:
        super().__init__()
        self.status_code = response.status_code
        self.headers = response.headers


def webhook(
    url: str,
    secret: str | bytes,
    *,
    retry: Retry | None = None,
    timeout: float = 10.0,
    transport: Any = None,
    now: Now = utc_now,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Webhook:
    """A webhook that signs what it sends; see `verify_webhook`.

    Args:
        url: where alerts go, as JSON.
        secret: shared with the receiver: bytes, or `whsec_` and their base64. 16 bytes or more.
        retry: how often it is tried, each time signed anew.
        timeout: seconds for one answer.
        transport: an httpx transport in place of the network.
        now: the clock.
        sleep: waits for so many seconds.

    Raises:
        InputError: the address or the secret cannot be used. The message does not show the secret.
    """
    base_url(url)
    return Webhook(url, _secret(secret), Alert.to_dict, retry or Retry(), timeout, transport, now, sleep)


def slack(
    url: str,
    *,
    retry: Retry | None = None,
    timeout: float = 10.0,
    transport: Any = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Webhook:
    """Slack's incoming webhook: what fired as a message. Its address is its secret."""
    base_url(url)
    return Webhook(url, None, slack_body, retry or Retry(), timeout, transport, utc_now, sleep)


def signed(secret: bytes, message_id: str, content: bytes, *, now: Now = utc_now) -> dict[str, str]:
    """The headers that sign a message."""
    timestamp = str(int(resolve_now(now).timestamp()))
    return {
        ID: message_id,
        TIMESTAMP: timestamp,
        SIGNATURE: f"v1,{_signature(secret, message_id, timestamp, content)}",
    }


def verify_webhook(
    secret: str | bytes,
    headers: Mapping[str, str],
    content: bytes,
    *,
    tolerance: timedelta = TOLERANCE,
    now: Now = utc_now,
) -> str:
    """The id of a message that was signed with a secret, and not long ago. Refuse an id that you have had.

    Args:
        secret: as `webhook` was given it.
        headers: of the request, by their names in any case.
        content: its body, byte for byte.
        tolerance: how far its time may be from now.
        now: the clock.

    Raises:
        InputError: it was not signed with the secret, or its time is too far from now.
    """
    by_name = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp, signatures = (by_name.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise InputError("the webhook has no time")
    if abs(resolve_now(now).timestamp() - int(timestamp)) > tolerance.total_seconds():
        raise InputError("the webhook is too old, or from the future")
    wanted = f"v1,{_signature(_secret(secret), message_id, timestamp, content)}".encode()
    if not any(hmac.compare_digest(wanted, each.encode()) for each in signatures.split(" ")):
        raise InputError("the webhook is not signed with this secret")
    return message_id


def _signature(secret: bytes, message_id: str, timestamp: str, content: bytes) -> str:
    signed_content = b".".join((message_id.encode(), timestamp.encode(), content))
    return base64.b64encode(hmac.digest(secret, signed_content, hashlib.sha256)).decode()


def _secret(given: str | bytes) -> bytes:
    if isinstance(given, str):
        try:
            given = base64.b64decode(given.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise InputError("a webhook's secret is bytes, or `whsec_` and their base64") from None
    if len(given) < 16:
        raise InputError("a webhook's secret needs 16 bytes or more, such as secrets.token_bytes(32)")
    return given
