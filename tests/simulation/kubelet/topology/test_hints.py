from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.topology.hints import Hint, KubeletPanicError, Supply, hint_nodes
from tests.simulation.kubelet.core import THING, Nodes, listed


def supply(devices: Sequence[PluginDevice], available: str, reusable: str = "") -> Supply:
    return Supply(THING, {device.id: device for device in devices}, set(available.split()), set(reusable.split()))


def text(hints: Sequence[Hint]) -> str:
    return " ".join(map(str, hints))


def test_a_hint_prints_its_nodes_and_whether_it_is_preferred() -> None:
    assert str(Hint()) == "*"
    assert str(Hint(None, preferred=True)) == "*P"


def test_node_ids_of_the_machine_need_not_be_dense() -> None:
    devices = listed("d0", (0,)) + listed("d1", (2,))
    assert hint_nodes(devices, (0, 2), narrow=True) == (0, 2)
    assert text(supply(devices, "d0 d1").hints((0, 2), 1)) == "0P 2P 02"


def test_nodes_that_the_machine_does_not_have_are_dropped() -> None:
    assert hint_nodes(listed("d0", (0,)) + listed("d1", (7, -1)), (0, 1), narrow=True) == (0,)


def test_without_any_known_node_all_nodes_of_the_machine_are_tried() -> None:
    assert hint_nodes(listed("d0", (7,)), (1, 0), narrow=True) == (1, 0)


def test_the_wide_scan_tries_all_nodes_of_the_machine() -> None:
    assert hint_nodes(listed("d0", (1,)), (0, 1), narrow=False) == (0, 1)


def test_a_device_near_two_nodes_counts_for_each() -> None:
    assert text(supply(listed("d0 d1", (0, 1)), "d0 d1").hints((0, 1), 2)) == "0P 1P 01"


def test_fragmentation_turns_preferred_into_not_preferred() -> None:
    devices = listed("d0 d1 d2 d3", (0,)) + listed("d4 d5 d6 d7", (1,))
    assert text(supply(devices, "d2 d3 d6 d7").hints((0, 1), 3)) == "01"


def test_a_hint_must_cover_the_whole_pool_even_for_a_smaller_request() -> None:
    devices = listed("d0 d1", (0,)) + listed("d2 d3", (1,))
    assert text(supply(devices, "", "d0 d1 d2 d3").hints((0, 1), 1)) == "01"


def test_a_pool_device_without_topology_does_not_count() -> None:
    devices = listed("a0 a1", (0,)) + listed("x")
    assert text(supply(devices, "", "a0 a1 x").hints((0,), 3)) == ""


def test_a_pool_device_with_an_empty_topology_kills_every_hint() -> None:
    devices = listed("a0 a1", (0,)) + listed("x", ())
    assert text(supply(devices, "a0", "a1 x").hints((0,), 1)) == ""


def test_without_enough_devices_on_any_nodes_there_is_no_hint() -> None:
    devices = listed("a0", (0,)) + listed("x0 x1")
    assert text(supply(devices, "a0 x0 x1").hints((0,), 2)) == ""


@pytest.mark.parametrize(("available", "reusable"), [("gone", ""), ("", "gone")])
def test_kubelet_crashes_on_a_device_that_is_not_listed_any_more(available: str, reusable: str) -> None:
    with pytest.raises(KubeletPanicError, match=f"gone of {THING}") as panic:
        supply(listed("a0", (0,)), available, reusable).hints((0,), 1)
    assert (panic.value.resource, panic.value.device) == (THING, "gone")


NUMA = st.none() | st.lists(st.sampled_from([-1, 0, 1, 2, 3, 9]), max_size=2).map(tuple)


@st.composite
def supplies(draw: st.DrawFn) -> tuple[list[PluginDevice], set[str], set[str]]:
    nodes: list[Nodes] = draw(st.lists(NUMA, min_size=1, max_size=7))
    devices = [PluginDevice(f"d{number}", "Healthy", of_device) for number, of_device in enumerate(nodes)]
    where = draw(st.lists(st.sampled_from(["free", "pool", "taken"]), min_size=len(nodes), max_size=len(nodes)))
    free = {device.id for device, place in zip(devices, where, strict=True) if place == "free"}
    pool = {device.id for device, place in zip(devices, where, strict=True) if place == "pool"}
    return devices, free, pool


def oracle(devices: list[PluginDevice], free: set[str], pool: set[str], nodes: Sequence[int], size: int) -> str:
    """The rules one by one, as loops over masks and devices."""
    by_id = {device.id: device for device in devices}
    lowest = len(nodes)
    found: list[tuple[int, ...]] = []
    for count in range(1, len(nodes) + 1):
        for mask in combinations(nodes, count):
            near = [device for device in devices if set(device.numa_nodes or ()) & set(mask)]
            if len(near) >= size and count < lowest:
                lowest = count
            of_pool = [by_id[name] for name in pool if by_id[name].numa_nodes is not None]
            if any(device not in near for device in of_pool):
                continue
            if len(of_pool) + sum(by_id[name] in near for name in free) >= size:
                found.append(mask)
    return " ".join("".join(map(str, mask)) + ("P" if len(mask) == lowest else "") for mask in found)


@given(supplies(), st.integers(0, 8))
def test_hints_equal_the_rules_taken_one_by_one(
    state: tuple[list[PluginDevice], set[str], set[str]], size: int
) -> None:
    devices, free, pool = state
    nodes = hint_nodes(devices, (0, 1, 2, 3), narrow=True)
    made = Supply(THING, {device.id: device for device in devices}, free, pool).hints(nodes, size)
    assert text(made) == oracle(devices, free, pool, nodes, size)
