"""Hostile surroundings: services that answer nonsense, classifiers that give it, and receivers that never end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from math import inf, nan
from typing import Any

import httpx
import pytest
from reflex_service import FakeReflex, a_signal, no_sleep, talks

from evalr.background import run_sync
from evalr.errors import InputError, TransportError
from evalr.runs.retries import Retry
from evalr.tracepass import (
    Account,
    Alert,
    BatchTransport,
    FiredTurn,
    LabelScore,
    LocalTransport,
    Pass,
    Passes,
    PlanEstimate,
    Prediction,
    plan,
    webhook,
)
from evalr_tracepass.command.passing import allowed
from evalr_tracepass.direct import answers
from evalr_tracepass.transports.service import Service

ME = Account("ann")
SECRET = b"0123456789abcdef"
GOOD = Prediction("m1", "single_label", (LabelScore("bad", 0.9, True),), version="1")


def run_with(store: Any, service: Service, **options: Any) -> Pass:
    passes = Passes(ME, store, BatchTransport(service), sleep=no_sleep, **options)
    return passes.run_sync(plan([a_signal("m1")]), talks(2), pass_id="p")


def service_of(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> Service:
    return FakeReflex().service(transport=httpx.MockTransport(answer), **options)


class Twisted(FakeReflex):
    """A service whose answers of one kind are twisted."""

    def __init__(self, kinds: str, twist: Callable[[dict[str, Any]], dict[str, Any]], **options: Any) -> None:
        super().__init__(**options)
        self._kinds, self._twist = kinds.split(), twist

    def do(self, kind: str, path: str, headers: dict[str, str], body: Any, query: dict[str, str]) -> tuple[int, Any]:
        status, answer = super().do(kind, path, headers, body, query)
        return status, self._twist(json.loads(json.dumps(answer))) if kind in self._kinds else answer


@pytest.mark.parametrize("name", ["total", "completed", "failed"])
def test_b4_counts_that_no_store_holds_are_no_harm(store: Any, name: str) -> None:
    def twist(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "request_counts": {**answer["request_counts"], name: 10**30}}

    found = run_with(store, Twisted("upload status", twist, delay=2).service())
    assert (found.status, found.completed_inputs, found.failed_inputs) == ("complete", 4, 0)


def test_b7_a_score_beyond_any_number_is_a_failure_of_its_model(store: Any) -> None:
    def twist(answer: dict[str, Any]) -> dict[str, Any]:
        for row in answer["results"]:
            row["predictions"][0]["classes"][0]["score"] = 10**400
        return answer

    found = run_with(store, Twisted("results", twist).service())
    assert found.status == "partial_failure"
    assert {each.error_type for each in store.results(ME, passes="p")} == {"invalid_score"}


@pytest.mark.parametrize("batch_id", ["..", ".", "x" * 100_000])
def test_b4_an_id_that_no_address_can_hold_names_no_batch(store: Any, batch_id: str) -> None:
    with pytest.raises(TransportError, match="names no batch"):
        run_with(store, Twisted("upload", lambda answer: {**answer, "id": batch_id}).service())
    assert store.get_pass(ME, "p").status == "failed"


def test_b4_a_cursor_that_no_address_can_hold_is_an_error_of_the_service(store: Any) -> None:
    with pytest.raises(TransportError):
        run_with(store, Twisted("results", lambda answer: {**answer, "next_cursor": "\ud800"}).service())
    assert store.get_pass(ME, "p").status == "failed"


def test_b4_pages_without_an_end_are_an_error(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalr_tracepass.transports.batches.MOST_PAGES", 20)
    pages = iter(range(10_000))
    fake = Twisted("results", lambda answer: {**answer, "results": [], "next_page_token": str(next(pages))})
    with pytest.raises(TransportError, match="do not end"):
        run_with(store, fake.service())
    assert next(pages) == 20


def test_b4_a_body_that_cannot_be_unpacked_is_an_error_of_the_service(store: Any) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"not packed"))

    with pytest.raises(TransportError, match="DecodingError"):
        run_with(store, service_of(answer))
    assert store.get_pass(ME, "p").status == "failed"


class Endless(httpx.AsyncByteStream):
    """A body without an end."""

    def __init__(self) -> None:
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.read < 1_000:
            self.read += 1
            yield b" " * 10_000


def test_b4_an_answer_is_read_up_to_a_limit(store: Any) -> None:
    body = Endless()
    with pytest.raises(TransportError, match="longer than 100,000 bytes"):
        run_with(store, service_of(lambda _: httpx.Response(200, stream=body), most=100_000))
    assert body.read <= 11


def test_b4_a_service_that_wants_to_be_asked_in_a_year_does_not_hold_a_pass_up(store: Any) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def answer(request: httpx.Request) -> httpx.Response:
        state = {"id": "b", "status": "running", "request_counts": {"total": 4}}
        return httpx.Response(200, json=state, headers={"retry-after": "31536000"})

    passes = Passes(ME, store, BatchTransport(service_of(answer)), sleep=sleep)
    assert passes.run_sync(plan([a_signal("m1")]), talks(2)).status == "running"
    assert slept == []


# Classifiers


class Odd:
    """A classifier that gives whatever it was told to."""

    name, version, labels = "m1", "1", ("good", "bad")

    def __init__(self, given: Callable[[str], Any]) -> None:
        self._given = given

    def predict(self, texts: Sequence[str]) -> Any:
        return [self._given(text) for text in texts]


def classes(score: Any = 0.9, label: Any = "bad") -> Prediction:
    return Prediction("m1", "single_label", (LabelScore(label, score, True),), version="1")


ODD = [
    None,
    "bad",
    classes(score=None),
    classes(score="0.9"),
    classes(score=nan),
    classes(label=7),
    classes(label=["bad"]),
    Prediction("m1", "single_label", 5, version="1"),  # type: ignore[arg-type]
    Prediction("m1", error="no error", version="1"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_b7_what_is_no_prediction_is_a_failure_of_its_text_alone(store: Any, odd: Any) -> None:
    reflex = Odd(lambda text: odd if text.startswith("bad") else GOOD)
    traces = talks(2)
    bad = sum(turn.text.startswith("bad") for trace in traces for turn in trace.turns[::2])
    passes = Passes(ME, store, LocalTransport({"m1": reflex}))
    found = passes.run_sync(plan([a_signal("m1")]), traces)
    assert found.status == "partial_failure"
    totals = store.totals(ME, found.id)
    assert (totals.completed, totals.failed) == (4 - bad, bad)
    made = plan([a_signal("m1")])
    said = list(answers(made, made.rows(traces), {"m1": reflex}))
    assert sum(each.error is not None for each in said) == bad
    assert sum(each.reading is not None and each.reading.fired for each in said) == 4 - bad


def test_b7_classes_may_be_a_list(store: Any) -> None:
    listed = GOOD._replace(classes=list(GOOD.classes))  # type: ignore[arg-type]
    found = Passes(ME, store, LocalTransport({"m1": Odd(lambda _: listed)})).run_sync(plan([a_signal("m1")]), talks(2))
    assert found.status == "complete"


def test_b7_predictions_may_come_as_they_are_made(store: Any) -> None:
    class Lazy(Odd):
        def predict(self, texts: Sequence[str]) -> Any:
            return (GOOD for _ in texts)

    found = Passes(ME, store, LocalTransport({"m1": Lazy(str)})).run_sync(plan([a_signal("m1")]), talks(2))
    assert found.status == "complete"


def test_b20_a_text_that_breaks_a_classifier_does_not_end_a_search() -> None:
    def given(text: str) -> Prediction:
        if text.startswith("bad"):
            raise RuntimeError(text)
        return GOOD

    made = plan([a_signal("m1")])
    said = list(answers(made, made.rows(talks(5)), {"m1": Odd(given)}))
    broken = [each for each in said if each.row.text.startswith("bad")]
    assert broken
    assert {each.error.type for each in broken if each.error} == {"RuntimeError"}
    assert not any(each.row.text in str(each.error) for each in broken)
    assert all(each.error is None for each in said if each not in broken)


@pytest.mark.parametrize("budget", [nan, inf, -1.0])
def test_b3_a_budget_that_is_no_amount_lets_nothing_through(budget: float) -> None:
    with pytest.raises(InputError, match="--budget"):
        allowed(PlanEstimate(inputs=1, predictions=1, cost=5.0), by="batch", budget=budget, yes=True)


# Receivers of alerts


ALERT = Alert("a", "p", ME, (FiredTurn("c", "e", 0, "", "s", "bad", 0.9, None),))


def test_b19_a_receiver_that_never_stops_talking_has_been_told() -> None:
    body = Endless()
    told = webhook(
        "http://hook.test", SECRET, transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=body))
    )
    run_sync(told(ALERT))
    assert body.read == 0


@pytest.mark.parametrize("raised", [httpx.DecodingError("x"), httpx.InvalidURL("x"), httpx.TooManyRedirects("x")])
def test_b19_whatever_goes_wrong_with_a_receiver_is_an_error_of_its(raised: Exception) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise raised

    told = webhook("http://hook.test", SECRET, transport=httpx.MockTransport(answer), retry=Retry(tries=1))
    with pytest.raises(TransportError, match=type(raised).__name__):
        run_sync(told(ALERT))


def test_b19_a_receiver_that_is_gone_does_not_keep_alerts_from_the_others(store: Any) -> None:
    told: list[Alert] = []

    def gone(_: Alert) -> None:
        raise TransportError("gone")

    with pytest.raises(TransportError, match="gone"):
        run_with(store, FakeReflex().service(), notify=[gone, told.append])
    assert len(told) == 1
    assert store.get_pass(ME, "p").status == "complete"
