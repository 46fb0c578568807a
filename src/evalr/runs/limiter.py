"""How many calls there may be at once, and how many a minute: less when a server says that it is too much.

`Gate` decides, and knows only the times that it is told; `Limiter` lets tasks wait for what it decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from evalr.errors import InputError

if TYPE_CHECKING:
    from asyncio import Future, TimerHandle

AT_ONCE = 8
MOST_AT_ONCE = 10_000
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call that was let through, and when."""

    begun: float


class Window:
    """What has begun within the last minute: at most `most` of it in any minute whatever."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._begun: deque[tuple[float, int]] = deque()
        self._sum = 0

    def wait(self, now: float, amount: int) -> float:
        """Seconds until so much more may begin. What is more than a minute allows may begin in an empty one."""
        self._forget(now)
        excess = self._sum + min(amount, self.most) - self.most
        if excess <= 0:
            return 0.0
        for begun, part in self._begun:
            excess -= part
            if excess <= 0:
                return begun + MINUTE - now
        return MINUTE

    def add(self, now: float, amount: int) -> None:
        """Count it as begun."""
        if amount:
            self._begun.append((now, min(amount, self.most)))
            self._sum += min(amount, self.most)

    def _forget(self, now: float) -> None:
        while self._begun and self._begun[0][0] + MINUTE <= now:
            self._sum -= self._begun.popleft()[1]


class Gate:
    """Additive increase, multiplicative decrease: half as many at once when throttled, one more for each round without.

    A decrease answers the calls that were in flight when it was decided: those of them that come back throttled later
    do not halve it again. Source: Chiu and Jain 1989, "Analysis of the increase and decrease algorithms".
    """

    def __init__(self, at_once: int, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self.at_once = at_once
        self.allowed = float(at_once)
        self.in_flight = 0
        self.paused_until = float("-inf")
        self._decreased = float("-inf")
        self._requests = None if requests_per_minute is None else Window(requests_per_minute)
        self._tokens = None if tokens_per_minute is None else Window(tokens_per_minute)

    def has_room(self) -> bool:
        """Whether one more call would not be too many at once."""
        return self.in_flight < int(self.allowed)

    def wait(self, now: float, tokens: int) -> float:
        """Seconds until the server's limits allow the next call, with or without room for it."""
        waits = [self.paused_until - now, 0.0]
        waits += [] if self._requests is None else [self._requests.wait(now, 1)]
        waits += [] if self._tokens is None else [self._tokens.wait(now, tokens)]
        return max(waits)

    def begin(self, now: float, tokens: int) -> Ticket:
        """Let a call through."""
        self.in_flight += 1
        if self._requests is not None:
            self._requests.add(now, 1)
        if self._tokens is not None:
            self._tokens.add(now, tokens)
        return Ticket(now)

    def end(self) -> None:
        """A call is over."""
        self.in_flight -= 1

    def speed_up(self) -> None:
        """A call was answered."""
        self.allowed = min(float(self.at_once), self.allowed + 1 / self.allowed)

    def slow_down(self, ticket: Ticket, now: float, retry_after: float | None) -> None:
        """A call was throttled; with `retry_after`, no call begins for so many seconds."""
        if ticket.begun >= self._decreased:
            self.allowed = max(1.0, self.allowed / 2)
            self._decreased = now
        if retry_after is not None:
            self.paused_until = max(self.paused_until, now + retry_after)


class Limiter:
    """Bounds the calls of one run, or of all the runs of one event loop that are given it.

    Args:
        at_once: the most calls in flight, up to 10,000. Fewer while a server throttles: half at each 429, error of the
            server or timeout, and one more for each round of answers without, up to this many again.
        requests_per_minute: the most calls that begin in any minute.
        tokens_per_minute: the most tokens that calls which begin in any minute are expected to take, by what the
            evaluator's `expected_tokens` says of each input.
        clock: seconds that only ever go up.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE,
        *,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        for name, value in (
            ("at_once", at_once),
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            if (value is not None or name == "at_once") and (
                not isinstance(value, int) or isinstance(value, bool) or value < 1
            ):
                raise InputError(f"{name}={value!r} must be a whole number from 1")
        if at_once > MOST_AT_ONCE:
            raise InputError(f"at_once={at_once} is more than one process can have in flight: at most {MOST_AT_ONCE:,}")
        self.at_once = at_once
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self.throttled = 0.0
        """Seconds in which calls were waiting for a server's limits, whatever their number."""
        self._gate = Gate(at_once, requests_per_minute, tokens_per_minute)
        self._clock = clock
        self._waiting: deque[tuple[Future[Ticket], int]] = deque()
        self._timer: TimerHandle | None = None
        self._throttled_since: float | None = None

    def __repr__(self) -> str:
        return f"<Limiter {self._gate.in_flight} in flight, {int(self._gate.allowed)} of {self.at_once} allowed>"

    @property
    def allowed(self) -> int:
        """How many calls may be in flight now."""
        return int(self._gate.allowed)

    async def acquire(self, tokens: int = 0) -> Ticket:
        """Wait until a call may begin; first come, first served. Give the ticket back with `release`."""
        import asyncio

        turn: Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, tokens))
        self._let_through()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._gate.end()  # it was let through, and will not go
            turn.cancel()
            self._let_through()
            raise

    def release(
        self, ticket: Ticket, *, answered: bool = False, throttled: bool = False, after: float | None = None
    ) -> None:
        """A call is over: it was answered, or throttled (and the server said for how many seconds), or neither."""
        self._gate.end()
        if throttled:
            self._gate.slow_down(ticket, self._clock(), after)
        elif answered:
            self._gate.speed_up()
        self._let_through()

    def _let_through(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        while self._waiting:
            turn, tokens = self._waiting[0]
            if turn.done():
                self._waiting.popleft()
                continue
            if not self._gate.has_room():
                self._count_throttled(now, held=False)
                return
            wait = self._gate.wait(now, tokens)
            if wait > 0:
                self._count_throttled(now, held=True)
                self._timer = turn.get_loop().call_later(wait, self._let_through)
                return
            self._waiting.popleft()
            turn.set_result(self._gate.begin(now, tokens))
        self._count_throttled(now, held=False)

    def _count_throttled(self, now: float, *, held: bool) -> None:
        if self._throttled_since is not None:
            self.throttled += now - self._throttled_since
        self._throttled_since = now if held else None
