"""The hints that the device manager gives to the Topology Manager.

For a container, or for the pod as a whole, and for each resource that a device plugin serves. A container that holds
devices already, as after a restart of kubelet, gets hints from these alone. The rules and their order: kubelet 1.36.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gpustow.simulation.kubelet.pod import Container, Pod, effective_limits
from gpustow.simulation.kubelet.state import DeviceState
from gpustow.simulation.kubelet.topology.hints import Hint, Hints, Supply, hint_nodes


@dataclass(frozen=True, slots=True)
class DeviceHints:
    """Makes hints from the state; `machine` has the NUMA nodes of the machine in its order."""

    state: DeviceState
    machine: tuple[int, ...]
    narrow: bool = True

    def for_container(self, pod: Pod, container: Container, pool: Mapping[str, set[str]]) -> Hints:
        """The hints by resource for one container; `pool` has what its pod's init containers left."""
        return {
            resource: self._hints(
                resource,
                size,
                self.state.holdings.ids(pod.uid, container.name, resource) or frozenset(),
                pool.get(resource, set()),
            )
            for resource, size in container.limits.items()
            if self.state.knows(resource)
        }

    def for_pod(self, pod: Pod) -> Hints:
        """The hints by resource for the pod's effective limits; nothing is reused."""
        return {
            resource: self._hints(resource, size, self.state.holdings.pod_ids(pod.uid, resource), set())
            for resource, size in effective_limits(pod).items()
            if self.state.knows(resource)
        }

    def _hints(
        self, resource: str, size: int, held: AbstractSet[str], reusable: AbstractSet[str]
    ) -> tuple[Hint, ...] | None:
        if not self.state.table.has_topology(resource):
            return None
        listed = self.state.table.listed[resource]
        nodes = hint_nodes(listed.values(), self.machine, narrow=self.narrow)
        if held:
            return Supply(resource, listed, held).hints(nodes, size) if len(held) == size else ()
        free = self.state.free(resource)
        if len(free | reusable) < size:
            return ()
        return Supply(resource, listed, free, reusable).hints(nodes, size)
