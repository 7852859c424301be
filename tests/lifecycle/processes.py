"""The same world with the daemon in a process of its own, on the fake driver, over true sockets and in real time.

What cannot be acted out there is left out: cards that are taken away, a source of health that fails, and configurations
that are refused, of which only the daemon itself could tell. What takes long comes seldom, so that some hundreds of
deeds fit into a minute.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from gpustow.health.event import EventKind, HealthEvent
from gpustow.simulation.kubelet import EmbeddedKubelet
from tests.cli.commands import BIN, environment
from tests.lifecycle.deeds import QUIET
from tests.lifecycle.machine import LAYOUTS, Card, Machine, Place
from tests.lifecycle.settings import HealthTimes
from tests.lifecycle.walk import Outcome, Walk, scratch
from tests.lifecycle.world import Pace, World
from tests.nvml.fakedriver import NO_INSTANCE, FakeDriver
from tests.plugin.samples import our_sockets

_XID_EVENT = 0x8
_PATIENCE = 60.0
_LOG_LINES = 40

REAL_PACE = Pace(notice=5.0, reload=10.0, look=10.0, register=15.0, refuse=5.0, patience=30.0)
REAL_TIMES = HealthTimes(check=1, hold=12, rescan=2)
REAL_PAUSES = (QUIET, QUIET, QUIET, 0.0, 0.0, 0.02, 0.2)
REAL_WEIGHTS = {
    "admit": 240,
    "release": 160,
    "release_most": 2,
    "xid": 6,
    "xid_of_nobody": 1,
    "need_repair": 1,
    "repair": 4,
    "lose": 2,
    "bring_back": 6,
    "cut": 3,
    "configure": 3,
    "hup": 3,
    "restart_kubelet": 3,
    "stop_kubelet": 1,
    "start_kubelet": 30,
    "kill": 1,
    "stop": 1,
    "start": 30,
    "kill_and_start": 2,
    "delete_socket": 1,
}


class DrivenMachine(Machine):
    """A machine that the fake driver shows."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.driver = FakeDriver(directory, self.model())

    def cut(self, card: Card, layout: tuple[str, ...] | None) -> None:
        super().cut(card, layout)
        self.driver.show(self.model())

    def move(self, card: Card, place: Place) -> None:
        super().move(card, place)
        self.show_faults()

    def repair(self, card: Card, *, pending: bool) -> None:
        super().repair(card, pending=pending)
        self.show_faults()

    def show_faults(self) -> None:
        """Which cards are lost, and which need a repair."""
        self.driver.heal()
        for card in self.cards:
            if card.place is Place.LOST:
                self.driver.lose(card.index)
            if card.repair:
                self.driver.change(f"gpu {card.index} remap 0 0 1 0")

    def forget_events(self) -> None:
        """Events are told once, and not again to a process that starts later."""
        self.driver._events.clear()
        self.driver.show(self.model())


class Child:
    """A daemon as an operator runs it."""

    tells = False

    def __init__(self, machine: DrivenMachine, kubelet: EmbeddedKubelet, file: Path, log: Path) -> None:
        self._driver = machine.driver
        self._machine = machine
        self._kubelet = kubelet
        self._file = file
        self._log = log
        self._log_size = 0
        self._process: asyncio.subprocess.Process | None = None

    @property
    def up(self) -> bool:
        return self._process is not None

    @property
    def ended(self) -> object:
        code = None if self._process is None else self._process.returncode
        return None if code is None else f"exit code {code}; {self.last_words()}"

    @property
    def not_ready(self) -> str | None:
        return None

    @property
    def resources(self) -> frozenset[str]:
        return frozenset(our_sockets(self._kubelet.plugin_directory))

    def last_words(self) -> str:
        return "\n".join(self._log.read_text(encoding="utf-8").splitlines()[-_LOG_LINES:])

    async def start(self) -> None:
        self._machine.forget_events()
        with self._log.open("ab") as log:
            self._log_size = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                str(BIN / "gpustow"),
                "plugin",
                f"--kubelet-socket={self._kubelet.registration_socket}",
                f"--config-file={self._file}",
                f"--system-root={self._driver.system_root}",
                env=environment(self._driver.environment | {"NODE_NAME": "walk"}),
                stderr=log,
            )

    def sighup(self) -> None:
        """Once it can be found by its name, which one that has just been started has not."""
        begun = self._log.stat().st_size > self._log_size
        if begun and self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGHUP)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(number)
            await asyncio.wait_for(process.wait(), _PATIENCE)

    def happens(self, event: HealthEvent) -> bool:
        """An XID reaches whoever waits; that a card is lost is found by looking, sooner or later."""
        if event.kind is not EventKind.XID:
            return False
        index = next((card.index for card in self._machine.cards if card.uuid == event.gpu_uuid), -1)
        gpu_instance = NO_INSTANCE if event.gpu_instance is None else event.gpu_instance
        compute = NO_INSTANCE if event.compute_instance is None else event.compute_instance
        self._driver.event(_XID_EVENT, event.xid or 0, gpu=index, gpu_instance=gpu_instance, compute=compute)
        return True

    def source_changes(self) -> None:
        raise NotImplementedError("the fake driver does not break")


@asynccontextmanager
async def driven_world(seed: int, directory: Path) -> AsyncIterator[World]:
    """A world in which kubelet and a daemon run, and nothing has happened yet."""
    random = Random(f"world {seed}")
    machine = DrivenMachine(directory)
    for card in machine.cards:
        machine.cut(card, random.choice(LAYOUTS) if random.random() < 0.5 else None)
    kubelet = EmbeddedKubelet(directory / "k", random=Random(f"kubelet {seed}"))
    kubelet.plugin_directory.mkdir(parents=True)
    file = directory / "config.yaml"
    daemon = Child(machine, kubelet, file, directory / "log")
    world = World(kubelet, daemon, machine, file, time.monotonic, lambda _path: None, REAL_TIMES, REAL_PACE)
    world.write(world.file_is)
    await kubelet.start()
    world.kubelet_up = True
    await daemon.start()
    world.expectation.daemon_ended()
    world.comes_or_goes()
    yield world


def walk_with_processes(seed: int, steps: int) -> Outcome:
    """One walk. What its log says last is part of its story, if it violates something."""
    with scratch() as directory:
        outcome = asyncio.run(
            Walk(seed, steps=steps, make_world=driven_world, weights=REAL_WEIGHTS, pauses=REAL_PAUSES).run(
                Path(directory)
            )
        )
        if outcome.violation is not None:
            outcome.violation += "\n" + (Path(directory) / "log").read_text(encoding="utf-8")[-8000:]
    return outcome
