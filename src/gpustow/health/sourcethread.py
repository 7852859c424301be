"""The thread that a source of health lives in, so that a call which hangs does not hang the event loop.

It makes one call at a time, in the order in which they are asked for, and hands the outcome to the loop. A call into
the driver cannot be interrupted: whoever waits for it stops waiting, and the thread goes on when the call returns. It
is a daemon thread: the process ends without it.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")


class SourceThread:
    """Makes blocking calls in a thread of its own, which is started with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], None] | None] | None = None

    def call(self, function: Callable[..., _T], *arguments: Any) -> "asyncio.Future[_T]":
        """What the function will return or raise. For the thread of the running loop."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[_T] = loop.create_future()

        def work() -> None:
            try:
                result = function(*arguments)
            except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is awaited
                _tell(loop, _fail, outcome, error)
            else:
                _tell(loop, _succeed, outcome, result)

        self._queue().put(work)
        return outcome

    def end(self, last: Callable[[], None]) -> None:
        """Ends the thread as soon as its calls have returned; `last` is called there before."""
        if self._jobs is None:
            return

        def work() -> None:
            with suppress(Exception):  # nobody is left to be told
                last()

        self._jobs.put(work)
        self._jobs.put(None)
        self._jobs = None

    def _queue(self) -> "SimpleQueue[Callable[[], None] | None]":
        if self._jobs is None:
            self._jobs = SimpleQueue()
            threading.Thread(target=_work, args=(self._jobs,), name=self._name, daemon=True).start()
        return self._jobs


def _work(jobs: "SimpleQueue[Callable[[], None] | None]") -> None:
    while (job := jobs.get()) is not None:
        job()


def _tell(loop: asyncio.AbstractEventLoop, how: Callable[..., None], *arguments: Any) -> None:
    with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
        loop.call_soon_threadsafe(how, *arguments)


def _succeed(outcome: "asyncio.Future[_T]", result: _T) -> None:
    if not outcome.done():
        outcome.set_result(result)


def _fail(outcome: "asyncio.Future[Any]", error: BaseException) -> None:
    if not outcome.done():
        outcome.set_exception(error if _can_be_set(error) else RuntimeError(repr(error)))


def _can_be_set(error: BaseException) -> bool:
    """Not what would end the loop, or what a future does not take."""
    return isinstance(error, Exception) and not isinstance(error, StopIteration)
