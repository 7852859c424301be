"""What kubelet sees: devices, gathered into resources.

A device is a GPU, a MIG device, or a replica of either. Whatever it is, it knows its physical GPU, because placement
groups by that and by nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from gpustow.hardware.mig import MigDevice

REPLICA_SEPARATOR = "::"
"""Between a device's UUID and the number of its replica, as v0.20.0 writes it."""


class Sharing(Enum):
    """How the devices of a resource are shared; the values are those of the sharing-strategy label."""

    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a resource.

    `uuid` is that of the GPU or MIG device, `id` adds the replica; `index` is `3` or `3:1`. `share` is the part of its
    card that the device stands for: 1 for a GPU, 1/R for one of R replicas, memory slices over the card's for a MIG
    device, and that over its replicas for a replica of one. `edge` orders the MIG devices of one card by where they
    lie on it (first memory slice, or MIG index where that is unknown for one of them); 0 for a GPU.
    """

    id: str
    uuid: str
    gpu_index: int
    index: str
    share: Fraction
    paths: tuple[str, ...]
    numa_node: int | None = None
    mig: MigDevice | None = None
    replica: int | None = None
    edge: int = 0
    healthy: bool = True


def numa_nodes_told(devices: Sequence[Device]) -> tuple[int | None, ...]:
    """The NUMA nodes of the devices of a resource as kubelet is told them: those of all, or of none.

    For kubelet a device without a node fits no hint once another one of the resource has a node.
    """
    nodes = tuple(device.numa_node for device in devices)
    return nodes if all(node is not None and node >= 0 for node in nodes) else (None,) * len(nodes)


@dataclass(frozen=True, slots=True)
class Resource:
    """An extended resource name, such as `nvidia.com/gpu`, and its devices, in the order of GPU, MIG device, replica.

    `requests_limited_to_one` is failRequestsGreaterThanOne: a shared request for more than one device is refused.
    `by_id` finds a device by its id.
    """

    name: str
    devices: tuple[Device, ...]
    sharing: Sharing = Sharing.NONE
    requests_limited_to_one: bool = False
    by_id: Mapping[str, Device] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {device.id: device for device in self.devices})

    @property
    def whole_gpus(self) -> bool:
        """Whether every device is a whole, unshared GPU: such requests are always placed by `aligned`."""
        return all(device.mig is None and device.replica is None for device in self.devices)
