"""How kubelet's Topology Manager is set up: policy, scope, options, and the machine's NUMA nodes.

Wrong settings keep kubelet from starting, with the texts that are used here. With policy `none` nothing but the policy
is looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from gpustow.errors import UsageError
from gpustow.simulation.kubelet.topology.masks import Mask

MOST_NODES = 8
"""NUMA nodes above which kubelet does not start unless the option says so."""

CLOSEST = "prefer-closest-numa-nodes"
MOST_NODES_OPTION = "max-allowable-numa-nodes"


class Policy(Enum):
    """What is admitted; the values are kubelet's."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Scope(Enum):
    """What hints are merged for; the values are kubelet's."""

    CONTAINER = "container"
    POD = "pod"


@dataclass(frozen=True, slots=True)
class TopologySettings:
    """The settings, as in kubelet's configuration file; `numa_nodes` and `distances` are the machine's.

    `distances` has for each node a row with its distance to every node, indexed by node id. Raises UsageError with
    kubelet's text where kubelet does not start. It also refuses what makes the true one crash later: a node id above
    63, and the closest option with ids that are not 0, 1, 2 ...
    """

    policy: str = "none"
    scope: str = "container"
    numa_nodes: tuple[int, ...] = (0,)
    options: Mapping[str, str] = field(default_factory=dict)
    distances: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.policy not in {known.value for known in Policy}:
            raise UsageError(f'unknown policy: "{self.policy}"')
        if self.policy == Policy.NONE.value:
            return
        if self.scope not in {known.value for known in Scope}:
            raise UsageError(f'unknown scope: "{self.scope}"')
        Mask.of(self.numa_nodes)
        self._check_options()
        most = int(self.options.get(MOST_NODES_OPTION, MOST_NODES))
        if len(self.numa_nodes) > most:
            raise UsageError(f"unsupported on machines with more than {most} NUMA Nodes")

    def _check_options(self) -> None:
        for option, value in self.options.items():
            if option == CLOSEST:
                if value not in {"true", "false"}:
                    raise UsageError(f'bad value for option "{option}": {value!r} is neither true nor false')
            elif option == MOST_NODES_OPTION:
                if not value.isdecimal():
                    raise UsageError(f'bad value for option "{option}": {value!r} is not a number')
                if int(value) < MOST_NODES:
                    raise UsageError(f'the minimum value of "{option}" should not be less than {MOST_NODES}')
            else:
                raise UsageError(f'unknown Topology Manager Policy option: "{option}"')
        if self.prefers_closest:
            self._check_distances()

    def _check_distances(self) -> None:
        if sorted(self.numa_nodes) != [*range(len(self.numa_nodes))]:
            raise UsageError(f'option "{CLOSEST}" crashes kubelet where NUMA node ids are not 0, 1, 2 ...')
        if any(len(self.distances.get(node, ())) < len(self.numa_nodes) for node in self.numa_nodes):
            raise UsageError("cannot discover NUMA topology: error getting NUMA distances from cadvisor")

    @property
    def prefers_closest(self) -> bool:
        """Whether masks with equally many nodes are compared by how far the nodes are apart."""
        return self.options.get(CLOSEST) == "true"

    @property
    def machine(self) -> Mask:
        """All NUMA nodes of the machine."""
        return Mask.of(self.numa_nodes)

    def distance(self, mask: Mask) -> float:
        """The mean distance over all ordered pairs of nodes, each node with itself included."""
        if not self.prefers_closest:
            return 0.0
        pairs = [self.distances[near][far] for near in mask.nodes for far in mask.nodes]
        return sum(pairs) / len(pairs)
