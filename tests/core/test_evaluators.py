"""Evaluators: one input in, one stamped result out, whatever the function behind it does."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError as FutureCancelledError
from contextvars import ContextVar
from dataclasses import FrozenInstanceError, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio.to_thread
import pytest
from pydantic import BaseModel

from evalr import (
    About,
    Evaluator,
    Failure,
    Fallback,
    FieldTypeError,
    FunctionEvaluator,
    HandOff,
    InputError,
    Result,
    Skip,
    Verdict,
)
from evalr.inputs import History, Input, Session, Transcript

ROOT = Path(__file__).resolve().parent.parent.parent
START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
NAIVE = datetime(2026, 9, 28)  # noqa: DTZ001
SESSION = Session(id="s", user="u", arm="control", at=START, attributes={"agent": "a"}, weight=2)


class Said(BaseModel):
    done: bool


class SaidMore(Said):
    why: str = ""


class Other(BaseModel):
    done: bool


YES = Said(done=True)


def said(function: Callable[..., Any], **settings: Any) -> FunctionEvaluator[Session, Said]:
    return FunctionEvaluator("said", "7", function, Session, Said, **settings)


def run(evaluator: Evaluator[Any, Said], given: Input = SESSION) -> Result[Said]:
    return asyncio.run(_evaluate(evaluator, given))


async def _evaluate(evaluator: Evaluator[Any, Said], given: Input) -> Result[Said]:
    return await evaluator.evaluate(given)


async def async_yes(given: Session) -> Said:
    await asyncio.sleep(0)
    return YES


def returns_an_awaitable(given: Session) -> Awaitable[Said]:
    return async_yes(given)


class AsyncCallable:
    async def __call__(self, given: Session) -> Said:
        await asyncio.sleep(0)
        return YES


async def _with(extra: str, given: Session) -> Said:
    return SaidMore(done=True, why=extra)


# ---------------------------------------------------------------------------------------------------------------------
# What a function may be, and what becomes of its answer
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda given: YES,
        async_yes,
        AsyncCallable(),
        partial(_with, "because"),
        returns_an_awaitable,
    ],
    ids=["sync", "async", "async callable", "async partial", "returns an awaitable"],
)
def test_a_function_may_be_sync_or_async(function: Callable[..., Any], inline: bool) -> None:
    result = run(said(function, inline=inline))
    assert isinstance(result, Verdict)
    assert isinstance(result.value, Said)
    assert result.value.done


@pytest.mark.parametrize("inline", [False, True])
def test_a_verdict_is_stamped_with_who_said_it_and_what_it_is_about(inline: bool) -> None:
    result = run(said(lambda given: YES, inline=inline))
    assert isinstance(result, Verdict)
    assert replace(result, latency=None) == Verdict(YES, "said", "7", SESSION.about())
    assert result.about == About("session", "s", "u", None, START, None, "control", 2.0, {"agent": "a"})
    assert result.latency is not None
    assert 0 <= result.latency < 10
    assert result.cost is None


def test_a_value_of_a_subclass_is_kept_whole() -> None:
    assert run(said(lambda given: SaidMore(done=True, why="x"))).value == SaidMore(done=True, why="x")  # type: ignore[union-attr]


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        Skip("does not apply"),
        HandOff("unsure", cost=0.5, verdict=Verdict(YES, "other")),
        Failure("busy", cost=0.5),
        Verdict(YES, "other", "0", confidence={"done": 0.7}, latency=99.0, cost=0.5, flags=("truncated",)),
    ],
    ids=["skip", "hand-off", "failure", "verdict"],
)
def test_a_result_stays_what_it_is_and_is_stamped(answer: Result[Said], inline: bool) -> None:
    result = run(said(lambda given, now: answer, inline=inline, now=START))
    assert type(result) is type(answer)
    assert result.latency is not None
    assert result == replace(
        answer, evaluator="said", version="7", about=SESSION.about(), latency=result.latency, as_of=START
    )


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (None, "NoneType"),
        (True, "bool"),
        ({"done": True}, "dict"),
        (Other(done=True), "Other"),
        (Verdict(Other(done=True), "x"), "Other"),
    ],
)
def test_an_answer_of_another_type_is_a_failure_and_never_a_value(answer: object, name: str, inline: bool) -> None:
    result = run(said(lambda given: answer, inline=inline))
    assert isinstance(result, Failure)
    assert result.error == f"returned {name} where Said was promised"
    assert (result.evaluator, result.version, result.about) == ("said", "7", SESSION.about())


def test_an_answer_of_another_type_has_cost_what_it_says() -> None:
    result = run(said(lambda given: Verdict(Other(done=True), "x", cost=0.5)))
    assert (type(result), result.cost) == (Failure, 0.5)


def test_a_failure_that_is_returned_keeps_its_exception() -> None:
    error = ConnectionResetError("cut")
    result = run(said(lambda given: Failure("cut", cost=0.5, exception=error)))
    assert isinstance(result, Failure)
    assert result.exception is error


def breaks(given: Session, now: datetime) -> Said:
    try:
        raise KeyError("cause")
    except KeyError as error:
        raise ValueError("no \ud83d answer {given}") from error


async def breaks_later(given: Session, now: datetime) -> Said:
    await asyncio.sleep(0)
    return breaks(given, now)


def breaks_as_awaited(given: Session, now: datetime) -> Awaitable[Said]:
    return breaks_later(given, now)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("function", [breaks, breaks_later, breaks_as_awaited])
def test_an_exception_is_a_failure_that_carries_it_and_its_cause(function: Callable[..., Any], inline: bool) -> None:
    result = run(said(function, inline=inline, now=START))
    assert isinstance(result, Failure)
    assert result.error == "ValueError: no \ufffd answer {given}"
    assert isinstance(result.exception, ValueError)
    assert isinstance(result.exception.__cause__, KeyError)
    assert result.exception.__traceback__ is not None
    assert (result.evaluator, result.version, result.about, result.as_of) == ("said", "7", SESSION.about(), START)
    assert result.latency is not None


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("error", [StopIteration(1), TimeoutError(), FutureCancelledError(), TypeError("x")])
def test_no_ordinary_exception_gets_past(error: Exception, inline: bool) -> None:
    def function(given: Session) -> Said:
        raise error

    result = run(said(function, inline=inline))
    assert isinstance(result, Failure)
    assert result.exception is error


class MuteError(Exception):
    """An error whose own words fail."""

    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


@pytest.mark.parametrize("inline", [False, True])
def test_an_error_that_cannot_be_printed_is_still_a_failure(inline: bool) -> None:
    def function(given: Session) -> Said:
        raise MuteError

    result = run(said(function, inline=inline))
    assert isinstance(result, Failure)
    assert result.error == "MuteError, which cannot be printed"


def test_a_function_that_takes_other_arguments_fails() -> None:
    for function in (lambda: YES, lambda given, now: YES):
        result = run(said(function))
        assert isinstance(result, Failure)
        assert isinstance(result.exception, TypeError)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_stops_a_program_or_a_task_is_no_failure(stop: type[BaseException], inline: bool) -> None:
    def function(given: Session) -> Said:
        raise stop

    async def later(given: Session) -> Said:
        raise stop

    for each in (function, later):
        with pytest.raises(stop):
            run(said(each, inline=inline))


def test_a_cancelled_evaluation_is_cancelled() -> None:
    async def forever(given: Session) -> Said:
        await asyncio.sleep(3600)
        return YES

    async def main() -> None:
        task = asyncio.ensure_future(said(forever).evaluate(SESSION))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


# ---------------------------------------------------------------------------------------------------------------------
# What it reads
# ---------------------------------------------------------------------------------------------------------------------


def test_an_input_of_another_type_is_an_error_and_never_a_skip() -> None:
    transcript = Transcript(id="t", request="")
    with pytest.raises(
        InputError, match="evaluator 'said' reads Session, not Transcript: pass it only inputs of that type"
    ):
        run(said(lambda given: YES), transcript)
    with pytest.raises(InputError, match="reads Session, not Transcript"):
        said(lambda given: YES).evaluate_inline(transcript)  # type: ignore[arg-type]


def test_one_evaluator_may_read_several_types_of_input() -> None:
    both = FunctionEvaluator("said", "1", lambda given: YES, (Session, History), Said, inline=True)
    assert isinstance(both.evaluate_inline(SESSION), Verdict)
    assert isinstance(both.evaluate_inline(History(id="h")), Verdict)
    with pytest.raises(InputError, match="reads Session or History, not Transcript"):
        both.evaluate_inline(Transcript(request=""))  # type: ignore[arg-type]


def test_a_verdict_type_that_no_score_could_read_is_refused_when_the_evaluator_is_made() -> None:
    class When(BaseModel):
        when: datetime

    with pytest.raises(FieldTypeError, match=r"When\.when"):
        FunctionEvaluator("when", "1", lambda given: When(when=START), Session, When)


# ---------------------------------------------------------------------------------------------------------------------
# Threads, loops and time taken
# ---------------------------------------------------------------------------------------------------------------------


def ticks_while(evaluator_of: Callable[[list[float]], FunctionEvaluator[Session, Said]]) -> Result[Said]:
    async def main() -> Result[Said]:
        ticks: list[float] = []

        async def tick() -> None:
            while True:
                ticks.append(time.monotonic())
                await asyncio.sleep(0.005)

        ticking = asyncio.ensure_future(tick())
        result = await evaluator_of(ticks).evaluate(SESSION)
        ticking.cancel()
        return result

    return asyncio.run(main())


def blocks_until_ticked(ticks: list[float], *, patience: float) -> Callable[[Session], Said]:
    def function(given: Session) -> Said:
        deadline = time.monotonic() + patience
        while len(ticks) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        return Said(done=len(ticks) >= 5)

    return function


def test_a_slow_sync_function_stalls_no_event_loop() -> None:
    result = ticks_while(lambda ticks: said(blocks_until_ticked(ticks, patience=30)))
    assert result.value.done  # type: ignore[union-attr]


def test_an_inline_function_runs_in_place_which_is_why_it_must_only_compute() -> None:
    result = ticks_while(lambda ticks: said(blocks_until_ticked(ticks, patience=0.1), inline=True))
    assert not result.value.done  # type: ignore[union-attr]


@pytest.mark.parametrize(("inline", "same"), [(False, False), (True, True)])
def test_a_sync_function_has_a_thread_of_its_own_unless_inline(inline: bool, same: bool) -> None:
    threads = []

    def function(given: Session) -> Said:
        threads.append(threading.get_ident())
        return YES

    run(said(function, inline=inline))
    assert [thread == threading.get_ident() for thread in threads] == [same]


def test_an_async_function_stays_in_the_loops_thread() -> None:
    threads = []

    async def function(given: Session) -> Said:
        threads.append(threading.get_ident())
        return YES

    run(said(function))
    assert threads == [threading.get_ident()]


def test_a_thread_sees_the_callers_context() -> None:
    where: ContextVar[str] = ContextVar("where", default="nowhere")

    async def main() -> Result[Said]:
        where.set("here")
        return await said(lambda given: SaidMore(done=True, why=where.get())).evaluate(SESSION)

    assert asyncio.run(main()).value.why == "here"  # type: ignore[union-attr]


def test_waiting_for_a_thread_is_no_latency() -> None:
    def function(given: Session) -> Said:
        time.sleep(0.05)
        return YES

    async def main() -> tuple[list[Result[Said]], float]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = 1
        start = time.perf_counter()
        results = await asyncio.gather(*(said(function).evaluate(SESSION) for _ in range(4)))
        return list(results), time.perf_counter() - start

    results, taken = asyncio.run(main())
    latencies = [result.latency or 0 for result in results]
    assert min(latencies) >= 0.05
    # One thread works them off one after another: were waiting counted, they would add up to two and a half times that.
    assert sum(latencies) <= taken


def test_the_time_that_an_async_function_takes_is_its_latency() -> None:
    async def function(given: Session) -> Said:
        await asyncio.sleep(0.05)
        return YES

    def awaited(given: Session) -> Awaitable[Said]:
        return function(given)

    for each in (function, awaited):
        latency = run(said(each)).latency
        assert latency is not None
        assert latency >= 0.04


def test_inline_needs_no_loop() -> None:
    result = said(lambda given, now: YES, now=START).evaluate_inline(SESSION)
    assert isinstance(result, Verdict)
    assert replace(result, latency=None) == Verdict(YES, "said", "7", SESSION.about(), as_of=START)
    failure = said(breaks, now=START).evaluate_inline(SESSION)
    assert isinstance(failure, Failure)
    assert isinstance(failure.exception, ValueError)


@pytest.mark.parametrize("function", [async_yes, AsyncCallable(), returns_an_awaitable])
def test_an_async_function_inline_is_refused_and_leaves_no_coroutine_behind(
    function: Callable[..., Awaitable[Said]],
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(InputError, match=r"evaluator 'said' is async: it needs `await evaluator\.evaluate"):
            said(function).evaluate_inline(SESSION)
        gc.collect()
    assert caught == []


# ---------------------------------------------------------------------------------------------------------------------
# The reading time
# ---------------------------------------------------------------------------------------------------------------------


def told(given: Session, now: datetime) -> SaidMore:
    return SaidMore(done=True, why=now.isoformat())


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("now", [START, lambda: START], ids=["datetime", "clock"])
def test_the_reading_time_is_given_to_the_function_and_recorded(now: Any, inline: bool) -> None:
    result = run(said(told, now=now, inline=inline))
    assert (result.value.why, result.as_of) == (START.isoformat(), START)  # type: ignore[union-attr]


def test_what_depends_on_no_reading_time_records_none() -> None:
    assert run(said(lambda given: YES)).as_of is None
    assert run(said(lambda given: YES), SESSION.model_copy(update={"read_at": START})).as_of is None


@pytest.mark.parametrize(("read_at", "expected"), [(-1, -1), (0, 0), (1, 0), (None, 0)])
def test_when_the_log_was_read_wins_where_it_is_earlier(read_at: int | None, expected: int) -> None:
    hour = timedelta(hours=1)
    given = SESSION.model_copy(update={"read_at": None if read_at is None else START + read_at * hour})
    result = run(said(told, now=START), given)
    assert result.as_of == START + expected * hour
    assert result.value.why == result.as_of.isoformat()  # type: ignore[union-attr]


def test_a_clock_is_read_once_for_each_input() -> None:
    readings = iter(START + timedelta(hours=n) for n in range(10))
    evaluator = said(told, now=lambda: next(readings))
    assert [run(evaluator).as_of for _ in range(3)] == [START + timedelta(hours=n) for n in range(3)]


def test_a_reading_time_of_another_zone_is_recorded_as_the_moment_it_is() -> None:
    result = run(said(told, now=START.astimezone(ZoneInfo("Asia/Tokyo"))))
    assert result.as_of == START
    assert result.as_of.tzinfo is UTC


def test_a_naive_reading_time_is_refused_and_told_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no time zone: pass an aware datetime, such as datetime\.now\(UTC\)"):
        said(told, now=NAIVE)
    with pytest.raises(InputError, match="no time zone"):
        run(said(told, now=lambda: NAIVE))
    with pytest.raises(InputError, match="no time zone"):
        said(told, now=lambda: NAIVE).evaluate_inline(SESSION)


# ---------------------------------------------------------------------------------------------------------------------
# Fallback
# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Fixed:
    """An evaluator that always says the same, and counts how often it was asked."""

    name: str
    result: Result[Said]
    version: str = "1"
    verdict_type: type[Said] = Said
    asked: list[Input] = field(default_factory=list)

    async def evaluate(self, given: Input, /) -> Result[Said]:
        self.asked.append(given)
        return replace(self.result, evaluator=self.name, version=self.version, about=given.about())


def yes(name: str = "careful", **stamp: Any) -> Fixed:
    return Fixed(name, Verdict(YES, name, **stamp))


def unsure(name: str = "cheap", **stamp: Any) -> Fixed:
    return Fixed(name, HandOff("unsure", **stamp))


def broken(name: str = "cheap", **stamp: Any) -> Fixed:
    return Fixed(name, Failure("broke", **stamp))


def skips(name: str = "cheap", **stamp: Any) -> Fixed:
    return Fixed(name, Skip("does not apply", **stamp))


def test_a_hand_off_goes_to_the_next() -> None:
    first, second, third = unsure(), yes(), yes("never")
    result = run(Fallback(first, second, third))
    assert isinstance(result, Verdict)
    assert result.value == YES
    assert [len(each.asked) for each in (first, second, third)] == [1, 1, 0]


def test_the_result_is_the_chains_own() -> None:
    chain = Fallback(unsure(), yes())
    result = run(chain)
    assert (result.evaluator, result.version) == (chain.name, chain.version) == ("cheap", "cheap@1+careful@1")
    assert result.about == SESSION.about()
    assert chain.verdict_type is Said


def test_a_verdict_of_a_chain_credits_the_one_that_gave_it() -> None:
    sure, careful = yes("cheap"), replace(yes(), version="2:gpt")
    assert run(Fallback(sure, careful)).given_by == "cheap@1"  # type: ignore[union-attr]
    assert run(Fallback(unsure(), careful)).given_by == "careful@2:gpt"  # type: ignore[union-attr]
    nested = Fallback(Fallback(unsure("a"), unsure("b")), Fallback(unsure("c"), careful))
    assert run(nested).given_by == "careful@2:gpt"  # type: ignore[union-attr]
    assert run(sure).given_by is None  # type: ignore[union-attr]
    assert nested.evaluate_sync(SESSION).given_by == "careful@2:gpt"  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", [yes("first"), skips("first"), broken("first")], ids=["verdict", "skip", "failure"])
def test_any_other_result_ends_the_search(answer: Fixed) -> None:
    second = yes()
    assert type(run(Fallback(answer, second))) is type(answer.result)
    assert second.asked == []


def test_a_failure_goes_to_the_next_where_that_is_asked_for() -> None:
    assert isinstance(run(Fallback(broken(), yes(), on_failure=True)), Verdict)
    second = yes()
    assert isinstance(run(Fallback(skips(), second, on_failure=True)), Skip)
    assert second.asked == []


@pytest.mark.parametrize("last", [unsure("last"), broken("last"), skips("last")])
def test_the_last_result_stands_whatever_it_is(last: Fixed) -> None:
    for on_failure in (False, True):
        assert type(run(Fallback(unsure(), last, on_failure=on_failure))) is type(last.result)


@pytest.mark.parametrize(
    ("confidence", "handed_off"),
    [({"done": 0.69}, True), ({"done": 0.99, "why": 0.1}, True), ({"done": 0.7}, False), ({}, False), (None, False)],
)
def test_a_verdict_under_the_bar_by_its_least_confident_field_counts_as_a_hand_off(
    confidence: dict[str, float] | None, handed_off: bool
) -> None:
    second = yes()
    result = run(Fallback(yes("cheap", confidence=confidence), second, below=0.7))
    assert len(second.asked) == handed_off
    assert isinstance(result, Verdict)
    assert run(Fallback(yes("cheap", confidence=confidence), yes())).confidence == confidence  # type: ignore[union-attr]


def test_the_last_verdict_under_the_bar_is_a_hand_off_that_keeps_it() -> None:
    result = run(Fallback(yes("only", confidence={"done": 0.4}, latency=1, cost=2, as_of=START), below=0.5))
    assert isinstance(result, HandOff)
    assert result.reason == "confidence of done is 0.4, under 0.5"
    assert result.verdict is not None
    assert (result.verdict.value, result.verdict.evaluator) == (YES, "only")
    assert (result.latency, result.cost, result.as_of, result.about) == (1, 2, START, SESSION.about())


@pytest.mark.parametrize(
    ("amounts", "total"),
    [((1.0, 2.0), 3.0), ((0.0, 0.0), 0.0), ((1.0, None), None), ((None, 2.0), None), ((None, None), None)],
)
def test_costs_and_latencies_add_up_and_an_unknown_one_makes_the_total_unknown(
    amounts: tuple[float | None, float | None], total: float | None
) -> None:
    first, second = amounts
    result = run(Fallback(unsure(cost=first, latency=first), yes(cost=second, latency=second), yes(cost=9, latency=9)))
    assert (result.cost, result.latency) == (total, total)


def test_a_chain_depends_on_the_reading_time_where_any_that_was_asked_does() -> None:
    later = START + timedelta(hours=1)
    assert run(Fallback(unsure(as_of=START), yes())).as_of == START
    assert run(Fallback(unsure(as_of=START), yes(as_of=later))).as_of == later
    assert run(Fallback(unsure(), yes())).as_of is None
    assert run(Fallback(yes("a"), yes("b", as_of=START))).as_of is None


def test_the_version_of_a_chain_covers_its_evaluators_and_its_settings() -> None:
    first, second = unsure("a"), replace(yes("b"), version="2:gpt")
    assert Fallback(first, second).version == "a@1+b@2:gpt"
    assert Fallback(first, second, below=0.7).version == "a@1+b@2:gpt:below=0.7"
    assert Fallback(first, second, below=1, on_failure=True).version == "a@1+b@2:gpt:below=1.0:on_failure"
    assert Fallback(first, second, below=1).version == Fallback(first, second, below=1.0).version


def test_a_chain_that_makes_no_sense_is_refused() -> None:
    other: Any = FunctionEvaluator("other", "1", lambda given: Other(done=True), Session, Other)
    with pytest.raises(InputError, match="at least one evaluator"):
        Fallback()
    with pytest.raises(InputError, match="must share one verdict type, not Other, Said"):
        Fallback(yes(), other)
    for below in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="must be from 0 to 1"):
            Fallback(yes(), below=below)


def test_evaluators_are_given_to_a_chain_one_by_one() -> None:
    several: Any = [unsure(), yes()]
    for wrong in (several, tuple(several), Said):
        with pytest.raises(InputError, match=r"one by one, as in Fallback\(cheap, judge\)"):
            Fallback(wrong)
    assert Fallback(*several) == Fallback(*several)
    assert Fallback(*several) != Fallback(*several, on_failure=True)
    with pytest.raises(FrozenInstanceError):
        Fallback(*several).below = 0.5  # type: ignore[misc]


def test_chains_nest() -> None:
    inner = Fallback(unsure("a", cost=1.0, latency=0.0), unsure("b", cost=2.0, latency=0.0))
    result = run(Fallback(inner, yes(cost=4.0, latency=0.0)))
    assert (result.evaluator, result.version, result.cost) == ("a", "a@a@1+b@1+careful@1", 7.0)


def test_a_wrong_input_stays_an_error_through_a_chain() -> None:
    with pytest.raises(InputError, match="reads Session, not History"):
        run(Fallback(said(lambda given: HandOff("no")), yes(), on_failure=True), History(id="h"))


# ---------------------------------------------------------------------------------------------------------------------
# The protocol
# ---------------------------------------------------------------------------------------------------------------------


class Nameless:
    version = "1"
    verdict_type = Said

    async def evaluate(self, given: Input, /) -> Result[Said]:
        return Skip("no")


def test_whatever_has_the_four_parts_is_an_evaluator() -> None:
    for evaluator in (said(lambda given: YES), Fallback(yes()), yes()):
        assert isinstance(evaluator, Evaluator)
        assert isinstance(run(evaluator), Verdict)
    assert not isinstance(Nameless(), Evaluator)
    assert not isinstance(lambda given: YES, Evaluator)


FITS = """
from evalr import Evaluator, Fallback, FunctionEvaluator, Result, Skip
from evalr.inputs import History, Input, Session
from evalr.measures import DropOff, drop_off_evaluator

class Always:
    name = "always"
    version = "1"
    verdict_type = DropOff

    async def evaluate(self, given: Input, /) -> Result[DropOff]:
        return Skip("no")

def function(given: Session) -> DropOff:
    return DropOff(outcome="continued")

async def later(given: Session) -> DropOff | Skip:
    return Skip("no")

one: Evaluator[Session, DropOff] = drop_off_evaluator()
two: Evaluator[Session, DropOff] = FunctionEvaluator("f", "1", function, Session, DropOff)
three: Evaluator[Session, DropOff] = FunctionEvaluator("f", "1", later, Session, DropOff)
four: Evaluator[Session, DropOff] = Fallback(one, two, three, Always(), below=0.5)
"""
DOES_NOT_FIT = """
wrong: Evaluator[History, DropOff] = FunctionEvaluator("f", "1", function, Session, DropOff)
"""


def checked(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_type_checker_knows_an_evaluator_when_it_sees_one(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    fits = checked(FITS, tmp_path)
    assert fits.returncode == 0, fits.stdout + fits.stderr
    does_not = checked(FITS + DOES_NOT_FIT, tmp_path)
    assert "[arg-type]" in does_not.stdout
    assert "Found 1 error" in does_not.stdout
