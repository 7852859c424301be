"""The CDI devices that a container asks for, and the annotation in which it can ask for them.

A name here is a promise: the container runtime fails the container if it finds no device of that name. So what is
named is what the specifications are made from, the devices of the node and its host devices.

The annotation's key has a random part, because kubelet merges the annotations of all resources of a container and
keeps one of those with equal keys. The part of it behind the last slash has 57 characters; the CDI library allows 63.
An annotation with an empty list would fail the container, so there is none then.
"""

from collections.abc import Mapping, Sequence

from gpustow.config import Config, DeviceListStrategy
from gpustow.injection.cdi.names import (
    ALL,
    GDRCOPY_CLASS,
    GDS_CLASS,
    GPU_CLASS,
    IMEX_CLASS,
    MOFED_CLASS,
    device_name,
    qualified,
)
from gpustow.injection.hostdevices import HostDevices
from gpustow.resources.device import Device

_PLUGIN = "nvidia-device-plugin"


def cdi_devices(devices: Sequence[Device], config: Config, host: HostDevices) -> tuple[str, ...]:
    """The qualified names for a container that gets these devices, each once, in the order of v0.20.0.

    Raises CdiSpecError if the driver calls a device by a name that CDI does not allow.
    """
    gpus = dict.fromkeys(device_name(device, config.device_id_strategy) for device in devices)
    extras = {GDRCOPY_CLASS: host.gdrcopy, GDS_CLASS: host.gds, MOFED_CLASS: host.mofed}
    return (
        *(qualified(GPU_CLASS, name) for name in gpus),
        *(qualified(IMEX_CLASS, str(channel)) for channel in host.imex_channels),
        *(qualified(class_, ALL) for class_, nodes in extras.items() if nodes),
    )


def annotations(names: Sequence[str], config: Config, response_id: str) -> Mapping[str, str]:
    """The annotation that asks for these devices, if annotations are to ask and there is something to ask for."""
    if not names or DeviceListStrategy.CDI_ANNOTATIONS not in config.device_list_strategies:
        return {}
    return {f"{config.cdi_annotation_prefix}{_PLUGIN}_{response_id}": ",".join(names)}
