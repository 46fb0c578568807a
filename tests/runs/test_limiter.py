"""The limiter, by a clock that the test moves."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalr import InputError
from evalr.runs import Limiter
from evalr.runs.limiter import Gate, Ticket, Window


def test_only_so_many_are_in_flight() -> None:
    gate = Gate(3, None, None)
    tickets = []
    while gate.has_room():
        tickets.append(gate.begin(0.0, 0))
    assert len(tickets) == 3
    gate.end()
    assert gate.has_room()


def test_a_throttled_call_halves_what_is_allowed_once_for_all_that_were_in_flight() -> None:
    gate = Gate(16, None, None)
    tickets = [gate.begin(0.0, 0) for _ in range(16)]
    for ticket in tickets:
        gate.slow_down(ticket, 1.0, None)
    assert gate.allowed == 8
    later = gate.begin(2.0, 0)
    gate.slow_down(later, 3.0, None)
    assert gate.allowed == 4
    for second in range(10):
        gate.slow_down(gate.begin(4.0 + 2 * second, 0), 5.0 + 2 * second, None)
    assert gate.allowed == 1


def test_answers_raise_it_by_one_a_round_up_to_the_bound() -> None:
    gate = Gate(16, None, None)
    gate.slow_down(gate.begin(0.0, 0), 1.0, None)
    for _ in range(8):
        gate.speed_up()
    assert 8.9 < gate.allowed < 9.1
    for _ in range(1000):
        gate.speed_up()
    assert gate.allowed == 16


def test_retry_after_holds_for_all_calls_and_the_longest_counts() -> None:
    gate = Gate(8, None, None)
    gate.slow_down(Ticket(0.0), 10.0, 5.0)
    gate.slow_down(Ticket(0.0), 11.0, 1.0)
    assert gate.wait(12.0, 0) == 3.0
    assert gate.wait(15.0, 0) == 0.0


def test_a_window_never_lets_more_than_its_number_begin_in_any_minute() -> None:
    window = Window(3)
    for second in (0.0, 10.0, 20.0):
        assert window.wait(second, 1) == 0.0
        window.add(second, 1)
    assert window.wait(30.0, 1) == 30.0
    assert window.wait(60.0, 1) == 0.0
    window.add(60.0, 1)
    assert window.wait(61.0, 1) == 9.0
    assert window.wait(61.0, 2) == 19.0


def test_more_than_a_minute_allows_may_begin_in_an_empty_one() -> None:
    window = Window(100)
    assert window.wait(0.0, 500) == 0.0
    window.add(0.0, 500)
    assert window.wait(1.0, 1) == 59.0
    assert window.wait(60.0, 500) == 0.0


@settings(max_examples=60)
@given(st.integers(1, 20), st.lists(st.tuples(st.floats(0, 30), st.integers(0, 30)), max_size=60))
def test_whatever_comes_no_minute_holds_more_than_is_allowed(most: int, wanted: list[tuple[float, int]]) -> None:
    window, now, begun = Window(most), 0.0, []
    for pause, amount in wanted:
        now += pause
        wait = window.wait(now, amount)
        assert 0 <= wait <= 60 + 1e-6
        now += wait
        window.wait(now, amount)
        window.add(now, amount)
        begun.append((now, min(amount, most)))
    for start, _ in begun:
        # A window that is half open, with a hair for rounding.
        assert sum(amount for at, amount in begun if start <= at < start + 60 - 1e-6) <= most


class FakeTime:
    """A clock, and a loop whose timers go by it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run_simulation(limiter: Limiter, clock: FakeTime, calls: int, work: float, tokens: int = 0) -> list[float]:
    """The times at which calls begin, where each works for so long; time passes only when all are waiting."""
    begun: list[float] = []
    sleeping: list[tuple[float, asyncio.Future[None]]] = []

    async def call() -> None:
        ticket = await limiter.acquire(tokens)
        begun.append(clock.now)
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeping.append((clock.now + work, wake))
        await wake
        limiter.release(ticket, answered=True)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        timers: list[tuple[float, object]] = []

        def call_later(delay: float, callback: object, *args: object, **options: object) -> asyncio.TimerHandle:
            handle = asyncio.TimerHandle(clock.now + delay, callback, args, loop)  # type: ignore[arg-type]
            timers.append((clock.now + delay, handle))
            return handle

        loop.call_later = call_later  # type: ignore[method-assign,assignment]
        tasks = [asyncio.create_task(call()) for _ in range(calls)]
        while not all(task.done() for task in tasks):
            for _ in range(5):
                await asyncio.sleep(0)
            live = [(at, timer) for at, timer in timers if not timer.cancelled()]  # type: ignore[attr-defined]
            timers[:] = live
            moments = [at for at, _ in sleeping] + [at for at, _ in live]
            if not moments:
                continue
            clock.now = max(clock.now, min(moments))
            for entry in [entry for entry in sleeping if entry[0] <= clock.now]:
                sleeping.remove(entry)
                entry[1].set_result(None)
            for entry in [entry for entry in timers if entry[0] <= clock.now]:
                timers.remove(entry)
                entry[1]._run()  # type: ignore[attr-defined]

    asyncio.run(main())
    return begun


def test_requests_per_minute_hold_for_every_minute() -> None:
    clock = FakeTime()
    limiter = Limiter(64, requests_per_minute=10, clock=clock)
    begun = run_simulation(limiter, clock, 35, work=1.0)
    assert begun == [100.0] * 10 + [160.0] * 10 + [220.0] * 10 + [280.0] * 5
    assert limiter.throttled == 180.0


def test_tokens_per_minute_hold_for_every_minute() -> None:
    clock = FakeTime()
    begun = run_simulation(Limiter(64, tokens_per_minute=1000, clock=clock), clock, 9, work=1.0, tokens=300)
    assert begun == [100.0] * 3 + [160.0] * 3 + [220.0] * 3


def test_at_once_bounds_without_limits_of_a_minute() -> None:
    clock = FakeTime()
    limiter = Limiter(4, clock=clock)
    begun = run_simulation(limiter, clock, 12, work=2.0)
    assert begun == [100.0] * 4 + [102.0] * 4 + [104.0] * 4
    assert limiter.throttled == 0


def test_first_come_first_served_and_a_cancelled_one_gives_up_its_turn() -> None:
    async def main() -> list[int]:
        limiter = Limiter(1)
        order: list[int] = []

        async def call(number: int) -> None:
            ticket = await limiter.acquire()
            order.append(number)
            await asyncio.sleep(0)
            limiter.release(ticket)

        first = await limiter.acquire()
        tasks = [asyncio.create_task(call(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        limiter.release(first)
        # The turn that was just given to the first in the queue is given back when that is cancelled.
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert "0 in flight, 1 of 1 allowed" in repr(limiter)
        return order

    assert asyncio.run(main()) == [1, 3, 4]


def test_many_cancelled_at_random_leave_nothing_behind() -> None:
    async def main() -> None:
        limiter, draw = Limiter(3), random.Random(4)

        async def call() -> None:
            ticket = await limiter.acquire()
            try:
                await asyncio.sleep(draw.random() / 200)
            finally:
                limiter.release(ticket, throttled=draw.random() < 0.1, after=0.001)

        tasks = [asyncio.create_task(call()) for _ in range(200)]
        for _ in range(50):
            await asyncio.sleep(0.001)
            draw.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert "0 in flight" in repr(limiter)

    asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"at_once": 0},
        {"at_once": None},
        {"at_once": 1.5},
        {"at_once": True},
        {"requests_per_minute": 0},
        {"tokens_per_minute": -1},
    ],
)
def test_bounds_must_be_whole_numbers(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="must be a whole number from 1"):
        Limiter(**options)


def test_more_calls_at_once_than_a_process_can_have_are_refused() -> None:
    with pytest.raises(InputError, match="at most 10,000"):
        Limiter(10**30)
