"""The thread of a source: its calls, in order, and what becomes of them."""

import asyncio
import threading

import pytest

from gpustow.health.sourcethread import SourceThread


async def test_calls_are_made_in_one_daemon_thread_in_their_order() -> None:
    thread = SourceThread("source")
    made: list[tuple[str, bool, int]] = []

    def call(number: int) -> int:
        made.append((threading.current_thread().name, threading.current_thread().daemon, number))
        return number

    assert await asyncio.gather(*(thread.call(call, number) for number in range(3))) == [0, 1, 2]
    assert made == [("source", True, number) for number in range(3)]
    thread.end(lambda: None)


@pytest.mark.parametrize(
    ("error", "told"),
    [(ValueError("no"), ValueError), (StopIteration("no"), RuntimeError), (SystemExit("no"), RuntimeError)],
)
async def test_what_a_call_raises_is_raised_where_its_outcome_is_awaited(
    error: BaseException, told: type[Exception]
) -> None:
    thread = SourceThread("source")

    def fail() -> None:
        raise error

    with pytest.raises(told, match="no"):
        await thread.call(fail)
    assert await thread.call(lambda: 1) == 1
    thread.end(lambda: None)


async def test_nobody_need_wait_for_a_call() -> None:
    thread = SourceThread("source")
    go = threading.Event()

    def late() -> None:
        go.wait()

    def late_and_wrong() -> None:
        raise ValueError("nobody hears it")

    for function in (late, late_and_wrong):
        thread.call(function).cancel()
    go.set()
    assert await thread.call(lambda: 1) == 1
    thread.end(lambda: None)


async def test_the_end_comes_after_the_calls_that_were_asked_for() -> None:
    thread = SourceThread("source")
    done: list[str] = []
    ended = threading.Event()

    def last() -> None:
        done.append("last")
        ended.set()
        raise ValueError("nobody hears it")

    outcome = thread.call(done.append, "call")
    thread.end(last)
    await outcome
    assert ended.wait(10)
    assert done == ["call", "last"]
    assert await thread.call(lambda: 1) == 1
    thread.end(lambda: None)


def test_a_thread_that_never_began_has_no_end() -> None:
    SourceThread("source").end(lambda: pytest.fail("there is nothing to end"))


def test_a_call_may_outlive_the_loop() -> None:
    go, over = threading.Event(), threading.Event()
    thread = SourceThread("source")

    def late() -> None:
        go.wait()

    async def begin() -> None:
        thread.call(late).cancel()

    asyncio.run(begin())
    thread.end(over.set)
    go.set()
    assert over.wait(10)


async def test_a_call_that_hangs_holds_up_nobody_but_the_next_calls() -> None:
    thread = SourceThread("source")
    go = threading.Event()
    hanging, behind = thread.call(go.wait), thread.call(go.is_set)
    done, _ = await asyncio.wait({hanging, behind}, timeout=0.02)
    assert not done
    go.set()
    assert await hanging
    assert await behind
    thread.end(lambda: None)
