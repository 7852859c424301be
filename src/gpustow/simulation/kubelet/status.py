"""Device health in a pod's status, as KEP-4680 brings it, with its gaps.

Kubelet looks at a pod's devices when it writes the pod's status. It does so when a list changes the health of a device
that a pod holds, or brings the device back. So an id that leaves the list changes nothing, and reads Healthy when
something else has the status written; nor does the loss of a plugin show. Only app containers are covered.

What waits to be written is a queue of 100; what comes on top is dropped.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpustow.kubelet.protocol.services import HEALTHY, UNHEALTHY
from gpustow.simulation.kubelet.pod import Pod
from gpustow.simulation.kubelet.state import DeviceState

QUEUE = 100
"""How many updates may wait."""


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """An element of `allocatedResourcesStatus`: the devices of a resource and their health, by device id."""

    name: str
    resources: Mapping[str, str]


def device_health(state: DeviceState, pod: Pod) -> dict[str, tuple[ResourceStatus, ...]]:
    """`allocatedResourcesStatus` of each app container that holds devices, as it would be written now."""
    statuses = {}
    for container in pod.containers:
        held = state.holdings.of_container(pod.uid, container.name)
        if held:
            statuses[container.name] = tuple(
                ResourceStatus(
                    resource, {device: _health(state, resource, device) for device in sorted(held[resource].ids)}
                )
                for resource in sorted(held)
            )
    return statuses


def _health(state: DeviceState, resource: str, device: str) -> str:
    listed = state.table.listed.get(resource, {}).get(device)
    return HEALTHY if listed is None or listed.healthy else UNHEALTHY


class HealthUpdates:
    """Pods whose status has to be written, in updates of one list each."""

    def __init__(self) -> None:
        self._waiting: deque[frozenset[str]] = deque()
        self.dropped = 0

    def offer(self, pod_uids: Iterable[str]) -> None:
        """Queues an update; drops it if the queue is full."""
        if len(self._waiting) >= QUEUE:
            self.dropped += 1
        else:
            self._waiting.append(frozenset(pod_uids))

    def take(self) -> set[str]:
        """The uids of all pods that wait, and an empty queue."""
        waiting, self._waiting = self._waiting, deque()
        return set().union(*waiting)
