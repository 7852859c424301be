"""Time that passes only when nothing is left to do: an event loop whose clock jumps to the next timer.

A minute of polling costs what the polls cost, and the same chances give the same run, whatever else the machine does.
Nothing may run in a thread there, since nobody would wait for it; what waits for nothing at all is an error.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class StuckError(RuntimeError):
    """Everything waits, and nothing will ever happen."""


class _Leap(selectors.SelectSelector):
    """Does not wait for files: it moves the clock on by as long as it was to wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError("everything waits for something that will never happen")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that starts at second 0."""

    def __init__(self) -> None:
        self._leap = _Leap()
        super().__init__(self._leap)

    def time(self) -> float:
        return self._leap.now


def run_virtually(main: Coroutine[Any, Any, Result]) -> Result:
    """As asyncio.run, in a time of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
