"""The daemon in this process, with a configuration and a node that a test can change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gpustow.config import LoadedConfig
from gpustow.hardware.node import Node
from gpustow.plugin import Supervisor
from gpustow.plugin.timing import Timing
from tests.plugin.samples import SHORT, Reader, Recorder, gpu, loaded, node, random


class Daemon:
    """A supervisor whose configuration and reader a test can change: `flags`, `config_error`, `reader.answer`."""

    def __init__(
        self, directory: Path, answer: Node | Exception | None = None, *, timing: Timing = SHORT, **flags: object
    ) -> None:
        self.flags: dict[str, object] = {"kubelet_socket": str(directory / "kubelet.sock"), **flags}
        self.config_error: Exception | None = None
        self.warnings: tuple[str, ...] = ()
        self.reader = Reader(answer or node(gpu(0), gpu(1)))
        self.recorder = Recorder()
        self.supervisor = Supervisor(
            self.load,
            self.reader.make,
            default_directory=directory,
            timing=timing,
            random=random(),
            observer=self.recorder,
        )

    def load(self) -> LoadedConfig:
        if self.config_error is not None:
            raise self.config_error
        return replace(loaded(**self.flags), warnings=self.warnings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Supervisor]:
        task = asyncio.create_task(self.supervisor.run())
        try:
            yield self.supervisor
        finally:
            self.supervisor.stop()
            await task
