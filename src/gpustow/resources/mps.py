"""Sharing by MPS: what of it a GPU can do, and the shares that its clients get.

MPS (Multi-Process Service) lets the processes of several containers use one GPU at the same time, each with its part of
the memory and of the threads. It is not for GPUs in MIG mode, nor for integrated GPUs, and a GPU takes only so many
clients. The numbers are those of k8s-device-plugin v0.20.0, whole divisions included.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpustow.errors import ConfigError, Problem
from gpustow.hardware.node import Gpu, Node, Platform
from gpustow.resources.device import Device, Resource, Sharing

_MANY, _FEW = 48, 16
_MANY_SINCE = (7, 5)
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class MpsShares:
    """What each client of one resource gets: MiB of pinned memory by the device's index, and percent of the threads.

    A GPU whose memory is not known has no limit of memory.
    """

    memory_mib: Mapping[str, int]
    thread_percentage: int


def most_clients(gpu: Gpu) -> int:
    """How many replicas a GPU can have under MPS."""
    return _MANY if gpu.compute_capability is not None and gpu.compute_capability >= _MANY_SINCE else _FEW


def check_mps(node: Node, resources: Sequence[Resource]) -> None:
    """Raises ConfigError if a resource that is shared by MPS has a device that cannot be."""
    gpus = {gpu.index: gpu for gpu in node.gpus}
    problems = [
        Problem(resource.name, fault)
        for resource in resources
        if resource.sharing is Sharing.MPS
        for fault in _faults(node.platform, gpus, resource.devices)
    ]
    if problems:
        raise ConfigError("for this node", problems, advice="Share these devices by time-slicing, or not at all.")


def _faults(platform: Platform, gpus: Mapping[int, Gpu], devices: Sequence[Device]) -> list[str]:
    """What is wrong with devices under MPS, each card told once."""
    if platform is Platform.TEGRA:
        return ["sharing using MPS is not supported for integrated GPUs"]
    faults = {}
    replicas = Counter(device.uuid for device in devices if device.replica is not None)
    for device in devices:
        gpu = gpus[device.gpu_index]
        if device.mig is not None or gpu.mig_enabled:
            faults[gpu.index] = f"sharing using MPS is not supported for MIG devices: GPU {gpu.index} is in MIG mode"
        elif replicas[device.uuid] > most_clients(gpu):
            faults[gpu.index] = (
                f"invalid MPS configuration: invalid device maximum allowed replicas exceeded: {replicas[device.uuid]} "
                f"> {most_clients(gpu)} on GPU {gpu.index} ({gpu.model})"
            )
    return list(faults.values())


def mps_shares(node: Node, resource: Resource) -> MpsShares:
    """What each client of `resource`, which is shared by MPS, gets."""
    memory = {gpu.index: gpu.memory_bytes for gpu in node.gpus}
    replicas = Counter(device.index for device in resource.devices)
    index_of = {device.index: device.gpu_index for device in resource.devices}
    limits = {
        index: total // count // _MIB
        for index, count in replicas.items()
        if (total := memory[index_of[index]]) is not None and total > 0
    }
    cards = len({device.uuid for device in resource.devices})
    return MpsShares(limits, 100 // (len(resource.devices) // cards))
