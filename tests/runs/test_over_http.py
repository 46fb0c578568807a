"""Runs against a real server on loopback that is slow, throttles, breaks and cuts connections."""

from __future__ import annotations

import asyncio
import http.client
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import Failure, FunctionEvaluator, Result, Verdict
from evalr.inputs import Transcript
from evalr.runs import Limiter, Retry, RunSummary, evaluate_all


class Said(BaseModel):
    done: bool


def asks(n: int) -> list[Transcript]:
    return [Transcript(id=f"t{number}", request="do it") for number in range(n)]


class RefusedError(Exception):
    def __init__(self, response: http.client.HTTPResponse) -> None:
        super().__init__(f"status {response.status}")
        self.status_code = response.status
        self.headers = response.headers


def judge_at(url: str, timeout: float = 10.0) -> FunctionEvaluator[Transcript, Said]:
    """A judge that asks the server with Python's own client, in a thread."""

    def judge(given: Transcript) -> Said:
        with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)) as connection:
            connection.request("GET", f"/{given.id}")
            response = connection.getresponse()
            body = response.read()
        if response.status >= 400:
            raise RefusedError(response)
        return Said(done=body == b"yes")

    return FunctionEvaluator("judge", "1", judge, Transcript, Said)


def ran(*args: Any, **options: Any) -> tuple[list[Result[Any]], RunSummary]:
    async def main() -> tuple[list[Result[Any]], RunSummary]:
        run = evaluate_all(*args, **options)
        return [result async for result in run], run.summary

    return asyncio.run(main())


QUICK = Retry(first=0.01)


def test_a_well_behaved_server_is_asked_once_for_each_item_and_not_by_more_than_the_bound(
    judge_server: Any, reply: Any
) -> None:
    judge_server.script = lambda item, n: reply(delay=0.02)
    results, summary = ran(judge_at(judge_server.url), asks(60), limit=6)
    assert len([result for result in results if isinstance(result, Verdict)]) == 60
    assert set(judge_server.calls.values()) == {1}
    assert judge_server.most_at_once <= 6
    assert (summary.calls, summary.retried) == (60, 0)


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
def test_what_passes_is_tried_again(status: int, judge_server: Any, reply: Any) -> None:
    judge_server.script = lambda item, n: reply(status=status if n <= 2 else 200)
    results, summary = ran(judge_at(judge_server.url), asks(5), retry=QUICK)
    assert [type(result) for result in results] == [Verdict] * 5
    assert (summary.calls, summary.retried, summary.failed) == (15, 10, 0)


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_what_does_not_pass_is_not_tried_again(status: int, judge_server: Any, reply: Any) -> None:
    judge_server.script = lambda item, n: reply(status=status)
    results, summary = ran(judge_at(judge_server.url), asks(5), retry=QUICK)
    assert all(isinstance(result, Failure) and str(status) in result.error for result in results)
    assert (summary.calls, summary.retried, judge_server.calls.total()) == (5, 0, 5)


def test_a_server_that_never_recovers_is_tried_so_often_and_no_more(judge_server: Any, reply: Any) -> None:
    judge_server.script = lambda item, n: reply(status=500)
    results, _ = ran(judge_at(judge_server.url), asks(3), retry=Retry(tries=4, first=0.01))
    assert [type(result) for result in results] == [Failure] * 3
    assert set(judge_server.calls.values()) == {4}


def test_cut_connections_are_tried_again(judge_server: Any, reply: Any) -> None:
    judge_server.script = lambda item, n: reply(cut=n == 1)
    results, summary = ran(judge_at(judge_server.url), asks(8), retry=QUICK)
    assert [type(result) for result in results] == [Verdict] * 8
    assert summary.retried == 8


def test_a_server_that_is_not_there_is_tried_again(judge_server: Any) -> None:
    results, summary = ran(judge_at("http://127.0.0.1:9"), asks(2), retry=Retry(tries=2, first=0.01))
    assert [type(result) for result in results] == [Failure] * 2
    assert summary.calls == 4


@pytest.mark.parametrize("how", ["seconds", "date"])
def test_retry_after_holds_all_calls_back(how: str, judge_server: Any, reply: Any) -> None:
    told: list[float] = []

    def script(item: str, n: int) -> Any:
        if item == "t0" and n == 1:
            told.append(time.monotonic())
            # A date has whole seconds only: that of 3 from now is between 2 and 3 away.
            date = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
            return reply(status=429, headers={"Retry-After": "2" if how == "seconds" else date})
        return reply(delay=0.3)

    judge_server.script = script
    results, summary = ran(judge_at(judge_server.url), asks(12), limit=4, retry=QUICK)
    assert [type(result) for result in results] == [Verdict] * 12
    # Those that were in flight when the server said so are answered; no other begins before it is time.
    later = sorted(at - told[0] for at in judge_server.times)
    assert len([at for at in later if at < 1.8]) <= 4
    assert len([at for at in later if at >= 1.8]) >= 9
    assert summary.throttled > 1.5
    assert all(result.latency is not None and result.latency < 1.5 for result in results)


def test_a_server_that_can_take_so_many_is_not_asked_by_many_more(judge_server: Any, reply: Any) -> None:
    """Throttled, a run finds the number of calls that the server takes, and ends with every verdict."""

    def script(item: str, n: int) -> Any:
        return reply(status=429) if judge_server.at_once > 5 else reply(delay=0.03)

    judge_server.script = script
    limiter = Limiter(32)
    results, summary = ran(judge_at(judge_server.url), asks(150), limit=limiter, retry=Retry(tries=12, first=0.05))
    assert [type(result) for result in results] == [Verdict] * 150
    assert limiter.allowed < 20
    assert summary.retried < 150


def test_a_slow_answer_is_a_timeout_that_names_the_item(judge_server: Any, reply: Any, tmp_path: Path) -> None:
    judge_server.script = lambda item, n: reply(delay=2.0 if item == "t3" else 0)
    results, summary = ran(judge_at(judge_server.url), asks(6), timeout=0.8, journal=tmp_path / "j.db")
    (failure,) = [result for result in results if isinstance(result, Failure)]
    assert failure.error.startswith("timed out: transcript 't3'")
    assert (summary.timed_out, judge_server.calls["t3"]) == (1, 1)
    judge_server.script = lambda item, n: reply()
    _, summary = ran(judge_at(judge_server.url), asks(6), journal=tmp_path / "j.db")
    assert (summary.verdicts, summary.from_journal, summary.calls) == (6, 5, 1)


def test_a_clients_own_timeout_is_tried_again(judge_server: Any, reply: Any) -> None:
    judge_server.script = lambda item, n: reply(delay=1.0 if n == 1 else 0)
    results, summary = ran(judge_at(judge_server.url, timeout=0.5), asks(2), retry=QUICK)
    assert [type(result) for result in results] == [Verdict] * 2
    assert (summary.retried, summary.timed_out) == (2, 0)
