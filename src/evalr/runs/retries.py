"""Which failures are worth another try, by what an exception carries, and how long to wait before it."""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Literal

from pydantic import ValidationError

from evalr.errors import EvalrError, InputError

FaultKind = Literal["permanent", "transient", "throttled"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What an exception says about another try.

    Attributes:
        kind: "permanent" (it would fail again), "transient" (it may not), or "throttled" (it may not, and the server
            wants fewer calls, so that all of them slow down).
        retry_after: seconds after which the server says that it takes calls again, None where it says nothing.
    """

    kind: FaultKind
    retry_after: float | None = None


PERMANENT = Fault("permanent")
TRANSIENT = Fault("transient")
THROTTLED = Fault("throttled")

Classify = Callable[[BaseException], Fault | None]
"""What another try would bring; None leaves the exception to evalr."""

RETRIED_STATUS = frozenset({408, 409, 425, 429})
"""Of the client's errors, those that pass: a timeout, a conflict over a lock, too early, too many."""

NEVER_IMPLEMENTED = frozenset({501, 505, 506, 510})
"""Of the server's errors, those that do not pass."""

_DEEPEST = 8

_TRANSIENT_NAMES = (
    "EAGAIN ECONNABORTED ECONNREFUSED ECONNRESET EHOSTDOWN EHOSTUNREACH EINTR EMFILE ENETDOWN ENETRESET ENETUNREACH "
    "ENFILE ENOBUFS EPIPE ESHUTDOWN ETIMEDOUT EWOULDBLOCK"
)
_TRANSIENT_ERRNO = frozenset(getattr(errno, name) for name in _TRANSIENT_NAMES.split(" ") if hasattr(errno, name))

_TIMEOUT_NAMES = frozenset(
    {
        "APITimeoutError",
        "LMRateLimitError",  # this and the next two where a gateway says so in the body of a 200
        "LMServerError",
        "LMTimeoutError",
        "ServerTimeoutError",
        "Timeout",
        "TimeoutException",
    }
)
_CONNECTION_NAMES = frozenset(
    {
        "APIConnectionError",
        "ClientConnectionError",
        "ClientPayloadError",
        "ConnectError",
        "ConnectTimeout",
        "IncompleteRead",
        "LMTransportError",
        "NetworkError",
        "ProtocolError",
        "RemoteProtocolError",
        "ServerDisconnectedError",
        "SSLEOFError",
    }
)
"""What the connection errors of common HTTP clients are called, theirs or their base classes': none is imported."""


def classify(error: BaseException) -> Fault:
    """What an exception says about another try: its HTTP status, else its kind, else those of its cause.

    A status is looked for as `status_code`, `status`, `code` or `http_status`, on the exception and on its `response`;
    the time to wait as `retry_after`, and in the headers `Retry-After` (seconds or a date) and `retry-after-ms`.
    """
    for each in _causes(error):
        fault = _own_fault(each)
        if fault is not None:
            return fault
    return PERMANENT


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised from."""
    each: BaseException | None = error
    for _ in range(_DEEPEST):
        if each is None:
            return
        yield each
        reason = getattr(each, "reason", None)  # as urllib has it
        each = reason if isinstance(reason, BaseException) else each.__cause__


def _own_fault(error: BaseException) -> Fault | None:
    if isinstance(error, EvalrError | ValidationError):
        return PERMANENT
    if isinstance(error, BaseExceptionGroup):
        faults = [classify(part) for part in error.exceptions]
        return max(faults, key=lambda fault: (fault.kind == "permanent", fault.kind == "throttled"))
    status, wait = _status(error), _retry_after(error)
    if status is not None and status >= 400:
        return _fault_of_status(status, wait)
    if isinstance(error, TimeoutError) or _named(error, _TIMEOUT_NAMES):
        return Fault("throttled", wait)
    if wait is not None:
        return Fault("throttled", wait)
    if isinstance(error, OSError):
        return _fault_of_system(error)
    return TRANSIENT if _named(error, _CONNECTION_NAMES) else None


def _fault_of_status(status: int, wait: float | None) -> Fault:
    if status in RETRIED_STATUS:
        return Fault("throttled" if status in (408, 429) else "transient", wait)
    if status >= 500 and status not in NEVER_IMPLEMENTED:
        return Fault("throttled", wait)
    return PERMANENT


def _fault_of_system(error: OSError) -> Fault | None:
    import socket
    import ssl

    if isinstance(error, socket.gaierror):
        return TRANSIENT if error.errno == socket.EAI_AGAIN else PERMANENT
    if isinstance(error, ssl.SSLCertVerificationError):
        return PERMANENT
    if isinstance(error, ConnectionError | ssl.SSLEOFError) or error.errno in _TRANSIENT_ERRNO:
        return TRANSIENT
    # urllib's own error is an OSError without a number, and its reason says more.
    return None if error.errno is None else PERMANENT


def _named(error: BaseException, names: frozenset[str]) -> bool:
    return any(kind.__name__ in names for kind in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code", "http_status"):
            found = getattr(holder, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and 100 <= found < 600:
                return int(found)
    return None


def _retry_after(error: BaseException) -> float | None:
    response = getattr(error, "response", None)
    own = getattr(error, "retry_after", None)
    if own is not None:
        return seconds_to_wait(own)
    for holder in (error, response):
        headers = _headers(getattr(holder, "headers", None))
        milliseconds = headers.get("retry-after-ms")
        if milliseconds is not None and (wait := seconds_to_wait(milliseconds)) is not None:
            return wait / 1000
        if "retry-after" in headers:
            return seconds_to_wait(headers["retry-after"])
    return None


def _headers(given: Any) -> dict[str, Any]:
    """Headers by their names in small letters, whatever object holds them."""
    items = getattr(given, "items", None)
    if not (isinstance(given, Mapping) or callable(items)):
        return {}
    return {str(name).lower(): value for name, value in given.items()}


def seconds_to_wait(said: object, *, now: datetime | None = None) -> float | None:
    """The seconds that a Retry-After stands for: a number of them, a timedelta, a time, or an HTTP date.

    None where it cannot be read; a time that has passed is 0.
    """
    if isinstance(said, str):
        if re.fullmatch(r"\s*\d{1,12}(\.\d{0,9})?\s*", said):
            return float(said)
        try:
            said = parsedate_to_datetime(said)
        except (ValueError, TypeError, OverflowError):
            return None
    if isinstance(said, datetime):
        time = said if said.tzinfo is not None else said.replace(tzinfo=UTC)
        said = time - (now or datetime.now(UTC))
    if isinstance(said, timedelta):
        said = said.total_seconds()
    if not isinstance(said, int | float) or isinstance(said, bool):
        return None
    seconds = float(said)
    return max(0.0, seconds) if isfinite(seconds) else None


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a call is tried, and how long a run waits in between.

    Before the n-th further try it waits a random time from 0 to `first` · 2ⁿ⁻¹, at most `longest` seconds (full
    jitter), and where the server says how long, that long and the random time on top.

    Args:
        tries: how many calls there are at most for one item, the first included.
        first: the longest wait before the second try, in seconds.
        longest: the longest of all.
        patience: what a server may ask for at most, in seconds; where it asks for more, the item fails.
        classify: what another try would bring, for exceptions that only you know; None for one leaves it to evalr.
        random: where the jitter comes from.

    Source of the jitter: Brooker 2015, "Exponential backoff and jitter".
    """

    tries: int = 5
    first: float = 1.0
    longest: float = 60.0
    patience: float = 600.0
    classify: Classify | None = None
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if not isinstance(self.tries, int) or isinstance(self.tries, bool) or self.tries < 1:
            raise InputError(f"tries={self.tries!r} must be a whole number from 1, the first try included")
        for name in ("first", "longest", "patience"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise InputError(f"{name}={value!r} must be seconds, finite and not below 0")

    def fault(self, error: BaseException | None) -> Fault:
        """What a failure's exception says; one without an exception is permanent."""
        if error is None:
            return PERMANENT
        found = None if self.classify is None else self.classify(error)
        return classify(error) if found is None else found

    def delay(self, tried: int, fault: Fault) -> float | None:
        """The seconds until the next try after `tried` of them, or None where there is none."""
        if fault.kind == "permanent" or tried >= self.tries:
            return None
        asked = fault.retry_after or 0.0
        if asked > self.patience:
            return None
        return asked + self.random() * min(self.longest, self.first * 2.0 ** min(tried - 1, 60))


NO_RETRIES = Retry(tries=1)
