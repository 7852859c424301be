"""What each policy makes of the merged hint: which nodes the devices shall come from, and whether the pod may run."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpustow.simulation.kubelet.topology.hints import Hint
from gpustow.simulation.kubelet.topology.merge import merge_hints
from gpustow.simulation.kubelet.topology.settings import Policy, TopologySettings


@dataclass(frozen=True, slots=True)
class Verdict:
    """The merged hint, and whether the policy admits with it."""

    hint: Hint
    admit: bool


def decide(settings: TopologySettings, lists: Sequence[Sequence[Hint]]) -> Verdict:
    """The verdict of the policy on these lists of hints, one for each provider and resource.

    `none` asks nobody: it admits with the empty hint.
    """
    policy = Policy(settings.policy)
    if policy is Policy.NONE:
        return Verdict(Hint(), admit=True)
    if policy is Policy.SINGLE_NUMA_NODE:
        return _single_numa_node(settings, lists)
    merged = merge_hints(lists, settings.machine, settings.distance)
    return Verdict(merged, admit=policy is Policy.BEST_EFFORT or merged.preferred)


def _single_numa_node(settings: TopologySettings, lists: Sequence[Sequence[Hint]]) -> Verdict:
    """Only preferred hints of one node count, or no preference; distances do not.

    A result of all nodes says nothing, so it is stored as no affinity; on a machine with one node every result is.
    """
    single = [[hint for hint in hints if _preferred_on_one_node(hint)] for hints in lists]
    merged = merge_hints(single, settings.machine)
    if merged.mask == settings.machine:
        merged = Hint(None, merged.preferred)
    return Verdict(merged, merged.preferred)


def _preferred_on_one_node(hint: Hint) -> bool:
    return hint.preferred and (hint.mask is None or hint.mask.count == 1)
