"""From a stream of inputs to what is to be asked: one job for each input, evaluator and repeat."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from time import monotonic
from typing import Any, Literal, NamedTuple, Protocol

from evalr.errors import DuplicateError, InputError
from evalr.evaluators import Evaluator
from evalr.inputs import About, Input
from evalr.quoting import safe_text
from evalr.runs.keys import Key, MaybeSubject, input_hash
from evalr.runs.places import Places
from evalr.verdicts import Failure, describe

BATCH = 32
"""Inputs that are taken together where they are there: enough to look them up quickly, few enough to hold."""

TURN = 0.005
"""Seconds that reading inputs may hold up everything else."""


class Job(NamedTuple):
    """One question to be asked.

    Attributes:
        evaluator: who is asked.
        given: of what.
        key: what the journal knows the question by.
        digest: the key's.
        repeat: which time the input is asked of, where it is asked several times.
        since: answers of calls after this one are new, since another run was found at work on it; None where none was.
    """

    evaluator: Evaluator[Any, Any]
    given: Input
    key: Key
    digest: bytes
    repeat: int | None
    since: int | None = None

    def about(self) -> About:
        """What its result is about."""
        about = self.given.about()
        return about if self.repeat is None else about._replace(repeat=self.repeat)

    def named(self) -> str:
        """The input as people would name it."""
        return describe(Failure("", about=self.about()))


class Plan(Protocol):
    """What makes the jobs of each thing that a run reads."""

    def jobs(self, position: int, given: Any) -> list[Job] | None:
        """The jobs of an input, or None where its subject has come before."""


class Planner:
    """Makes the jobs of each input, and refuses what cannot be asked."""

    def __init__(
        self, evaluators: Sequence[Evaluator[Any, Any]], repeats: int, duplicates: Literal["error", "first"]
    ) -> None:
        self._evaluators = [(each, each.name, each.version, getattr(each, "as_of", None)) for each in evaluators]
        self._read_by_all: set[type] = set()  # a model is not quick to tell
        self._repeats = [None] if repeats == 1 else list(range(1, repeats + 1))
        self._strict = duplicates == "error"
        self._places = Places()
        self._again: Counter[bytes] = Counter()

    def jobs(self, position: int, given: Any) -> list[Job] | None:
        """The jobs of an input, or None where its subject has come before.

        Raises:
            InputError: it is no input, or one that an evaluator does not read.
            DuplicateError: its subject has come before with another content, and `duplicates` is "error".
        """
        if type(given) not in self._read_by_all:
            for evaluator, *_ in self._evaluators:
                _check_type(evaluator, position, given)
            self._read_by_all.add(type(given))
        content = content_hash(given)
        subject = _subject(given)
        place = 1
        if given.id is not None:
            if self._came_before(subject, given, position, content):
                return None
        elif self._places.add(content, position, content) is not None:
            # Nothing tells two equal inputs without an id apart, but there are two of them.
            self._again[content] += 1
            place += self._again[content]
        jobs = []
        for evaluator, name, version, read_as_of in self._evaluators:
            as_of = None if read_as_of is None else read_as_of(given)
            for repeat in self._repeats:
                key = Key(subject, name, version, content, repeat or 1, as_of, place)
                jobs.append(Job(evaluator, given, key, key.digest(), repeat))
        return jobs

    def _came_before(self, subject: MaybeSubject, given: Input, position: int, content: bytes) -> bool:
        before = self._places.add(subject, position, content)
        if before is None:
            return False
        first, same = before
        if not same and self._strict:
            named = describe(Failure("", about=given.about()))
            raise DuplicateError(
                f"inputs {first} and {position} are both {named}, and differ: give each a subject (kind, user, "
                "session, id) of its own, or pass duplicates='first'"
            )
        return True


def content_hash(given: Input) -> bytes:
    """Of what is judged. How many inputs it stands for is none of that, and changes with what else is in a sample."""
    return input_hash(given if given.weight is None else given.model_copy(update={"weight": None}))


def _subject(given: Input) -> MaybeSubject:
    """As in what the input is about, without the rest of that."""
    if type(given).about is Input.about:
        return given.kind, given.user, given._parent(), given.id
    about = given.about()
    return about.kind, about.user, about.session, about.id


def _check_type(evaluator: Evaluator[Any, Any], position: int, given: object) -> None:
    if not isinstance(given, Input):
        raise InputError(
            f"input {position} is a {safe_text(type(given).__name__)}, and evaluators read inputs such as Session "
            "or Transcript"
        )
    types = getattr(evaluator, "input_type", None)
    if types is None or isinstance(given, types):
        return
    names = " or ".join(each.__name__ for each in (types if isinstance(types, tuple) else (types,)))
    raise InputError(
        f"input {position} is a {safe_text(type(given).__name__)}, and evaluator {evaluator.name!r} reads {names}: "
        "pass it only inputs of that type"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Streams
# ---------------------------------------------------------------------------------------------------------------------


async def batches(inputs: Iterable[Any] | AsyncIterable[Any]) -> AsyncGenerator[list[Any], None]:
    """The items of a stream in lists of those that are there: the first is not kept waiting for the last."""
    if isinstance(inputs, AsyncIterable):
        async with aclosing(_as_they_come(inputs)) as arriving:
            async for batch in arriving:
                yield batch
    else:
        iterator = iter(inputs)
        end = None
        while end is None:
            batch, end = _taken(iterator)
            if batch:
                yield batch
            await asyncio.sleep(0)
        if end.error is not None:
            raise end.error


class _End(NamedTuple):
    error: Exception | None


def _taken(iterator: Iterator[Any]) -> tuple[list[Any], _End | None]:
    """The items that are there, and the end of the stream where it has one: what came before an error is fine."""
    until = monotonic() + TURN
    batch: list[Any] = []
    try:
        for item in iterator:
            batch.append(item)
            if len(batch) >= BATCH or monotonic() > until:
                return batch, None
    except Exception as error:  # noqa: BLE001  whatever the stream raises is raised where it is read
        return batch, _End(error)
    return batch, _End(None)


async def _as_they_come(inputs: AsyncIterable[Any]) -> AsyncGenerator[list[Any], None]:
    arrived: asyncio.Queue[Any] = asyncio.Queue(BATCH)
    reading = asyncio.get_running_loop().create_task(_read(inputs, arrived))
    try:
        while True:
            batch = [await arrived.get()]
            while len(batch) < BATCH and not arrived.empty():
                batch.append(arrived.get_nowait())
            end = batch.pop() if isinstance(batch[-1], _End) else None
            if batch:
                yield batch
            if end is not None:
                if end.error is not None:
                    raise end.error
                return
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading


async def _read(inputs: AsyncIterable[Any], arrived: asyncio.Queue[Any]) -> None:
    end = _End(None)
    try:
        async for item in inputs:
            await arrived.put(item)
    except Exception as error:  # noqa: BLE001  whatever the stream raises is raised where it is read
        end = _End(error)
    finally:
        close = getattr(inputs, "aclose", None)
        if close is not None:
            await close()
    await arrived.put(end)
