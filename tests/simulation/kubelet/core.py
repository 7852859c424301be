"""Kubelet's device manager and Topology Manager without a wire: fake plugins, pods in a list, a clock by hand."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from random import Random

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.admission import HintProvider, TopologyManager
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.behaviour import DEFAULT_BEHAVIOUR, Behaviour
from gpustow.simulation.kubelet.devicemanager import DeviceManager, Surroundings
from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.endpoint import EndpointError, PluginOptions
from gpustow.simulation.kubelet.holdings import Holdings
from gpustow.simulation.kubelet.journal import Journal, PreferenceAsked
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.state import DeviceState
from gpustow.simulation.kubelet.topology.affinities import Affinities
from gpustow.simulation.kubelet.topology.settings import TopologySettings

THING = "example.com/thing"
Nodes = tuple[int, ...] | None


def seeded(seed: int = 1) -> Random:
    return Random(seed)


def listed(names: str, nodes: Nodes = None, health: str = "Healthy") -> list[PluginDevice]:
    return [PluginDevice(name, health, nodes) for name in names.split()]


def wanting(name: str, size: int, resource: str = THING) -> Pod:
    return Pod(name, containers=(Container("main", {resource: size}),), uid=f"uid-{name}")


@dataclass
class FakeClock:
    """Seconds, moved on by hand."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(eq=False)
class FakeEndpoint:
    """Answers must-include first, then the lowest names, unless it is told otherwise."""

    prefer: Callable[[Sequence[str], Sequence[str], int], Sequence[str]] | None = None
    prefer_error: str | None = None
    allocate_error: str | None = None
    pre_start_error: str | None = None
    no_containers: bool = False
    during_preferred: Callable[[], object] | None = None
    during_allocate: Callable[[], object] | None = None
    answer: Callable[[Sequence[str]], ContainerAnswer] = lambda ids: ContainerAnswer({"IDS": ",".join(sorted(ids))})
    pre_starts: list[tuple[str, ...]] = field(default_factory=list)

    async def preferred(self, available: Sequence[str], must_include: Sequence[str], size: int, /) -> Sequence[str]:
        if self.during_preferred is not None:
            self.during_preferred()
        if self.prefer_error is not None:
            raise EndpointError(self.prefer_error)
        if self.prefer is not None:
            return self.prefer(available, must_include, size)
        return [*sorted(must_include), *sorted(set(available).difference(must_include))][:size]

    async def allocate(self, device_ids: Sequence[str], /) -> ContainerAnswer | None:
        if self.during_allocate is not None:
            self.during_allocate()
        if self.allocate_error is not None:
            raise EndpointError(self.allocate_error)
        return None if self.no_containers else self.answer(device_ids)

    async def pre_start(self, device_ids: Sequence[str], /) -> None:
        self.pre_starts.append(tuple(sorted(device_ids)))
        if self.pre_start_error is not None:
            raise EndpointError(self.pre_start_error)


PREFERS = PluginOptions(get_preferred_allocation_available=True)


class Core:
    """A kubelet's inside; `active` has the uids of the pods that are there."""

    def __init__(
        self,
        seed: int = 1,
        *,
        settings: TopologySettings | None = None,
        behaviour: Behaviour = DEFAULT_BEHAVIOUR,
        providers: Sequence[HintProvider] = (),
        clock: FakeClock | None = None,
    ) -> None:
        settings = settings or TopologySettings()
        self.behaviour = behaviour
        self.clock = clock or FakeClock()
        self.journal = Journal()
        self.active: list[str] = []
        self.saves = 0
        self.affinities = Affinities()
        self.manager = DeviceManager(
            Surroundings(
                random=seeded(seed),
                clock=self.clock,
                active_pods=lambda: self.active,
                save=self._save,
                affinities=self.affinities,
                numa_nodes=settings.numa_nodes,
                behaviour=behaviour,
                journal=self.journal,
            )
        )
        self.topology = TopologyManager(settings, (self.manager, *providers), self.affinities, self.journal)

    def restart(self, running: Iterable[tuple[str, str]]) -> "Core":
        """Kubelet anew from the checkpoint, with the same pods; its sources are not ready."""
        after = Core(settings=self.topology.settings, behaviour=self.behaviour, clock=self.clock)
        after.active = self.active
        state = self.manager.state
        after.manager.restore(Holdings(state.holdings.entries()), tuple(state.table.healthy))
        after.manager.running = frozenset(running)
        after.manager.sources_ready = False
        return after

    def _save(self, state: DeviceState) -> None:
        del state
        self.saves += 1

    def plug(
        self,
        devices: Iterable[PluginDevice],
        endpoint: FakeEndpoint | None = None,
        resource: str = THING,
        options: PluginOptions = PREFERS,
    ) -> FakeEndpoint:
        endpoint = endpoint or FakeEndpoint()
        self.manager.connected(resource, endpoint, options)
        self.manager.listed(resource, devices)
        return endpoint

    async def admit(self, pod: Pod) -> None:
        """Admits a pod; it is active from the start, and not any more if it is refused."""
        self.activate(pod)
        try:
            await self.topology.admit(pod)
        except AdmissionError:
            self.active.remove(pod.uid)
            raise

    def activate(self, pod: Pod) -> None:
        if pod.uid not in self.active:
            self.active.append(pod.uid)

    def lose(self, resource: str = THING) -> None:
        """The plugin that speaks for the resource is lost."""
        self.manager.disconnected(resource, self.manager.state.plugins[resource].endpoint)

    def held(self, pod: Pod, container: str = "main", resource: str = THING) -> AbstractSet[str]:
        return self.manager.state.holdings.ids(pod.uid, container, resource) or frozenset()

    def asked(self) -> list[tuple[str, str, int]]:
        """The calls of GetPreferredAllocation as `("d0 d1", "", 1)`."""
        return [shown(call) for call in self.journal.preferences]

    def allocated(self) -> list[str]:
        """The calls of Allocate as `"d0 d1"`."""
        return [" ".join(call.device_ids) for call in self.journal.allocations]


def shown(call: PreferenceAsked) -> tuple[str, str, int]:
    return " ".join(call.available), " ".join(call.must_include), call.size
