"""Judges in a run, through dspy's real client: the run alone tries again, and waits as the server says."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import dspy
import pytest
from model_server import GOOD, Answer, Asked, ModelServer

from evalr import Failure, Result, Verdict
from evalr.dspy import completion_judge
from evalr.inputs import Transcript
from evalr.runs import Journal, Retry, RunSummary, evaluate_all
from evalr_dspy.pacing import Pace

QUICK = Retry(first=0.01)


def asks(n: int) -> list[Transcript]:
    return [Transcript(id=f"t{number}", request=f"do {number}") for number in range(n)]


def ran(lm: dspy.LM, inputs: list[Transcript], **options: Any) -> tuple[list[Result[Any]], RunSummary]:
    async def main() -> tuple[list[Result[Any]], RunSummary]:
        try:
            run = evaluate_all(completion_judge(lm=lm), inputs, **options)
            return [result async for result in run], run.summary
        finally:
            await lm.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize(
    "first",
    [Answer(status=429), Answer(status=500), Answer(status=503), Answer(cut=True)],
    ids=["429", "500", "503", "cut"],
)
def test_what_passes_is_tried_again_by_the_run_alone(first: Answer, model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: first if n <= 2 else Answer()
    results, summary = ran(model_server.lm(num_retries=3), asks(4), retry=QUICK, limit=1)
    assert [type(result) for result in results] == [Verdict] * 4
    assert (summary.calls, summary.retried, len(model_server.asked)) == (6, 2, 6)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_does_not_pass_is_not(status: int, model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer(status=status)
    results, _ = ran(model_server.lm(), asks(3), retry=QUICK)
    assert [type(result) for result in results] == [Failure] * 3
    assert len(model_server.asked) == 3


def test_an_answer_that_cannot_be_read_is_not_asked_for_again(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: "I cannot say." if n == 1 else GOOD
    _, summary = ran(model_server.lm(), asks(3), limit=1, retry=QUICK)
    assert (summary.verdicts, summary.failed, len(model_server.asked)) == (2, 1, 3)
    assert summary.cost is not None


def test_retry_after_is_waited_for_once_and_holds_all_calls_back(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer(status=429, headers={"Retry-After": "1"}) if n == 1 else Answer()
    begun = time.monotonic()
    results, summary = ran(model_server.lm(), asks(6), limit=2, retry=QUICK)
    took = time.monotonic() - begun
    assert [type(result) for result in results] == [Verdict] * 6
    assert 1 <= took < 2
    assert summary.throttled >= 0.9
    assert all(result.latency is not None and result.latency < 0.9 for result in results)


def test_a_judge_works_through_steady_limits_errors_and_cuts(model_server: ModelServer, tmp_path: Path) -> None:
    """Of every ten answers two are 429, one is 500, and now and then a connection is cut; nothing is lost."""

    def busy(asked: Asked, n: int) -> Answer:
        if n % 5 == 0:
            return Answer(status=429, headers={"Retry-After": "0"})
        if n % 10 == 7:
            return Answer(status=500)
        return Answer(cut=True) if n % 50 == 3 else Answer(delay=0.005)

    model_server.script = busy
    patient = Retry(tries=20, first=0.01, longest=0.1)
    begun = time.monotonic()
    results, summary = ran(model_server.lm(), asks(300), limit=32, retry=patient, journal=tmp_path / "judged.db")
    assert time.monotonic() - begun < 20
    assert (summary.verdicts, summary.failed, summary.not_done) == (300, 0, {})
    assert len({result.about.id for result in results if result.about is not None}) == 300
    assert summary.retried >= 60
    # A cut connection was asked, too: every call is counted, and no client tries again behind the run's back.
    assert len(model_server.asked) == summary.calls == 300 + summary.retried
    assert model_server.most_at_once <= 32
    assert all(result.latency is not None and result.latency < 5 for result in results)
    with Journal(tmp_path / "judged.db") as journal:
        assert (journal.totals().items, journal.totals().calls) == ({"verdict": 300}, summary.calls)


def test_a_judge_keeps_to_the_pace_of_a_server_that_allows_only_so_many_a_second(model_server: ModelServer) -> None:
    """A bucket of 20 calls that fills with 100 a second, asked by 32 at once: it refuses few of them for long."""
    level, last = 20.0, time.monotonic()

    def limited(asked: Asked, n: int) -> Answer:
        nonlocal level, last
        now = time.monotonic()
        level, last = min(20.0, level + 100 * (now - last)), now
        if level < 1:
            return Answer(status=429, headers={"Retry-After": "0.1"})
        level -= 1
        return Answer(delay=0.01)

    model_server.script = limited
    begun = time.monotonic()
    results, summary = ran(model_server.lm(), asks(220), limit=32, retry=Retry(tries=20, first=0.01))
    took = time.monotonic() - begun
    assert [type(result) for result in results] == [Verdict] * 220
    assert 1.8 < took < 10  # 200 beyond the first twenty are two seconds at the server's own pace
    assert summary.throttled > 0
    assert len(model_server.asked) == summary.calls < 2 * 220


def test_a_clients_own_timeout_is_tried_again(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer(delay=1.5) if n == 1 else Answer()
    results, summary = ran(model_server.lm(timeout=0.3), asks(2), limit=1, retry=QUICK)
    assert [type(result) for result in results] == [Verdict] * 2
    assert summary.retried == 1


def test_a_slow_model_is_a_timeout_of_the_run(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer(delay=2.0 if "do 1" in asked.user else 0.0)
    results, summary = ran(model_server.lm(), asks(3), timeout=0.5)
    assert (summary.verdicts, summary.timed_out) == (2, 1)
    assert any(isinstance(result, Failure) and "'t1'" in result.error for result in results)


def test_repeats_really_ask_again(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: f'{{"completed": {"true" if n % 2 else "false"}, "quality": 3}}'
    results, _ = ran(model_server.lm(), asks(1), repeats=4, limit=1)
    assert [result.value.completed for result in results] == [True, False, True, False]  # type: ignore[union-attr]


def test_a_journal_answers_the_same_judge_and_no_other(model_server: ModelServer, tmp_path: Path) -> None:
    journal = tmp_path / "judged.db"
    ran(model_server.lm(), asks(3), journal=journal)
    _, again = ran(model_server.lm(), asks(3), journal=journal)
    _, other = ran(model_server.lm(max_tokens=77), asks(3), journal=journal)
    assert (again.from_journal, other.from_journal, len(model_server.asked)) == (3, 0, 6)


def test_calls_are_in_flight_together(model_server: ModelServer) -> None:
    """How near their rate comes to what the model could answer, the benchmark says."""
    model_server.together = 64
    results, _ = ran(model_server.lm(), asks(100), limit=64)
    assert all(isinstance(result, Verdict) for result in results)
    assert (len(results), model_server.most_at_once) == (100, 64)


def test_calls_begin_a_moment_apart() -> None:
    async def main(calls: int) -> float:
        pace = Pace(apart=0.4, at_once=3)
        begun = time.monotonic()
        await asyncio.gather(*(pace.turn() for _ in range(calls)))
        return time.monotonic() - begun

    assert asyncio.run(main(3)) < 0.4
    assert asyncio.run(main(5)) >= 0.8
