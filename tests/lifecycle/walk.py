"""A walk: a world, and deeds that are drawn from a seed or given; what came of it, and the shortest story that fails.

A walk in this process is the same each time, to the last message, since time and chance come from the seed. So a story
can be made shorter by leaving deeds out and trying what is left.
"""

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from gpustow.simulation.kubelet import Behaviour, EmbeddedKubelet, TopologySettings
from tests.lifecycle.daemon import InProcess, no_threads
from tests.lifecycle.deeds import DEEDS, HIGHEST, QUIET, WEIGHTS, Deed
from tests.lifecycle.machine import LAYOUTS, Machine
from tests.lifecycle.pods import Violation
from tests.lifecycle.virtualtime import run_virtually
from tests.lifecycle.wire import Wire
from tests.lifecycle.world import World, watching_logs
from tests.plugin.samples import our_sockets

VERSIONS = ("1.32", "1.36", "1.36", "1.37")
"""Kubelets to walk with: one that lists pods that have ended, one that takes one stream's end for another's, and one
that knows plugins by their sockets."""

POLICIES = ("none", "none", "none", "best-effort", "single-numa-node")
"""Of kubelet's Topology Manager."""

PAUSES = (QUIET, QUIET, QUIET, 0.0, 0.0, 0.05, 0.5, 2.0)


@dataclass
class Outcome:
    """What came of a walk that has `lived` so many seconds. `violation` is None if all was as it must be."""

    seed: int
    deeds: list[Deed] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    admitted: int = 0
    refused: int = 0
    checks: int = 0
    lived: float = 0.0
    violation: str | None = None

    def told(self) -> str:
        return "\n".join([f"seed {self.seed}:", *self.story, f"VIOLATION: {self.violation}"])


@asynccontextmanager
async def world_of(seed: int, directory: Path) -> AsyncIterator[World]:
    """A world in which kubelet and the daemon run, and nothing has happened yet."""
    random = Random(f"world {seed}")
    slow = random.random() < 0.3
    lags = Random(f"lags {seed}")

    def lag() -> float:
        chance = lags.random()
        if chance < 0.9:
            return 0.002 * lags.random()
        return lags.random() * (0.4 if slow and chance > 0.98 else 0.02)

    graveyard = directory / "graveyard"
    graveyard.mkdir()
    machine = Machine()
    for card in machine.cards:
        machine.cut(card, random.choice(LAYOUTS) if random.random() < 0.5 else None)
    clock = asyncio.get_running_loop().time
    with Wire(graveyard, lag).installed() as wire, no_threads(lag):
        kubelet = EmbeddedKubelet(
            directory / "kubelet",
            random=Random(f"kubelet {seed}"),
            clock=clock,
            behaviour=Behaviour.of(random.choice(VERSIONS)),
            topology=TopologySettings(random.choice(POLICIES), numa_nodes=(0, 1)),
        )
        file = directory / "config.yaml"
        daemon = InProcess(machine, kubelet.registration_socket, file, Random(f"daemon {seed}"), wire)
        world = World(kubelet, daemon, machine, file, clock, wire.bury)
        world.write(world.file_is)
        with watching_logs(world.faults_of_ours):
            kubelet.plugin_directory.mkdir(parents=True)
            await kubelet.start()
            world.kubelet_up = True
            await daemon.start()
            world.expectation.daemon_ended()
            world.comes_or_goes()
            yield world
        left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if left or wire.servers or wire.channels:
            raise Violation(f"in the end there are tasks {left}, {len(wire.servers)} servers, {wire.channels}")


async def _end(world: World) -> None:
    await world.settle()
    killed = not world.daemon.up
    await world.daemon.stop()
    await world.kubelet.stop()
    world.look()
    sockets = our_sockets(world.kubelet.plugin_directory)
    if sockets and not killed:
        raise Violation(f"in the end there are the sockets {sockets}")


MakeWorld = Callable[[int, Path], AbstractAsyncContextManager[World]]
"""Makes a world from a seed, in a directory."""


class Walk:
    """Runs deeds in a world. Without `deeds`, so many `steps` are drawn from the seed, by `weights` and `pauses`."""

    def __init__(
        self,
        seed: int,
        *,
        steps: int = 0,
        deeds: Sequence[Deed] | None = None,
        make_world: MakeWorld = world_of,
        weights: Mapping[str, int] = WEIGHTS,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self.outcome = Outcome(seed)
        self._steps = steps
        self._given = deeds
        self._make_world = make_world
        self._weights = weights
        self._pauses = pauses
        self._random = Random(f"deeds {seed}")
        self._directory = ""

    async def run(self, directory: Path) -> Outcome:
        self._directory = str(directory)
        try:
            async with self._make_world(self.outcome.seed, directory) as world:
                began = world.clock()
                try:
                    await self._live(world)
                    await _end(world)
                finally:
                    self.outcome.admitted, self.outcome.refused = world.pods.admitted, world.pods.refused
                    self.outcome.lived = world.clock() - began
                    await _tear_down(world)
        except Violation as violation:
            self.outcome.violation = self._without_directory(str(violation))
        return self.outcome

    async def _live(self, world: World) -> None:
        await world.settle()
        if self._given is not None:
            for deed in self._given:
                await self._do(world, deed)
            return
        while len(self.outcome.deeds) < self._steps:
            await self._do(world, self._draw())

    def _draw(self) -> Deed:
        [kind] = self._random.choices([*self._weights], [*self._weights.values()])
        draw = self._random.randrange
        return Deed(kind, draw(HIGHEST), draw(HIGHEST), self._random.choice(self._pauses))

    async def _do(self, world: World, deed: Deed) -> None:
        began = world.clock()
        said = await DEEDS[deed.kind](world, deed.a, deed.b)
        if said is None:
            return
        self.outcome.deeds.append(deed)
        self.outcome.kinds[deed.kind] += 1
        self.outcome.story.append(f"{began:10.3f} {said}")
        if deed.pause == QUIET:
            await world.settle()
            self.outcome.checks += 1
        else:
            await asyncio.sleep(deed.pause)
            world.look()
        for result in world.results:
            self.outcome.story.append(f"{world.clock():10.3f}   {self._without_directory(result)}")
        world.results.clear()

    def _without_directory(self, text: str) -> str:
        """It has another name each time."""
        return text.replace(self._directory, "")


async def _tear_down(world: World) -> None:
    for task in world.admissions:
        task.cancel()
    await asyncio.gather(*world.admissions, return_exceptions=True)
    if world.daemon.up:
        await world.daemon.kill()
    await world.kubelet.stop()


_MEMORY = Path("/dev/shm")  # noqa: S108 - a directory with a random name is made in it
"""Where files cost least, if it is there: each list and each admission has kubelet write its checkpoint."""


def scratch() -> "tempfile.TemporaryDirectory[str]":
    """A directory for a world."""
    return tempfile.TemporaryDirectory(prefix="walk-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)


def walk(seed: int, *, steps: int = 0, deeds: Sequence[Deed] | None = None) -> Outcome:
    """One walk in this process."""
    with scratch() as directory:
        return run_virtually(Walk(seed, steps=steps, deeds=deeds).run(Path(directory)))


def shortest(outcome: Outcome, seconds: float) -> Outcome:
    """A shorter walk that violates something, too: parts are left out, ever smaller ones, for so long."""
    end = time.monotonic() + seconds
    best, size = outcome, max(1, len(outcome.deeds) // 2)
    while time.monotonic() < end:
        start, before = 0, len(best.deeds)
        while start < len(best.deeds) and time.monotonic() < end:
            tried = walk(best.seed, deeds=best.deeds[:start] + best.deeds[start + size :])
            if tried.violation is None:
                start += size
            else:
                best = tried
        if size == 1 and len(best.deeds) == before:
            break
        size = max(1, size // 2)
    return best
