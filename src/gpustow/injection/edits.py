"""What can be put into a container: the kinds of edits that kubelet passes on to the container runtime.

Edits are values. Kubelet keeps them with the container and uses them again for every restart of it, also after a reboot
of the node; so they name nothing that is temporary.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount of the host's `host_path` at `container_path`."""

    container_path: str
    host_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """The host's device node `host_path` at `container_path`; `permissions` of the letters r, w and m."""

    container_path: str
    host_path: str
    permissions: str = "rw"


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """All that is put into one container. `cdi_devices` are qualified names, `vendor/class=device`."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()
