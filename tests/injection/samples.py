"""Requests of each kind of device, and every combination of what decides about their answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

from gpustow.config import Config, DeviceIdStrategy, DeviceListStrategy, ReplicatedResource, ReplicatedResources
from gpustow.hardware.node import Platform
from gpustow.injection.hostdevices import HostDevices, simulated_host_devices
from gpustow.resources.device import Device, Resource, Sharing

NAME = "nvidia.com/gpu"
RESPONSE_ID = "01234567-89ab-4cde-8f01-23456789abcd"
DEV_ROOT = "/run/nvidia/driver"
MPS_ROOT = "/run/nvidia/mps"
MPS = ReplicatedResources((ReplicatedResource(NAME, 2),), fail_requests_greater_than_one=False)

STRATEGIES = tuple(chosen for number in range(1, 5) for chosen in combinations(DeviceListStrategy, number))
"""The 15 sets of device list strategies that are not empty."""


def gpu(name: str, index: int, *, replica: int | None = None, healthy: bool = True) -> Device:
    """A GPU, or a replica of one."""
    return Device(
        id=name if replica is None else f"{name}::{replica}",
        uuid=name,
        gpu_index=index,
        index=str(index),
        share=Fraction(1),
        paths=(f"/dev/nvidia{index}",),
        replica=replica,
        healthy=healthy,
    )


def mig(name: str, gpu_index: int, index: int) -> Device:
    """A MIG device; its capabilities have numbers of their own."""
    instance = 10 * gpu_index + index
    return Device(
        id=name,
        uuid=name,
        gpu_index=gpu_index,
        index=f"{gpu_index}:{index}",
        share=Fraction(1, 7),
        paths=(
            f"/dev/nvidia{gpu_index}",
            f"/dev/nvidia-caps/nvidia-cap{100 + instance}",
            f"/dev/nvidia-caps/nvidia-cap{200 + instance}",
        ),
    )


def gpus(*names: str, healthy: bool = True) -> Resource:
    """A resource of GPUs, in the order of their indices."""
    return Resource(NAME, tuple(gpu(name, index, healthy=healthy) for index, name in enumerate(names)))


def shared(
    names: Sequence[str], replicas: int, *, limited: bool = False, sharing: Sharing = Sharing.TIME_SLICING
) -> Resource:
    """A resource of GPUs, each shared by so many."""
    devices = [gpu(name, at, replica=number) for at, name in enumerate(names) for number in range(replicas)]
    return Resource(NAME, tuple(devices), sharing, requests_limited_to_one=limited)


@dataclass(frozen=True, slots=True)
class Scene:
    """One combination: a request, and the configuration and host that answer it."""

    kind: str
    resource: Resource
    ids: tuple[str, ...]
    config: Config
    host: HostDevices


REQUESTS: dict[str, tuple[Resource, tuple[str, ...]]] = {
    "GPU": (gpus("GPU-A", "GPU-B"), ("GPU-B", "GPU-A")),
    "MIG": (
        Resource(NAME, (mig("MIG-A", 0, 0), mig("MIG-B", 0, 1), mig("MIG-C", 1, 0))),
        ("MIG-C", "MIG-B", "MIG-A"),
    ),
    "replica": (shared(["GPU-A", "GPU-B"], 2), ("GPU-B::1", "GPU-A::0", "GPU-B::0")),
    "MPS": (shared(["GPU-A", "GPU-B"], 2, sharing=Sharing.MPS), ("GPU-B::1", "GPU-A::0", "GPU-B::0")),
}
"""A request of each kind: not in the order of the node, and with devices of one card twice where that can be."""


def scenes(strategies: tuple[DeviceListStrategy, ...]) -> Iterator[Scene]:
    """Every combination of the rest under these strategies."""
    for id_strategy, kind, imex, specs in product(DeviceIdStrategy, REQUESTS, (False, True), (False, True)):
        config = Config(
            device_list_strategies=strategies,
            device_id_strategy=id_strategy,
            imex_channel_ids=(0,) if imex else (),
            pass_device_specs=specs,
            dev_root=DEV_ROOT,
            mps_root=MPS_ROOT,
            mps=MPS if kind == "MPS" else None,
        )
        resource, ids = REQUESTS[kind]
        yield Scene(kind, resource, ids, config, simulated_host_devices(config, Platform.NVML))
