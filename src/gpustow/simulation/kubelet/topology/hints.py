"""Topology hints: on which NUMA nodes a request could be served, and whether that is as good as it gets.

A hint is preferred when its mask has as few nodes as an idle machine would need for the request. All devices count for
that, allocated and unhealthy ones too: this is why a fragmented machine has hints but no preferred one.

Masks are enumerated over the NUMA nodes that carry devices of the resource (kubelet 1.37 and its backports,
kubernetes#138244); before that over all nodes of the machine.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpustow.errors import GpustowError
from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.topology.masks import Mask, subsets


class KubeletPanicError(GpustowError):
    """Kubelet would crash here: it follows a pointer to a device that the plugin has stopped listing.

    The defence is the plugin's: keep a device listed as unhealthy for as long as a pod may hold it.
    """

    def __init__(self, resource: str, device: str) -> None:
        super().__init__(
            f"kubelet would panic: {device} of {resource} is in use and not in the plugin's list any more",
            advice="List a vanished device as Unhealthy, and never shrink the list during an allocation.",
        )
        self.resource = resource
        self.device = device


@dataclass(frozen=True, slots=True)
class Hint:
    """NUMA nodes (None: any), and whether they are as few as can be."""

    mask: Mask | None = None
    preferred: bool = False

    def __str__(self) -> str:
        nodes = "*" if self.mask is None else "".join(str(node) for node in self.mask.nodes)
        return f"{nodes}{'P' if self.preferred else ''}"


Hints = Mapping[str, Sequence[Hint] | None]
"""The hints by resource: None is no preference, an empty sequence is that the request cannot be served."""


def hint_nodes(devices: Iterable[PluginDevice], machine: Sequence[int], *, narrow: bool) -> tuple[int, ...]:
    """The NUMA nodes over which masks are enumerated; nodes that the machine does not have are dropped."""
    if not narrow:
        return tuple(machine)
    present = {node for device in devices for node in device.numa_nodes or ()}
    return tuple(sorted(present.intersection(machine))) or tuple(machine)


@dataclass(frozen=True, slots=True)
class Supply:
    """The devices of one resource that a hint is made from: all that are listed, and the ids that may be had.

    `reusable` are those of the pod's init containers: a mask that misses one of them yields nothing.
    """

    resource: str
    listed: Mapping[str, PluginDevice]
    available: Collection[str]
    reusable: Collection[str] = ()

    def _nodes(self, device: str) -> tuple[int, ...] | None:
        found = self.listed.get(device)
        if found is None:
            raise KubeletPanicError(self.resource, device)
        return found.numa_nodes

    def hints(self, nodes: Sequence[int], size: int) -> tuple[Hint, ...]:
        """The hints for a request of `size` devices; KubeletPanicError where kubelet crashes."""
        listed = Counter(device.numa_nodes or () for device in self.listed.values())
        available = Counter(self._nodes(device) or () for device in self.available)
        reusable = Counter(found for found in map(self._nodes, self.reusable) if found is not None)
        fewest = len(nodes)
        masks = []
        for mask in subsets(nodes):
            if mask.count < fewest and _touching(listed, mask) >= size:
                fewest = mask.count
            if all(mask.has_any(of_device) for of_device in reusable):
                matching = reusable.total() + _touching(available, mask)
                if matching >= size:
                    masks.append(mask)
        return tuple(Hint(mask, mask.count == fewest) for mask in masks)


def _touching(devices: Mapping[tuple[int, ...], int], mask: Mask) -> int:
    return sum(count for nodes, count in devices.items() if mask.has_any(nodes))
