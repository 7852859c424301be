"""The daemon under test in this process: on a node that can change, with a record of what kubelet asked of it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import yaml

from gpustow.config import LoadedConfig, load_config
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader
from gpustow.placement import Placement, Request, place
from gpustow.plugin import Supervisor
from gpustow.plugin.observer import PluginState, SilentObserver
from gpustow.resources import Resource, build_catalog
from tests.devicemanager.backend import Kubelet
from tests.kubelet.fakekubelet import until
from tests.plugin.samples import SHORT, Reader

GPU = "nvidia.com/gpu"


def node_of(model: str) -> Node:
    """The node of a node model that ships with the package."""
    return SimulatedReader(load_node_model(model)).read()


@dataclass(frozen=True, slots=True)
class Question:
    """One GetPreferredAllocation: what was asked, and what was answered; ids sorted."""

    resource: str
    available: tuple[str, ...]
    must_include: tuple[str, ...]
    size: int
    answer: tuple[str, ...]


_asked: list[Request] = []


def place_and_note(request: Request, *others: Any, **options: Any) -> Placement:
    """`place` for the daemon, with a note of the request, since an observer is told of the answer alone."""
    _asked[:] = [request]
    return place(request, *others, **options)


class Witness(SilentObserver):
    """What kubelet has asked of the daemon, and how often a resource was registered."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.allocations: list[tuple[str, tuple[str, ...]]] = []
        self.registrations: Counter[str] = Counter()

    def moved(self, resource: str, state: PluginState, reason: str) -> None:
        del reason
        self.registrations[resource] += state is PluginState.REGISTERED

    def preferred(self, resource: str, placement: Placement, seconds: float) -> None:
        del seconds
        self._note(resource, placement.device_ids)

    def preference_failed(self, resource: str, error: Exception) -> None:
        del error
        self._note(resource, ())

    def _note(self, resource: str, answer: Sequence[str]) -> None:
        asked = _asked[-1]
        ids = (tuple(sorted(asked.available)), tuple(sorted(asked.must_include)))
        self.questions.append(Question(resource, *ids, asked.size, tuple(sorted(answer))))

    def allocated(self, resource: str, ids: Sequence[str]) -> None:
        self.allocations.append((resource, tuple(sorted(ids))))


class Plugin:
    """A supervisor for `node`; `flags` are the daemon's, with `_` for `-`, and can be changed before a reload.

    `policy` places shared and MIG devices, also one that the daemon's flag does not offer.
    """

    def __init__(self, kubelet: Kubelet, node: Node, *, policy: str = "distributed", **flags: object) -> None:
        self.reader = Reader(node)
        self.policy = policy
        self.flags = flags
        self.witness = Witness()
        self._kubelet = kubelet
        self._sick: dict[str, set[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self.supervisor = self._new_supervisor()

    def _new_supervisor(self) -> Supervisor:
        return Supervisor(
            self.load,
            self.reader.make,
            default_directory=self._kubelet.plugin_directory,
            timing=SHORT,
            random=Random(),
            observer=self.witness,
        )

    def load(self) -> LoadedConfig:
        flags = {"kubelet_socket": str(self._kubelet.registration_socket), **self.flags}
        loaded = load_config({name.replace("_", "-"): value for name, value in flags.items()}, {})
        return replace(loaded, config=replace(loaded.config, shared_devices_allocation_policy=self.policy))

    @property
    def node(self) -> Node:
        assert isinstance(self.reader.answer, Node)
        return self.reader.answer

    @property
    def resources(self) -> dict[str, Resource]:
        """The resources that the daemon makes of node and flags, by name."""
        catalog = build_catalog(self.node, self.load().config)
        return {resource.name: resource for resource in catalog.resources if resource.devices}

    def ids(self, resource: str = GPU) -> list[str]:
        """The ids of a resource's devices, in the order of the hardware."""
        return [device.id for device in self.resources[resource].devices]

    def gpus_of(self, ids: Collection[str], resource: str = GPU) -> Counter[int]:
        """How many of the devices lie on each physical GPU."""
        by_id = self.resources[resource].by_id
        return Counter(by_id[device].gpu_index for device in ids)

    async def start(self) -> None:
        """Starts the daemon anew and waits until kubelet has its devices."""
        self._sick.clear()
        self.supervisor = self._new_supervisor()
        self._task = asyncio.create_task(self.supervisor.run())
        await self.settled()

    async def stop(self) -> None:
        """Ends the daemon."""
        self.supervisor.stop()
        assert self._task is not None
        async with asyncio.timeout(10):
            await self._task

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the daemon; in the body it is registered, and kubelet has its devices."""
        try:
            await self.start()
            yield
        finally:
            await self.stop()

    async def settled(self) -> None:
        """Waits until kubelet has exactly the devices that the daemon has.

        If kubelet wipes our socket between our look at it and Register, it dials for 10 seconds before we try again.
        """
        await until(self._is_settled, seconds=40)

    def _is_settled(self) -> bool:
        have = {name: amount for name, amount in self._kubelet.allocatable().items() if amount}
        want = {name: self._healthy(resource) for name, resource in self.resources.items() if self._healthy(resource)}
        ready = self.supervisor.not_ready is None or any(self._sick.values())
        return ready and have == want

    def _healthy(self, resource: Resource) -> int:
        return sum(self._reason(device.uuid) is None for device in resource.devices)

    def _reason(self, uuid: str) -> str | None:
        return "it is sick" if any(uuid in sick for sick in self._sick.values()) else None

    async def reload(self, **flags: object) -> None:
        """Reloads with other flags, or another node, and waits until kubelet knows."""
        self.flags = {**self.flags, **flags}
        reads = self.reader.reads
        self.supervisor.reload()
        await until(lambda: self.reader.reads > reads)
        await self.settled()

    async def set_sick(self, ids: Collection[str], resource: str = GPU) -> None:
        """The GPUs or MIG devices behind these, and no others of the resource, are sick, with all of their replicas."""
        self._sick[resource] = {self.resources[resource].by_id[id_].uuid for id_ in ids}
        self.supervisor.mark(self._reason)
        await self.settled()


def sharing(directory: Path, *, one_each: bool = False, **replicas: int) -> str:
    """A configuration file in which each resource (`gpu=10`) is time-sliced into so many replicas.

    With `one_each`, a request for more than one replica is refused.
    """
    path = directory / "config.yaml"
    resources = [{"name": f"nvidia.com/{name}", "replicas": number} for name, number in replicas.items()]
    slicing = {"failRequestsGreaterThanOne": one_each, "resources": resources}
    path.write_text(yaml.safe_dump({"version": "v1", "sharing": {"timeSlicing": slicing}}))
    return str(path)
