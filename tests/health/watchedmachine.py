"""The NVML source in a process that has the fake library, and the machine that it watches."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import NodeModel
from gpustow.hardware.nvml import NvmlReader
from gpustow.health.event import HealthEvent, RecoveryProof
from gpustow.health.nvmlsource import NvmlSource
from tests.nvml.fakedriver import FakeDriver
from tests.nvml.readerprocess import ReaderProcess

NODE = """
name: node
driverVersion: 550.90.07
cudaVersion: 12.4
gpus:
  - {model: NVIDIA A100-SXM4-40GB, count: 2, mig: [{enabled: false}, {devices: [3g.20gb, 1g.5gb]}]}
  - {model: Tesla T4}
"""
"""A GPU of each kind: one that remaps rows, one with MIG devices, one that retires pages."""


class WatchedMachine:
    """Asks a source in another process. `skip` moves its clock, and the time it sleeps passes at once."""

    def __init__(self, process: ReaderProcess) -> None:
        self._process = process

    @property
    def driver(self) -> FakeDriver:
        """What goes wrong on the machine."""
        return self._process.driver

    def start(self, model: NodeModel, *, deadline: float = 30.0) -> None:
        """Another machine and a new source for it, which watches nothing yet."""
        self._process.start(model)
        self.node = model.node
        self.uuids = [gpu.uuid for gpu in model.node.gpus]
        self._call(partial(_renew, str(self.driver.driver_root), deadline))

    def watch(self, node: Node | None = None) -> tuple[HealthEvent, ...]:
        events: tuple[HealthEvent, ...] = self._call(partial(_ask, "watch", node or self.node))
        return events

    def wait(self, seconds: float = 0.05) -> tuple[HealthEvent, ...]:
        events: tuple[HealthEvent, ...] = self._call(partial(_ask, "wait", seconds))
        return events

    def proof(self, uuid: str) -> RecoveryProof:
        proof: RecoveryProof = self._call(partial(_ask, "proof", uuid))
        return proof

    def close(self) -> None:
        self._call(partial(_ask, "close"))

    def skip(self, seconds: float) -> None:
        self._call(partial(_skip, seconds))

    def slept(self) -> float:
        """Seconds that the source has slept."""
        seconds: float = self._call(_slept)
        return seconds

    def read(self) -> Node:
        """The node as a reader in the same process finds it."""
        return self._process.read()

    def calls(self, name: str) -> int:
        """How often the call was made, for whatever GPU, as of the last shutdown of NVML."""
        return sum(times for (call, _), times in self.counted().items() if call == name)

    def counted(self) -> Counter[tuple[str, int]]:
        """As `calls`, for every call and GPU (-1: none)."""
        return self._process.counts()

    def _call(self, function: Callable[[NvmlReader], Any]) -> Any:
        return self._process.call(function)


class _Time:
    """The clock of the source in this process."""

    skipped = 0.0
    slept = 0.0

    def now(self) -> float:
        return time.monotonic() + self.skipped

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.skipped += seconds


class _Here:
    """What this process has; set in the process that has the library."""

    time = _Time()
    source = NvmlSource()


def _renew(driver_root: str, deadline: float, _: NvmlReader) -> None:
    _Here.time = _Time()
    _Here.source = NvmlSource(driver_root, deadline=deadline, clock=_Here.time.now, sleep=_Here.time.sleep)


def _ask(method: str, *arguments: Any) -> Any:
    return getattr(_Here.source, method)(*arguments[:-1])


def _skip(seconds: float, _: NvmlReader) -> None:
    _Here.time.skipped += seconds


def _slept(_: NvmlReader) -> float:
    return _Here.time.slept
