"""Which failures are tried again: by what exceptions of common clients carry."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import urllib.error
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from evalr import InputError
from evalr.runs import Fault, Retry, classify
from evalr.runs.retries import seconds_to_wait


@dataclass
class Response:
    status_code: int
    headers: Any = field(default_factory=dict)


class HTTPStatusError(Exception):
    """As httpx has it: the status is the response's."""

    def __init__(self, status: int, headers: Any = None) -> None:
        super().__init__(f"status {status}")
        self.response = Response(status, headers or {})


class APIStatusError(Exception):
    """As model clients have it: the status is the error's own, too."""

    def __init__(self, status: int, headers: Any = None) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.response = Response(status, headers or {})


class TransportError(Exception):
    pass


class ConnectTimeout(TransportError):  # noqa: N818  as httpx has it
    pass


class TimeoutException(TransportError):  # noqa: N818  as httpx has it
    pass


class ReadTimeout(TimeoutException):
    pass


class LMServerError(Exception):
    """As dspy has it where a gateway says "overloaded" in the body of a 200: without a status."""


class APIConnectionError(Exception):
    pass


def urllib_error(status: int, **headers: str) -> urllib.error.HTTPError:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    error = urllib.error.HTTPError("http://localhost", status, "no", message, None)
    error.close()
    return error


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


class Model(BaseModel):
    x: int


def validation_error() -> ValidationError:
    try:
        Model.model_validate({})
    except ValidationError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "status",
    [400, 401, 402, 403, 404, 405, 410, 413, 422, 451, 501, 505],
)
@pytest.mark.parametrize("make", [HTTPStatusError, APIStatusError, urllib_error])
def test_permanent_statuses_are_not_tried_again(status: int, make: Any) -> None:
    assert classify(make(status)).kind == "permanent"


@pytest.mark.parametrize("make", [HTTPStatusError, APIStatusError, urllib_error])
@pytest.mark.parametrize(
    ("status", "kind"),
    [(409, "transient"), (425, "transient"), (408, "throttled"), (429, "throttled")]
    + [(status, "throttled") for status in (500, 502, 503, 504, 529)],
)
def test_statuses_that_pass_are_tried_again(status: int, kind: str, make: Any) -> None:
    assert classify(make(status)) == Fault(kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), "throttled"),
        (ReadTimeout(), "throttled"),
        (ConnectTimeout(), "transient"),
        (ConnectionResetError(), "transient"),
        (ConnectionRefusedError(), "transient"),
        (BrokenPipeError(), "transient"),
        (http.client.RemoteDisconnected(), "transient"),
        (http.client.IncompleteRead(b""), "transient"),
        (OSError(errno.ENETUNREACH, "unreachable"), "transient"),
        (OSError(errno.EMFILE, "too many files"), "transient"),
        (urllib.error.URLError(ConnectionRefusedError()), "transient"),
        (urllib.error.URLError(TimeoutError()), "throttled"),
        (urllib.error.URLError("no host given"), "permanent"),
        (socket.gaierror(socket.EAI_AGAIN, "again"), "transient"),
        (socket.gaierror(socket.EAI_NONAME, "no name"), "permanent"),
        (ssl.SSLEOFError(), "transient"),
        (ssl.SSLCertVerificationError("bad"), "permanent"),
        (APIConnectionError(), "transient"),
        (LMServerError("overloaded"), "throttled"),
        (caused(RuntimeError("wrapped"), HTTPStatusError(503)), "throttled"),
        (caused(RuntimeError("wrapped"), caused(ValueError(), ConnectionResetError())), "transient"),
        (ExceptionGroup("both", [ConnectionResetError(), HTTPStatusError(429)]), "throttled"),
        (ExceptionGroup("both", [ConnectionResetError(), ValueError()]), "permanent"),
        (FileNotFoundError(errno.ENOENT, "no file"), "permanent"),
        (PermissionError(errno.EACCES, "no"), "permanent"),
        (InputError("no input of mine"), "permanent"),
        (caused(InputError("wrong"), TimeoutError()), "permanent"),
        (validation_error(), "permanent"),
        (caused(validation_error(), ConnectionResetError()), "permanent"),
        (ValueError("cannot be parsed"), "permanent"),
        (AssertionError(), "permanent"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else value,
)
def test_errors_without_a_status_go_by_their_kind(error: Exception, kind: str) -> None:
    assert classify(error).kind == kind


def test_a_status_that_is_none_is_passed_over() -> None:
    class OddError(Exception):
        status_code = True
        code = "429"
        status = 12345

    assert classify(OddError()).kind == "permanent"


@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "RETRY-AFTER"])
@pytest.mark.parametrize("make", [HTTPStatusError, APIStatusError])
def test_retry_after_is_read_from_headers(name: str, make: Any) -> None:
    assert classify(make(429, {name: "7"})) == Fault("throttled", 7.0)
    assert classify(make(429, {"retry-after-ms": "250", name: "7"})) == Fault("throttled", 0.25)
    assert classify(urllib_error(503, Retry_After="3")) == Fault("throttled", 3.0)


def test_retry_after_is_read_from_the_error() -> None:
    class RateLimitedError(Exception):
        retry_after: Any = 2

    assert classify(RateLimitedError()) == Fault("throttled", 2.0)
    assert classify(caused(RuntimeError(), RateLimitedError())) == Fault("throttled", 2.0)


NOW = datetime(2026, 9, 28, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("12", 12.0),
        (" 1.5 ", 1.5),
        (3, 3.0),
        (-3, 0.0),
        (timedelta(minutes=1), 60.0),
        (NOW + timedelta(seconds=5), 5.0),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30.0),
        (format_datetime(NOW - timedelta(seconds=30), usegmt=True), 0.0),
        ("Mon, 28 Sep 2026 09:00:10 -0000", 10.0),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("nan", None),
        ("9" * 400, None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_what_a_server_says_as_seconds(said: object, seconds: float | None) -> None:
    assert seconds_to_wait(said, now=NOW) == seconds


def test_waits_grow_and_are_drawn_from_0_up() -> None:
    most, none = Retry(tries=9, first=1, longest=20, random=lambda: 1.0), Retry(tries=9, random=lambda: 0.0)
    fault = Fault("transient")
    assert [most.delay(tried, fault) for tried in range(1, 10)] == [1, 2, 4, 8, 16, 20, 20, 20, None]
    assert [none.delay(tried, fault) for tried in range(1, 10)] == [0] * 8 + [None]
    assert most.delay(1, Fault("permanent")) is None
    drawn = {Retry().delay(3, fault) for _ in range(50)}
    assert len(drawn) > 40


def test_a_servers_wait_is_kept_with_jitter_on_top_and_too_long_a_one_is_not_waited_for() -> None:
    retry = Retry(random=lambda: 0.5, first=2, patience=100)
    assert retry.delay(1, Fault("throttled", 30.0)) == 31.0
    assert retry.delay(1, Fault("throttled", 101.0)) is None
    assert Retry(random=lambda: 1.0).delay(1, Fault("transient")) == 1.0
    assert Retry(tries=10**9, random=lambda: 1.0).delay(10**6, Fault("transient")) == 60.0


def test_a_hook_knows_more() -> None:
    class QuotaError(Exception):
        pass

    def ours(error: BaseException) -> Fault | None:
        return Fault("throttled", 9.0) if isinstance(error, QuotaError) else None

    retry = Retry(classify=ours)
    assert retry.fault(QuotaError()) == Fault("throttled", 9.0)
    assert retry.fault(ValueError()).kind == "permanent"
    assert retry.fault(ConnectionResetError()).kind == "transient"
    assert retry.fault(None).kind == "permanent"


@pytest.mark.parametrize(
    "options", [{"tries": 0}, {"tries": 1.5}, {"first": -1}, {"longest": float("inf")}, {"patience": float("nan")}]
)
def test_retries_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Retry(**options)
