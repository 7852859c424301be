from fractions import Fraction

import pytest

from gpustow.resources.device import Device, numa_nodes_told


def devices(*nodes: int | None) -> list[Device]:
    return [Device(f"GPU-{n}", f"GPU-{n}", n, str(n), Fraction(1), (), numa_node=node) for n, node in enumerate(nodes)]


def test_the_numa_nodes_are_told_when_every_device_has_one() -> None:
    assert numa_nodes_told(devices(1, 0, 1)) == (1, 0, 1)
    assert numa_nodes_told([]) == ()


@pytest.mark.parametrize("unknown", [None, -1])
def test_one_device_without_a_numa_node_takes_the_nodes_from_all(unknown: int | None) -> None:
    assert numa_nodes_told(devices(0, unknown, 1)) == (None, None, None)
