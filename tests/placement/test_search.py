"""Choosing subsets: all of them, few of them by classes, or a climb."""

from dataclasses import replace
from itertools import combinations, pairwise
from math import comb

import pytest

from gpustow.hardware.links import Links
from gpustow.placement import Inventory, Occupancy, Request
from gpustow.placement.search import choose, classes_of, masks_of, sets_number, sets_of
from gpustow.placement.state import State, read_offer, read_state
from tests.placement.cards import replicas
from tests.placement.fabrics import DGX1_V100, NEIGHBOURS, dgx2, links_of


def state_of(count: int, links: Links, *, numa: list[int | None] | None = None) -> State:
    inventory = Inventory.of(replicas([1] * count, numa=numa), links)
    request = Request(inventory.ids, [], 1)
    return read_state(1, read_offer(request, inventory), inventory, Occupancy())


def test_link_twins_on_one_numa_node_are_one_class() -> None:
    state = state_of(8, NEIGHBOURS, numa=[0, 0, 0, 1, 1, 1, 1, 1])
    assert classes_of(state, range(8), lambda _: None) == [[0, 1], [2], [3], [4, 5], [6, 7]]
    assert classes_of(state, range(4, 8), lambda at: at == 5) == [[4], [5], [6, 7]]


@pytest.mark.parametrize("classes", [[[0, 1], [2], [3, 4, 5]], [[at] for at in range(6)], []])
@pytest.mark.parametrize("size", [0, 1, 2, 4, 6])
def test_sets_use_each_class_in_order(classes: list[list[int]], size: int) -> None:
    bits = [32, 16, 8, 4, 2, 1]
    members = [at for some in classes for at in some]
    expected = {
        sum(bits[at] for at in chosen)
        for chosen in combinations(members, size)
        if all(at in chosen for some in classes for at, after in pairwise(some) if after in chosen)
    }
    found = sets_of(classes, size, bits)
    assert set(found) == expected
    assert len(found) == len(expected) == sets_number(classes, size)


def test_many_sets_are_built_from_smaller_ones_all_the_same() -> None:
    classes = [[at] for at in range(14)]
    bits = [1 << at for at in range(14)]
    assert len(set(sets_of(classes, 7, bits))) == comb(14, 7)


def test_a_large_class_less_fabric_sifts_all_masks() -> None:
    state = state_of(12, links_of(12, dgx2))
    classes = [[at] for at in range(12)]
    assert set(masks_of(state.fabric, classes, 5)) == set(sets_of(classes, 5, state.fabric.bits))


@pytest.mark.parametrize("links", [DGX1_V100, NEIGHBOURS])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_chosen_set_is_the_best_linked_then_on_fewest_numa_nodes_then_first(links: Links, size: int) -> None:
    state = state_of(8, links, numa=[0, 1, 1, 0, 1, 1, 0, 0])
    base, candidates = state.fabric.bits[2], [0, 1, 3, 4, 5, 6, 7]
    masks = [base | sum(state.fabric.bits[at] for at in some) for some in combinations(candidates, size)]
    expected = max(masks, key=lambda mask: (state.fabric.score(mask), -state.numa_spanned(mask), mask))
    choice = choose(state, base, candidates, size)
    assert choice.mask | base == expected
    assert choice.exact


def test_a_climb_is_not_proven_but_finds_the_island() -> None:
    state = state_of(16, links_of(16, dgx2))
    choice = choose(state, state.fabric.bits[5], [at for at in range(16) if at != 5], 3, most=10)
    assert not choice.exact
    assert state.fabric.positions(choice.mask) == [4, 6, 7]


def test_a_climb_trades_a_gpu_that_a_greedy_start_took() -> None:
    # Alone GPU 0 links best with 1; but 2, 3 and 4 link better among themselves.
    links = links_of(6, lambda a, b: NEIGHBOURS.table()[0, 1] if {a, b} <= {2, 3, 4} else NEIGHBOURS.table()[0, 2])
    state = state_of(6, links)
    assert state.fabric.positions(choose(state, 0, range(6), 3, most=1).mask) == [2, 3, 4]


def test_a_climb_stops_when_time_is_up() -> None:
    state = replace(state_of(16, links_of(16, dgx2)), expired=lambda: True)
    choice = choose(state, 0, range(16), 5, most=1)
    assert choice.mask.bit_count() == 5
    assert choice.weighed == 16
