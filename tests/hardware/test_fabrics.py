from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.fabrics import FABRICS, no_links
from gpustow.hardware.links import UNKNOWN_LINK, Link, PcieLevel


def _link(fabric: str, n: int, a: int, b: int) -> Link:
    return FABRICS[fabric].build(n, 0).links(range(n)).table()[a, b]


@pytest.mark.parametrize(
    ("fabric", "n", "pair", "link"),
    [
        ("dgx-1-v100", 8, (2, 3), Link(PcieLevel.SINGLE_SWITCH, 2)),
        ("dgx-1-v100", 8, (0, 3), Link(PcieLevel.HOST_BRIDGE, 2)),
        ("dgx-1-v100", 8, (0, 4), Link(PcieLevel.SYSTEM, 2)),
        ("dgx-1-v100", 8, (0, 7), Link(PcieLevel.SYSTEM, 0)),
        ("dgx-2", 16, (0, 1), Link(PcieLevel.SINGLE_SWITCH, 6)),
        ("dgx-2", 16, (0, 2), Link(PcieLevel.MULTIPLE_SWITCHES, 6)),
        ("dgx-2", 16, (0, 4), Link(PcieLevel.NUMA_NODE, 6)),
        ("dgx-2", 16, (7, 8), Link(PcieLevel.SYSTEM, 6)),
        ("dgx-a100", 8, (6, 7), Link(PcieLevel.MULTIPLE_SWITCHES, 12)),
        ("dgx-a100", 8, (1, 2), Link(PcieLevel.SYSTEM, 12)),
        ("hgx-a100-4", 4, (0, 3), Link(PcieLevel.SYSTEM, 4)),
        ("hgx", 8, (0, 3), Link(PcieLevel.NUMA_NODE, 18)),
        ("hgx", 8, (3, 4), Link(PcieLevel.SYSTEM, 18)),
        ("gb200-tray", 4, (0, 1), Link(PcieLevel.NUMA_NODE, 18)),
        ("a100-pcie-bridged", 8, (0, 2), Link(PcieLevel.SYSTEM, 12)),
        ("a100-pcie-bridged", 8, (0, 1), Link(PcieLevel.SYSTEM, 0)),
        ("a40-bridged", 8, (0, 1), Link(PcieLevel.SYSTEM, 4)),
        ("two-sockets", 8, (3, 4), Link(PcieLevel.SYSTEM, 0)),
        ("two-sockets", 5, (0, 2), Link(PcieLevel.NUMA_NODE, 0)),
        ("one-socket", 4, (0, 3), Link(PcieLevel.HOST_BRIDGE, 0)),
        ("pairs", 16, (14, 15), Link(PcieLevel.NUMA_NODE, 4)),
        ("pairs", 5, (3, 4), Link(PcieLevel.NUMA_NODE, 0)),
        ("islands", 16, (12, 15), Link(PcieLevel.NUMA_NODE, 4)),
        ("islands", 16, (3, 4), Link(PcieLevel.SYSTEM, 0)),
        ("uniform", 16, (0, 15), Link(PcieLevel.NUMA_NODE, 0)),
    ],
)
def test_a_pair_is_linked_as_on_the_machine(fabric: str, n: int, pair: tuple[int, int], link: Link) -> None:
    assert _link(fabric, n, *pair) == link


def test_every_gpu_of_a_dgx_1_has_six_nvlinks() -> None:
    fabric = FABRICS["dgx-1-v100"].build(8, 0)
    assert [sum(row) for row in fabric.nvlinks] == [6] * 8


@pytest.mark.parametrize("name", FABRICS)
def test_both_ends_of_a_named_fabric_report_alike(name: str) -> None:
    for n in FABRICS[name].sizes or (1, 2, 5, 16):
        fabric = FABRICS[name].build(n, 1)
        table = fabric.links(range(n)).table()
        assert fabric.size == n
        assert len(table) == n * (n - 1)
        for a, b in combinations(range(n), 2):
            assert table[a, b] == table[b, a]
            assert table[a, b].pcie is not None


@given(st.integers(1, 16), st.integers(0, 2**32))
def test_a_random_fabric_follows_from_its_seed(n: int, seed: int) -> None:
    build = FABRICS["random"].build
    assert build(n, seed) == build(n, seed)


def test_two_seeds_give_two_random_fabrics() -> None:
    assert FABRICS["random"].build(16, 1) != FABRICS["random"].build(16, 2)


def test_links_carry_the_indices_of_nvml_not_positions() -> None:
    assert set(FABRICS["uniform"].build(2, 0).links([0, 5]).table()) == {(0, 5), (5, 0)}


def test_without_links_nothing_is_known() -> None:
    assert set(no_links(3).links(range(3)).table().values()) == {UNKNOWN_LINK}
