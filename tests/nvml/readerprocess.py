"""The NVML reader in a process of its own, because a process holds one library for good."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from gpustow.errors import HardwareError
from gpustow.hardware.node import Node
from gpustow.hardware.nvml import NvmlReader, Places
from tests.nvml.fakedriver import FakeDriver

_PATIENCE = 60.0


class ReaderProcess:
    """Reads the fake machine, as often as asked, with one reader; `call` runs a function of a module there."""

    def __init__(self, driver: FakeDriver, *, name: str = "node", deadline: float = 30.0) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, driver.environment, _places(driver), name, deadline)
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send(None)
        self._pipe.close()
        self._process.join(_PATIENCE)
        self._process.close()

    def read(self) -> Node:
        """One reading. Raises HardwareError."""
        node: Node = self.call(_read)
        return node

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


def _places(driver: FakeDriver) -> Places:
    return Places(str(driver.driver_root), driver.system_root)


def _read(reader: NvmlReader) -> Node:
    return reader.read()


def _serve(pipe: Connection, environment: dict[str, str], places: Places, name: str, deadline: float) -> None:
    os.environ.update(environment)
    reader = NvmlReader(name, places, deadline=deadline)
    while (function := pipe.recv()) is not None:
        try:
            result: Any = function(reader)
        except HardwareError as error:
            result = ("hardware error", error.message, error.advice)
        except Exception as error:  # noqa: BLE001 - it is raised where the test waits
            result = error
        pipe.send(result)
