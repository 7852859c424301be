import threading
import time
from contextlib import suppress

import pytest

from gpustow.hardware.nvml.deadline import MOST_STUCK, DeadlineCaller, Hang


@pytest.fixture
def gate() -> threading.Event:
    """What hanging calls wait for."""
    return threading.Event()


def test_a_call_returns_what_the_function_returns_and_raises_what_it_raises() -> None:
    caller = DeadlineCaller(30.0)
    assert caller.call(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        caller.call(divmod, 7, 0)
    caller.close()


def test_all_calls_that_return_are_made_by_one_thread() -> None:
    caller = DeadlineCaller(30.0)
    assert len({caller.call(threading.get_ident) for _ in range(5)}) == 1
    caller.close()
    caller.close()


def test_a_call_that_hangs_is_left_behind_and_the_next_is_made(gate: threading.Event) -> None:
    caller = DeadlineCaller(0.05)
    with pytest.raises(Hang, match=r"no answer within 0\.05 s"):
        caller.call(gate.wait)
    assert caller.stuck == 1
    caller.deadline = 30.0
    assert caller.call(len, "abc") == 3
    gate.set()
    while caller.stuck:
        time.sleep(0.001)
    caller.close()


def test_a_call_that_waits_has_its_time_beside_the_deadline(gate: threading.Event) -> None:
    caller = DeadlineCaller(0.01)
    threading.Timer(0.1, gate.set).start()
    assert caller.call(gate.wait, waits=30.0)
    gate.clear()
    with pytest.raises(Hang, match=r"no answer within 0\.03 s"):
        caller.call(gate.wait, waits=0.02)
    gate.set()
    caller.close()


def test_a_call_that_hangs_is_not_made_again_about_the_same_until_it_returns(gate: threading.Event) -> None:
    caller = DeadlineCaller(0.05)
    with pytest.raises(Hang, match="no answer within"):
        caller.call(gate.wait, about="GPU 0")
    for _ in range(MOST_STUCK + 1):
        with pytest.raises(Hang, match="asked before and has not answered yet"):
            caller.call(gate.wait, about="GPU 0")
    assert caller.stuck == 1
    with pytest.raises(Hang, match="no answer within"):
        caller.call(gate.wait, about="GPU 1")
    gate.set()
    while caller.stuck:
        time.sleep(0.001)
    caller.deadline = 30.0
    assert caller.call(gate.wait, about="GPU 0")
    caller.close()


def test_with_too_many_calls_that_hang_no_more_are_made_until_some_return(gate: threading.Event) -> None:
    caller = DeadlineCaller(0.01)
    for number in range(MOST_STUCK):
        with suppress(Hang):
            caller.call(gate.wait, about=f"GPU {number}")
    caller.deadline = 30.0
    with pytest.raises(Hang, match=f"{MOST_STUCK} earlier calls have not returned"):
        caller.call(len, "abc")
    gate.set()
    while caller.stuck:
        time.sleep(0.001)
    assert caller.call(len, "abc") == 3
    caller.close()
