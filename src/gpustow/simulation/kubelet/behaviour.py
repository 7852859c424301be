"""What differs between versions of kubelet, as switches.

Each switch names one habit that a plugin or its test can see, with the version that changed it. `Behaviour.of("1.36")`
sets them all; `dataclasses.replace` turns one. Fixes that came with a patch release count for the minor version after
it.

The sources of 1.23, 1.24, 1.27, 1.31 to 1.37 have been read for the switches.
"""

from dataclasses import dataclass
from enum import Enum

from gpustow.errors import UsageError

OLDEST = (1, 20)
NEWEST = (1, 37)


class Connections(Enum):
    """How kubelet finds the plugin whose stream has ended."""

    BY_IDENTITY = "identity"
    """1.24 and older: the loss of a plugin that was replaced means nothing."""
    BY_RESOURCE = "resource"
    """1.25 to 1.36: whatever plugin the resource has now is disconnected (kubernetes#127803)."""
    BY_SOCKET = "socket"
    """1.37: the one with that socket; instances with different sockets overlap safely, another instance takes over, and
    a second one on the same socket is refused (kubernetes#135437)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The switches; the defaults are those of kubelet 1.36."""

    connections: Connections = Connections.BY_RESOURCE
    connects_in_register: bool = True
    """1.25: Register answers after kubelet has connected and called GetDevicePluginOptions. Before, it answered at once
    and took the options from the request (kubernetes#109016)."""
    empty_topology_is_none: bool = True
    """1.26: a topology without nodes is none. Before, the resource counted as aligned, and nothing aligned with it
    (kubernetes#112234)."""
    checks_held_devices: bool = True
    """1.27.2: a pod whose resource is unregistered, or whose devices are sick, is refused at re-admission
    (kubernetes#116376). Before, it was admitted."""
    trusts_running_containers: bool = True
    """1.28: that check leaves out containers that have been running all along (kubernetes#118635)."""
    passes_cdi_devices: bool = True
    """1.29: CDI names of an answer reach the runtime. Before, they were ignored (behind a gate in 1.28)."""
    sidecars_keep_devices: bool = True
    """1.29: devices of a restartable init container leave the pool of those to reuse (kubernetes#120461). Before, app
    containers got them as well."""
    readmits_finished_pods: bool = False
    """Until 1.31 pods that had ended went through admission again when kubelet started, and could fail in it."""
    keeps_last_admitted_pod: bool = False
    """Until 1.31 the pod that was admitted last kept its devices, even if it had gone, until the next one came."""
    lists_active_pods_only: bool = True
    """1.34: PodResources List leaves out pods that have ended (kubernetes#132028)."""
    serves_get: bool = True
    """1.34: PodResources Get. Before, it needs a gate and answers that it is disabled."""
    gets_active_pods_only: bool = True
    """1.35: Get does not find pods that have ended. Before, it tells of every pod."""
    serves_allocatable: bool = True
    """1.23: PodResources GetAllocatableResources. Before, it needs a gate and answers that it is disabled."""
    narrows_hint_scan: bool = True
    """1.36 (a patch release): hints are made over the NUMA nodes that carry devices. Before, over all nodes of the
    machine (kubernetes#138244)."""
    reports_device_health: bool = True
    """1.36: pod status shows the health of devices (KEP-4680). Before, behind a gate."""
    tells_devices_by_resource: bool = False
    """1.37: a change of health is told to the pod that holds that device of that resource. Before, to the first pod
    that holds a device of that id, of whatever resource."""

    @classmethod
    def of(cls, version: str) -> "Behaviour":
        """The switches of a version, `1.20` to `1.37`; UsageError for another."""
        number = _parse(version)

        def since(minor: int) -> bool:
            return number >= (1, minor)

        connections = Connections.BY_SOCKET if since(37) else Connections.BY_RESOURCE
        return cls(
            connections=connections if since(25) else Connections.BY_IDENTITY,
            connects_in_register=since(25),
            empty_topology_is_none=since(26),
            checks_held_devices=since(27),
            trusts_running_containers=since(28),
            passes_cdi_devices=since(29),
            sidecars_keep_devices=since(29),
            readmits_finished_pods=not since(32),
            keeps_last_admitted_pod=not since(32),
            lists_active_pods_only=since(34),
            serves_get=since(34),
            gets_active_pods_only=since(35),
            serves_allocatable=since(23),
            narrows_hint_scan=since(36),
            reports_device_health=since(36),
            tells_devices_by_resource=since(37),
        )


def _parse(version: str) -> tuple[int, int]:
    major, dot, minor = version.removeprefix("v").partition(".")
    if dot and major.isdecimal() and minor.isdecimal():
        number = (int(major), int(minor))
        if OLDEST <= number <= NEWEST:
            return number
    known = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    raise UsageError(f"kubelet version {version!r} is not known", advice=f"Use one of {known}, such as 1.36.")


DEFAULT_BEHAVIOUR = Behaviour()
"""Kubelet 1.36."""
