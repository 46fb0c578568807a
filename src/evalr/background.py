"""One event loop in the background of the process, so that what is async can be called from anywhere.

A notebook's own loop is running while its cells run, so that `asyncio.run` fails there. Work that is sent to the loop
of a thread of its own does not care what the caller's thread is doing.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from evalr.errors import InputError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

T = TypeVar("T")

_SHUTDOWN = 5.0
"""Seconds that cancelled work has to end when the interpreter does."""


def run_sync(awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable, such as `evaluator.evaluate(given)`, and return what it returns or raise what it raises.

    It works with and without a running event loop: in a script, in a notebook, in a callback inside `asyncio.run`, in
    several threads at once. The work runs in one background thread of the process, with a copy of the caller's
    context variables; the calling thread waits, and an interrupt there cancels the work.

    Raises:
        InputError: it is not awaitable, belongs to another event loop, or is waited for by work of the background loop
            itself, which would wait for ever: use `await` there.
    """
    from concurrent.futures import Future

    if not inspect.isawaitable(awaitable):
        raise InputError(
            f"run_sync waits for an awaitable, such as evaluator.evaluate(given), not for {type(awaitable).__name__}"
        )
    background = _running()
    refusal = _refusal(awaitable, background)
    if refusal is not None:
        if inspect.iscoroutine(awaitable):
            awaitable.close()  # nobody will await it
        raise InputError(refusal)

    done: Future[_Outcome] = Future()
    tasks: list[Task[None]] = []

    def start() -> None:
        tasks.append(background.loop.create_task(_settle(awaitable, done)))

    def cancel() -> None:
        for task in tasks:
            task.cancel()

    # The loop runs `start` in a copy of this thread's context, and the task copies that of `start`.
    background.loop.call_soon_threadsafe(start)
    try:
        outcome = done.result()
    except BaseException:
        # Only an interrupt of this thread gets here: what the work raises is an outcome. The loop keeps to the order
        # of calls, so that there is a task by then.
        background.loop.call_soon_threadsafe(cancel)
        raise
    if outcome.error is not None:
        try:
            raise outcome.error
        finally:
            del outcome, done  # the error's traceback has this frame, which would hold the error
    return outcome.value  # type: ignore[no-any-return]  # as the awaitable says


class _Outcome(NamedTuple):
    value: Any
    error: BaseException | None


async def _settle(awaitable: Awaitable[Any], done: Any) -> None:
    """Await, and hand over what came of it: an exit or an interrupt that the work raises must not end the loop."""
    try:
        outcome = _Outcome(await awaitable, None)
    except BaseException as error:  # noqa: BLE001  it is raised in the thread that waits
        outcome = _Outcome(None, error)
    done.set_result(outcome)
    del outcome, done  # as in `run_sync`


def _refusal(awaitable: Awaitable[Any], background: _Background) -> str | None:
    if threading.current_thread() is background.thread:
        return "this is already run by run_sync, in whose event loop it would wait for itself: use `await` here"
    other = getattr(awaitable, "get_loop", None)  # of a future or a task
    if other is not None and other() is not background.loop:
        return f"this {type(awaitable).__name__} belongs to another event loop: use `await` there, or pass a coroutine"
    return None


# ---------------------------------------------------------------------------------------------------------------------
# The loop
# ---------------------------------------------------------------------------------------------------------------------


class _Background(NamedTuple):
    loop: AbstractEventLoop
    thread: threading.Thread


_lock = threading.Lock()
_backgrounds: list[_Background] = []
_inherited: list[_Background] = []


def _running() -> _Background:
    """The process's loop, which the first call begins."""
    with _lock:
        if not (_backgrounds and _backgrounds[0].thread.is_alive()):
            _backgrounds[:] = [_begun()]
        return _backgrounds[0]


def _begun() -> _Background:
    import asyncio
    import atexit

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_serve, args=(loop,), name="evalr", daemon=True)
    thread.start()
    atexit.register(_end)
    return _Background(loop, thread)


def _serve(loop: AbstractEventLoop) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        while not _ended(loop):
            pass
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _ended(loop: AbstractEventLoop) -> bool:
    """Run the loop; whether it was stopped. What wants to end the process from one task ends that task alone.

    Asyncio leaves the loop then, and the task has the error for whoever awaits it.
    """
    try:
        # Not by way of a main task, on whose end anyio's worker threads would wait, and the interpreter on them.
        loop.run_forever()
    except (SystemExit, KeyboardInterrupt):
        return False
    return True


def _end() -> None:
    """Stop the loop before the interpreter takes its modules away."""
    with _lock:
        ended, _backgrounds[:] = list(_backgrounds), []
    for loop, thread in ended:
        with contextlib.suppress(RuntimeError):  # it is closed already
            loop.call_soon_threadsafe(loop.stop)
        thread.join(_SHUTDOWN)


def _forget() -> None:
    """In a forked child the thread is gone: the next call begins another, and the parent's loop is left alone.

    It is kept, since to close it would take the parent's file descriptors out of what the parent waits on.
    """
    global _lock  # noqa: PLW0603  the parent's may have been held by a thread that is not here
    _lock = threading.Lock()
    _inherited.extend(_backgrounds)
    _backgrounds.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
