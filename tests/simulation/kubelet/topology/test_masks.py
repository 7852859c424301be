from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import UsageError
from gpustow.simulation.kubelet.topology.masks import Mask, subsets

NODES = st.frozensets(st.integers(0, 63))


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ((), "00"),
        ((0,), "01"),
        ((1,), "10"),
        ((0, 1), "11"),
        ((2,), "100"),
        ((0, 2), "0101"),
        ((3,), "1000"),
        ((4,), "10000"),
        ((0, 4), "010001"),
        ((6,), "1000000"),
    ],
)
def test_a_mask_prints_as_kubelet_logs_it(nodes: tuple[int, ...], text: str) -> None:
    assert str(Mask.of(nodes)) == text


@pytest.mark.parametrize("node", [-1, 64])
def test_a_node_that_does_not_fit_is_refused(node: int) -> None:
    with pytest.raises(UsageError, match=f"NUMA node {node} .*bit number must be in range 0-63"):
        Mask.of((0, node))


@pytest.mark.parametrize("node", [-1, 64])
def test_a_node_outside_the_word_is_in_no_mask(node: int) -> None:
    assert not Mask.of(range(64)).has(node)


def test_no_nodes_touch_no_mask() -> None:
    assert not Mask.of((0, 1)).has_any(())


def test_nodes_0_and_3_lose_to_1_and_2() -> None:
    assert Mask.of((1, 2)).narrower_than(Mask.of((0, 3)))


def test_fewer_nodes_are_narrower_whatever_the_word() -> None:
    assert Mask.of((5,)).narrower_than(Mask.of((0, 1)))


def test_masks_are_enumerated_in_the_order_of_the_list_as_given() -> None:
    assert [mask.nodes for mask in subsets((3, 1))] == [(3,), (1,), (1, 3)]


@given(NODES)
def test_a_mask_has_the_nodes_that_it_was_made_of(nodes: frozenset[int]) -> None:
    mask = Mask.of(nodes)
    assert mask.nodes == tuple(sorted(nodes))
    assert mask.count == len(nodes)
    assert all(mask.has(node) == (node in nodes) for node in range(64))


@given(NODES, NODES)
def test_and_is_the_intersection(left: frozenset[int], right: frozenset[int]) -> None:
    assert (Mask.of(left) & Mask.of(right)).nodes == tuple(sorted(left & right))


@given(NODES, NODES)
def test_a_mask_touches_what_it_shares_a_node_with(left: frozenset[int], right: frozenset[int]) -> None:
    assert Mask.of(left).has_any(right) == bool(left & right)


@given(st.lists(st.integers(0, 63), unique=True, max_size=6))
def test_every_subset_comes_once_and_small_ones_first(nodes: list[int]) -> None:
    every = [*subsets(nodes)]
    assert [mask.count for mask in every] == sorted(mask.count for mask in every)
    assert {mask.nodes for mask in every} == {
        tuple(sorted(chosen)) for size in range(1, len(nodes) + 1) for chosen in combinations(nodes, size)
    }
    assert len(every) == 2 ** len(nodes) - 1
