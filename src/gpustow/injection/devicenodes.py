"""The device nodes that kubelet passes on itself, for clusters where it, or the runtime, updates running containers.

Without them an update of a container's cgroup, as by the CPU manager's static policy, takes away the devices that only
the container runtime knew of. v0.20.0 repeats a node that several devices of a request share, such as the card of two
MIG devices, and orders them at random; here each comes once, in the order of the request.
"""

from collections.abc import Sequence

from gpustow.config import Config
from gpustow.injection.discovery import host_path
from gpustow.injection.edits import DeviceNode
from gpustow.injection.hostdevices import HostDevices, imex_channel_path
from gpustow.resources.device import Device


def device_nodes(devices: Sequence[Device], config: Config, host: HostDevices) -> tuple[DeviceNode, ...]:
    """The nodes for a container that gets these devices: control nodes, those of the devices, IMEX channels."""
    paths = dict.fromkeys(
        [
            *host.control,
            *(path for device in devices for path in device.paths),
            *map(imex_channel_path, host.imex_channels),
        ]
    )
    return tuple(DeviceNode(path, host_path(config.dev_root, path)) for path in paths)
