"""Every call that watching health makes fails in every way: who is told of it, and that watching goes on.

What comes out is the table in docs/reliability.md. To write it anew after a change that is meant:
GPUSTOW_WRITE_DOCS=1 pytest tests/health/test_failures.py
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from gpustow.hardware.nodemodel import parse_node_model
from gpustow.health.event import EventKind, HealthEvent
from gpustow.health.nvmlsource import LOOK_EVERY
from tests.health.outcome import ALL_WELL, begun, proven, watched
from tests.health.watchedmachine import NODE, WatchedMachine
from tests.nvml.fakedriver import FakeDriver
from tests.nvml.faulttable import CODES, Row, compare_with_docs, gathered, written
from tests.nvml.readerprocess import ReaderProcess

XID = 0x8
HEAD = ("call", "what it does", "when watching begins", "while it watches", "when an unfit GPU is asked")

ANSWERING = {
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetRetiredPagesPendingStatus",
    "nvmlDeviceGetSramEccErrorStatus",
    "nvmlDeviceGetSupportedEventTypes",
    "nvmlDeviceGetUUID",
    "nvmlEventSetCreate",
    "nvmlEventSetWait_v2",
}
"""The calls that give an answer, which can be nonsense."""

BY_INDEX = "nvmlDeviceGetHandleByIndex_v2"
"""The call that is made when a GPU cannot be found by its UUID; it fails with that."""

DEADLINE, HANGS_FOR, PATIENCE = 0.8, 3.0, 60.0

Strike = Callable[[FakeDriver], None]


def _calls(machine: WatchedMachine) -> list[tuple[str, int]]:
    """The calls that watching makes, sorted, and the index of the GPU that is to be struck; -1 if it is about none."""
    machine.watch()
    machine.skip(LOOK_EVERY)
    machine.wait(0.0)
    for uuid in machine.uuids:
        machine.proof(uuid)
    machine.close()
    asked = machine.counted()
    return sorted((call, next((gpu for gpu in (0, 2) if (call, gpu) in asked), -1)) for call in {c for c, _ in asked})


def _struck_gpu(call: str, gpu: int) -> int:
    """The T4 for what newer GPUs do not support."""
    return 2 if call == "nvmlDeviceGetRetiredPagesPendingStatus" else gpu


def _result(machine: WatchedMachine, strike: Strike, gpu: int, deadline: float) -> Row:
    """What comes of it: when watching begins, while watching, and when the GPU is asked; all is well afterwards."""
    model = parse_node_model(NODE, "node")
    machine.start(model, deadline=deadline)
    struck = frozenset(machine.uuids if gpu < 0 else [machine.uuids[gpu]])
    asked = machine.uuids[max(gpu, 0)]
    strike(machine.driver)
    first = begun(machine.watch(), struck)
    _goes_on(machine, asked)
    machine.start(model, deadline=deadline)
    assert machine.watch() == ()
    strike(machine.driver)
    events: list[HealthEvent] = []
    for code in (48, 94):
        machine.driver.event(XID, code, gpu=1)
        machine.skip(LOOK_EVERY)
        events += machine.wait(0.0)
    second = watched(events, struck, {machine.uuids[1]})
    if any(event.kind is EventKind.SOURCE_FAILED for event in events):
        machine.watch()
    third = proven(machine.proof(asked))
    _goes_on(machine, asked)
    return first, second, third


def _goes_on(machine: WatchedMachine, asked: str) -> None:
    """Once nothing goes wrong any more, all is watched and the GPU that was asked is well."""
    machine.driver.heal()
    end = time.monotonic() + PATIENCE
    while machine.watch() or proven(machine.proof(asked)) != ALL_WELL:
        assert time.monotonic() < end
        time.sleep(0.2)
    machine.wait(0.0)
    machine.driver.event(XID, 31, gpu=2)
    assert [event.xid for event in machine.wait(5.0)] == [31]
    machine.close()


def _fails(call: str, code: int, gpu: int, driver: FakeDriver) -> None:
    driver.fail(call, code, gpu=gpu)
    if call == "nvmlDeviceGetHandleByUUID":
        driver.fail(BY_INDEX, code, gpu=gpu)


def _answers_with_nonsense(call: str, gpu: int, driver: FakeDriver) -> None:
    driver.garble(call, gpu=gpu)


def _hangs(call: str, gpu: int, driver: FakeDriver) -> None:
    driver.hang(call, HANGS_FOR, gpu=gpu)


def _hang_all(folder: Path, calls: Sequence[tuple[str, int]]) -> dict[str, Row]:
    """What comes of each call that hangs, from a process of their own."""
    with ReaderProcess(FakeDriver(folder, parse_node_model(NODE, "node"))) as process:
        machine = WatchedMachine(process)
        return {
            call: _result(machine, partial(_hangs, call, _struck_gpu(call, gpu)), _struck_gpu(call, gpu), DEADLINE)
            for call, gpu in calls
        }


@pytest.mark.slow
def test_what_comes_of_a_call_that_fails(machine: WatchedMachine, tmp_path: Path) -> None:
    calls = _calls(machine)
    with ThreadPoolExecutor(4) as pool:
        folders = [tmp_path / str(part) for part in range(4)]
        parts = pool.map(_hang_all, folders, [calls[part::4] for part in range(4)])
        failing = {call: _failing(machine, call, _struck_gpu(call, gpu)) for call, gpu in calls}
        hanging = {call: result for part in parts for call, result in part.items()}
    rows: list[Row] = []
    for call, _ in calls:
        name = f"`{call}`, and by index" if call == "nvmlDeviceGetHandleByUUID" else f"`{call}`"
        rows += gathered(name, failing[call] | {"hangs": hanging[call]})
    compare_with_docs("calls that fail while health is watched", written(HEAD, rows))


def _failing(machine: WatchedMachine, call: str, gpu: int) -> dict[str, Row]:
    results = {name: _result(machine, partial(_fails, call, code, gpu), gpu, 30.0) for name, code in CODES.items()}
    if call in ANSWERING:
        results["nonsense"] = _result(machine, partial(_answers_with_nonsense, call, gpu), gpu, 30.0)
    return results
