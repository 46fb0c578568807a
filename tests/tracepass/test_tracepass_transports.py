"""Transports: classifiers of this process, asynchronous batches and the live preview, and what services do to them."""

from __future__ import annotations

import asyncio
import copy
import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence

import httpx
import pytest
from reflex_service import KEY, FakeReflex, a_signal, talks

from evalr.background import run_sync
from evalr.errors import InputError, TransportError
from evalr.runs.retries import Retry
from evalr.tracepass import (
    Account,
    BatchState,
    BatchTransport,
    Caps,
    ErrorInfo,
    LabelScore,
    LivePreview,
    LocalTransport,
    Outcome,
    Prediction,
    Row,
    Service,
    Transport,
    plan,
)
from evalr_tracepass.transports.answers import outcome_of, state_of
from evalr_tracepass.transports.batches import next_page
from evalr_tracepass.transports.service import Answer
from evalr_tracepass.transports.transport import check_rows

ME = Account("ann")


def rows(count: int = 3, *models: str) -> list[Row]:
    made = plan([a_signal(model) for model in models or ("m1", "m2")])
    return list(made.rows(talks(count, turns=2)))


def sent(
    transport: Transport, given: Sequence[Row], key: str = "k", account: Account = ME
) -> tuple[BatchState, list[Outcome]]:
    async def send() -> tuple[BatchState, list[Outcome]]:
        async with transport.connect(account) as connection:
            state = await connection.submit(given, key=key)
            while not state.ended:
                state = await connection.status(state.batch_id)
            return state, [each async for each in connection.outcomes(state.batch_id)]

    return run_sync(send())


# One protocol


class Echo:
    """Labels a text by whether it is bad; told to, it breaks."""

    name, version, labels = "echo", "3", ("good", "bad")

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.threads: set[str] = set()

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        self.calls.append(len(texts))
        self.threads.add(threading.current_thread().name)
        if any("poison" in text for text in texts):
            raise RuntimeError(f"cannot read {texts[0]}")
        return [
            Prediction("echo", "single_label", (LabelScore("bad", float("bad" in text), "bad" in text),))
            for text in texts
        ]


class SlowEcho(Echo):
    async def predict(self, texts: Sequence[str]) -> list[Prediction]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().predict(texts)


def test_r2_every_transport_keeps_the_protocol() -> None:
    fake = FakeReflex()
    local = LocalTransport({"m1": Echo(), "m2": SlowEcho()})
    for transport in (local, BatchTransport(fake.service()), LivePreview(fake.service())):
        assert isinstance(transport, Transport)
        state, outcomes = sent(transport, rows())
        assert state.ended
        assert {each.request_id for each in outcomes} == {row.request_id for row in rows()}
        for outcome in outcomes:
            assert [prediction.model for prediction in outcome.predictions] == ["m1", "m2"]
            assert all(prediction.error is None and prediction.classes for prediction in outcome.predictions)


def test_r2_local_classifiers_are_asked_together_in_threads_under_their_aliases() -> None:
    echo = Echo()
    transport = LocalTransport({"m1": echo}, together=4)
    _, outcomes = sent(transport, rows(10, "m1"))
    assert sorted(echo.calls) == [2, 4, 4]
    assert all(not name.startswith("MainThread") and name != "evalr" for name in echo.threads)
    assert {each.predictions[0].model for each in outcomes} == {"m1"}
    assert {each.predictions[0].version for each in outcomes} == {"3"}


def test_r2_a_text_that_breaks_a_local_classifier_fails_alone() -> None:
    given = rows(5, "m1")
    given[2] = given[2]._replace(text="poison of Mr Quux")
    _, outcomes = sent(LocalTransport({"m1": Echo()}), given)
    errors = [each.predictions[0].error for each in outcomes]
    assert [error is not None for error in errors] == [False, False, True, False, False]
    assert errors[2] is not None
    assert errors[2].type == "RuntimeError"
    assert "Quux" not in errors[2].message


def test_r2_a_classifier_that_miscounts_has_failed_on_its_texts() -> None:
    class Short(Echo):
        def predict(self, texts: Sequence[str]) -> list[Prediction]:
            return super().predict(texts)[1:]

    _, outcomes = sent(LocalTransport({"m1": Short()}), rows(2, "m1"))
    assert {each.predictions[0].error.type for each in outcomes if each.predictions[0].error} == {"wrong_count"}


def test_r2_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no classifier is configured as 'm2'"):
        sent(LocalTransport({"m1": Echo()}), rows())


# B1: what an upload may hold


def test_b1_what_a_service_would_refuse_is_not_sent() -> None:
    (row,) = rows(1)
    long = row._replace(text="x" * 350_001)
    none = row._replace(item=row.item._replace(selected_models=()))
    for given, words in (
        ([], "at least one row"),
        ([row, row], "stands twice"),
        ([none], "names no model"),
        ([row._replace(text="")], "has no text"),
        ([long], "350,001 characters"),
        ([row._replace(item=row.item._replace(request_id=str(n))) for n in range(10_001)], "10,001 rows"),
    ):
        fake = FakeReflex()
        with pytest.raises(InputError, match=words):
            sent(BatchTransport(fake.service()), given)
        assert not fake.uploads
    check_rows([row._replace(text="x" * 350_000)])


def test_b1_a_batch_is_at_most_ten_thousand_rows() -> None:
    assert BatchTransport(Service()).largest == 10_000
    with pytest.raises(InputError, match="10,000"):
        BatchTransport(Service(), largest=10_001)


# B4: the batch service


def test_b4_a_batch_is_uploaded_polled_and_read() -> None:
    fake = FakeReflex(delay=3, page=2, fail_row=lambda text: "0-0" in text, fail_model=lambda model: model == "m2")
    state, outcomes = sent(BatchTransport(fake.service()), rows(4))
    assert (state.status, state.total, state.completed, state.failed) == ("completed", 4, 3, 1)
    assert fake.requests == {"upload": 1, "status": 4, "results": 2}
    assert [each.status for each in outcomes] == ["failed", "completed", "completed", "completed"]
    assert outcomes[0].error is not None
    assert outcomes[0].error.type == "overloaded"
    assert [each.error and each.error.type for each in outcomes[1].predictions] == [None, "inference_error"]


@pytest.mark.parametrize(
    "fault", [{"refuse": 3}, {"cut_before": 3}, {"cut_after": 3}, {"truncate": 3}], ids=lambda fault: next(iter(fault))
)
def test_b4_a_request_that_fails_for_a_while_is_made_again_and_paid_for_once(fault: dict[str, int]) -> None:
    fake = FakeReflex(delay=1, page=1, **fault)
    state, outcomes = sent(BatchTransport(fake.service()), rows(3), key="trace-pass:x")
    assert state.ended
    assert [each.status for each in outcomes] == ["completed"] * 3
    assert set(fake.uploads) <= {"trace-pass:x"}
    assert set(fake.billed.values()) == {1}
    assert len(fake.batches) == 1


def test_b4_a_service_is_asked_no_sooner_than_it_says() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    def answer(request: httpx.Request) -> httpx.Response:
        if len(waited) < 2:
            return httpx.Response(429 if waited else 503, headers={"retry-after": "7"}, json={"error": {}})
        return httpx.Response(200, headers={"retry-after": "11"}, json={"id": "b", "status": "queued"})

    service = Service("http://x.test", KEY, transport=httpx.MockTransport(answer), sleep=sleep, retry=Retry(first=0.0))

    async def ask() -> BatchState:
        async with BatchTransport(service).connect(ME) as connection:
            return await connection.status("b")

    assert run_sync(ask()).retry_after == 11
    assert waited == [7, 7]


def test_b4_a_refusal_is_not_repeated() -> None:
    fake = FakeReflex()
    with pytest.raises(TransportError, match="refuses the key") as caught:
        sent(BatchTransport(fake.service(key="sk-wrong-key")), rows())
    assert fake.requests["upload"] == 1
    assert "sk-wrong-key" not in str(caught.value)
    with pytest.raises(TransportError, match="status 404, not_found"):
        run_sync(_status(BatchTransport(fake.service()), "rbatch-9"))
    assert fake.requests["status"] == 1


async def _status(transport: BatchTransport, batch_id: str) -> BatchState:
    async with transport.connect(ME) as connection:
        return await connection.status(batch_id)


def test_b4_statuses_are_read_leniently() -> None:
    counts = {"total": 3, "completed": 2, "failed": 1}
    for answer, ended in (
        ({"status": "completed"}, True),
        ({"status": "SUCCEEDED"}, True),
        ({"status": "cancelled"}, True),
        ({"status": "queued"}, False),
        ({"status": "in_progress", "request_counts": counts}, False),
        ({"status": "some_new_word"}, False),
        ({"status": "some_new_word", "request_counts": counts}, True),
        ({"status": None, "request_counts": {"total": "3", "completed": True, "failed": -1}}, False),
        ({"request_counts": [1]}, False),
    ):
        state = state_of({"id": "b", **answer})
        assert state is not None
        assert state.ended is ended, answer
    assert state_of({"status": "completed"}) is None
    assert state_of({"id": 7}) is None


def test_b4_rows_are_read_leniently_and_none_is_lost() -> None:
    good = {"label": "a", "score": 1, "selected": True}
    found = outcome_of(
        {"id": "r", "predictions": [{"model": "m", "mode": "odd", "classes": [good]}, {"classes": []}, 7]}
    )
    assert found == Outcome("r", "completed", (Prediction("m", "", (LabelScore("a", 1.0, True),)),))
    for classes in ([{"label": "a", "score": "high"}], [{"score": 1}], ["a"], [{"label": "a", "score": True}]):
        odd = outcome_of({"id": "r", "status": "completed", "predictions": [{"model": "m", "classes": classes}]})
        assert odd is not None
        assert odd.predictions[0].error is not None
        assert odd.predictions[0].error.type == "invalid_prediction"
    text = outcome_of({"id": "r", "status": "completed", "predictions": [{"model": "m", "error": "failed"}]})
    assert text is not None
    assert text.predictions[0].error == ("error", "failed")
    assert outcome_of({"id": "r", "status": "failed"}) == Outcome("r", "failed", error=ErrorInfo("error", ""))
    assert outcome_of({"id": "r", "status": "who knows"}) == Outcome("r", "pending")
    assert outcome_of({"status": "completed"}) is None
    assert outcome_of(["r"]) is None


def test_b4_pages_are_followed_without_leaving_the_service() -> None:
    for said, wanted in (
        ({}, {}),
        ({"has_more": True, "next_cursor": "c"}, {"cursor": "c"}),
        ({"has_more": False, "next_cursor": "c"}, {}),
        ({"next_page_token": "t"}, {"page_token": "t"}),
        ({"has_more": True, "last_id": "r9"}, {"after": "r9"}),
        ({"last_id": "r9"}, {}),
        ({"next": "https://evil.test/steal?cursor=x&limit=5"}, {"cursor": "x", "limit": "5"}),
        ({"next": "abc"}, {"cursor": "abc"}),
    ):
        assert next_page(Answer(said)) == wanted, said


def test_b4_pages_that_go_round_in_circles_end() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(200, json={"results": [], "next": "https://evil.test/?cursor=again"})

    async def read() -> list[Outcome]:
        service = Service("http://x.test", KEY, transport=httpx.MockTransport(answer))
        async with BatchTransport(service).connect(ME) as connection:
            return [each async for each in connection.outcomes("b")]

    assert run_sync(read()) == []
    assert asked == ["x.test", "x.test"]


# B6: the live preview


def test_b6_a_preview_gives_the_same_outcomes_at_once_and_is_capped() -> None:
    live, batch = FakeReflex(), FakeReflex()
    preview = LivePreview(live.service())
    assert isinstance(preview.caps, Caps)
    assert sent(preview, rows(6))[1] == sent(BatchTransport(batch.service()), rows(6))[1]
    assert live.billed == batch.billed


@pytest.mark.parametrize(
    "fault", [{"refuse": 2}, {"cut_after": 2}, {"truncate": 2}], ids=lambda fault: next(iter(fault))
)
def test_b6_a_row_that_is_sent_again_goes_under_its_own_key(fault: dict[str, int]) -> None:
    fake = FakeReflex(**fault)
    _, outcomes = sent(LivePreview(fake.service()), rows(4), key="trace-pass:y")
    assert [each.status for each in outcomes] == ["completed"] * 4
    assert set(fake.billed.values()) == {1}
    assert len(set(fake.uploads)) == 4
    assert all(key.startswith("trace-pass:y:") for key in fake.uploads)


def test_b6_a_row_that_is_refused_fails_alone_and_a_refused_key_is_an_error() -> None:
    fake = FakeReflex(fail_row=lambda text: "1-0" in text)
    _, outcomes = sent(LivePreview(fake.service()), rows(3))
    assert [each.status for each in outcomes] == ["completed", "failed", "completed"]
    assert outcomes[1].error is not None
    assert outcomes[1].error.type == "status_422"
    with pytest.raises(TransportError, match="refuses the key"):
        sent(LivePreview(fake.service(key="sk-other")), rows(3))


# Keys


def test_b5_a_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-very-secret-0123"
    caplog.set_level(logging.DEBUG)
    fake = FakeReflex(refuse=1)
    service = fake.service(key={"ann": secret})
    for transport in (BatchTransport(service), LivePreview(service)):
        assert secret not in repr(transport)
        assert secret not in repr(copy.copy(service))
        with pytest.raises(TransportError) as caught:
            sent(transport, rows())
        assert secret not in "".join(traceback.format_exception(caught.value))
    broken = Service("http://x.test", secret + "\n")
    with pytest.raises(InputError, match="copied whole") as odd:
        sent(BatchTransport(broken), rows())
    assert secret not in "".join(traceback.format_exception(odd.value))
    monkeypatch.setenv("MORPH_API_KEY", secret)
    monkeypatch.setenv("MORPH_BASE_URL", "http://x.test")
    assert secret not in repr(Service())
    assert secret not in caplog.text


def test_b5_each_account_has_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MORPH_API_KEY", raising=False)
    asked: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.headers["authorization"], str(request.url)))
        return httpx.Response(200, json={"id": "b", "status": "queued"})

    service = Service("http://x.test/", {"acme": "k-org", "ann": "k-ann"}, transport=httpx.MockTransport(answer))

    async def ask(account: Account) -> None:
        async with BatchTransport(service).connect(account) as connection:
            await connection.status("b/../c")

    for account in (Account("ann", "acme"), Account("ann")):
        run_sync(ask(account))
    assert [key for key, _ in asked] == ["Bearer k-org", "Bearer k-ann"]
    assert asked[0][1] == "http://x.test/v1/reflex/asynchronous_batches/b%2F..%2Fc"
    with pytest.raises(InputError, match="no key for account 'bob'"):
        run_sync(ask(Account("bob")))
    with pytest.raises(InputError, match="no key for account 'umbrella'"):
        run_sync(ask(Account("ann", "umbrella")))


def test_b5_an_address_holds_no_key_and_is_one() -> None:
    for url, words in (("https://me:sk-1@x.test", "not given in the address"), ("x.test", "must be an address")):
        with pytest.raises(InputError, match=words) as caught:
            sent(BatchTransport(Service(url, KEY)), rows())
        assert "sk-1" not in str(caught.value)


def test_b5_a_redirection_is_not_followed() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(307, headers={"location": "http://evil.test/"})

    with pytest.raises(TransportError, match="status 307"):
        sent(BatchTransport(Service("http://x.test", KEY, transport=httpx.MockTransport(answer))), rows())
    assert asked == ["x.test"]


def test_importing_needs_neither_httpx_nor_sqlalchemy() -> None:
    blocked = (
        "import sys\nfor name in ('httpx', 'sqlalchemy', 'clickhouse_connect', 'psycopg'): sys.modules[name] = None\n"
    )
    code = blocked + (
        "import evalr.tracepass as t\n"
        "from evalr.errors import MissingExtraError\n"
        "for make in (lambda: t.open_store('x.db'), lambda: t.schema('sqlite'),\n"
        "             lambda: t.Service(key='k').client(t.Account('a'))):\n"
        "    try: make()\n"
        "    except MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pip install 'evalr[tracepass]'") == 3
