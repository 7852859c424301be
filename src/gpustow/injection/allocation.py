"""From the ids that kubelet allocates to the edits of the container, as v0.20.0 answers.

A request is checked first. Every id must be known, and a shared resource may be limited to one device a request
(failRequestsGreaterThanOne: more replicas are no more GPU). An id that is known and unhealthy is answered: kubelet
hands out such a device only where it was the pod's already, and then the pod is to keep it.

An empty request is refused, unlike in v0.20.0, whose answer would leave it to the container runtime's default which
GPUs the container sees.
"""

from collections.abc import Sequence

from gpustow.config import Config, DeviceIdStrategy
from gpustow.errors import AllocationRefused
from gpustow.injection.edits import ContainerEdits
from gpustow.resources.device import Device, Resource

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""What the NVIDIA container runtime reads: the devices of the container, joined by commas."""


def container_edits(resource: Resource, ids: Sequence[str], config: Config) -> ContainerEdits:
    """The edits for a container that gets these devices of the resource. Raises AllocationRefused."""
    devices = _checked(resource, ids)
    names = dict.fromkeys(_runtime_name(device, config.device_id_strategy) for device in devices)
    return ContainerEdits(envs={VISIBLE_DEVICES: ",".join(names)})


def _checked(resource: Resource, ids: Sequence[str]) -> list[Device]:
    if not ids:
        raise AllocationRefused(resource.name, "no devices are asked for")
    devices = []
    for id_ in ids:
        device = resource.by_id.get(id_)
        if device is None:
            raise AllocationRefused(resource.name, f"unknown device: {id_}")
        devices.append(device)
    shared = any(device.replica is not None for device in devices)
    if shared and resource.requests_limited_to_one and len(ids) > 1:
        raise AllocationRefused(
            resource.name, f"maximum request size for shared resources is 1; found {len(ids)}: {', '.join(ids)}"
        )
    return devices


def _runtime_name(device: Device, strategy: DeviceIdStrategy) -> str:
    """What the container runtime calls the GPU or MIG device behind `device`."""
    return device.index if strategy is DeviceIdStrategy.INDEX else device.uuid
