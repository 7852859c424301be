"""From the ids that kubelet allocates to the edits of the container, as v0.20.0 answers.

A request is checked first. Every id must be known and healthy, and a shared resource may be limited to one device a
request (failRequestsGreaterThanOne: more replicas are no more GPU).

An unhealthy device is refused, unlike in v0.20.0. Kubelet chooses none, but may hand one out that fell sick a moment
ago, or that an init container of the pod had before. A pod that is refused is replaced by its controller; one that
starts on a sick GPU stays there.

An empty request is refused, unlike in v0.20.0, whose answer would leave it to the container runtime's default which
GPUs the container sees.

The strategies add up: each puts in what one kind of container runtime reads. Device nodes and the variables of the list
are left out where all strategies are CDI, since the CDI specifications have them. Kubelet keeps the answer and uses it
for every restart of the container, so nothing in it may pass.
"""

from collections.abc import Mapping, Sequence

from gpustow.config import Config, DeviceIdStrategy, DeviceListStrategy
from gpustow.config.strategies import CDI_STRATEGIES
from gpustow.errors import AllocationRefused, CdiSpecError
from gpustow.injection.cdidevices import annotations, cdi_devices
from gpustow.injection.devicelist import list_envs, list_mounts
from gpustow.injection.devicenodes import device_nodes
from gpustow.injection.edits import ContainerEdits
from gpustow.injection.hostdevices import HostDevices
from gpustow.injection.mpsclient import mps_envs, mps_mounts
from gpustow.resources.device import Device, Resource


def container_edits(
    resource: Resource, ids: Sequence[str], config: Config, host: HostDevices, response_id: str
) -> ContainerEdits:
    """The edits for a container that gets these devices of the resource. Raises AllocationRefused.

    `host` is what the node has beside its GPUs. `response_id` is part of the key of the annotation: a random UUID, so
    that no other answer has it.
    """
    devices = _checked(resource, ids)
    strategies = config.device_list_strategies
    names = tuple(dict.fromkeys(_runtime_name(device, config.device_id_strategy) for device in devices))
    cdi_names = _cdi_names(resource, devices, config, host)
    specs = config.pass_device_specs and not all(strategy in CDI_STRATEGIES for strategy in strategies)
    return ContainerEdits(
        envs={**mps_envs(resource), **_mode_envs(config), **list_envs(strategies, names, host.imex_channels)},
        mounts=(*mps_mounts(resource, config), *list_mounts(strategies, names, host.imex_channels)),
        device_nodes=device_nodes(devices, config, host) if specs else (),
        annotations=annotations(cdi_names, config, response_id),
        cdi_devices=cdi_names if DeviceListStrategy.CDI_CRI in strategies else (),
    )


def _checked(resource: Resource, ids: Sequence[str]) -> list[Device]:
    if not ids:
        raise AllocationRefused(resource.name, "no devices are asked for")
    devices = []
    for id_ in ids:
        device = resource.by_id.get(id_)
        if device is None:
            raise AllocationRefused(resource.name, f"unknown device: {id_}")
        if not device.healthy:
            raise AllocationRefused(resource.name, f"unhealthy device: {id_}; a new pod gets another one")
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


def _cdi_names(resource: Resource, devices: Sequence[Device], config: Config, host: HostDevices) -> tuple[str, ...]:
    """The CDI devices for the container; none if no strategy names them."""
    if not any(strategy in CDI_STRATEGIES for strategy in config.device_list_strategies):
        return ()
    try:
        return cdi_devices(devices, config, host)
    except CdiSpecError as error:
        raise AllocationRefused(resource.name, f"{error.problems[0].message}. {error.advice}") from error


def _mode_envs(config: Config) -> Mapping[str, str]:
    """The variables that ask NVIDIA's container runtime for the devices of other drivers."""
    modes = {
        "NVIDIA_GDRCOPY": config.gdrcopy_enabled,
        "NVIDIA_GDS": config.gds_enabled,
        "NVIDIA_MOFED": config.mofed_enabled,
    }
    return {name: "enabled" for name, enabled in modes.items() if enabled}
