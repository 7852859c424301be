import threading
from types import SimpleNamespace

import pytest

from gpustow.hardware.nvml.deadline import DeadlineCaller
from gpustow.hardware.nvml.library import TIMEOUT, Nvml, NvmlFailure
from gpustow.hardware.nvml.observer import CallObserver, CallResult, SilentCallObserver


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(str(value))
        self.value = value


class Listener:
    def __init__(self) -> None:
        self.told: list[tuple[str, CallResult]] = []

    def called(self, call: str, seconds: float, result: CallResult) -> None:
        assert seconds >= 0
        self.told.append((call, result))


def nvml(listener: CallObserver | None, deadline: float = 30.0) -> tuple[Nvml, threading.Event]:
    """The library with some functions; the event ends the one that hangs."""
    over = threading.Event()

    def fails(code: int) -> None:
        raise NvmlError(code)

    def answers_nonsense() -> None:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    library = object.__new__(Nvml)
    library.bindings = SimpleNamespace(
        NVMLError=NvmlError, works=lambda: "yes", fails=fails, hangs=over.wait, answers_nonsense=answers_nonsense
    )
    library._caller = DeadlineCaller(deadline, listener)
    return library, over


def test_each_call_is_told_with_how_it_ended() -> None:
    listener = Listener()
    library, _ = nvml(listener)
    assert library.call("works") == "yes"
    for call, arguments in (("fails", (3,)), ("answers_nonsense", ())):
        with pytest.raises(NvmlFailure):
            library.call(call, *arguments)
    assert listener.told == [
        ("works", CallResult.OK),
        ("fails", CallResult.FAILED),
        ("answers_nonsense", CallResult.FAILED),
    ]


def test_a_call_that_does_not_return_is_told_as_hanging() -> None:
    listener = Listener()
    library, over = nvml(listener, deadline=0.01)
    with pytest.raises(NvmlFailure):
        library.call("hangs")
    over.set()
    assert listener.told == [("hangs", CallResult.HUNG)]


def test_that_nothing_came_while_it_waited_is_no_failure() -> None:
    listener = Listener()
    library, _ = nvml(listener)
    with pytest.raises(NvmlFailure):
        library.call("fails", TIMEOUT, waits=0.1)
    with pytest.raises(NvmlFailure):
        library.call("fails", TIMEOUT)
    assert [result for _, result in listener.told] == [CallResult.OK, CallResult.FAILED]


def test_nobody_has_to_listen() -> None:
    library, _ = nvml(None)
    assert library.call("works") == "yes"
    assert isinstance(library._caller.observer, SilentCallObserver)
