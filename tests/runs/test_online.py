"""Online evaluation: readings of sessions come in, each is judged when it is whole, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import FunctionEvaluator, HandOff, Skip, one_per_subject, run_sync
from evalr.errors import DuplicateError, InputError, JournalError, SinkError, SpoolError
from evalr.inputs import Activity, Session, Transcript
from evalr.measures import drop_off_evaluator
from evalr.runs import Budget, Journal, JsonlSink, MemorySink, Online, OnlineSummary, Readiness, Retry, sampled
from evalr.verdicts import Failure, Result, Verdict

T = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Length(BaseModel):
    count: int


class Clock:
    """Says what it is told to."""

    def __init__(self) -> None:
        self.now = T + timedelta(hours=1)

    def __call__(self) -> datetime:
        return self.now


class Judge:
    """Counts activities, and how often it was asked of what."""

    def __init__(self, name: str = "length", answer: Callable[[Session], Any] | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.evaluator = FunctionEvaluator(name, "1", self._ask, Session, Length)
        self._answer = answer

    async def _ask(self, given: Session) -> Any:
        self.asked.append((given.id, len(given.activities)))
        await asyncio.sleep(0.001)
        found = self._answer(given) if self._answer is not None else None
        return found if found is not None else Length(count=len(given.activities))


def session(name: str, *minutes: float, user: str | None = None) -> Session:
    activities = [Activity(at=T + minute * MINUTE, role="agent") for minute in minutes or (0,)]
    return Session(id=name, user=user, activities=activities)


def counts_of(results: Sequence[Result[Any]]) -> dict[str | None, int]:
    return {result.about.id: result.value.count for result in results if isinstance(result, Verdict) and result.about}


def adds_up(summary: OnlineSummary, before: int = 0) -> bool:
    parts = (summary.unsampled, summary.unchanged, summary.outdated, summary.replaced, sum(summary.refused.values()))
    return summary.submitted + before == sum(parts) + summary.judged + summary.waiting + summary.held + summary.in_work


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "spool"])
def spool(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Every behaviour is the same in memory and in a file."""
    return tmp_path / "spool.db" if request.param == "spool" else None


# What is judged, and when


def test_what_is_ready_is_judged_and_what_is_not_waits(clock: Clock, spool: Path | None) -> None:
    judge, sink = Judge(), MemorySink()
    with Online(judge.evaluator, sinks=sink, spool=spool, now=clock) as online:
        for n in range(20):
            assert online.submit(session(f"s{n}", 0, n)) == "waiting"
        assert online.submit(session("late", 55)) == "waiting"
        summary = online.drain_sync()
        assert counts_of(sink.results) == {f"s{n}": 2 for n in range(20)}
        assert (summary.submitted, summary.judged, summary.waiting, summary.runs.verdicts) == (21, 20, 1, 20)
        assert adds_up(summary)
        clock.now += 5 * MINUTE  # at exactly ten minutes
        assert online.drain_sync().judged == 21
        assert online.summary.waiting == 0


def test_readings_of_one_session_are_judged_once_when_it_is_quiet(clock: Clock, spool: Path | None) -> None:
    judge, sink = Judge(), MemorySink()
    clock.now = T
    with Online(judge.evaluator, sinks=sink, spool=spool, now=clock) as online:
        for turn in range(30):
            clock.now = T + turn * MINUTE
            online.submit(session("s", *range(turn + 1)))
            online.drain_sync()
        assert judge.asked == []
        clock.now += 10 * MINUTE
        summary = online.drain_sync()
    assert judge.asked == [("s", 30)]
    assert (summary.replaced, summary.judged) == (29, 1)
    assert adds_up(summary)


def test_a_later_turn_supersedes_the_verdict(clock: Clock, spool: Path | None, tmp_path: Path) -> None:
    judge, sink, log = Judge(), MemorySink(), JsonlSink(tmp_path / "verdicts.jsonl")
    with Online(judge.evaluator, sinks=[sink, log], spool=spool, now=clock) as online:
        online.submit(session("s", 0))
        online.drain_sync()
        assert counts_of(sink.results) == {"s": 1}
        online.submit(session("s", 0, 58))
        assert online.drain_sync().waiting == 1  # the late event has made it wait again
        assert judge.asked == [("s", 1)]
        clock.now += 10 * MINUTE
        summary = online.drain_sync()
    assert judge.asked == [("s", 1), ("s", 2)]
    assert counts_of(sink.results) == {"s": 2}
    assert (sink.superseded, summary.judged, summary.superseding) == (1, 2, 1)
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert [(line["value"]["count"], line.get("supersedes")) for line in lines] == [(1, None), (2, True)]


def test_a_turn_that_comes_while_it_is_judged(clock: Clock, spool: Path | None) -> None:
    begun, going_on = threading.Event(), threading.Event()
    asked = []

    def ask(given: Session) -> Length:
        asked.append(len(given.activities))
        begun.set()
        assert going_on.wait(10)
        return Length(count=len(given.activities))

    sink = MemorySink()
    judge = FunctionEvaluator("length", "1", ask, Session, Length)
    with Online(judge, sinks=sink, spool=spool, now=clock) as online:
        online.submit(session("s", 0))
        assert begun.wait(10)
        assert online.submit(session("s", 0)) == "unchanged"
        assert online.submit(session("s", 0, 1)) == "waiting"
        time.sleep(0.05)
        assert asked == [1]  # never two of one session at once
        going_on.set()
        summary = online.drain_sync()
    assert asked == [1, 2]
    assert counts_of(sink.results) == {"s": 2}
    assert (sink.superseded, summary.superseding) == (1, 1)


def test_the_same_again_is_not_judged_again_and_an_older_reading_never_wins(clock: Clock, spool: Path | None) -> None:
    judge, sink = Judge(), MemorySink()
    with Online(judge.evaluator, sinks=sink, spool=spool, now=clock) as online:
        assert online.submit(session("s", 0, 2)) == "waiting"
        assert online.submit(session("s", 0, 2)) == "unchanged"
        assert online.submit(session("s", 0)) == "outdated"
        online.drain_sync()
        assert online.submit(session("s", 0, 2)) == "unchanged"
        assert online.submit(session("s", 0)) == "outdated"
        assert online.submit(session("s", 0, 2, user="another")) == "waiting"  # another person's session
        summary = online.drain_sync()
    assert judge.asked == [("s", 2), ("s", 2)]
    assert (summary.unchanged, summary.outdated, len(sink.results)) == (2, 2, 2)
    assert adds_up(summary)


def test_a_long_session_is_judged_once_by_a_job_that_looks_back(clock: Clock, tmp_path: Path) -> None:
    """Looks overlap, since events may come late; a session that began before all of them is seen, and once."""
    store = {"long": list(range(0, 300, 7)), **{f"short{n}": [n * 10, n * 10 + 3] for n in range(28)}}
    judge, sink = Judge(), MemorySink()
    options: dict[str, Any] = {"sinks": sink, "spool": tmp_path / "s.db", "now": clock}
    clock.now = T
    for _ in range(2):  # with a restart halfway
        with Online(judge.evaluator, **options) as online:
            for _ in range(40):
                clock.now += 4 * MINUTE
                for name, minutes in store.items():
                    so_far = [minute for minute in minutes if T + minute * MINUTE <= clock.now]
                    if so_far and T + so_far[-1] * MINUTE > clock.now - 30 * MINUTE:
                        online.submit(session(name, *so_far))
                online.drain_sync()
    assert sorted(judge.asked) == sorted((name, len(minutes)) for name, minutes in store.items())
    assert sink.superseded == 0


def test_an_explicit_end_is_ready_at_once(clock: Clock, spool: Path | None) -> None:
    judge, sink = Judge(), MemorySink()
    with Online(judge.evaluator, sinks=sink, spool=spool, now=clock) as online:
        online.submit(session("told", 60), ended=True)
        closed = Activity(at=T + 60 * MINUTE, role="person", kind="closed")
        online.submit(Session(id="closed", activities=[closed]))
        online.submit(session("open", 60))
        assert online.drain_sync().judged == 2
        # It was there before it was known to have ended.
        assert online.submit(session("open", 60), ended=True) == "unchanged"
        assert online.drain_sync().judged == 3


def test_it_is_judged_without_anyone_waiting_for_it() -> None:
    judge, sink = Judge(), MemorySink()
    ready = Readiness(quiet=timedelta(milliseconds=150))
    with Online(judge.evaluator, sinks=sink, ready=ready) as online:
        online.submit(Session(id="s", activities=[Activity(at=datetime.now(UTC), role="agent")]))
        time.sleep(0.05)
        assert sink.results == []
        until = time.monotonic() + 10
        while not sink.results and time.monotonic() < until:
            time.sleep(0.01)
        assert counts_of(sink.results) == {"s": 1}


def test_what_drain_does_with_what_is_not_ready(clock: Clock, spool: Path | None) -> None:
    judge, sink = Judge(), MemorySink()
    with Online(judge.evaluator, sinks=sink, spool=spool, now=clock) as online:
        online.submit(session("s", 60))
        assert online.drain_sync(unready="leave").judged == 0
        assert online.drain_sync(unready="judge").judged == 1
    ready = Readiness(quiet=timedelta(milliseconds=100))
    with Online(judge.evaluator, sinks=sink, ready=ready) as online:
        online.submit(Session(id="w", activities=[Activity(at=datetime.now(UTC), role="agent")]))
        assert online.drain_sync(unready="wait").judged == 1
        with pytest.raises(InputError, match="unready="):
            online.drain_sync(unready="now")  # type: ignore[arg-type]


def test_a_pending_verdict_is_asked_again_and_superseded(clock: Clock, spool: Path | None, tmp_path: Path) -> None:
    judge, sink = Judge(), MemorySink()
    drop_off = drop_off_evaluator(now=clock)
    clock.now = T + 15 * MINUTE
    with Online([drop_off, judge.evaluator], sinks=sink, spool=spool, now=clock) as online:
        online.submit(session("s", 0))
        summary = online.drain_sync(unready="judge")
        assert summary.runs.pending == 1
        assert summary.waiting == 1
        assert adds_up(summary)
        outcomes = {result.evaluator: result for result in sink.results}
        assert outcomes["drop_off"].value.outcome == "pending"
        for _ in range(4):
            clock.now += 20 * MINUTE
            assert online.submit(session("s", 0)) == "unchanged"  # which is no reason to look again
            online.drain_sync()
        outcomes = {result.evaluator: result for result in sink.results}
        assert outcomes["drop_off"].value.outcome == "dropped"
        assert outcomes["drop_off"].as_of is not None
        assert online.summary.waiting == 0
    assert judge.asked == [("s", 1)], "only what is pending is asked again"
    assert summary.runs.pending < online.summary.runs.pending <= 3, "after 10 minutes, then 20, then 40"


# The application


def test_submitting_never_waits_for_a_judge_and_works_in_threads() -> None:
    async def slow(given: Session) -> Length:
        await asyncio.sleep(0.05)
        return Length(count=1)

    sink = MemorySink()
    with Online(FunctionEvaluator("slow", "1", slow, Session, Length), sinks=sink, limit=32) as online:
        online.submit(session("warm"))
        begun = time.monotonic()

        def submit(part: int) -> None:
            for n in range(50):
                online.submit(session(f"{part}-{n}"))

        threads = [threading.Thread(target=submit, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - begun < 200 * 0.05
        summary = online.drain_sync()
    assert summary.judged == len(sink.results) == 201


def test_it_works_inside_a_running_loop(clock: Clock) -> None:
    async def main() -> tuple[OnlineSummary, OnlineSummary]:
        async with Online(Judge().evaluator, sinks=MemorySink(), now=clock) as online:
            online.submit(session("a"))
            first = await online.drain()
            online.submit(session("b"))
            second = online.drain_sync()
        return first, second

    first, second = asyncio.run(main())
    assert (first.judged, second.judged) == (1, 2)

    async def inside() -> int:  # the loop in which the work itself is done
        async with Online(Judge().evaluator, sinks=MemorySink(), now=clock) as online:
            online.submit(session("a"))
            return (await online.drain()).judged

    assert run_sync(inside()) == 1


def test_what_judges_raise_are_results(clock: Clock, spool: Path | None) -> None:
    def answer(given: Session) -> Any:
        if given.id == "boom":
            raise RuntimeError("no {x} \x1b[2J")
        return {"skip": Skip("not for me"), "hand": HandOff("ask people")}.get(given.id)

    sink = MemorySink()
    with Online(Judge(answer=answer).evaluator, sinks=sink, spool=spool, now=clock) as online:
        for name in ("boom", "skip", "hand", "fine"):
            assert online.submit(session(name)) == "waiting"
        summary = online.drain_sync()
    assert Counter(result.status for result in sink.results) == {
        "failed": 1,
        "skipped": 1,
        "handed_off": 1,
        "verdict": 1,
    }
    assert (summary.judged, summary.runs.failed) == (4, 1)


def test_an_evaluator_that_is_broken_itself_fails_that_input_alone(clock: Clock) -> None:
    class Broken:
        name, version, verdict_type, input_type = "broken", "1", Length, Session

        def as_of(self, given: Session) -> datetime | None:
            if given.id == "bad":
                raise KeyError("as_of")
            return None

        async def evaluate(self, given: Session) -> Result[Length]:
            return Verdict(Length(count=1), self.name, self.version, given.about())

    sink = MemorySink()
    with Online(Broken(), sinks=sink, now=clock) as online:
        for name in ("bad", "good"):
            online.submit(session(name))
        online.drain_sync()
    by_name = {result.about.id: result for result in sink.results if result.about}
    assert isinstance(by_name["bad"], Failure)
    assert isinstance(by_name["bad"].exception, KeyError)
    assert isinstance(by_name["good"], Verdict)


def test_of_several_evaluators_only_the_broken_one_fails(clock: Clock) -> None:
    class Broken:
        name, version, verdict_type, input_type = "broken", "1", Length, Session

        def pinned(self) -> Broken:
            raise RuntimeError("no clock")

        async def evaluate(self, given: Session) -> Result[Length]:
            return Verdict(Length(count=1), self.name, self.version, given.about())

    judge, sink = Judge(), MemorySink()
    with Online([judge.evaluator, Broken(), Judge("other").evaluator], sinks=sink, now=clock) as online:
        online.submit(session("s"))
        assert online.drain_sync().judged == 1
        assert adds_up(online.summary)
    assert {result.evaluator: result.status for result in sink.results} == {
        "length": "verdict",
        "broken": "failed",
        "other": "verdict",
    }


def test_waiting_for_a_slow_judge_takes_no_processor(clock: Clock) -> None:
    async def slow(given: Session) -> Length:
        await asyncio.sleep(0.5)
        return Length(count=1)

    with Online(FunctionEvaluator("slow", "1", slow, Session, Length), sinks=MemorySink(), now=clock) as online:
        online.submit(session("s"))
        begun = time.process_time()
        online.drain_sync()
        assert time.process_time() - begun < 0.25


def test_what_can_never_be_judged_is_an_error_at_once(clock: Clock) -> None:
    with Online(Judge().evaluator, sinks=MemorySink(), now=clock) as online:
        with pytest.raises(InputError, match="evaluator 'length' reads Session"):
            online.submit(Transcript(request="r"))
        with pytest.raises(InputError, match="a str was submitted"):
            online.submit("session")  # type: ignore[arg-type]
        assert online.summary.submitted == 0


def test_arguments_are_checked() -> None:
    judge, sink = Judge().evaluator, MemorySink()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sinks": []}, "at least one sink"),
        ({"sinks": [print]}, "is no sink"),
        ({"sinks": sink, "sample": 2}, "rate=2"),
        ({"sinks": sink, "max_waiting": 0}, "max_waiting=0"),
        ({"sinks": sink, "budget": 100}, "budget=100 must be a Budget"),
        ({"sinks": sink, "timeout": 0}, "timeout=0"),
        ({"sinks": sink, "retry": 3}, "retry=3"),
    ]
    for options, words in wrong:
        with pytest.raises(InputError, match=words):
            Online(judge, **options)
    with pytest.raises(InputError, match="two evaluators are named 'length'"):
        Online([judge, judge], sinks=sink)


def test_a_sample_by_user_carries_its_weight(clock: Clock) -> None:
    judge, sink = Judge(), MemorySink()
    with Online(judge.evaluator, sinks=sink, sample=0.25, sample_by="user", now=clock) as online:
        outcomes = {n: online.submit(session(f"s{n}", user=f"u{n % 40}")) for n in range(200)}
        nobody = online.submit(session("nobody"))
        summary = online.drain_sync()
    assert all(outcomes[n] == ("waiting" if sampled(f"u{n % 40}", 0.25) else "unsampled") for n in outcomes)
    assert nobody == "refused"
    assert summary.refused == {"key='user': session 'nobody' has none; each input needs exactly one": 1}
    assert {result.about.weight for result in sink.results if result.about} == {4.0}
    assert summary.unsampled + len(sink.results) == 200
    assert adds_up(summary)


# Limits


def test_beyond_the_most_an_input_is_refused_and_counted(clock: Clock) -> None:
    judge = Judge()
    with Online(judge.evaluator, sinks=MemorySink(), max_waiting=3, now=clock) as online:
        outcomes = [online.submit(session(f"s{n}", 60)) for n in range(5)]
        assert outcomes == ["waiting"] * 3 + ["refused"] * 2
        assert online.submit(session("s0", 60, 60.5)) == "waiting"  # one that has its place keeps it
        assert online.summary.refused == {"3 are waiting": 2}
        assert online.drain_sync(unready="judge").judged == 3
        assert online.submit(session("s4", 60)) == "waiting"
        online.drain_sync(unready="judge")
        assert adds_up(online.summary)
    assert online.submit(session("s9")) == "refused"
    assert online.summary.refused == {"3 are waiting": 2, "closed": 1}


def test_when_the_budget_is_used_up_inputs_wait(clock: Clock, tmp_path: Path) -> None:
    judge, sink = Judge(), MemorySink()
    options: dict[str, Any] = {"sinks": sink, "spool": tmp_path / "spool.db", "now": clock}
    with Online(judge.evaluator, budget=Budget(calls=5), **options) as online:
        for n in range(12):
            online.submit(session(f"s{n}"))
        summary = online.drain_sync()
        assert (summary.judged, summary.waiting) == (5, 7)
        assert summary.not_done == {"budget of 5 calls used up": 7}
        assert adds_up(summary)
    with Online(judge.evaluator, **options) as online:
        assert online.drain_sync().judged == 7
    assert Counter(judge.asked) == {(f"s{n}", 1): 1 for n in range(12)}


# Sinks that fail


class Flaky(MemorySink):
    """Fails as often as it is told to."""

    def __init__(self, failures: float) -> None:
        super().__init__()
        self.failures = failures

    async def write(self, results: Sequence[Result[Any]], /, *, superseding: bool = False) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise ConnectionError("the store is away")
        await super().write(results, superseding=superseding)


@pytest.fixture
def quick_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalr.runs.delivery.FIRST_DELAY", 0.001)


@pytest.mark.usefixtures("quick_tries")
def test_a_sink_that_fails_now_and_then_gets_everything(clock: Clock) -> None:
    flaky = Flaky(3)
    with Online(Judge().evaluator, sinks=flaky, now=clock) as online:
        for n in range(10):
            online.submit(session(f"s{n}"))
        assert online.drain_sync().judged == 10
    assert len(flaky.results) == 10


@pytest.mark.usefixtures("quick_tries")
@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=["exit", "cancelled"])
def test_a_sink_that_exits_or_is_cancelled_within_is_tried_again(clock: Clock, error: BaseException) -> None:
    class Exits(MemorySink):
        tries = 0

        async def write(self, results: Sequence[Result[Any]], /, *, superseding: bool = False) -> None:
            self.tries += 1
            if self.tries == 1:
                raise error
            await super().write(results, superseding=superseding)

    sink = Exits()
    with Online(Judge().evaluator, sinks=sink, now=clock) as online:
        online.submit(session("a"))
        assert adds_up(online.drain_sync(timeout=10))
    assert counts_of(sink.results) == {"a": 1}


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=["exit", "cancelled"])
def test_a_judge_that_exits_or_is_cancelled_within_leaves_nothing_in_work(clock: Clock, error: BaseException) -> None:
    def answer(given: Session) -> Any:
        if given.id == "a":
            raise error

    sink = MemorySink()
    with Online(Judge(answer=answer).evaluator, sinks=sink, now=clock, retry=Retry(tries=1)) as online:
        for name in "ab":
            online.submit(session(name))
        summary = online.drain_sync(timeout=10)
    assert (summary.judged, summary.in_work, summary.runs.failed) == (2, 0, 1)


@pytest.mark.usefixtures("quick_tries")
def test_a_sink_that_is_down_loses_nothing_and_keeps_nobody_else_waiting(clock: Clock) -> None:
    down, fine = Flaky(float("inf")), MemorySink()
    judge = Judge()
    online = Online(judge.evaluator, sinks=[down, fine], now=clock)
    for n in range(10):
        online.submit(session(f"s{n}"))
    with pytest.raises(SinkError, match="Flaky does not have 10 results: ConnectionError: the store is away") as raised:
        online.drain_sync()
    assert len(raised.value.unsaved) == len(online.unsaved) == len(fine.results) == 10
    assert (online.summary.in_work, online.summary.judged, online.summary.undelivered) == (10, 0, 10)
    assert adds_up(online.summary)
    down.failures = 0
    assert online.drain_sync().judged == 10
    assert (len(down.results), online.unsaved, len(judge.asked)) == (10, (), 10)
    online.close_sync()


@pytest.mark.usefixtures("quick_tries")
def test_one_result_that_a_sink_cannot_take_keeps_none_of_the_others_from_it(clock: Clock) -> None:
    class Picky(MemorySink):
        async def write(self, results: Sequence[Result[Any]], /, *, superseding: bool = False) -> None:
            if any(result.about is not None and result.about.id == "s3" for result in results):
                raise ValueError("not this one")
            await super().write(results, superseding=superseding)

    sink = Picky()
    online = Online(Judge().evaluator, sinks=sink, now=clock)
    for n in range(6):
        online.submit(session(f"s{n}"))
    with pytest.raises(SinkError, match="1 result: ValueError: not this one"):
        online.drain_sync()
    assert set(counts_of(sink.results)) == {"s0", "s1", "s2", "s4", "s5"}
    with pytest.raises(SinkError), pytest.warns(UserWarning, match="1 result was not delivered"):
        online.close_sync()


@pytest.mark.usefixtures("quick_tries")
def test_what_a_sink_did_not_take_is_delivered_after_a_restart(clock: Clock, tmp_path: Path) -> None:
    judge, sink = Judge(), MemorySink()
    options: dict[str, Any] = {"journal": tmp_path / "j.db", "spool": tmp_path / "s.db", "now": clock}
    online = Online(judge.evaluator, sinks=Flaky(float("inf")), **options)
    for n in range(5):
        online.submit(session(f"s{n}"))
    with pytest.raises(SinkError), pytest.warns(UserWarning, match="5 results were not delivered"):
        online.close_sync()
    with Online(judge.evaluator, sinks=sink, **options) as online:
        summary = online.drain_sync()
    assert counts_of(sink.results) == {f"s{n}": 1 for n in range(5)}
    assert len(judge.asked) == 5, "the journal has what was paid for"
    assert summary.runs.from_journal == 5


# The end


def test_a_sink_that_cannot_be_closed_keeps_nothing_else_open(clock: Clock, tmp_path: Path) -> None:
    class Stuck(MemorySink):
        async def close(self) -> None:
            raise OSError("no such host")

    class Closed(MemorySink):
        closed = False

        async def close(self) -> None:
            self.closed = True

    last = Closed()
    online = Online(Judge().evaluator, sinks=[Stuck(), last], spool=tmp_path / "spool.db", now=clock)
    online.submit(session("s1"))
    with pytest.raises(SinkError, match="Stuck could not be closed: OSError: no such host"):
        online.close_sync()
    assert last.closed
    assert online.summary.judged == 1
    assert online.submit(session("s2")) == "refused"
    assert not (tmp_path / "spool.db-locks").exists()  # nobody is at work on the spool any more


def test_what_waits_in_memory_at_the_end_is_said_to_be_lost(clock: Clock) -> None:
    online = Online(Judge().evaluator, sinks=MemorySink(), now=clock)
    for n in range(3):
        online.submit(session(f"s{n}", 60))
    with pytest.warns(UserWarning, match="3 inputs were submitted and not judged"):
        summary = online.close_sync()
    assert (summary.waiting, summary.judged) == (3, 0)
    assert online.summary == summary
    assert online.close_sync() == summary  # once is enough


def test_what_waits_in_a_spool_at_the_end_is_there_at_the_next_start(clock: Clock, tmp_path: Path) -> None:
    judge, sink = Judge(), MemorySink()
    options: dict[str, Any] = {"sinks": sink, "spool": tmp_path / "spool.db", "now": clock}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Online(judge.evaluator, **options) as online:
            for n in range(3):
                online.submit(session(f"s{n}", 60))
    clock.now += 10 * MINUTE
    with Online(judge.evaluator, **options) as online:
        summary = online.drain_sync()
    assert (summary.judged, summary.submitted) == (3, 0)
    assert adds_up(summary, before=3)
    # It also knows what was judged before it was started.
    with Online(judge.evaluator, **options) as online:
        assert online.submit(session("s0", 60)) == "unchanged"
        online.submit(session("s0", 60, 61))
        assert online.drain_sync(unready="judge").superseding == 1
    assert sink.superseded == 1


@contextmanager
def written_by_another(spool: Path) -> Iterator[None]:
    """As when another process is stopped in the middle of a write."""
    with closing(sqlite3.connect(spool, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


def test_a_spool_that_another_process_holds_keeps_nobody_waiting(clock: Clock, tmp_path: Path) -> None:
    judge, sink, spool = Judge(), MemorySink(), tmp_path / "spool.db"
    with Online(judge.evaluator, sinks=sink, spool=spool, now=clock, max_waiting=100) as online:
        with written_by_another(spool):
            begun = time.perf_counter()
            assert {online.submit(session(f"s{n}")) for n in range(50)} == {"held"}
            run_sync(asyncio.sleep(0))  # the loop in which the work is done stands not still either
            assert time.perf_counter() - begun < 2
            online.submit(session("s0", 0, 1))
            online.submit(session("s1", 0))
            summary = online.summary
            assert (summary.submitted, summary.held, summary.waiting) == (52, 52, 0)
            assert "52 held until the spool can be written" in str(summary)
            assert {online.submit(session(f"t{n}")) for n in range(48)} == {"held"}
            assert online.submit(session("t48")) == "refused"
            assert adds_up(online.summary)
        summary = online.drain_sync()
        assert (summary.held, summary.judged, summary.replaced, summary.unchanged) == (0, 98, 1, 1)
        assert adds_up(summary)
        assert online.submit(session("u")) == "waiting"
    assert counts_of(sink.results)["s0"] == 2
    assert max(Counter(name for name, _ in judge.asked).values()) == 1


def test_work_goes_on_after_a_spool_was_held(clock: Clock, tmp_path: Path) -> None:
    spool, let_go = tmp_path / "spool.db", asyncio.Event()

    async def ask(given: Session) -> Length:
        await let_go.wait()
        return Length(count=1)

    async def main() -> None:
        judge = FunctionEvaluator("slow", "1", ask, Session, Length)
        sink = MemorySink()
        async with Online(judge, sinks=sink, spool=spool, now=clock) as online:
            online.submit(session("s1"))
            while not online.summary.in_work:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            with written_by_another(spool):
                online._worker._loop.call_soon_threadsafe(let_go.set)  # type: ignore[union-attr]
                while not sink.results:  # noqa: ASYNC110  a result is there, and the spool does not know of it
                    await asyncio.sleep(0.01)
                assert online.summary.judged == 0
            assert (await online.drain()).judged == 1

    asyncio.run(main())


def test_what_is_held_at_the_end_is_said_to_be_lost(clock: Clock, tmp_path: Path) -> None:
    spool = tmp_path / "spool.db"
    online = Online(Judge().evaluator, sinks=MemorySink(), spool=spool, now=clock)
    with written_by_another(spool):
        assert online.submit(session("s1")) == "held"
        with pytest.warns(UserWarning, match="1 input was submitted and not judged"):
            summary = online.close_sync(timeout=0.1)
    assert (summary.held, summary.judged) == (1, 0)


def test_drain_gives_up_in_time_and_the_work_goes_on(clock: Clock) -> None:
    enough = threading.Event()

    async def slow(given: Session) -> Length:
        while not enough.is_set():  # noqa: ASYNC110  set in another thread
            await asyncio.sleep(0.001)
        return Length(count=1)

    sink = MemorySink()
    with Online(FunctionEvaluator("slow", "1", slow, Session, Length), sinks=sink, now=clock) as online:
        online.submit(session("s"))
        summary = online.drain_sync(0.1)  # were it to wait for the judge, it would for ever
        assert (summary.judged, summary.in_work) == (0, 1)
        enough.set()
        assert online.drain_sync().judged == 1


AT_EXIT = """
from datetime import UTC, datetime
from evalr import FunctionEvaluator
from evalr.inputs import Activity, Session
from evalr.measures import TaskCompletion
from evalr.runs import MemorySink, Online

def ask(session):
    return TaskCompletion(completed=True, quality=3, reason="")
judge = FunctionEvaluator("completion", "1", ask, Session, TaskCompletion)
online = Online(judge, sinks=MemorySink())
online.submit(Session(id="s", activities=[Activity(at=datetime.now(UTC), role="agent")]))
"""


def test_a_process_that_ends_without_close_says_what_is_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT], env=env(), capture_output=True, text=True, timeout=60, check=True
    )
    assert "the process ends, and 1 input was submitted and not judged" in done.stderr


def env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


KILLED = """
import asyncio, os, signal, sys
from datetime import UTC, datetime
from evalr import FunctionEvaluator
from evalr.inputs import Activity, Session
from evalr.measures import TaskCompletion
from evalr.runs import JsonlSink, Online

async def ask(session):
    with open("bill.txt", "a") as bill:
        bill.write(session.id + "\\n")
    await asyncio.sleep(0.02)
    return TaskCompletion(completed=True, quality=3, reason="")

judge = FunctionEvaluator("completion", "1", ask, Session, TaskCompletion)
online = Online(judge, sinks=JsonlSink("verdicts.jsonl"), spool="spool.db", journal="journal.db", limit=4)
for n in range(int(sys.argv[1]), int(sys.argv[2])):
    at = datetime(2026, 11, 1, tzinfo=UTC)
    assert online.submit(Session(id=f"s{n}", activities=[Activity(at=at, role="agent")])) == "waiting"
    print(n, flush=True)
if sys.argv[3] == "die":
    import time
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)
online.close_sync()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_processes_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    """Two crashes in a row, then a start: every input that was submitted has a verdict, and few were asked twice."""
    submitted = []
    for first, last, how in ((0, 40, "die"), (40, 80, "die"), (80, 100, "live")):
        command = [sys.executable, "-c", KILLED, str(first), str(last), how]
        done = subprocess.run(command, cwd=tmp_path, env=env(), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == (0 if how == "live" else -signal.SIGKILL), done.stderr
        submitted += done.stdout.split()
    lines = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    judged = Counter(line["about"]["id"] for line in lines)
    assert set(judged) == {f"s{n}" for n in submitted} == {f"s{n}" for n in range(100)}
    bill = Counter((tmp_path / "bill.txt").read_text().split())
    assert sum(bill.values()) <= 100 + 2 * 4, "at most the calls in flight at each kill are repeated"
    # What may have come twice says so, and takes the other's place.
    repeated = {name for name, count in judged.items() if count > 1}
    assert {line["about"]["id"] for line in lines if line.get("supersedes")} >= repeated


SHARED = """
import sys
from datetime import UTC, datetime
from evalr import FunctionEvaluator
from evalr.inputs import Activity, Session
from evalr.measures import TaskCompletion
from evalr.runs import JsonlSink, Online

def ask(session):
    return TaskCompletion(completed=True, quality=3, reason="")
judge = FunctionEvaluator("completion", "1", ask, Session, TaskCompletion)
with Online(judge, sinks=JsonlSink("verdicts.jsonl"), spool="spool.db") as online:
    for n in range(100):
        online.submit(Session(id=f"s{n}", activities=[Activity(at=datetime(2026, 11, 1, tzinfo=UTC), role="agent")]))
    online.drain_sync()
"""


def test_processes_share_a_spool_and_judge_each_input_once(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", SHARED], cwd=tmp_path, env=env()) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    lines = (tmp_path / "verdicts.jsonl").read_text().splitlines()
    assert Counter(json.loads(line)["about"]["id"] for line in lines) == {f"s{n}": 1 for n in range(100)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize(
    "made",
    [
        "from evalr.runs.waiting import Waiting; it = Waiting(); lock = it._lock",
        "from evalr.runs import Journal; it = Journal('j.db'); lock = it._reader_lock",
    ],
)
def test_a_fork_waits_for_a_thread_inside_of_sqlite(made: str, tmp_path: Path) -> None:
    script = f"""
import os, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
{made}
inside = threading.Event()
def ask():
    with lock:
        inside.set()
        time.sleep(0.3)
thread = threading.Thread(target=ask)
thread.start()
inside.wait()
child = os.fork()
if not child:
    os._exit(0 if lock.acquire(timeout=0.05) else 1)
thread.join()
assert os.waitpid(child, 0)[1] == 0
assert lock.acquire(timeout=0.05)
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env(), timeout=60, check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_judges_what_is_its_own(tmp_path: Path) -> None:
    script = """
import os, warnings
from datetime import UTC, datetime
from evalr import FunctionEvaluator
from evalr.inputs import Activity, Session
from evalr.measures import TaskCompletion
from evalr.runs import JsonlSink, Online
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork while threads run, which servers do
def ask(session):
    return TaskCompletion(completed=True, quality=3, reason="")
judge = FunctionEvaluator("completion", "1", ask, Session, TaskCompletion)
def given(name):
    return Session(id=name, activities=[Activity(at=datetime(2026, 11, 1, tzinfo=UTC), role="agent")])
for spool in (None, "spool.db"):
    online = Online(judge, sinks=JsonlSink("verdicts.jsonl"), spool=spool)
    online.submit(given(f"before-{spool}"))
    online.drain_sync()
    waits = Activity(at=datetime.now(UTC), role="agent")
    online.submit(Session(id=f"parent-{spool}", activities=[waits]))
    children = []
    for n in range(2):
        child = os.fork()
        if not child:
            online.submit(given(f"child{n}-{spool}"))
            online.close_sync()
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    online.close_sync(unready="judge")
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env(), timeout=60, check=True)
    names = Counter(json.loads(line)["about"]["id"] for line in (tmp_path / "verdicts.jsonl").read_text().splitlines())
    assert names == {
        f"{who}-{spool}": 1 for who in ("before", "parent", "child0", "child1") for spool in (None, "spool.db")
    }


# What is kept where


def test_a_journal_answers_what_was_asked_before(clock: Clock, tmp_path: Path) -> None:
    judge = Judge()
    for _ in range(2):
        with Online(judge.evaluator, sinks=MemorySink(), journal=tmp_path / "j.db", now=clock) as online:
            online.submit(session("s"))
            online.drain_sync()
    assert judge.asked == [("s", 1)]
    with Online(judge.evaluator, sinks=MemorySink(), journal=tmp_path / "j.db", now=clock) as online:
        online.submit(session("s", 0, 1))
        online.drain_sync()
    with Journal(tmp_path / "j.db") as journal:
        results = list(journal.results(judge.evaluator))
    with pytest.raises(DuplicateError):
        list(one_per_subject(results))
    assert counts_of(list(one_per_subject(results, duplicates="latest"))) == {"s": 2}


def test_a_journal_that_fails_is_told_and_nothing_is_lost(clock: Clock, tmp_path: Path) -> None:
    journal, judge, sink = Journal(tmp_path / "j.db"), Judge(), MemorySink()
    online = Online(judge.evaluator, sinks=sink, journal=journal, now=clock)
    journal.close()
    online.submit(session("s"))
    with pytest.raises(JournalError):
        online.drain_sync()
    assert (online.summary.waiting, judge.asked) == (1, [])
    with pytest.warns(UserWarning, match="1 input was submitted and not judged"):
        online.close_sync()


def test_a_journal_that_failed_for_a_while_holds_up_nothing_afterwards(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_run = Journal.begin_run
    failures = iter([True])

    def failing_once(journal: Journal) -> tuple[int, int]:
        if next(failures, False):
            raise JournalError("the disk is full")
        return begin_run(journal)

    monkeypatch.setattr(Journal, "begin_run", failing_once)
    judge, sink = Judge(), MemorySink()
    with Online(judge.evaluator, sinks=sink, journal=tmp_path / "j.db", now=clock) as online:
        online.submit(session("s"))
        with pytest.raises(JournalError, match="the disk is full"):
            online.drain_sync()
        assert online.summary.waiting == 1
        clock.now += 2 * timedelta(seconds=1)
        assert online.drain_sync().judged == 1
    assert counts_of(sink.results) == {"s": 1}


def test_a_spool_of_anything_else_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db"):
        pass
    with pytest.raises(SpoolError, match="another program's database"):
        Online(Judge().evaluator, sinks=MemorySink(), spool=tmp_path / "j.db")
    (tmp_path / "text").write_text("not a database, and long enough to look like one" * 10)
    with pytest.raises(SpoolError, match="cannot be opened"):
        Online(Judge().evaluator, sinks=MemorySink(), spool=tmp_path / "text")
    with pytest.raises(SpoolError, match="cannot be opened"):
        Online(Judge().evaluator, sinks=MemorySink(), spool=tmp_path / "nowhere" / "spool.db")


class Chat(Session):
    """An application's own kind of session."""

    channel: str = "web"


def test_a_spool_keeps_every_field_of_every_kind_of_input(clock: Clock, tmp_path: Path) -> None:
    seen = []

    async def look(given: Any) -> Length:
        seen.append(given)
        return Length(count=1)

    evaluator = FunctionEvaluator("look", "1", look, (Session, Transcript), Length)
    inputs = [
        Chat(id="c", channel="app", attributes={"agent": ["a", "b"]}, weight=3.0, at=T),
        Transcript(request="Grüße \ud83d { } \x00", user="u", at=T),
        Transcript(request="Grüße \ud83d { } \x00", user="u", at=T),  # without an id there are two of them
    ]
    with Online(evaluator, sinks=MemorySink(), spool=tmp_path / "spool.db", now=clock) as online:
        for given in inputs:
            assert online.submit(given) == "waiting"
        assert online.drain_sync().judged == 3
    assert sorted(seen, key=repr) == sorted(inputs, key=repr)
    assert {type(given) for given in seen} == {Chat, Transcript}


def test_what_cannot_be_read_back_from_a_spool_is_counted_and_stays(clock: Clock, tmp_path: Path) -> None:
    class Passing(Session):
        pass

    judge = Judge()
    options: dict[str, Any] = {"sinks": MemorySink(), "spool": tmp_path / "spool.db", "now": clock}
    with Online(judge.evaluator, **options) as online:
        online.submit(Passing(id="p", activities=[Activity(at=T + 60 * MINUTE, role="agent")]))
    Passing.__qualname__ = "Gone"  # as in a process that does not define it
    with Online(judge.evaluator, **options) as online:
        summary = online.drain_sync(unready="judge")
        assert summary.not_done == {"cannot be read back from the spool": 1}
    Passing.__qualname__ = "test_what_cannot_be_read_back_from_a_spool_is_counted_and_stays.<locals>.Passing"
    with Online(judge.evaluator, **options) as online:
        assert online.drain_sync(unready="judge").judged == 1


def test_memory_is_bounded_however_many_are_judged(clock: Clock) -> None:
    with Online(Judge().evaluator, sinks=Flaky(0), max_waiting=50, limit=32, now=clock) as online:
        refused = 0
        for n in range(400):
            while online.submit(session(f"s{n}")) == "refused":
                refused += 1
                time.sleep(0.005)
        online.drain_sync()
        assert online.summary.judged == 400
        assert online._waiting._objects == {}
    assert refused


def test_tries_again_and_failures_that_stay(clock: Clock) -> None:
    tries: Counter[str] = Counter()

    async def ask(given: Session) -> Length:
        tries[given.id] += 1
        if given.id == "never" or tries[given.id] == 1:
            raise ConnectionError("away")
        return Length(count=1)

    sink = MemorySink()
    judge = FunctionEvaluator("length", "1", ask, Session, Length)
    with Online(judge, sinks=sink, retry=Retry(tries=3, first=0.001), now=clock) as online:
        for name in ("once", "never"):
            online.submit(session(name))
        online.drain_sync()
    assert tries == {"once": 2, "never": 3}
    assert Counter(result.status for result in sink.results) == {"verdict": 1, "failed": 1}


@pytest.fixture(autouse=True)
def no_locks_of_spools_are_left(tmp_path: Path) -> Iterator[None]:
    yield
    left = list(tmp_path.glob("s*.db-locks/*"))
    assert left == []
