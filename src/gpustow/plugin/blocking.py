"""A call that may block for long, or for ever, without keeping the daemon from ending.

A driver that hangs cannot be interrupted. asyncio's own threads are waited for when the process ends; this one is not.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(call: Callable[[], Result], *, name: str) -> Result:
    """What `call` returns or raises, from a thread of its own. If this is cancelled, the thread is left to itself."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def deliver(settle: Callable[[], None]) -> None:
        def unless_cancelled() -> None:
            if not future.done():
                settle()

        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(unless_cancelled)

    def work() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            failure = error
            deliver(lambda: future.set_exception(failure))
        else:
            deliver(lambda: future.set_result(result))

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future
