"""Who may ask for a page, and what a browser may do with one: checked before any page is made."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from evalr.errors import InputError

COOKIE = "evalr_traces"
SHORTEST_TOKEN = 16
STATIC = "/static/"
LOGIN = "/login"

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: browsers would then send the origin "null" with forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

OTHERS = ("cross-site", "same-site")
"""Where a browser says that a request came from, which is not here."""

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True)
class Guard:
    """What is asked of a request.

    Attributes:
        token: what a request must know, None where anybody who reaches the server may.
        names: by which the server may be called, beside numbers and `localhost`.
        local: whether only names of this machine are answered to.
        read_only: whether nothing can be changed.
        form_key: what every form of this process holds.
    """

    token: str | None = None
    names: Collection[str] = ()
    local: bool = True
    read_only: bool = False
    form_key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _cookie_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def __post_init__(self) -> None:
        if self.token is not None:
            check_token(self.token)

    @property
    def cookie(self) -> str:
        """What a browser that knew the token is given to show: not the token itself."""
        return hmac.new(self._cookie_key, (self.token or "").encode(), "sha256").hexdigest()

    def knows(self, token: str) -> bool:
        """Whether that is the token."""
        return self.token is not None and _same(token, self.token)

    def is_form(self, key: str) -> bool:
        """Whether a form is one of this process."""
        return _same(key, self.form_key)

    def refusal(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """Why a request is refused, with its status; None where it may go on."""
        host = headers.get("host", "")
        if not self._is_own(host):
            return 421, "This server does not answer to that name. Open it by the address that it printed."
        if method not in ("GET", "HEAD", "POST"):
            return 405, "This page is read with GET and changed with POST."
        if headers.get("sec-fetch-site") in OTHERS and headers.get("sec-fetch-mode") != "navigate":
            return 403, "This page is opened, and not put into another."
        if method == "POST":
            if self.read_only and path != LOGIN:
                return 403, "This page is read-only: it shows results, and changes nothing."
            if not _is_same_origin(headers, host):
                return 403, "This form was sent from another page, so it was not taken."
        if self.token is not None and not is_open(path) and not self._is_known(headers):
            return 401, "This page needs its token."
        return None

    def _is_own(self, host: str) -> bool:
        name = _name_of(host)
        if name is None:
            return False
        if name == "localhost" or name in {each.lower().rstrip(".") for each in self.names}:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # A number is no name that somebody else's server could turn to this machine.
        return address.is_loopback or not self.local

    def _is_known(self, headers: dict[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.knows(given.strip()):
            return True
        # Not read with `http.cookies`, which gives up at the first cookie that another program made ill.
        named = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        return any(name == COOKIE and _same(value, self.cookie) for name, _, value in named)


class Guarded:
    """An app behind a guard: what is refused does not reach it, and every answer has the headers."""

    def __init__(self, app: Any, guard: Guard, refused: Callable[[Scope, int, str], Any]) -> None:
        self._app = app
        self._guard = guard
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._guard.refusal(scope["method"], scope["path"], headers)
        app = self._app if refusal is None else self._refused(scope, *refusal)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name.decode("latin-1").lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name not in own]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await app(scope, receive, send_with_headers)


def check_token(token: str) -> None:
    """See that a token is one.

    Raises:
        InputError: it could be guessed, or not be typed.
    """
    if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise InputError(
            f"a token must have at least {SHORTEST_TOKEN} characters, and only ASCII, such as "
            "`python -c 'import secrets; print(secrets.token_urlsafe())'` makes"
        )


def is_open(path: str) -> bool:
    """Whether whoever has no token may ask for it."""
    return path == LOGIN or path.startswith(STATIC)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _name_of(host: str) -> str | None:
    """The name in a Host header, without its port."""
    try:
        parts = urlsplit(f"//{host}")
        if parts.username is not None or parts.path or parts.query or parts.fragment:
            return None
        _ = parts.port
        return None if parts.hostname is None else parts.hostname.rstrip(".")
    except ValueError:
        return None


def _is_same_origin(headers: dict[str, str], host: str) -> bool:
    """Whether a browser says that a form was on a page of this very server. One that does not say is not taken."""
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    scheme, separator, named = headers.get("origin", "").partition("://")
    return bool(separator) and scheme in ("http", "https") and named.lower() == host.lower()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
