import pytest

from gpustow.simulation.kubelet.topology.hints import Hint
from gpustow.simulation.kubelet.topology.masks import Mask
from gpustow.simulation.kubelet.topology.policies import Verdict, decide
from gpustow.simulation.kubelet.topology.settings import TopologySettings

BOTH = Mask.of((0, 1))
ON_0P = Hint(Mask.of((0,)), preferred=True)
ON_1P = Hint(Mask.of((1,)), preferred=True)
ON_01 = Hint(BOTH)
ON_01P = Hint(BOTH, preferred=True)
ANY = Hint(None, preferred=True)


def verdict(policy: str, *lists: list[Hint], numa_nodes: tuple[int, ...] = (0, 1)) -> Verdict:
    return decide(TopologySettings(policy, numa_nodes=numa_nodes), lists)


def test_none_admits_everything_with_the_empty_hint() -> None:
    assert verdict("none", [ON_01]) == Verdict(Hint(), admit=True)


@pytest.mark.parametrize(
    ("policy", "hint"),
    [("best-effort", ON_01P), ("restricted", ON_01P), ("single-numa-node", ANY)],
)
def test_without_preference_anywhere_every_policy_admits(policy: str, hint: Hint) -> None:
    assert verdict(policy, [ANY]) == Verdict(hint, admit=True)


@pytest.mark.parametrize(("policy", "admit"), [("best-effort", True), ("restricted", False)])
def test_only_best_effort_admits_resources_on_disjoint_nodes(policy: str, *, admit: bool) -> None:
    assert verdict(policy, [ON_0P], [ON_1P]) == Verdict(ON_01, admit=admit)


def test_single_numa_node_refuses_resources_on_disjoint_nodes() -> None:
    assert verdict("single-numa-node", [ON_0P], [ON_1P]) == Verdict(Hint(None), admit=False)


def test_single_numa_node_refuses_what_needs_two_nodes_even_if_that_is_preferred() -> None:
    assert verdict("single-numa-node", [ON_01P]) == Verdict(Hint(None), admit=False)
    assert verdict("restricted", [ON_01P]) == Verdict(ON_01P, admit=True)


def test_single_numa_node_takes_the_one_node() -> None:
    assert verdict("single-numa-node", [ON_1P, ON_01], [ANY]) == Verdict(ON_1P, admit=True)


def test_on_a_machine_with_one_node_single_numa_node_stores_no_affinity() -> None:
    assert verdict("single-numa-node", [ON_0P], numa_nodes=(0,)) == Verdict(ANY, admit=True)
