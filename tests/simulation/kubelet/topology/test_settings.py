import pytest

from gpustow.errors import UsageError
from gpustow.simulation.kubelet.topology.masks import Mask
from gpustow.simulation.kubelet.topology.settings import TopologySettings

NINE = tuple(range(9))
FLAT = {0: (10, 20), 1: (20, 10)}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"policy": "strict"}, 'unknown policy: "strict"'),
        ({"policy": "restricted", "scope": "node"}, 'unknown scope: "node"'),
        ({"policy": "restricted", "options": {"x": "true"}}, 'unknown Topology Manager Policy option: "x"'),
        (
            {"policy": "restricted", "options": {"prefer-closest-numa-nodes": "often"}},
            'bad value for option "prefer-closest-numa-nodes"',
        ),
        (
            {"policy": "restricted", "options": {"max-allowable-numa-nodes": "many"}},
            'bad value for option "max-allowable-numa-nodes"',
        ),
        (
            {"policy": "restricted", "options": {"max-allowable-numa-nodes": "7"}},
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
        ),
        ({"policy": "restricted", "numa_nodes": NINE}, "unsupported on machines with more than 8 NUMA Nodes"),
        (
            {"policy": "restricted", "numa_nodes": (0, 1), "options": {"prefer-closest-numa-nodes": "true"}},
            "cannot discover NUMA topology: error getting NUMA distances from cadvisor",
        ),
        (
            {"policy": "restricted", "numa_nodes": (0, 2), "options": {"prefer-closest-numa-nodes": "true"}},
            "crashes kubelet where NUMA node ids are not 0, 1, 2",
        ),
        ({"policy": "restricted", "numa_nodes": (0, 64)}, "bit number must be in range 0-63"),
    ],
)
def test_kubelet_does_not_start_with(settings: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError) as refused:
        TopologySettings(**settings)  # type: ignore[arg-type]  # the values are what is tested
    assert text in str(refused.value)


def test_with_policy_none_nothing_else_is_looked_at() -> None:
    settings = TopologySettings("none", "anything", NINE, {"x": "y"})
    assert settings.policy == "none"


def test_an_option_raises_the_limit_of_numa_nodes() -> None:
    settings = TopologySettings("restricted", numa_nodes=NINE, options={"max-allowable-numa-nodes": "9"})
    assert settings.machine == Mask.of(NINE)


def test_the_distance_of_a_mask_is_the_mean_over_all_ordered_pairs_with_the_nodes_themselves() -> None:
    settings = TopologySettings("restricted", "container", (0, 1), {"prefer-closest-numa-nodes": "true"}, FLAT)
    assert settings.distance(Mask.of((0, 1))) == 15
    assert settings.distance(Mask.of((1,))) == 10


def test_without_the_option_all_masks_are_equally_far() -> None:
    settings = TopologySettings("restricted", "container", (0, 1), {"prefer-closest-numa-nodes": "false"}, FLAT)
    assert settings.distance(Mask.of((0, 1))) == settings.distance(Mask.of((1,))) == 0
