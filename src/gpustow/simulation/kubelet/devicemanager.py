"""Kubelet's device manager: what plugins list, what pods hold, and the allocation between them.

The manager is independent of the wire: plugins are `Endpoint`s, connecting and disconnecting is told to it. Like
kubelet it gives a device back late: when a pod has gone nothing happens, and the next allocation, hint or PodResources
List finds out (`collect`).

Everything that runs between two awaits is one step, as what kubelet does under its lock. Calls to plugins are awaited
outside of that, so that lists and losses can come in between.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

from gpustow.simulation.kubelet.allocation import AllocationError, Chooser, Need
from gpustow.simulation.kubelet.answer import Conflict, ContainerAnswer, merge
from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.endpoint import Endpoint, EndpointError, PluginOptions, StoppedEndpoint
from gpustow.simulation.kubelet.holdings import NO_NODE, Entry, Held, Holdings
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.state import DeviceState, Plugin
from gpustow.simulation.kubelet.topology.masks import Mask

STOP_GRACE = 300.0
"""Seconds for which a lost plugin's devices still count as capacity."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """How many devices of each resource there are, and how many a new pod may have.

    `deleted` names the resources that were forgotten in the making.
    """

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    deleted: frozenset[str] = frozenset()


class DeviceManager:
    """The device manager.

    `active_pods` gives the uids of pods that have not ended; `save` writes the checkpoint; `clock` counts seconds.
    """

    def __init__(
        self,
        *,
        random: Random,
        clock: Callable[[], float],
        active_pods: Callable[[], Iterable[str]],
        save: Callable[[DeviceState], None],
    ) -> None:
        self.state = DeviceState()
        self.sources_ready = True
        self.running: frozenset[tuple[str, str]] = frozenset()
        self._random = random
        self._clock = clock
        self._active_pods = active_pods
        self._save = save
        self._chooser = Chooser(self.state, random)
        self._pools: dict[str, dict[str, set[str]]] = {}
        self._being_admitted: str | None = None

    def restore(self, holdings: Holdings, resources: Iterable[str]) -> None:
        """Takes over what was known before kubelet's restart.

        The resources come back without any device; the grace of their lost plugins starts now.
        """
        self.state.holdings = holdings
        self.state.rebuild_in_use()
        for resource in resources:
            self.state.table.announce(resource)
            self.state.plugins[resource] = Plugin(StoppedEndpoint(resource), stopped_at=self._clock())

    def connected(self, resource: str, endpoint: Endpoint, options: PluginOptions) -> None:
        """A plugin has registered; it replaces the one before."""
        self.state.plugins[resource] = Plugin(endpoint, options)

    def disconnected(self, resource: str) -> None:
        """A plugin is lost: its devices are unhealthy from now on, and forgotten after the grace."""
        plugin = self.state.plugins.get(resource)
        if plugin is not None:
            self.state.table.lose(resource)
            plugin.stopped_at = self._clock()

    def listed(self, resource: str, devices: Iterable[PluginDevice]) -> None:
        """A plugin has sent its list."""
        self.state.table.replace(resource, devices)
        self._save(self.state)

    def quantities(self) -> Quantities:
        """What kubelet reports for the Node; forgets plugins that were lost too long ago."""
        table = self.state.table
        capacity: dict[str, int] = {}
        deleted: set[str] = set()
        for resource in [*table.healthy]:
            if self._expired(resource):
                del self.state.plugins[resource]
                table.forget(resource)
                deleted.add(resource)
            else:
                capacity[resource] = len(table.healthy[resource]) + len(table.unhealthy[resource])
        if deleted:
            self._save(self.state)
        allocatable = {resource: len(table.healthy[resource]) for resource in capacity}
        return Quantities(capacity, allocatable, frozenset(deleted))

    def _expired(self, resource: str) -> bool:
        stopped_at = self.state.plugins[resource].stopped_at
        return stopped_at is not None and self._clock() - stopped_at > STOP_GRACE

    def collect(self) -> None:
        """Strikes the holdings of pods that have ended, but for the one that is being admitted."""
        if not self.sources_ready:
            return
        gone = self.state.holdings.pods().difference(self._active_pods(), {self._being_admitted})
        if gone:
            self.state.holdings.forget_pods(gone)
            self.state.rebuild_in_use()

    async def allocate(self, pod: Pod, container: Container, mask: Mask | None = None) -> None:
        """Gives a container its devices, or finds that it has them.

        Raises AllocationError, or EndpointError if the plugin refuses.
        """
        self._being_admitted = pod.uid
        self._pools = {pod.uid: self._pools.get(pod.uid, {})}
        pool = self._pools[pod.uid]
        await self._allocate_all(pod, container, pool, mask)
        reusable = pod.is_init(container.name) and not pod.is_sidecar(container.name)
        for resource, held in self.state.holdings.of_container(pod.uid, container.name).items():
            if reusable:
                pool.setdefault(resource, set()).update(held.ids)
            elif resource in pool:
                pool[resource] -= held.ids

    async def _allocate_all(self, pod: Pod, container: Container, pool: dict[str, set[str]], mask: Mask | None) -> None:
        changed = False
        for resource in self._chooser.in_random_order(container.limits):
            if not self.state.knows(resource):
                continue
            self.collect()
            need = Need(
                pod.uid,
                container.name,
                resource,
                container.limits[resource],
                pool.get(resource, set()),
                mask,
                (pod.uid, container.name) in self.running,
            )
            chosen = await self._chooser.choose(need, sources_ready=self.sources_ready)
            if chosen:
                answer = await self._call_allocate(resource, chosen)
                self.state.holdings.record(
                    Entry(pod.uid, container.name, resource, Held(self._by_node(resource, chosen), answer))
                )
                changed = True
        if changed:
            self._save(self.state)

    async def _call_allocate(self, resource: str, device_ids: tuple[str, ...]) -> ContainerAnswer:
        plugin = self.state.plugins.get(resource)
        if plugin is None:
            self.state.rebuild_in_use()
            raise AllocationError(f"unknown Device Plugin {resource}")
        try:
            answer = await plugin.endpoint.allocate(device_ids)
        except EndpointError:
            self.state.rebuild_in_use()
            raise
        if answer is None:
            raise AllocationError("no containers return in allocation response")
        return answer

    def _by_node(self, resource: str, device_ids: Iterable[str]) -> dict[int, tuple[str, ...]]:
        by_node: dict[int, tuple[str, ...]] = {}
        for device in sorted(device_ids):
            for node in self.state.table.numa_nodes(resource, device) or (NO_NODE,):
                by_node[node] = (*by_node.get(node, ()), device)
        return by_node

    def edits(self, pod_uid: str, container: str) -> tuple[ContainerAnswer, tuple[Conflict, ...]]:
        """What kubelet passes to the runtime when the container starts, and what had to give way."""
        held = self.state.holdings.of_container(pod_uid, container)
        return merge(held[resource].answer for resource in self._chooser.in_random_order(held))
