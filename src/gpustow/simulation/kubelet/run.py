"""One run of kubelet, from its start to its stop or kill: the device manager, its connections, its servers.

Nothing of a run survives but the checkpoint and what the API server has (`PodBook`, `NodeObject`). A start goes as
kubelet's: read the checkpoint, wipe the sockets, listen. Until the pods of the API server have been through admission
again, the sources are not ready: nobody is collected, and containers that ran all along are trusted.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from gpustow.errors import AdmissionError
from gpustow.kubelet.protocol.services import pod_resources_handler, registration_handler
from gpustow.simulation.kubelet.admission import HintProvider, TopologyManager
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.behaviour import DEFAULT_BEHAVIOUR, Behaviour
from gpustow.simulation.kubelet.checkpoint import FILE, Checkpoint
from gpustow.simulation.kubelet.clients import ClientTable
from gpustow.simulation.kubelet.devicemanager import DeviceManager, Surroundings
from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.endpoint import Endpoint, PluginOptions
from gpustow.simulation.kubelet.journal import Journal
from gpustow.simulation.kubelet.nodestatus import NodeObject, NodeStatus
from gpustow.simulation.kubelet.pluginclient import DIAL_TIMEOUT, PluginClient
from gpustow.simulation.kubelet.pod import AdmittedContainer, AdmittedPod, Container, Pod, effective_limits
from gpustow.simulation.kubelet.podbook import Phase, PodBook, PodRecord
from gpustow.simulation.kubelet.podresources import PodResourcesServer
from gpustow.simulation.kubelet.predicates import Demand, check_fit
from gpustow.simulation.kubelet.ratelimit import TokenBucket
from gpustow.simulation.kubelet.registration import RegistrationServer
from gpustow.simulation.kubelet.sockets import Server, Sockets, serve
from gpustow.simulation.kubelet.state import AllocationError, DeviceState
from gpustow.simulation.kubelet.status import device_health
from gpustow.simulation.kubelet.topology.affinities import Affinities
from gpustow.simulation.kubelet.topology.hints import KubeletPanicError
from gpustow.simulation.kubelet.topology.settings import TopologySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What stays the same from run to run."""

    sockets: Sockets
    random: Random
    clock: Callable[[], float]
    behaviour: Behaviour = DEFAULT_BEHAVIOUR
    topology: TopologySettings = field(default_factory=TopologySettings)
    hint_providers: Sequence[HintProvider] = ()
    dial_timeout: float = DIAL_TIMEOUT


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the API server has, and the journal of the test."""

    book: PodBook
    node: NodeObject
    journal: Journal


class Run:
    """One run; `changed` is called when a plugin has connected, listed or been lost."""

    def __init__(self, setup: Setup, cluster: Cluster, changed: Callable[[], None]) -> None:
        self._setup = setup
        self._cluster = cluster
        self._changed = changed
        self._checkpoint = Checkpoint(setup.sockets.plugin_directory)
        self._affinities = Affinities()
        self.manager = DeviceManager(
            Surroundings(
                random=setup.random,
                clock=setup.clock,
                active_pods=cluster.book.active_uids,
                save=self._save,
                affinities=self._affinities,
                numa_nodes=setup.topology.numa_nodes,
                behaviour=setup.behaviour,
                journal=cluster.journal,
            )
        )
        providers = (self.manager, *setup.hint_providers)
        self._topology = TopologyManager(setup.topology, providers, self._affinities, cluster.journal)
        self.clients = ClientTable(self, self._client, setup.behaviour)
        self._servers: list[Server] = []
        self._stopping = asyncio.Lock()
        self.admitting = asyncio.Lock()
        self.alive = False

    def _save(self, state: DeviceState) -> None:
        """A run that has ended writes no more, though a call of it may still come to its end.

        Raises AllocationError if the file cannot be written.
        """
        if self.alive:
            try:
                self._checkpoint.save(state)
            except OSError as error:
                raise AllocationError(f'failed to write checkpoint file "{FILE}": {error.strerror}') from error

    def _client(self, resource: str, socket: Path) -> PluginClient:
        return PluginClient(resource, socket, dial_timeout=self._setup.dial_timeout)

    async def start(self, running: Iterable[tuple[str, str]]) -> None:
        """Starts with what the checkpoint says; `running` are the containers that have been running all along."""
        remembered = self._checkpoint.load()
        self._cluster.node.kubelet_started(new_node=not self._checkpoint.exists())
        self._setup.sockets.prepare()
        self.manager.running = frozenset(running)
        self.manager.restore(remembered.holdings, remembered.resources)
        self.manager.sources_ready = False
        behaviour = self._setup.behaviour
        registration = RegistrationServer(self._setup.sockets.plugin_directory, self.clients, self._cluster.journal)
        pod_resources = PodResourcesServer(self.manager, self._cluster.book, TokenBucket(self._setup.clock), behaviour)
        self.alive = True
        try:
            for handler, socket in (
                (pod_resources_handler(pod_resources), self._setup.sockets.pod_resources),
                (registration_handler(registration), self._setup.sockets.registration),
            ):
                self._servers.append(await serve(handler, socket))
        except BaseException:
            await self.stop(killed=False)
            raise

    async def stop(self, *, killed: bool) -> None:
        """Ends the run, or waits until it has ended; calls to plugins that are under way fail."""
        was_alive, self.alive = self.alive, False
        async with self._stopping:
            for server in self._servers:
                await server.stop(None)
            self._servers.clear()
            await self.clients.close()
            if killed and was_alive:
                self._setup.sockets.leave_dead()

    async def admit(self, pod: Pod) -> None:
        """Takes a pod through the admission handlers that matter; raises AdmissionError."""
        async with self._down_after_panic():
            await self._topology.admit(pod)
        wanted = effective_limits(pod)
        used = {resource: self._cluster.book.used(resource, pod) for resource in wanted}
        check_fit(pod, Demand(wanted, used), self.node_status().allocatable, self.manager.state)

    async def lives_to_admit(self, pod: Pod) -> bool:
        """Admits; whether the run lived to tell the result. Raises AdmissionError if it did and that is a refusal."""
        try:
            await self.admit(pod)
        except AdmissionError:
            if self.alive:
                raise
        return self.alive

    async def start_container(self, pod: Pod, container: Container) -> ContainerAnswer:
        """What happens before each start of a container; see `DeviceManager.start`."""
        async with self._down_after_panic():
            return await self.manager.start(pod, container)

    @asynccontextmanager
    async def _down_after_panic(self) -> AsyncIterator[None]:
        try:
            yield
        except KubeletPanicError:
            await self.stop(killed=True)
            raise

    def view(self, pod: Pod) -> AdmittedPod:
        """What the containers of a pod have been given."""
        return AdmittedPod(
            pod,
            tuple(self._given(pod, container.name) for container in pod.containers),
            tuple(self._given(pod, container.name) for container in pod.init_containers),
        )

    def _given(self, pod: Pod, container: str) -> AdmittedContainer:
        held = self.manager.state.holdings.of_container(pod.uid, container)
        device_ids = {resource: tuple(sorted(held[resource].ids)) for resource in sorted(held)}
        edits, conflicts = self.manager.edits(pod.uid, container)
        return AdmittedContainer(container, device_ids, edits, conflicts)

    def write_status(self, record: PodRecord) -> None:
        """Writes the health of a pod's devices into its status, if it runs and this version does so."""
        if record.status.phase is Phase.RUNNING and self._setup.behaviour.reports_device_health:
            health = device_health(self.manager.state, record.pod)
            record.status = replace(record.status, allocated_resources=health)

    def _write_changed_statuses(self) -> None:
        waiting = self.manager.health_updates.take()
        for pod in self._cluster.book.active() if waiting else ():
            if pod.uid in waiting:
                self.write_status(self._cluster.book.record(pod.namespace, pod.name))

    def node_status(self) -> NodeStatus:
        """The node's status in the API server."""
        return self._cluster.node.status(self.manager.quantities)

    def forget(self, pod: Pod) -> None:
        """The pod's containers are gone."""
        self._affinities.forget(pod.uid)

    def give_up(self, pod: Pod) -> None:
        """The pod's admission was broken off, which the true kubelet cannot do; nothing of it stays reserved."""
        self.forget(pod)
        self.manager.state.rebuild_in_use()

    def connected(self, resource: str, endpoint: Endpoint, options: PluginOptions, socket: str) -> None:
        """A plugin has connected; raises EndpointError if it is refused."""
        self.manager.connected(resource, endpoint, options, socket)
        self._changed()

    def listed(self, resource: str, devices: Iterable[PluginDevice]) -> None:
        """A plugin has sent its list."""
        self.manager.listed(resource, devices)
        self._write_changed_statuses()
        self._changed()

    def disconnected(self, resource: str, endpoint: Endpoint, socket: str) -> None:
        """A plugin was lost."""
        self.manager.disconnected(resource, endpoint, socket)
        self._changed()
