"""Tasks: what an experiment tries out, run as an evaluator is, so that its outputs are journalled as results are."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evalr.errors import InputError, error_words
from evalr.input_fields import without_lone_surrogates
from evalr.inputs import Input
from evalr.plain import ascii_text, from_json_text, value_fields
from evalr.quoting import safe_text
from evalr.runs.code_versions import code_version
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict

Task = Callable[[Any], Any] | Callable[[Any], Awaitable[Any]]
"""A function, sync or async, from an example's input to an output: texts, numbers, lists and maps, or a model."""


class Output(BaseModel):
    """What a task returned, as a journal keeps it: plain, with the name of its type where that is a model's."""

    model_config = ConfigDict(frozen=True)

    plain: Any
    model: str | None = None

    @classmethod
    def of(cls, output: object) -> Output:
        """An output as it can be kept.

        Raises:
            TypeError: it cannot be, or would not be read back as it is.
        """
        if not isinstance(output, BaseModel):
            try:
                return cls(plain=from_json_text(ascii_text(output)))
            except (TypeError, ValueError, RecursionError):
                raise TypeError(
                    f"a task returns what JSON holds, or a model; this one returned a {type(output).__name__}"
                ) from None
        if isinstance(output, Input):
            # What a copy with other fields let in was not checked: a lone surrogate, say, or a turn that is none.
            output = type(output).model_validate(output.model_dump(warnings=False))
        kept = cls(plain=_fields(output), model=_name_of(type(output)))
        if kept.value() != output:
            raise TypeError(f"the {type(output).__name__} that the task returned would not be read back as it is")
        return kept

    def value(self) -> Any:
        """The output itself.

        Raises:
            InputError: its type is not known here, or has changed since.
        """
        if self.model is None:
            return self.plain
        found = _model_named(self.model)
        try:
            return found.model_validate(self.plain, by_alias=False, by_name=True)
        except ValidationError as error:
            raise InputError(
                f"a stored output is no {found.__name__}: give the task another version when the type of its outputs "
                "changes, so that it is asked again"
            ) from error


def _fields(output: BaseModel) -> Any:
    if isinstance(output, Input):
        return output.model_dump(mode="json", exclude_defaults=True)
    return from_json_text(ascii_text(value_fields(output)))


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _model_named(name: str) -> type[BaseModel]:
    module, _, path = name.partition(":")
    here: Any = sys.modules.get(module)
    for part in path.split("."):
        here = getattr(here, part, None)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return here
    # One that a function made, say, which no module has.
    found: list[type[BaseModel]] = [BaseModel]
    for kind in found:
        found += kind.__subclasses__()
    for kind in reversed(found):  # the newest where one was replaced
        if _name_of(kind) == name:
            return kind
    raise InputError(f"a stored output is a {safe_text(name)}, which is not defined here: import it first")


class TaskRunner:
    """A task in the form of an evaluator, whose verdicts hold its outputs."""

    verdict_type: type[Output] = Output

    def __init__(self, task: Task, name: str | None, version: str | None) -> None:
        if not callable(task):
            raise InputError(f"task={task!r} must be a function from an example's input to an output, or None")
        self.task = task
        self.task_name = _own_name(task) if name is None else name
        self.name = f"task:{self.task_name}"
        self.version = code_version(task) if version is None else version

    async def evaluate(self, given: Any, /) -> Result[Output]:
        """What the task makes of an input; whatever it raises is a failure that names it."""
        begun = perf_counter()
        try:
            if inspect.iscoroutinefunction(self.task):
                output = await self.task(given)
            else:
                from anyio import to_thread

                output = await to_thread.run_sync(self.task, given)
                if inspect.isawaitable(output):
                    output = await output
            if isinstance(output, Skip | HandOff):
                return output
            kept = Output.of(output)
        except Exception as error:  # noqa: BLE001  whatever a person's task raises is this example's failure
            words = without_lone_surrogates(f"task {self.task_name} failed: {error_words(error)}")
            return Failure(words, exception=error, latency=perf_counter() - begun)
        return Verdict(kept, self.name, self.version, given.about(), latency=perf_counter() - begun)

    def expected_tokens(self, given: Any, /) -> int:
        """None that a limit of tokens counts: what a task takes is its own to know."""
        return 0


def _own_name(task: Task) -> str:
    inner = getattr(task, "func", task)  # a partial's
    name = getattr(inner, "__name__", type(inner).__name__)
    return "task" if name == "<lambda>" else str(name)
