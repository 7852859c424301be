"""What the plugins have listed: which devices there are, and which of them are healthy.

A list replaces the one before. Two facts of kubelet's bookkeeping show outside: an id that comes twice with differing
health is in both sets, so that capacity counts it twice; and after a plugin is lost its devices stay known, all of
them unhealthy.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.kubelet.protocol.services import HEALTHY


@dataclass(frozen=True, slots=True)
class PluginDevice:
    """A device as its plugin lists it.

    `numa_nodes` is None where the plugin sends no topology, which is something else than an empty one.
    """

    id: str
    health: str = HEALTHY
    numa_nodes: tuple[int, ...] | None = None

    @classmethod
    def of_message(cls, message: wire.Device) -> "PluginDevice":
        """The value of a message from the wire."""
        nodes = tuple(node.ID for node in message.topology.nodes) if message.HasField("topology") else None
        return cls(message.ID, message.health, nodes)

    @property
    def healthy(self) -> bool:
        """Only the exact word counts."""
        return self.health == HEALTHY


class DeviceTable:
    """The devices by resource.

    `healthy` has a key for each resource that is registered, or was named in the checkpoint, even with no device. Its
    sets are replaced, never changed.
    """

    def __init__(self, *, empty_topology_is_none: bool = True) -> None:
        self._empty_topology_is_none = empty_topology_is_none
        self.listed: dict[str, dict[str, PluginDevice]] = {}
        self.healthy: dict[str, set[str]] = {}
        self.unhealthy: dict[str, set[str]] = {}

    def replace(self, resource: str, devices: Iterable[PluginDevice]) -> set[str]:
        """Takes a plugin's list; returns the ids whose health pods may have to be told.

        Those are the ids whose health differs from the last list, and those that were not in it.
        """
        before = self.listed.get(resource, {})
        listed: dict[str, PluginDevice] = {}
        healthy: set[str] = set()
        unhealthy: set[str] = set()
        changed: set[str] = set()
        for device in devices:
            old = before.get(device.id)
            if old is None or old.health != device.health:
                changed.add(device.id)
            listed[device.id] = device
            (healthy if device.healthy else unhealthy).add(device.id)
        self.listed[resource], self.healthy[resource], self.unhealthy[resource] = listed, healthy, unhealthy
        return changed

    def lose(self, resource: str) -> None:
        """All devices of a resource become unhealthy: its plugin is gone."""
        lost = self.healthy.get(resource, set())
        if resource in self.healthy:
            self.healthy[resource] = set()
        self.unhealthy[resource] = self.unhealthy.get(resource, set()) | lost

    def announce(self, resource: str) -> None:
        """Makes a resource known with no device at all, as after a restart until its plugin is back."""
        self.healthy[resource] = set()
        self.unhealthy[resource] = set()

    def known(self) -> tuple[str, ...]:
        """The resources that count for the Node: registered, or lost, be it before their first list."""
        return tuple(dict.fromkeys((*self.healthy, *self.unhealthy)))

    def count(self, resource: str) -> int:
        """How many devices a resource has, healthy or not; an id that is both counts twice."""
        return len(self.healthy.get(resource, ())) + len(self.unhealthy.get(resource, ()))

    def forget(self, resource: str) -> None:
        """The resource is not registered any more; what was listed stays, for the pods that still hold it."""
        self.healthy.pop(resource, None)
        self.unhealthy.pop(resource, None)

    def numa_nodes(self, resource: str, device: str) -> tuple[int, ...]:
        """The NUMA nodes of a device; none where it is unknown, or not listed."""
        found = self.listed.get(resource, {}).get(device)
        return () if found is None or found.numa_nodes is None else found.numa_nodes

    def has_topology(self, resource: str) -> bool:
        """Whether any device of the resource, healthy or not, names a NUMA node, be it one that does not exist."""
        devices = self.listed.get(resource, {}).values()
        if self._empty_topology_is_none:
            return any(device.numa_nodes for device in devices)
        return any(device.numa_nodes is not None for device in devices)
