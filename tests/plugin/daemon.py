"""The daemon in this process, with a configuration and a node that a test can change."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gpustow.config import LoadedConfig
from gpustow.config.health import HealthConfig
from gpustow.hardware.node import Node
from gpustow.kubelet.podresources import HeldDevice
from gpustow.plugin import Supervisor
from gpustow.plugin.cdispecs import SpecMaker, no_specs
from gpustow.plugin.healthwatch import SourceMaker
from gpustow.plugin.timing import Timing
from tests.plugin.samples import SHORT, Reader, Recorder, gpu, loaded, node, random


class Daemon:
    """A supervisor whose configuration and reader a test can change: `flags`, `config_error`, `reader.answer`.

    Where `held` is given, kubelet's PodResources say that these devices are held, as pairs of resource and id, and a
    test can change them; else it is whatever lies beside `directory`. `health` takes the place of the section.
    CDI specifications are written where `make_specs` is given, and health is watched where `make_source` is.
    """

    def __init__(
        self,
        directory: Path,
        answer: Node | Exception | None = None,
        *,
        timing: Timing = SHORT,
        held: Iterable[tuple[str, str]] | None = None,
        health: HealthConfig | None = None,
        make_specs: SpecMaker = no_specs,
        make_source: SourceMaker | None = None,
        clock: Callable[[], float] = time.monotonic,
        **flags: object,
    ) -> None:
        self.flags: dict[str, object] = {"kubelet_socket": str(directory / "kubelet.sock"), **flags}
        self.config_error: Exception | None = None
        self.warnings: tuple[str, ...] = ()
        self.held = {*(held or ())}
        self.health = health
        self.lists = 0
        self.traces: Hashable = None
        self.reader = Reader(answer or node(gpu(0), gpu(1)))
        self.recorder = Recorder()
        self.supervisor = Supervisor(
            self.load,
            self.reader.make,
            make_specs=make_specs,
            make_source=make_source,
            traces=lambda _config: self.traces,
            default_directory=directory,
            timing=timing,
            random=random(),
            clock=clock,
            observer=self.recorder,
        )
        if held is not None:
            self.supervisor._serving.list_held = self._list_held  # type: ignore[method-assign] # instead of kubelet's answer

    def load(self) -> LoadedConfig:
        if self.config_error is not None:
            raise self.config_error
        found = loaded(**self.flags)
        config = found.config if self.health is None else replace(found.config, health=self.health)
        return replace(found, config=config, warnings=self.warnings)

    async def _list_held(self) -> tuple[HeldDevice, ...]:
        self.lists += 1
        return tuple(HeldDevice(resource, id_, "default", "pod", "main") for resource, id_ in self.held)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Supervisor]:
        task = asyncio.create_task(self.supervisor.run())
        try:
            yield self.supervisor
        finally:
            self.supervisor.stop()
            await task
