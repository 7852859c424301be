"""Which container holds which devices, and the plugin's answer that came with them.

Kubelet keeps this from the admission of a pod until it notices that the pod is gone, writes it to the checkpoint, and
hands the stored answer to every later start of the container.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpustow.simulation.kubelet.answer import ContainerAnswer

NO_NODE = -1
"""The key of devices without a NUMA node."""


@dataclass(frozen=True, slots=True)
class Held:
    """The devices of one resource that a container holds, by NUMA node as it was at the allocation.

    A device near two nodes is under both; `ids` has each once.
    """

    by_node: Mapping[int, tuple[str, ...]]
    answer: ContainerAnswer
    ids: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", frozenset(device for ids in self.by_node.values() for device in ids))


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the books."""

    pod_uid: str
    container: str
    resource: str
    held: Held


class Holdings:
    """The books: pod uid, container, resource -> what is held."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._held: dict[str, dict[str, dict[str, Held]]] = {}
        for entry in entries:
            self.record(entry)

    def record(self, entry: Entry) -> None:
        """Writes a line; one for the same container and resource is replaced."""
        self._held.setdefault(entry.pod_uid, {}).setdefault(entry.container, {})[entry.resource] = entry.held

    def forget_pods(self, uids: Iterable[str]) -> None:
        """Strikes all lines of these pods."""
        for uid in uids:
            self._held.pop(uid, None)

    def entries(self) -> Iterator[Entry]:
        """All lines."""
        for uid, containers in self._held.items():
            for container, resources in containers.items():
                for resource, held in resources.items():
                    yield Entry(uid, container, resource, held)

    def pods(self) -> set[str]:
        """The uids of pods that have lines."""
        return set(self._held)

    def of_container(self, uid: str, container: str) -> Mapping[str, Held]:
        """What a container holds, by resource."""
        return self._held.get(uid, {}).get(container, {})

    def ids(self, uid: str, container: str, resource: str) -> frozenset[str] | None:
        """The ids of a resource that a container holds; None if nothing was ever recorded."""
        held = self.of_container(uid, container).get(resource)
        return None if held is None else held.ids

    def pod_ids(self, uid: str, resource: str) -> set[str]:
        """The ids of a resource that any container of a pod holds."""
        containers = self._held.get(uid, {}).values()
        return {device for resources in containers if resource in resources for device in resources[resource].ids}

    def allocated(self) -> dict[str, set[str]]:
        """All ids that are held, by resource."""
        allocated: dict[str, set[str]] = {}
        for containers in self._held.values():
            for resources in containers.values():
                for resource, held in resources.items():
                    allocated.setdefault(resource, set()).update(held.ids)
        return allocated

    def holders(self, resource: str | None = None) -> dict[str, str]:
        """By device id the uid of the first pod that holds a device of that id, of the resource or of any."""
        holders: dict[str, str] = {}
        for entry in self.entries():
            for device in entry.held.ids if resource in {None, entry.resource} else ():
                holders.setdefault(device, entry.pod_uid)
        return holders
