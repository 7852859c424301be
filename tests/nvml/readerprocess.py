"""The NVML reader in a process of its own, because a process holds one library for good."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from gpustow.errors import HardwareError
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import NodeModel
from gpustow.hardware.nvml import NvmlReader, Places
from tests.nvml.fakedriver import FakeDriver

_PATIENCE = 60.0


class ReaderProcess:
    """Reads a fake machine, as often as asked, with one reader; `start` begins anew with another machine.

    Starting a process takes longer than most tests, so tests share one and start anew in it.
    """

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, driver.environment))
        self._process.start()
        theirs.close()
        self._counted: Counter[tuple[str, int]] = Counter()
        self._renew("node", 30.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send(None)
        self._pipe.close()
        self._process.join(_PATIENCE)
        self._process.close()

    def start(self, model: NodeModel, *, deadline: float = 30.0) -> None:
        """A machine as the model describes it, and a new reader for it."""
        self.driver.renew(model)
        self._counted = self.driver.counts()
        self._renew(model.name, deadline)

    def read(self) -> Node:
        """One reading. Raises HardwareError."""
        node: Node = self.call(_read)
        return node

    def counts(self) -> Counter[tuple[str, int]]:
        """How often each call was made for each GPU since `start`, as of the end of the last reading."""
        return self.driver.counts() - self._counted

    def call(self, function: Callable[[NvmlReader], Any]) -> Any:
        """What a function returns or raises that is called with the reader there."""
        self._pipe.send(function)
        if not self._pipe.poll(_PATIENCE):
            raise TimeoutError
        result = self._pipe.recv()
        if isinstance(result, tuple) and result[:1] == ("hardware error",):
            raise HardwareError(result[1], advice=result[2])
        if isinstance(result, BaseException):
            raise result
        return result

    def _renew(self, name: str, deadline: float) -> None:
        places = Places(str(self.driver.driver_root), self.driver.system_root)
        self._pipe.send(_NewReader(name, places, deadline))


@dataclass(frozen=True, slots=True)
class _NewReader:
    """What the process's reader is from now on."""

    name: str
    places: Places
    deadline: float


def _read(reader: NvmlReader) -> Node:
    return reader.read()


def _serve(pipe: Connection, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    reader = NvmlReader("node")
    while (message := pipe.recv()) is not None:
        if isinstance(message, _NewReader):
            reader = NvmlReader(message.name, message.places, deadline=message.deadline)
            continue
        try:
            result: Any = message(reader)
        except HardwareError as error:
            result = ("hardware error", error.message, error.advice)
        except Exception as error:  # noqa: BLE001 - it is raised where the test waits
            result = error
        pipe.send(result)
