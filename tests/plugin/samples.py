"""Nodes, configurations and short times for the tests of this folder."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from gpustow.config import Config, LoadedConfig, load_config
from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.hardware.node import Gpu, Node, NodeReader, Platform
from gpustow.health.monitor import MonitorTiming
from gpustow.kubelet.devicefeed import device_list
from gpustow.placement import Inventory
from gpustow.plugin.observer import PluginObserver, PluginState, SilentObserver
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import Offer, ServedResource
from gpustow.plugin.resource import Surroundings
from gpustow.plugin.timing import Timing

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"

SHORT = Timing(
    poll=0.01,
    retry_first=0.03,
    retry_most=0.1,
    stream_deadline=20,
    register=15,
    look_again=0.03,
    alone_after=0.3,
    usage_settles=0.05,
    kubelet_settles=0.05,
    look=0.01,
    monitor=MonitorTiming(wait=0.02, retry_first=0.01, retry_most=0.05),
)
"""Short enough for tests; what has to be long enough on a busy machine is long."""

_PROFILE = MigProfile(gpu_slices=1, compute_slices=1, memory_gb=10, memory_mib=9728, memory_slices=1)


def gpu(index: int, *, mig_devices: int = 0) -> Gpu:
    devices = tuple(
        MigDevice(
            index=number,
            uuid=f"MIG-{index}-{number}",
            profile=_PROFILE,
            gpu_instance=number + 7,
            compute_instance=0,
            memory_bytes=9728 << 20,
            device_paths=(f"/dev/nvidia{index}",),
            start=number,
        )
        for number in range(mig_devices)
    )
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        pci_bus_id=f"0000:0{index}:00.0",
        minor=index,
        model="NVIDIA A100-SXM4-80GB",
        memory_bytes=80 << 30,
        compute_capability=(8, 0),
        numa_node=0,
        device_paths=(f"/dev/nvidia{index}",),
        mig_capable=True,
        mig_enabled=bool(mig_devices),
        mig_devices=devices,
    )


def node(*gpus: Gpu) -> Node:
    link = Link(PcieLevel.SINGLE_SWITCH, 12)
    pairs = [(a.index, b.index, link) for a in gpus for b in gpus if a.index < b.index]
    return Node("test", Platform.NVML, gpus, Links.symmetric(pairs))


def config(**flags: object) -> Config:
    return loaded(**flags).config


def loaded(**flags: object) -> LoadedConfig:
    return load_config({name.replace("_", "-"): value for name, value in flags.items()}, {})


def served(gpus: int = 2) -> ServedResource:
    return Offer.of(node(*(gpu(index) for index in range(gpus))), config()).served[0]


def with_health(resource: ServedResource, **health: bool) -> ServedResource:
    """The same, with devices by index (`_0=False`) healthy or not."""
    devices = tuple(
        replace(device, healthy=health.get(f"_{device.index}", device.healthy)) for device in resource.resource.devices
    )
    return replace(
        resource,
        resource=replace(resource.resource, devices=devices),
        inventory=Inventory.of(devices, Links()),
        device_list=device_list(devices),
    )


class Reader:
    """A NodeReader whose answer can be changed: a node, or an error to raise."""

    def __init__(self, answer: Node | Exception) -> None:
        self.answer = answer
        self.reads = 0

    def read(self) -> Node:
        self.reads += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def make(self, _config: Config) -> NodeReader:
        return self


class Recorder(SilentObserver):
    """Keeps what a plugin tells; `on_move` is called with each new state."""

    def __init__(self, on_move: Callable[[PluginState], None] = lambda _: None) -> None:
        self.moves: list[tuple[str, PluginState]] = []
        self.reasons: list[str] = []
        self.failures: list[Exception] = []
        self.events: list[str] = []
        self.reloads: list[str | None] = []
        self.surveys: list[str | None] = []
        self._on_move = on_move

    def moved(self, resource: str, state: PluginState, reason: str) -> None:
        self.moves.append((resource, state))
        self.reasons.append(reason)
        self._on_move(state)

    def reloaded(self, refusal: str | None) -> None:
        self.reloads.append(refusal)

    def surveyed(self, trouble: str | None) -> None:
        self.surveys.append(trouble)

    def preferred(self, resource: str, placement: object, seconds: float) -> None:
        assert seconds >= 0
        assert placement is not None
        self.events.append(f"preferred {resource}")

    def preference_failed(self, resource: str, error: Exception) -> None:
        self.events.append(f"preference failed {resource}")
        self.failures.append(error)

    def allocated(self, resource: str, ids: object) -> None:
        assert ids is not None
        self.events.append(f"allocated {resource}")

    def allocation_failed(self, resource: str, error: Exception) -> None:
        self.events.append(f"allocation failed {resource}")
        self.failures.append(error)


def surroundings(observer: PluginObserver | None = None, timing: Timing = SHORT) -> Surroundings:
    usage = NodeUsage(timing, time.monotonic)
    return Surroundings(timing, random(), time.monotonic, observer or SilentObserver(), usage)


def random() -> Random:
    return Random(1)


def our_sockets(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("gpustow-*.sock"))
