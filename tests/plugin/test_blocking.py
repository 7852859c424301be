import asyncio
import threading

import pytest

from gpustow.plugin.blocking import in_thread
from tests.kubelet.fakekubelet import until


async def test_a_result_and_an_error_come_from_a_thread_of_that_name() -> None:
    assert await in_thread(lambda: threading.current_thread().name, name="reads") == "reads"

    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await in_thread(fail, name="fails")


async def test_a_call_that_is_given_up_may_still_end_in_peace() -> None:
    release = threading.Event()
    for ending in (None, ValueError("nobody hears")):

        def call(ending: Exception | None = ending) -> None:
            release.wait()
            if ending is not None:
                raise ending

        waiting = asyncio.create_task(in_thread(call, name="given up"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    release.set()
    await until(lambda: not any(thread.name == "given up" for thread in threading.enumerate()))


def test_a_call_that_outlives_its_loop_ends_in_peace() -> None:
    release = threading.Event()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await in_thread(release.wait, name="outlives")

    asyncio.run(give_up())
    thread = next(thread for thread in threading.enumerate() if thread.name == "outlives")
    assert thread.daemon
    release.set()
    thread.join()
