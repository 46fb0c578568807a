"""Evaluators: named, versioned ways to reach a verdict from an input."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from evalr.background import run_sync
from evalr.errors import InputError, error_words
from evalr.fields import verdict_fields
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Input, Now, Subject, reading_time, resolve_now
from evalr.verdicts import TRAINED_ON, Failure, HandOff, Result, Skip, V, V_co, Verdict, is_trained_on

I_contra = TypeVar("I_contra", bound=Input, contravariant=True)
I = TypeVar("I", bound=Input)  # noqa: E741


@runtime_checkable
class Evaluator(Protocol[I_contra, V_co]):
    """Anything that gives one result per input: a computed measure, a judge, a classifier, people."""

    @property
    def name(self) -> str:
        """The prefix of its scores, and what its verdicts say gave them."""

    @property
    def version(self) -> str:
        """Changes whenever its answers may."""

    @property
    def verdict_type(self) -> type[V_co]:
        """The type of its verdicts' values."""

    async def evaluate(self, given: I_contra, /) -> Result[V_co]:
        """The result for one input. What goes wrong on the way is a `Failure`, not an error."""

    # What an evaluator may have beside these, and runs ask for: `input_type` (what it reads), `pending` (of a verdict's
    # value, whether it is too soon to tell), `as_of` (of an input, the reading time that the answer depends on),
    # `pinned` (the same evaluator with its clock read once), `expected_tokens` (of an input, for limits),
    # `expected_calls` (of an input, the most calls that one evaluation makes, for budgets; 1 where it does not say),
    # `expected_cost` (of an input, US dollars or None, for a price in advance) and `made_with` (the subjects that it
    # was trained with, for an evaluator that asks it of something without an id).


def calls_of(evaluator: Evaluator[Any, Any], given: Input) -> int:
    """The most calls that one evaluation of an input makes, as far as the evaluator says; else 1."""
    expected = getattr(evaluator, "expected_calls", None)
    return 1 if expected is None else int(expected(given))


@dataclass(frozen=True)
class FunctionEvaluator(Generic[I, V]):
    """An evaluator made of a function from an input to a verdict's value, sync or async.

    The function may also return a whole result: a `Skip`, a `HandOff`, a `Failure`, or a `Verdict`, as one does that
    knows what its answer cost, or how sure it is. Cost, confidence and flags stay as they are; who gave it, of what,
    and the time that it took, are the evaluator's to say. An exception becomes a `Failure` that carries it. A sync
    function runs in a worker thread, so that a slow one stalls nothing else; `inline=True` runs it in place, which is
    faster for one that only computes. The latency of a result is the function's own time, without waiting for a thread.

        async def ask(transcript):
            answer = await client.ask(...)
            return Verdict(TaskCompletion(...), "completion", cost=answer.dollars)

    Args:
        name: as for every evaluator.
        version: as for every evaluator.
        function: called with the input; with `now`, called with the input and the reading time.
        input_type: what it reads, one type or several. Another type of input is an error, never a skip.
        verdict_type: what it returns, or what the `Verdict` that it returns holds.
        now: for answers that depend on the reading time: a datetime, or a clock that is read once per input. The
            input's `read_at` counts where it is earlier. The time is recorded as the verdict's `as_of`.
        inline: see above.
        pending: of a verdict's value, whether it is too soon to tell, so that a later run asks again.
    """

    name: str
    version: str
    function: Callable[..., V | Result[V] | Awaitable[V | Result[V]]]
    input_type: type[I] | tuple[type[I], ...]
    verdict_type: type[V]
    now: Now | None = field(default=None, kw_only=True)
    inline: bool = field(default=False, kw_only=True)
    pending: Callable[[V], bool] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        verdict_fields(self.verdict_type)
        if isinstance(self.now, datetime):
            object.__setattr__(self, "now", resolve_now(self.now))

    def pinned(self) -> FunctionEvaluator[I, V]:
        """The same evaluator with its clock read once, so that all the answers of one run are of one reading time."""
        return self if self.now is None or isinstance(self.now, datetime) else replace(self, now=resolve_now(self.now))

    def as_of(self, given: I, /) -> datetime | None:
        """The reading time that the answer for an input depends on, None where it depends on none."""
        if self.now is None:
            return None
        return reading_time(given, self.now if isinstance(self.now, datetime) else resolve_now(self.now))

    def expected_calls(self, given: I, /) -> int:
        """What is computed in place calls nobody; any other function may."""
        return 0 if self.inline else 1

    async def evaluate(self, given: I, /) -> Result[V]:
        """The result for one input."""
        arguments = self._arguments(given)
        if self.inline or inspect.iscoroutinefunction(self.function):
            answer, latency = self._called(arguments)
        else:
            from anyio import to_thread

            answer, latency = await to_thread.run_sync(self._called, arguments)
        if inspect.isawaitable(answer):
            answer, latency = await self._awaited(answer, latency)
        return self._result(given, arguments, answer, latency)

    def evaluate_sync(self, given: I, /) -> Result[V]:
        """The result for one input, from code that cannot await, in a notebook too; see `run_sync`.

        An evaluator with `inline=True` computes in place; any other runs just as `evaluate` runs it.
        """
        if not self.inline:
            return run_sync(self.evaluate(given))
        arguments = self._arguments(given)
        answer, latency = self._called(arguments)
        # Most answers are verdicts, and asking whether one is awaitable takes longer than many a measure.
        if not isinstance(answer, self.verdict_type) and inspect.isawaitable(answer):
            answer, latency = run_sync(self._awaited(answer, latency))
        return self._result(given, arguments, answer, latency)

    def evaluate_inline(self, given: I, /) -> Result[V]:
        """The result for one input, computed in place: for sync functions, where no event loop is wanted.

        Raises:
            InputError: the function is async.
        """
        arguments = self._arguments(given)
        answer, latency = self._called(arguments)
        if not isinstance(answer, self.verdict_type) and inspect.isawaitable(answer):  # as in `evaluate_sync`
            if inspect.iscoroutine(answer):
                answer.close()  # nobody will await it
            raise InputError(f"evaluator {self.name!r} is async: it needs `await evaluator.evaluate(...)`")
        return self._result(given, arguments, answer, latency)

    def _called(self, arguments: tuple[Any, ...]) -> tuple[Any, float]:
        """What the function returned, or the error that it raised, and the seconds it took, wherever this runs."""
        start = perf_counter()
        try:
            answer: Any = self.function(*arguments)
        except Exception as error:  # noqa: BLE001  whatever a person's function raises is this input's failure
            answer = error
        return answer, perf_counter() - start

    async def _awaited(self, answer: Awaitable[Any], latency: float) -> tuple[Any, float]:
        """What an async function's answer came to, and the seconds that it took in all."""
        start = perf_counter()
        try:
            found: Any = await answer
        except Exception as error:  # noqa: BLE001  as in `_called`
            found = error
        return found, latency + perf_counter() - start

    def _arguments(self, given: I) -> tuple[Any, ...]:
        if not isinstance(given, self.input_type):
            types = self.input_type if isinstance(self.input_type, tuple) else (self.input_type,)
            names = " or ".join(each.__name__ for each in types)
            raise InputError(
                f"evaluator {self.name!r} reads {names}, not {type(given).__name__}: pass it only inputs of that type"
            )
        if self.now is None:
            return (given,)
        now = self.now if isinstance(self.now, datetime) else resolve_now(self.now)
        return (given, reading_time(given, now))

    def _result(self, given: I, arguments: tuple[Any, ...], answer: Any, latency: float) -> Result[V]:
        as_of = arguments[1] if self.now is not None else None
        if isinstance(answer, self.verdict_type):
            return Verdict(answer, self.name, self.version, given.about(), None, latency, None, as_of)
        stamp: dict[str, Any] = {
            "evaluator": self.name,
            "version": self.version,
            "about": given.about(),
            "latency": latency,
            "as_of": as_of,
        }
        if isinstance(answer, Failure | Skip | HandOff):
            return replace(answer, **stamp)
        if isinstance(answer, Exception):
            error = without_lone_surrogates(error_words(answer))
            return Failure(error, exception=answer, **stamp)
        if isinstance(answer, Verdict):
            if isinstance(answer.value, self.verdict_type):
                return replace(answer, **stamp)
            stamp["cost"], answer = answer.cost, answer.value
        wrong = f"returned {type(answer).__name__} where {self.verdict_type.__name__} was promised"
        return Failure(wrong, **stamp)


@dataclass(frozen=True, init=False)
class Fallback(Generic[I, V]):
    """Evaluators asked in turn until one gives a verdict: cheap ones first, a careful one, then people.

    A hand-off goes to the next. A failure does too where `on_failure` is set; a skip is an answer and ends the search.
    A verdict whose lowest confidence is under `below` counts as a hand-off. The last evaluator's result stands,
    whatever it is. The result is the chain's, and a verdict credits the one that gave it in `given_by`.

        chain = Fallback(decision, judge)

    Args:
        *evaluators: in the order in which they are asked.
        below: see above.
        on_failure: see above.

    Raises:
        InputError: there are none, they share no verdict type, or `below` is not from 0 to 1.
    """

    evaluators: tuple[Evaluator[I, V], ...]
    below: float | None
    on_failure: bool

    def __init__(self, *evaluators: Evaluator[I, V], below: float | None = None, on_failure: bool = False) -> None:
        if not evaluators:
            raise InputError("Fallback needs at least one evaluator")
        wrong = next((each for each in evaluators if not isinstance(each, Evaluator)), None)
        if wrong is not None:
            raise InputError(
                f"Fallback takes evaluators one by one, as in Fallback(cheap, judge), not a {type(wrong).__name__}"
            )
        types = {evaluator.verdict_type for evaluator in evaluators}
        if len(types) > 1:
            names = ", ".join(sorted(found.__name__ for found in types))
            raise InputError(f"the evaluators of a Fallback must share one verdict type, not {names}")
        if below is not None and not 0 <= below <= 1:
            raise InputError(f"below={below} must be from 0 to 1")
        for name, value in (("evaluators", evaluators), ("below", below), ("on_failure", on_failure)):
            object.__setattr__(self, name, value)  # frozen, as its results are kept under its version

    @property
    def name(self) -> str:
        """The first evaluator's name: the chain answers its question."""
        return self.evaluators[0].name

    @property
    def version(self) -> str:
        """Of every evaluator, and of the settings where they differ from the defaults."""
        chain = "+".join(f"{evaluator.name}@{evaluator.version}" for evaluator in self.evaluators)
        below = "" if self.below is None else f":below={float(self.below)!r}"
        return f"{chain}{below}{':on_failure' if self.on_failure else ''}"

    @property
    def verdict_type(self) -> type[V]:
        """The verdict type that all of them share."""
        return self.evaluators[0].verdict_type

    def pending(self, value: V, /) -> bool:
        """Whether any of them calls a verdict's value too soon to tell."""
        return any(asked(value) for asked in self._parts("pending"))

    def pinned(self) -> Fallback[I, V]:
        """The same chain with every clock in it read once."""
        pinned = (getattr(evaluator, "pinned", None) for evaluator in self.evaluators)
        return Fallback(
            *(evaluator if pin is None else pin() for evaluator, pin in zip(self.evaluators, pinned, strict=True)),
            below=self.below,
            on_failure=self.on_failure,
        )

    def as_of(self, given: I, /) -> datetime | None:
        """The latest reading time that any of them depends on, None where none does."""
        times = (read(given) for read in self._parts("as_of"))
        return max((time for time in times if time is not None), default=None)

    def expected_tokens(self, given: I, /) -> int:
        """The most that any of them expects of one call."""
        return max((expected(given) for expected in self._parts("expected_tokens")), default=0)

    def expected_calls(self, given: I, /) -> int:
        """The calls of all of them, which may all be asked."""
        return sum(calls_of(evaluator, given) for evaluator in self.evaluators)

    @property
    def made_with(self) -> frozenset[Subject]:
        """What any of them was trained with, as far as they say."""
        return frozenset().union(*(getattr(evaluator, "made_with", ()) for evaluator in self.evaluators))

    def _parts(self, name: str) -> list[Callable[[Any], Any]]:
        """What those evaluators that have an optional part of this name call by it."""
        found = (getattr(evaluator, name, None) for evaluator in self.evaluators)
        return [part for part in found if part is not None]

    async def evaluate(self, given: I, /) -> Result[V]:
        """The first verdict or skip. Its latency and cost are those of all the evaluators that were asked.

        It depends on the reading time where any of them does.
        """
        asked: list[Result[V]] = []
        for evaluator in self.evaluators:
            asked.append(self._weighed(await evaluator.evaluate(given)))
            if self._settles(asked[-1]):
                break
        return self._combined(asked)

    def evaluate_sync(self, given: I, /) -> Result[V]:
        """As `evaluate`, from code that cannot await, in a notebook too; see `run_sync`."""
        asked: list[Result[V]] = []
        for evaluator in self.evaluators:
            # Each by its own way where it has one: what only computes needs no event loop.
            own = getattr(evaluator, "evaluate_sync", None)
            asked.append(self._weighed(run_sync(evaluator.evaluate(given)) if own is None else own(given)))
            if self._settles(asked[-1]):
                break
        return self._combined(asked)

    def _settles(self, result: Result[V]) -> bool:
        return not isinstance(result, (HandOff, Failure) if self.on_failure else HandOff)

    def _combined(self, asked: list[Result[V]]) -> Result[V]:
        last = asked[-1]
        if isinstance(last, Verdict):
            if last.given_by is None:  # of a chain in this chain, the one inside is credited
                last = replace(last, given_by=f"{last.evaluator}@{last.version}")
            if not is_trained_on(last) and any(map(is_trained_on, asked)):  # whom it asks was tuned with this input
                last = replace(last, flags=(*last.flags, TRAINED_ON))
        return replace(
            last,
            evaluator=self.name,
            version=self.version,
            latency=known_total([result.latency for result in asked]),
            cost=known_total([result.cost for result in asked]),
            as_of=next((result.as_of for result in reversed(asked) if result.as_of is not None), None),
        )

    def _weighed(self, result: Result[V]) -> Result[V]:
        if self.below is None or not isinstance(result, Verdict) or not result.confidence:
            return result
        field_name, lowest = min(result.confidence.items(), key=lambda item: item[1])
        if lowest >= self.below:
            return result
        return HandOff(
            f"confidence of {field_name} is {lowest:.3g}, under {self.below:.3g}",
            result.evaluator,
            result.version,
            result.about,
            result.latency,
            result.cost,
            result.as_of,
            result,
        )


def known_total(amounts: list[float | None]) -> float | None:
    """The sum, or None as soon as one amount is unknown: an unknown cost is not 0."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
