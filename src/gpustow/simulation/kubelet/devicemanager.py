"""Kubelet's device manager: what plugins list, what pods hold, and the allocation between them.

The manager is independent of the wire: plugins are `Endpoint`s, connecting and disconnecting is told to it. Like
kubelet it gives a device back late: when a pod has gone nothing happens, and the next allocation, hint or PodResources
List finds out (`collect`).

Everything that runs between two awaits is one step, as what kubelet does under its lock. Calls to plugins are awaited
outside of that, so lists and losses can come in between.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

from gpustow.simulation.kubelet.allocation import Chooser, Need
from gpustow.simulation.kubelet.answer import Conflict, ContainerAnswer, merge
from gpustow.simulation.kubelet.behaviour import DEFAULT_BEHAVIOUR, Behaviour
from gpustow.simulation.kubelet.devicehints import DeviceHints
from gpustow.simulation.kubelet.devices import DeviceTable, PluginDevice
from gpustow.simulation.kubelet.endpoint import Endpoint, EndpointError, PluginOptions, StoppedEndpoint
from gpustow.simulation.kubelet.holdings import NO_NODE, Entry, Held, Holdings
from gpustow.simulation.kubelet.instances import instances
from gpustow.simulation.kubelet.journal import AllocateCalled, Journal
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.state import AllocationError, DeviceState, Plugin
from gpustow.simulation.kubelet.status import HealthUpdates
from gpustow.simulation.kubelet.topology.affinities import Affinities
from gpustow.simulation.kubelet.topology.hints import Hints, KubeletPanicError

STOP_GRACE = 300.0
"""Seconds for which a lost plugin's devices still count as capacity."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """How many devices of each resource there are, and how many of them are healthy.

    `deleted` names the resources that were forgotten since kubelet started.
    """

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    deleted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the device manager is given by the rest of kubelet.

    `active_pods` gives the uids of pods that have not ended, also of one that is being admitted; `save` writes the
    checkpoint, and raises AllocationError if it cannot; `clock` counts seconds; `numa_nodes` are the machine's.
    """

    random: Random
    clock: Callable[[], float]
    active_pods: Callable[[], Iterable[str]]
    save: Callable[[DeviceState], None]
    affinities: Affinities = field(default_factory=Affinities)
    numa_nodes: tuple[int, ...] = (0,)
    behaviour: Behaviour = DEFAULT_BEHAVIOUR
    journal: Journal = field(default_factory=Journal)


class DeviceManager:
    """The device manager; `running` has the uid and name of the containers that ran when kubelet started."""

    def __init__(self, surroundings: Surroundings) -> None:
        behaviour = surroundings.behaviour
        self._around = surroundings
        self.state = DeviceState(DeviceTable(empty_topology_is_none=behaviour.empty_topology_is_none))
        self.health_updates = HealthUpdates()
        self.sources_ready = True
        self.running: frozenset[tuple[str, str]] = frozenset()
        self._chooser = Chooser(self.state, surroundings.random, behaviour, surroundings.journal)
        self._hints = DeviceHints(self.state, surroundings.numa_nodes, narrow=behaviour.narrows_hint_scan)
        self._pools: dict[str, dict[str, set[str]]] = {}
        self._last_admitted: str | None = None
        self._instances = instances(self.state, behaviour, surroundings.random)
        self._deleted: set[str] = set()

    def restore(self, holdings: Holdings, resources: Iterable[str]) -> None:
        """Takes over what the checkpoint says.

        The resources come back without any device; the grace of their lost plugins starts now.
        """
        self.state.holdings = holdings
        self.state.rebuild_in_use()
        for resource in resources:
            self.state.table.announce(resource)
            self.state.plugins[resource] = Plugin(StoppedEndpoint(resource), stopped_at=self._around.clock())

    def connected(self, resource: str, endpoint: Endpoint, options: PluginOptions, socket: str = "") -> None:
        """A plugin has registered on a socket; it speaks for the resource from now on.

        From 1.37 on EndpointError is raised if there is one of that resource on that socket.
        """
        self._instances.connected(resource, Plugin(endpoint, options), socket)

    def disconnected(self, resource: str, endpoint: Endpoint, socket: str = "") -> None:
        """The connection to a plugin has ended.

        If it was the resource's, all devices are unhealthy from now on, and are forgotten after the grace.
        """
        if self._instances.disconnected(resource, endpoint, socket, self._around.clock()):
            self.state.table.lose(resource)

    def listed(self, resource: str, devices: Iterable[PluginDevice]) -> None:
        """A plugin has sent its list."""
        changed = self.state.table.replace(resource, devices)
        self._deleted.discard(resource)
        if changed and self._around.behaviour.reports_device_health:
            scope = resource if self._around.behaviour.tells_devices_by_resource else None
            holders = self.state.holdings.holders(scope)
            pods = {holders[device] for device in changed.intersection(holders)}
            if pods:
                self.health_updates.offer(pods)
        self._save_if_possible()

    def quantities(self) -> Quantities:
        """What kubelet reports for the Node; forgets plugins that were lost too long ago."""
        table = self.state.table
        expired = [resource for resource in table.known() if self._expired(resource)]
        for resource in expired:
            del self.state.plugins[resource]
            table.forget(resource)
        if expired:
            self._deleted.update(expired)
            self._save_if_possible()
        capacity = {resource: table.count(resource) for resource in table.known()}
        allocatable = {resource: len(ids) for resource, ids in table.healthy.items()}
        return Quantities(capacity, allocatable, frozenset(self._deleted))

    def _save_if_possible(self) -> None:
        """Outside of an allocation kubelet logs a failure and goes on."""
        with suppress(AllocationError):
            self._around.save(self.state)

    def _expired(self, resource: str) -> bool:
        stopped_at = self.state.plugins[resource].stopped_at
        return stopped_at is not None and self._around.clock() - stopped_at > STOP_GRACE

    def collect(self) -> None:
        """Strikes the holdings of pods that are not active."""
        if not self.sources_ready:
            return
        gone = self.state.holdings.pods().difference(self._around.active_pods(), {self._last_admitted})
        if gone:
            self.state.holdings.forget_pods(gone)
            self.state.rebuild_in_use()

    def hints(self, pod: Pod, container: Container) -> Hints:
        """Topology hints for a container."""
        self._remember(pod)
        self.collect()
        return self._hints.for_container(pod, container, self._pools.get(pod.uid, {}))

    def pod_hints(self, pod: Pod) -> Hints:
        """Topology hints for a pod."""
        self._remember(pod)
        self.collect()
        return self._hints.for_pod(pod)

    async def allocate(self, pod: Pod, container: Container) -> None:
        """Gives a container its devices, or finds that it has them.

        Raises AllocationError, EndpointError if the plugin refuses, and KubeletPanicError where kubelet crashes.
        """
        self._remember(pod)
        self._pools = {pod.uid: self._pools.get(pod.uid, {})}
        pool = self._pools[pod.uid]
        await self._allocate_all(pod, container, pool)
        for resource, held in self.state.holdings.of_container(pod.uid, container.name).items():
            if self._leaves_devices(pod, container):
                pool.setdefault(resource, set()).update(held.ids)
            elif resource in pool:
                pool[resource] -= held.ids

    def _remember(self, pod: Pod) -> None:
        """Until 1.31 the pod that was admitted last is not collected, even if it has gone."""
        if self._around.behaviour.keeps_last_admitted_pod:
            self._last_admitted = pod.uid

    def _leaves_devices(self, pod: Pod, container: Container) -> bool:
        """Whether later containers of the pod may have what this one has."""
        keeps = self._around.behaviour.sidecars_keep_devices and pod.is_sidecar(container.name)
        return pod.is_init(container.name) and not keeps

    async def _allocate_all(self, pod: Pod, container: Container, pool: Mapping[str, set[str]]) -> None:
        resources = [resource for resource in container.limits if self.state.knows(resource)]
        if resources:
            self.collect()
        changed = False
        for resource in self._chooser.in_random_order(resources):
            need = Need(
                pod.uid,
                container.name,
                resource,
                container.limits[resource],
                pool.get(resource, set()),
                self._around.affinities.of(pod.uid, container.name).mask,
                (pod.uid, container.name) in self.running,
            )
            chosen = await self._chooser.choose(need, sources_ready=self.sources_ready)
            if chosen:
                answer = await self._call_allocate(need, chosen)
                held = Held(self._by_node(resource, chosen), answer)
                self.state.holdings.record(Entry(pod.uid, container.name, resource, held))
                changed = True
        if changed:
            self._around.save(self.state)

    async def _call_allocate(self, need: Need, device_ids: tuple[str, ...]) -> ContainerAnswer:
        plugin = self.state.plugins.get(need.resource)
        if plugin is None:
            self.state.rebuild_in_use()
            raise AllocationError(f"unknown Device Plugin {need.resource}")
        called = AllocateCalled(need.pod_uid, need.container, need.resource, tuple(sorted(device_ids)))
        self._around.journal.allocations.append(called)
        try:
            answer = await plugin.reachable(need.resource).allocate(device_ids)
        except EndpointError:
            self.state.rebuild_in_use()
            raise
        if answer is None:
            raise AllocationError("no containers return in allocation response ")
        return answer if self._around.behaviour.passes_cdi_devices else replace(answer, cdi_devices=())

    def _by_node(self, resource: str, device_ids: Iterable[str]) -> dict[int, tuple[str, ...]]:
        listed = self.state.table.listed.get(resource, {})
        by_node: dict[int, tuple[str, ...]] = {}
        for device in sorted(device_ids):
            if device not in listed:
                raise KubeletPanicError(resource, device)
            for node in listed[device].numa_nodes or (NO_NODE,):
                by_node[node] = (*by_node.get(node, ()), device)
        return by_node

    async def start(self, pod: Pod, container: Container) -> ContainerAnswer:
        """What happens before each start of a container; returns what the runtime is given.

        PreStartContainer is called where a plugin wants it, and Allocate where there is no stored answer. Raises
        AllocationError or EndpointError; kubelet tries a start again.
        """
        missing = False
        for resource in self._chooser.in_random_order(container.limits):
            if container.limits[resource] and self.state.knows(resource):
                await self._pre_start(pod, container, resource)
                held = self.state.holdings.ids(pod.uid, container.name, resource)
                missing |= held is None and pod.uid in set(self._around.active_pods())
        if missing:
            await self.allocate(pod, container)
        edits, _ = self.edits(pod.uid, container.name)
        return edits

    async def _pre_start(self, pod: Pod, container: Container, resource: str) -> None:
        plugin = self.state.plugin(resource)
        if plugin.options is None or not plugin.options.pre_start_required:
            return
        held = self.state.holdings.ids(pod.uid, container.name, resource)
        if held is None:
            raise AllocationError(
                f"no devices found allocated in local cache for pod {pod.uid}, container {container.name}, "
                f"resource {resource}"
            )
        try:
            await plugin.reachable(resource).pre_start(self._chooser.in_random_order(held))
        except EndpointError as error:
            raise AllocationError(f"device plugin PreStartContainer rpc failed with err: {error}") from error

    def edits(self, pod_uid: str, container: str) -> tuple[ContainerAnswer, tuple[Conflict, ...]]:
        """What kubelet passes to the runtime when the container starts, and what gave way in the merge.

        The order in which the stored answers are merged is arbitrary, so a conflict may end differently each time.
        """
        held = self.state.holdings.of_container(pod_uid, container)
        return merge(held[resource].answer for resource in self._chooser.in_random_order(held))
