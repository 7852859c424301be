"""Which devices one container gets of one resource: kubelet's choice, with the plugin's advice.

The order of the checks is kubelet's and decides which error a pod is refused with. Where kubelet takes an arbitrary
element of a set, an element is drawn with the random generator that is passed in.

Numbers and texts: kubelet 1.36.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from random import Random

from gpustow.simulation.kubelet.behaviour import Behaviour
from gpustow.simulation.kubelet.devices import DeviceTable
from gpustow.simulation.kubelet.endpoint import EndpointError
from gpustow.simulation.kubelet.holdings import NO_NODE
from gpustow.simulation.kubelet.journal import Journal, PreferenceAsked
from gpustow.simulation.kubelet.state import AllocationError, DeviceState
from gpustow.simulation.kubelet.topology.masks import Mask


@dataclass(frozen=True, slots=True)
class Need:
    """What is asked: a container of a pod wants `size` devices of a resource.

    `pool` has the devices of the pod's finished init containers; `mask` is the NUMA affinity, None without one;
    `running` says that the container has been running since before kubelet started.
    """

    pod_uid: str
    container: str
    resource: str
    size: int
    pool: Collection[str] = ()
    mask: Mask | None = None
    running: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """The free devices by how they lie to the affinity mask."""

    aligned: set[str]
    unaligned: set[str]
    without_affinity: set[str]


def split(table: DeviceTable, resource: str, free: set[str], mask: Mask | None) -> Split:
    """The free devices by the mask.

    Without a mask, or for a resource of which no device names a NUMA node, all are without affinity. A device that
    touches the mask with one of its nodes is aligned.
    """
    if mask is None or not table.has_topology(resource):
        return Split(set(), set(), set(free))
    result = Split(set(), set(), set())
    for device in free:
        nodes = table.numa_nodes(resource, device)
        if mask.has_any(nodes):
            result.aligned.add(device)
        elif any(node != NO_NODE for node in nodes):
            result.unaligned.add(device)
        else:
            result.without_affinity.add(device)
    return result


class Chooser:
    """Chooses devices and reserves what it chose in the state's `in_use`."""

    def __init__(self, state: DeviceState, random: Random, behaviour: Behaviour, journal: Journal) -> None:
        self._state = state
        self._random = random
        self._behaviour = behaviour
        self._journal = journal

    async def choose(self, need: Need, *, sources_ready: bool) -> tuple[str, ...]:
        """The ids to call Allocate with; none if the container has what it wants, or runs already.

        Raises AllocationError.
        """
        held = self._state.holdings.ids(need.pod_uid, need.container, need.resource)
        missing = need.size - len(held or ())
        if held is not None and missing:
            raise AllocationError(
                f'pod "{need.pod_uid}" container "{need.container}" changed request for resource "{need.resource}" '
                f"from {len(held)} to {need.size}"
            )
        if self._behaviour.trusts_running_containers and need.running and not sources_ready:
            return ()
        if self._behaviour.checks_held_devices:
            self._check_health(need.resource, held or frozenset())
        if not missing:
            return ()
        taking = _Taking(self._state, self._random, need, missing)
        await self._take(taking, need)
        return tuple(self.in_random_order(taking.taken))

    def _check_health(self, resource: str, held: frozenset[str]) -> None:
        healthy = self._state.table.healthy.get(resource)
        if healthy is None:
            raise AllocationError(f"cannot allocate unregistered device {resource}")
        if not healthy:
            raise AllocationError(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        if not held <= healthy:
            raise AllocationError(
                f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
            )

    async def _take(self, taking: "_Taking", need: Need) -> None:
        if taking.take(need.pool):
            return
        free = self._state.free(need.resource)
        if len(free) < taking.missing:
            raise AllocationError(
                f"requested number of devices unavailable for {need.resource}. "
                f"Requested: {taking.missing}, Available: {len(free)}"
            )
        parts = split(self._state.table, need.resource, free, need.mask)
        if taking.missing < len(parts.aligned):
            preferred = await self._ask(need, parts.aligned, taking.taken)
            sources: tuple[set[str], ...] = (preferred & parts.aligned, parts.aligned)
        elif taking.take(parts.aligned):
            return
        else:
            preferred = await self._ask(need, free, taking.taken)
            sources = (preferred & free, parts.unaligned, parts.without_affinity)
        for source in sources:
            taking.take(source)

    async def _ask(self, need: Need, candidates: set[str], taken: Collection[str]) -> set[str]:
        plugin = self._state.plugin(need.resource)
        if plugin.options is None or not plugin.options.get_preferred_allocation_available:
            return set()
        available, must = sorted(candidates.union(taken)), sorted(taken)
        asked = PreferenceAsked(need.resource, tuple(available), tuple(must), need.size)
        self._journal.preferences.append(asked)
        self._shuffle(available)
        self._shuffle(must)
        try:
            return set(await plugin.reachable(need.resource).preferred(available, must, need.size))
        except EndpointError as error:
            raise AllocationError(f"device plugin GetPreferredAllocation rpc failed with err: {error}") from error

    def in_random_order(self, ids: Iterable[str]) -> list[str]:
        """The ids as a Go map would give them; sorted first, so that only the random generator decides."""
        ordered = sorted(ids)
        self._shuffle(ordered)
        return ordered

    def _shuffle(self, ids: list[str]) -> None:
        """As `Random.shuffle`, which takes several times as long."""
        draw = self._random.random
        ids.sort(key=lambda _: draw())


class _Taking:
    """Devices being taken for one need, each of them reserved at once."""

    def __init__(self, state: DeviceState, random: Random, need: Need, missing: int) -> None:
        self._state = state
        self._random = random
        self._resource = need.resource
        self.missing = missing
        self.taken: dict[str, None] = {}

    def take(self, ids: Collection[str]) -> bool:
        """Takes from the ids, in random order, what is still missing; whether all is there now."""
        if not self.missing:
            return True
        candidates = sorted(set(ids).difference(self.taken))
        for device in self._random.sample(candidates, min(self.missing, len(candidates))):
            self._state.reserve(self._resource, device)
            self.taken[device] = None
            self.missing -= 1
        return not self.missing
