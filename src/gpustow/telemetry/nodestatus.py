"""The status of a node as programs read it: frozen values whose form in JSON is `/api/v1/node`.

The names in JSON are those of the fields, in camel case (`plainjson`); the JSON schema beside this file says the same,
and a test holds both to each other. Fields may be added; none changes its meaning or goes.

Times are seconds since 1970, memory is in bytes. What is not known is null.
"""

from dataclasses import dataclass
from typing import Any

from gpustow.telemetry.decisions import DecisionStatus


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """One thing that readiness needs, and why it is not so; `reason` is empty if it is."""

    name: str
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ReadinessStatus:
    """Whether the devices of the node are in use as they should be."""

    ready: bool
    checks: tuple[CheckStatus, ...]


@dataclass(frozen=True, slots=True)
class SettingStatus:
    """One setting that holds: its key in the file (or its flag), its value, and what gave it."""

    name: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """The configuration in force. `file` is null if there is none; `sha256` is that of its text."""

    file: str | None
    sha256: str | None
    warnings: tuple[str, ...]
    settings: tuple[SettingStatus, ...]


@dataclass(frozen=True, slots=True)
class HealthStatus:
    """`state` is healthy, unhealthy, or recovering: well again, and held to see whether it stays so."""

    state: str
    reason: str
    since: float | None


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """A resource, and how many devices it has: each is in use, free, or unhealthy and not in use.

    `policy` is the one that places requests. `state` and `reason` are where its plugin is on its way to kubelet;
    `streams` are kubelet's open streams of the list. `healthy` counts devices in use as well.
    """

    name: str
    sharing: str
    policy: str
    cap: int | None
    rule: str | None
    state: str
    reason: str
    streams: int
    devices: int
    healthy: int
    used: int
    free: int
    unhealthy: int


@dataclass(frozen=True, slots=True)
class HolderStatus:
    """The container that holds a device."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class HeldStatus:
    """A device in use: its id, its replica number if it is one, and who holds it; nobody where that is not known."""

    id: str
    replica: int | None
    holders: tuple[HolderStatus, ...]


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """A GPU or MIG device as it is offered under a resource, in `slots` replicas, or in one piece.

    `index` is `3` or `3:1`; `profile` is that of a MIG device, `start` its first memory slice. Slots that are free are
    counted; those in use are listed in `held`.
    """

    resource: str
    uuid: str
    index: str
    profile: str | None
    start: int | None
    memory_bytes: int | None
    health: HealthStatus
    slots: int
    used: int
    free: int
    unhealthy: int
    held: tuple[HeldStatus, ...]


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """How a GPU is linked to another one: the label of `nvidia-smi topo -m`, and the score that placement uses."""

    gpu: int
    label: str
    score: int


@dataclass(frozen=True, slots=True)
class GpuStatus:
    """One physical card. One that is not `found` by the last reading has left or cannot be read.

    `served` is whether it is offered under any resource. `used_share` is the share of it in use, from 0 to 1, over all
    resources. `wholly_free`: it is served and healthy, and nothing on it is in use.
    """

    index: int
    uuid: str
    found: bool
    served: bool
    model: str
    pci_bus_id: str
    numa_node: int | None
    memory_bytes: int | None
    memory_slices: int | None
    mig_enabled: bool
    health: HealthStatus
    links: tuple[LinkStatus, ...]
    used_share: float
    wholly_free: bool
    devices: tuple[DeviceStatus, ...]


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What the daemon knows at the moment `at`.

    `use_is_listed` is whether kubelet's PodResources service says what is in use and who holds it; else it is what the
    calls of kubelet tell. `notes` are what could not be read. `decisions` are the recent ones, the newest first.
    """

    at: float
    version: str
    node: str
    platform: str | None
    driver_version: str
    cuda_version: str
    config: ConfigStatus | None
    readiness: ReadinessStatus
    use_is_listed: bool
    resources: tuple[ResourceStatus, ...]
    gpus: tuple[GpuStatus, ...]
    wholly_free_gpus: tuple[int, ...]
    notes: tuple[str, ...]
    decisions: tuple[DecisionStatus, ...]
