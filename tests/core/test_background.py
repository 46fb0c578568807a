"""What is async can be called from anywhere, and what it returns or raises comes back as it is."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from pydantic import BaseModel

from evalr import Failure, Fallback, FunctionEvaluator, HandOff, InputError, Verdict, run_sync
from evalr.inputs import Session

ROOT = Path(__file__).resolve().parent.parent.parent
SESSION = Session(id="s", user="u")
said_by: ContextVar[str] = ContextVar("said_by", default="nobody")


class Said(BaseModel):
    done: bool


YES = Said(done=True)


async def same(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def where() -> tuple[str, int]:
    return threading.current_thread().name, id(asyncio.get_running_loop())


class Later:
    """An awaitable that is no coroutine."""

    def __await__(self) -> Generator[Any, None, int]:
        yield from asyncio.sleep(0).__await__()
        return 7


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter in which every warning, at shutdown too, is an error that shows."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", *options, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    # A loop in this mode says of a busy machine that it is slow.
    done.stderr = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("Executing <"))
    return done


# From where it is called


def test_without_a_loop() -> None:
    assert run_sync(same(3)) == 3
    assert run_sync(Later()) == 7


def test_inside_a_running_loop() -> None:
    async def cell() -> int:
        return run_sync(same(3)) + run_sync(Later())

    assert asyncio.run(cell()) == 10


def test_inside_a_callback_of_a_running_loop() -> None:
    async def main() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: found.set_result(run_sync(same(3))))
        return await found

    assert asyncio.run(main()) == 3


def test_from_many_threads_at_once() -> None:
    barrier = threading.Barrier(8)

    def call(number: int) -> int:
        barrier.wait(10)
        return sum(run_sync(same(number)) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(8))) == [50 * number for number in range(8)]


def test_all_work_shares_one_daemon_thread_and_one_loop() -> None:
    async def cell() -> set[tuple[str, int]]:
        return {run_sync(where()) for _ in range(3)}

    with ThreadPoolExecutor(3) as pool:
        places = {run_sync(where()), *pool.map(lambda _: run_sync(where()), range(9))} | asyncio.run(cell())
    assert {name for name, _ in places} == {"evalr"}
    assert len(places) == 1
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "evalr")
    assert thread.daemon


def test_work_of_several_threads_goes_on_side_by_side() -> None:
    met = threading.Barrier(2, timeout=10)

    async def meet() -> int:
        return await anyio.to_thread.run_sync(met.wait)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda _: run_sync(meet()), range(2))) == [0, 1]


def test_from_a_worker_thread_of_its_own_loop() -> None:
    async def outer() -> int:
        return await anyio.to_thread.run_sync(lambda: run_sync(same(5)))

    assert run_sync(outer()) == 5


def test_from_its_own_loop_it_refuses_rather_than_wait_for_itself() -> None:
    async def outer() -> int:
        return run_sync(same(5))

    with pytest.raises(InputError, match="use `await` here"):
        run_sync(outer())
    gc.collect()  # the coroutine that nobody awaits was closed, or this would warn


# What comes back


def test_an_error_comes_back_itself_with_where_it_was_raised() -> None:
    error = LookupError("gone")

    async def breaks() -> None:
        await asyncio.sleep(0)
        raise error

    with pytest.raises(LookupError) as raised:
        run_sync(breaks())
    assert raised.value is error
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "breaks"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, TimeoutError])
def test_what_stops_the_work_does_not_stop_the_loop(stop: type[BaseException]) -> None:
    async def breaks() -> None:
        raise stop

    before = run_sync(where())
    with pytest.raises(stop):
        run_sync(breaks())
    assert run_sync(where()) == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stray_task_that_wants_to_end_the_process_ends_itself_alone(stop: type[BaseException]) -> None:
    async def stray() -> None:
        raise stop

    async def leaves_it() -> None:
        task = asyncio.get_running_loop().create_task(stray())
        await asyncio.sleep(0.01)  # the work of others, which goes on
        await task

    before = run_sync(where())
    with pytest.raises(stop):
        run_sync(leaves_it())
    assert run_sync(where()) == before


def test_an_error_holds_on_to_nothing_once_it_was_handled() -> None:
    async def breaks() -> None:
        raise LookupError("gone")

    def call() -> None:
        try:
            run_sync(breaks())
        except LookupError:
            return

    call()
    gc.collect()
    gc.disable()
    try:
        call()
        time.sleep(0.05)  # the task ends on the other thread
        assert not any(isinstance(found, LookupError) and found.args == ("gone",) for found in gc.get_objects())
    finally:
        gc.enable()


@pytest.mark.parametrize("given", [3, None, same, "evaluate"])
def test_what_cannot_be_awaited_is_named(given: Any) -> None:
    with pytest.raises(InputError, match=r"such as evaluator\.evaluate\(given\), not for"):
        run_sync(given)


def test_a_future_of_another_loop_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(InputError, match=r"this Future belongs to another event loop: use `await` there"):
            run_sync(asyncio.get_running_loop().create_future())
        task = asyncio.get_running_loop().create_task(same(1))
        with pytest.raises(InputError, match="this Task belongs to another event loop"):
            run_sync(task)
        assert await task == 1

    asyncio.run(main())


def test_async_generators_and_timeouts_work_as_they_do_elsewhere() -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def work() -> list[int]:
        with anyio.fail_after(5):
            return [number async for number in numbers()]

    assert run_sync(work()) == [0, 1, 2]


# Context


def test_the_caller_s_context_is_copied_and_not_changed() -> None:
    async def reads_and_sets() -> str:
        found = said_by.get()
        said_by.set("the work")
        return found

    token = said_by.set("the caller")
    try:
        assert run_sync(reads_and_sets()) == "the caller"
        assert said_by.get() == "the caller"
    finally:
        said_by.reset(token)
    assert run_sync(reads_and_sets()) == "nobody"


# Interrupts, forks, shutdown


def test_an_interrupt_of_the_waiting_thread_cancels_the_work() -> None:
    state: list[str] = []

    async def forever() -> None:
        state.append("began")
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            state.append("cancelled")
            raise

    def interrupt() -> None:
        assert eventually(lambda: bool(state))
        signal.pthread_kill(waiting, signal.SIGINT)

    waiting = threading.get_ident()
    thread = threading.Thread(target=interrupt)
    # Whoever started the tests may have them ignore it, as a shell does what it starts in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            run_sync(forever())
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join(10)
    assert eventually(lambda: state == ["began", "cancelled"])
    assert run_sync(same(1)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_child_has_a_loop_of_its_own_and_the_parent_keeps_its_own() -> None:
    code = """
import asyncio, os, sys, warnings
from evalr import run_sync

async def same(value):
    await asyncio.sleep(0)
    return value

run_sync(same(0))
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns whoever forks while there are threads
    child = os.fork()
if not child:
    print("child", run_sync(same(1)), flush=True)
    sys.exit()
print("status", os.waitpid(child, 0)[1], "parent", run_sync(same(2)))
"""
    done = python(code)
    assert (done.stdout.splitlines(), done.stderr) == (["child 1", "status 0 parent 2"], "")


@pytest.mark.parametrize("work", ["asyncio.sleep(0)", "anyio.to_thread.run_sync(int)"])
def test_the_interpreter_ends_without_a_word(work: str) -> None:
    done = python(f"import asyncio, anyio, anyio.to_thread\nfrom evalr import run_sync\nrun_sync({work})\nprint('end')")
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


def test_work_that_is_left_at_the_end_is_cancelled() -> None:
    code = """
import asyncio, threading, time
from evalr import run_sync

begun = threading.Event()

async def forever():
    begun.set()
    try:
        await asyncio.sleep(1000)
    finally:
        print("ended", flush=True)

def wait():
    try:
        run_sync(forever())
    except BaseException:
        pass

threading.Thread(target=wait, daemon=True).start()
begun.wait(10)
"""
    done = python(code)
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)


# Evaluators


def said(function: Callable[..., Any], **options: Any) -> FunctionEvaluator[Session, Said]:
    return FunctionEvaluator("said", "1", function, Session, Said, **options)


async def async_yes(given: Session) -> Said:
    await asyncio.sleep(0)
    return YES


def returns_awaitable(given: Session) -> Any:
    return async_yes(given)


async def breaks_later(given: Session) -> Said:
    await asyncio.sleep(0)
    raise ValueError("no")


async def in_a_cell(call: Callable[[], Any]) -> Any:
    return call()


@pytest.mark.parametrize("in_loop", [False, True], ids=["script", "notebook"])
@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize(
    "function", [lambda given: YES, async_yes, returns_awaitable], ids=["sync", "async", "returns"]
)
def test_every_evaluator_has_a_sync_twin(function: Callable[..., Any], inline: bool, in_loop: bool) -> None:
    evaluator = said(function, inline=inline)
    for each in (evaluator, Fallback(evaluator)):
        result = (
            asyncio.run(in_a_cell(lambda each=each: each.evaluate_sync(SESSION)))
            if in_loop
            else each.evaluate_sync(SESSION)
        )
        assert isinstance(result, Verdict)
        assert (result.value, result.about) == (YES, SESSION.about())
        assert result.latency is not None


@pytest.mark.parametrize("inline", [False, True])
def test_an_exception_is_a_failure_in_the_sync_twin_too(inline: bool) -> None:
    result = said(breaks_later, inline=inline).evaluate_sync(SESSION)
    assert isinstance(result, Failure)
    assert (result.error, type(result.exception)) == ("ValueError: no", ValueError)


def test_what_only_computes_pays_for_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(awaitable: Any) -> None:
        raise AssertionError("a loop was used")

    monkeypatch.setattr("evalr.evaluators.run_sync", refuse)
    threads: list[threading.Thread] = []

    def compute(given: Session) -> Said | HandOff:
        threads.append(threading.current_thread())
        return YES if len(threads) > 1 else HandOff("not sure")

    computed = said(compute, inline=True)
    assert isinstance(Fallback(computed, computed).evaluate_sync(SESSION), Verdict)
    assert threads == [threading.current_thread()] * 2


def test_a_slow_sync_function_runs_where_evaluate_runs_it() -> None:
    threads: list[str] = []

    def judge(given: Session) -> Said:
        threads.append(threading.current_thread().name)
        return asyncio.run(async_yes(given))  # which fails where a loop is running

    assert isinstance(asyncio.run(in_a_cell(lambda: said(judge).evaluate_sync(SESSION))), Verdict)
    assert threads[0] not in ("MainThread", "evalr")


def test_a_fallback_of_any_evaluators_has_a_sync_twin() -> None:
    class Plain:
        name, version, verdict_type = "plain", "1", Said

        async def evaluate(self, given: Session, /) -> Any:
            await asyncio.sleep(0)
            return Verdict(YES, self.name, self.version, given.about(), {"done": 0.4})

    plain: Any = Plain()
    assert run_sync(plain.evaluate(SESSION)).value == YES
    chain = Fallback(plain, said(async_yes), below=0.5)
    awaited, waited = asyncio.run(chain.evaluate(SESSION)), chain.evaluate_sync(SESSION)
    assert (type(waited), waited.evaluator, waited.version) == (type(awaited), awaited.evaluator, awaited.version)
    assert waited.version == "plain@1+said@1:below=0.5"
