"""Calls that may hang, cut off after a deadline.

A call into the driver cannot be interrupted: when a GPU is sick enough, it just does not return. So calls run in a
thread of their own, and whoever waits for them waits no longer than the deadline. A thread whose call did not return is
left behind and a new one takes the next call. Until it returns, the same call about the same thing is not made again:
reading a node again and again does not leave more and more threads behind. They are counted as well, because each costs
memory for good: with too many of them no further call is made until some return.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from gpustow.hardware.nvml.observer import CallObserver, SilentCallObserver

MOST_STUCK = 16
"""More calls than this that have not returned, and no further one is made."""


class Hang(Exception):  # noqa: N818 - names what happened
    """The call did not return in time, or is not made because it or others did not before."""


class _Job:
    """One call and what came of it."""

    __slots__ = ("about", "arguments", "done", "error", "function", "result")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], about: str) -> None:
        self.function = function
        self.arguments = arguments
        self.about = about
        self.done: SimpleQueue[None] = SimpleQueue()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.function(*self.arguments)
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
            self.error = error
        self.done.put(None)


class DeadlineCaller:
    """Makes calls one at a time, each with `deadline` seconds. For one thread at a time.

    `observer` is for whoever makes calls by name, to tell about them.
    """

    def __init__(self, deadline: float, observer: CallObserver | None = None) -> None:
        self.deadline = deadline
        self.observer = observer or SilentCallObserver()
        self._jobs: SimpleQueue[_Job | None] | None = None
        self._stuck: list[_Job] = []

    @property
    def stuck(self) -> int:
        """How many calls have not returned yet."""
        self._stuck = [job for job in self._stuck if job.done.empty()]
        return len(self._stuck)

    def call(self, function: Callable[..., Any], *arguments: Any, about: str = "", waits: float = 0.0) -> Any:
        """What the function returns or raises; `about` is what it is asked about, such as `GPU 2`.

        A function that is there to wait has the seconds that it `waits` beside the deadline.

        Raises:
            Hang: it did not return within the deadline, an earlier call of it about the same has not returned yet, or
                too many calls have not.
        """
        if self._stuck and self.stuck >= MOST_STUCK:
            raise Hang(f"not asked, because {len(self._stuck)} earlier calls have not returned")
        if any(job.function == function and job.about == about for job in self._stuck):
            raise Hang("not asked, because it was asked before and has not answered yet")
        if self._jobs is None:
            self._jobs = SimpleQueue()
            threading.Thread(target=_work, args=(self._jobs,), name="gpustow-nvml", daemon=True).start()
        job = _Job(function, arguments, about)
        self._jobs.put(job)
        try:
            job.done.get(timeout=waits + self.deadline)
        except Empty:
            self._stuck.append(job)
            self.close()
            raise Hang(f"no answer within {waits + self.deadline:g} s") from None
        if job.error is not None:
            raise job.error
        return job.result

    def close(self) -> None:
        """Ends the thread, as soon as its call returns."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None


def _work(jobs: "SimpleQueue[_Job | None]") -> None:
    while (job := jobs.get()) is not None:
        job.run()
