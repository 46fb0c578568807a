"""What a run may spend, and the account of what it has."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalr.errors import InputError

if TYPE_CHECKING:
    from asyncio import Future


def dollars(cost: float) -> str:
    """`$1.20`, and four digits of what is less than a dollar."""
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:,.4f}"


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may spend. What it leaves undone, a later run with a budget of its own takes up.

    What earlier runs on the same journal spent does not count; `Journal.totals()` has the sum of all.

    Args:
        calls: the most calls, tries again included. It is never exceeded. An evaluator that may make several for one
            input, as a judge of both orders does, is not asked where fewer are left. With 0 nobody is asked, and only
            what the journal has is given.
        cost: the most US dollars. With a `ceiling` it is not exceeded either, as long as no call costs more than that;
            without one it is exceeded by the calls that are in flight when it is used up.
        ceiling: the most that one call can cost. So much is set aside before each call, and stays spent where the cost
            of a call remains unknown.
    """

    calls: int | None = None
    cost: float | None = None
    ceiling: float | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.calls, int) and not isinstance(self.calls, bool)
        if self.calls is not None and not (whole and self.calls >= 0):
            raise InputError(f"calls={self.calls!r} must be a whole number from 0")
        for name in ("cost", "ceiling"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise InputError(f"{name}={value!r} must be US dollars, finite and not below 0")
        if self.ceiling is not None and self.cost is None:
            raise InputError("ceiling= is what is set aside of cost=, which is missing")
        if self.calls is None and self.cost is None:
            raise InputError(
                "a Budget needs calls=1000 or cost=5.0 (US dollars); where there is no bound, pass budget=None"
            )


class Ledger:
    """The account of one run: what is set aside for calls in flight, and what calls have cost."""

    def __init__(self, budget: Budget | None) -> None:
        self._most_calls = None if budget is None else budget.calls
        self._most_cost = None if budget is None else budget.cost
        self._ceiling = None if budget is None else budget.ceiling
        self._calls = 0
        self._in_flight = 0
        self._spent = 0.0
        self._waiting: deque[Future[None]] = deque()
        self.over_ceiling = 0
        """Calls that cost more than the ceiling."""

    async def reserve(self, calls: int = 1) -> str | None:
        """Set aside what so many calls take, and return None; or the name of the budget that is used up.

        It waits for calls in flight while these may leave enough.
        """
        import asyncio

        while (refused := self.try_reserve(calls)) is not None:
            if not self._in_flight:
                return refused
            turn: Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return None

    def try_reserve(self, calls: int = 1) -> str | None:
        """As `reserve`, without waiting."""
        if self._most_calls is not None and self._calls + calls > self._most_calls:
            return f"budget of {self._most_calls:,} calls used up"
        if self._most_cost is not None:
            aside = self._ceiling or 0.0
            committed = self._spent + self._in_flight * aside
            # A penny's share of rounding must not keep the last call out.
            most = self._most_cost * (1 + 1e-12)
            over = committed >= self._most_cost if not aside else committed + calls * aside > most
            if over:
                return f"budget of {dollars(self._most_cost)} used up"
        self._calls += calls
        self._in_flight += calls
        return None

    def used_up(self) -> str | None:
        """The name of the budget that calls in flight have used up since something was set aside, if they have."""
        if self._most_cost is None or self._ceiling is not None or self._spent < self._most_cost:
            return None
        return f"budget of {dollars(self._most_cost)} used up"

    def settle(self, cost: float | None, calls: int = 1) -> None:
        """Calls are back, and have cost that in all. An unknown cost counts as the ceiling, where there is one."""
        self._in_flight -= calls
        aside = calls * (self._ceiling or 0.0)
        if self._ceiling is not None and cost is not None and cost > aside:
            self.over_ceiling += 1
        self._spent += aside if cost is None else cost
        self._wake()

    def give_back(self, calls: int = 1) -> None:
        """Calls that were set aside for are not made."""
        self._calls -= calls
        self._in_flight -= calls
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
