"""Alerts: what fired is told once, to callbacks and signed webhooks, and without a text."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from reflex_service import FakeReflex, a_signal, no_sleep, talks

from evalr.errors import InputError, TransportError
from evalr.runs.retries import Retry
from evalr.tracepass import (
    Account,
    Alert,
    BatchTransport,
    FiredTurn,
    Passes,
    plan,
    slack,
    verify_webhook,
    webhook,
)

ME = Account("ann", "acme")
SECRET = b"a secret of 32 bytes, as it should"
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ALERT = Alert(
    "p:0:0", "p", ME, (FiredTurn("convo:1", "event_0", 0, "u", "m1", "bad", 0.9, "2026-11-01T00:00:00+00:00"),)
)


def passes(store: Any, fake: FakeReflex, *notify: Any, **options: Any) -> Passes:
    return Passes(ME, store, BatchTransport(fake.service()), notify=notify, sleep=no_sleep, **options)


def test_b19_what_fired_is_told_once(store: Any) -> None:
    told: list[Alert] = []
    awaited: list[Alert] = []

    async def tell(alert: Alert) -> None:
        awaited.append(alert)

    fake, traces = FakeReflex(), talks(10)
    run = passes(store, fake, told.append, tell)
    found = run.run_sync(plan([a_signal("m1"), a_signal("m2")]), traces)
    (alert,) = told
    assert awaited == told
    fired = list(store.results(ME, passes=found.id, fired=True))
    assert [(each.convo_id, each.event_id, each.signal_id) for each in alert.fired] == [
        (each.convo_id, each.event_id, each.signal_id) for each in fired
    ]
    assert {(each.label, each.score) for each in alert.fired} == {("bad", 0.9)}
    assert run.resume_sync(found.id, traces) == found
    assert len(told) == 1
    assert "text" not in json.dumps(alert.to_dict())


def test_b19_signals_may_be_chosen_and_many_are_told_in_parts(store: Any) -> None:
    told: list[Alert] = []
    run = passes(store, FakeReflex(), told.append, alert_on=["m2.user_message"])
    run.run_sync(plan([a_signal("m1"), a_signal("m2")]), talks(600))
    assert {each.signal_id for alert in told for each in alert.fired} == {"m2.user_message"}
    assert [len(alert.fired) for alert in told] == [200, 40]
    assert len({alert.id for alert in told}) == 2


def test_b19_a_retry_tells_of_what_is_new(store: Any) -> None:
    told: list[Alert] = []
    fake, traces = FakeReflex(fail_row=lambda text: "text 5-" in text), talks(6)
    run = passes(store, fake, told.append)
    found = run.run_sync(plan([a_signal("m1")]), traces)
    fake.fail_row = lambda _: False
    run.retry_sync(found.id, traces)
    by_alert = [[each.convo_id for each in alert.fired] for alert in told]
    assert by_alert == [["convo:0", "convo:3"], ["convo:5"]]
    assert told[0].id != told[1].id


def test_b19_an_alert_that_was_not_taken_is_told_again_under_the_same_id(store: Any) -> None:
    taken: list[str] = []
    status = [503]

    def answer(request: httpx.Request) -> httpx.Response:
        if status[0] == 200:
            taken.append(request.headers["webhook-id"])
        return httpx.Response(status[0])

    hook = webhook(
        "http://hook.test/",
        SECRET,
        transport=httpx.MockTransport(answer),
        retry=Retry(tries=2, first=0.0),
        sleep=no_sleep,
    )
    fake, traces = FakeReflex(), talks(3)
    run = passes(store, fake, hook)
    with pytest.raises(TransportError, match="does not take alert p:0:0: status 503"):
        run.run_sync(plan([a_signal("m1")]), traces, pass_id="p")
    assert store.get_pass(ME, "p").status == "complete"
    status[0] = 200
    run.resume_sync("p")
    run.resume_sync("p")
    assert taken == ["p:0:0"]


def test_b19_a_webhook_is_signed_and_can_be_checked() -> None:
    got: list[httpx.Request] = []
    answers = [
        httpx.Response(500),
        httpx.ReadError("cut"),
        httpx.Response(429, headers={"retry-after": "3"}),
        httpx.Response(204),
    ]
    waited: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(request)
        found = answers[len(got) - 1]
        if isinstance(found, httpx.Response):
            return found
        raise found

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    secret = "whsec_" + base64.b64encode(SECRET).decode()
    transport = httpx.MockTransport(answer)
    clock = iter(NOW + timedelta(seconds=n) for n in range(9))
    hook = webhook(
        "http://hook.test/", secret, transport=transport, retry=Retry(first=0.0), now=clock.__next__, sleep=sleep
    )
    asyncio.run(hook(ALERT))
    assert waited == [0, 0, 3]
    assert json.loads(got[-1].content) == json.loads(json.dumps(ALERT.to_dict()))
    assert len({request.headers["webhook-timestamp"] for request in got}) == 4  # each try is signed anew
    for request in got:
        assert verify_webhook(SECRET, request.headers, request.content, now=NOW) == "p:0:0"
    request = got[-1]
    for content, headers, now, words in (
        (request.content + b" ", {}, NOW, "not signed"),
        (request.content, {"webhook-id": "p:0:1"}, NOW, "not signed"),
        (request.content, {"webhook-timestamp": str(int(NOW.timestamp()) + 60)}, NOW, "not signed"),
        (request.content, {"webhook-signature": "v1,"}, NOW, "not signed"),
        (request.content, {"webhook-timestamp": "soon"}, NOW, "no time"),
        (request.content, {}, NOW + timedelta(minutes=6), "too old"),
        (request.content, {}, NOW - timedelta(minutes=6), "from the future"),
    ):
        with pytest.raises(InputError, match=words):
            verify_webhook(SECRET, {**request.headers, **headers}, content, now=now)
    with pytest.raises(InputError, match="not signed"):
        verify_webhook(b"another secret of 32 bytes, yes!", request.headers, request.content, now=NOW)


def test_b19_the_signature_is_that_of_standard_webhooks() -> None:
    """By the example of the Standard Webhooks specification."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = {
        "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "Webhook-Timestamp": "1614265330",
        "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    now = datetime.fromtimestamp(1614265330, UTC)
    assert verify_webhook(secret, headers, b'{"test": 2432232314}', now=now) == "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_b19_slack_is_told_in_lines_that_hold_no_markup() -> None:
    got: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(json.loads(request.content))
        assert "webhook-signature" not in request.headers
        return httpx.Response(200, text="ok")

    odd = ALERT.fired[0]._replace(convo_id="<!channel> & *bold*\n", label="bad<")
    asyncio.run(slack("http://slack.test/T/B/x", transport=httpx.MockTransport(answer))(ALERT._replace(fired=(odd,))))
    (text,) = [each["text"] for each in got]
    assert text.splitlines() == [
        "1 conversation flagged (pass p)",
        "&lt;!channel&gt; &amp; \u2217bold\u2217\\n: bad&lt; 90%",
    ]


def test_b19_secrets_are_checked_and_shown_nowhere() -> None:
    for secret in ("short", b"short", "whsec_%%%"):
        with pytest.raises(InputError) as caught:
            webhook("http://hook.test/", secret)
        assert str(secret) not in str(caught.value)
    hook = webhook("http://hook.test/x", SECRET)
    assert "secret of" not in repr(hook)
    assert "slack.test/T/B/x" not in repr(slack("http://slack.test/T/B/x"))
    with pytest.raises(InputError, match="must be an address"):
        webhook("hook.test", SECRET)
