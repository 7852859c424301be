"""The daemon of a walk in this process: started, signalled, killed without a trace of tidying up."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from unittest import mock

from gpustow.config import LoadedConfig, load_config
from gpustow.errors import GpustowError
from gpustow.health.event import HealthEvent
from gpustow.plugin import Supervisor
from gpustow.plugin import supervisor as supervisor_module
from gpustow.plugin import survey as survey_module
from tests.lifecycle.events import Events, LoopThread
from tests.lifecycle.machine import Machine
from tests.lifecycle.wire import Process, Wire, running_as

_FOREVER = 1e9
_PATIENCE = 60.0


@contextmanager
def no_threads(lag: Callable[[], float]) -> Iterator[None]:
    """What the daemon does in threads it does in the event loop, and what took long in them takes `lag` seconds.

    Nor does it break off a search for a placement because this machine is slow.
    """

    async def in_thread(call: Callable[[], object], *, name: str) -> object:
        del name
        await asyncio.sleep(lag())
        return call()

    with (
        mock.patch.object(supervisor_module, "in_thread", in_thread),
        mock.patch.object(survey_module, "in_thread", in_thread),
        mock.patch("gpustow.health.monitor.SourceThread", LoopThread),
        mock.patch("gpustow.plugin.service.ANSWER_SECONDS", _FOREVER),
    ):
        yield


class InProcess:
    """A daemon on `machine`, or none; `ended` is why the last one ended by itself."""

    tells = True

    def __init__(self, machine: Machine, socket: Path, file: Path, random: Random, wire: Wire) -> None:
        self._machine = machine
        self._flags: dict[str, object] = {"kubelet-socket": str(socket), "config-file": str(file)}
        self._random = random
        self._wire = wire
        self._process: Process | None = None
        self._supervisor: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None
        self._events: Events | None = None
        self.ended: object = None

    @property
    def up(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def not_ready(self) -> str | None:
        return "it does not run" if self._supervisor is None else self._supervisor.not_ready

    @property
    def resources(self) -> frozenset[str]:
        """What it has plugins for."""
        return frozenset() if self._supervisor is None else frozenset(self._supervisor.states)

    async def start(self) -> None:
        """Begins to start."""
        self.ended = None
        self._process = Process("the daemon")
        clock = asyncio.get_running_loop().time
        with running_as(self._process):
            self._supervisor = Supervisor(
                self._load,
                lambda _config: self._machine,
                make_source=lambda _config: self._source(),
                traces=lambda _config: self._machine.version,
                random=self._random,
                clock=clock,
            )
            self._task = asyncio.create_task(self._run(self._supervisor), name="the daemon")

    async def _run(self, supervisor: Supervisor) -> None:
        try:
            await supervisor.run()
        except GpustowError as error:
            self.ended = error

    def _load(self) -> LoadedConfig:
        return load_config(self._flags, {})

    def _source(self) -> Events:
        self._events = Events(self._machine)
        return self._events

    def sighup(self) -> None:
        if self._supervisor is not None:
            self._supervisor.reload()

    async def stop(self) -> None:
        """As SIGTERM does."""
        if self._supervisor is not None and self._task is not None:
            self._supervisor.stop()
            async with asyncio.timeout(_PATIENCE):
                await self._task
        self._forget()

    async def kill(self) -> None:
        """As SIGKILL does."""
        if self._process is not None and self._task is not None:
            self._process.kill()
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._forget()

    def _forget(self) -> None:
        self._process = self._supervisor = self._task = self._events = None

    def happens(self, event: HealthEvent) -> bool:
        """Something happens to a card; whether the daemon is told."""
        return self._events is not None and self._events.tell(event)

    def source_changes(self) -> None:
        """The source of health is broken now, or whole again."""
        if self._events is not None:
            self._events.wake()
