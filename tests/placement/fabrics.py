"""Link tables of real machines, from go-gpuallocator's test topologies and from what users reported."""

from collections.abc import Callable

from gpustow.hardware.links import Link, Links, PcieLevel

P = PcieLevel


def links_of(count: int, link: Callable[[int, int], Link]) -> Links:
    """Links that both ends report alike."""
    return Links.symmetric([(a, b, link(a, b)) for a in range(count) for b in range(a + 1, count)])


def _in_halves(near: set[tuple[int, int]], close: PcieLevel) -> Callable[[int, int], PcieLevel]:
    """PCIe of an eight-GPU machine: `close` for the near pairs, host bridge within a socket, system across."""

    def level(a: int, b: int) -> PcieLevel:
        if (a, b) in near:
            return close
        return P.HOST_BRIDGE if a // 4 == b // 4 else P.SYSTEM

    return level


_V100_NVLINKS = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
_V100_PCIE = _in_halves({(0, 1), (2, 3), (4, 5), (6, 7)}, P.SINGLE_SWITCH)

DGX1_V100 = links_of(8, lambda a, b: Link(_V100_PCIE(a, b), _V100_NVLINKS.get((a, b), 0)))

_P100_NVLINKS = {
    (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7),
    (0, 4), (1, 5), (2, 6), (3, 7),
}  # fmt: skip
_P100_PCIE = _in_halves({(0, 2), (1, 3), (4, 6), (5, 7)}, P.SINGLE_SWITCH)

DGX1_P100 = links_of(8, lambda a, b: Link(_P100_PCIE(a, b), int((a, b) in _P100_NVLINKS)))


def _rtx8000(a: int, b: int) -> Link:
    """Two linked pairs; the fixture gives them no PCIe level."""
    if (a, b) in {(0, 3), (1, 2)}:
        return Link(None, 2)
    return Link(P.NUMA_NODE if (a, b) in {(0, 1), (2, 3)} else P.SYSTEM)


RTX8000 = links_of(4, _rtx8000)


def pairs(count: int, linked: set[tuple[int, int]], nvlinks: int) -> Links:
    """Linked pairs; everything else goes across the system."""
    return links_of(count, lambda a, b: Link(P.SYSTEM, nvlinks if (a, b) in linked else 0))


BRIDGED = pairs(8, {(0, 2), (1, 3), (4, 5), (6, 7)}, 12)
"""k8s-device-plugin#546: A100 PCIe with NVLink bridges."""

NEIGHBOURS = pairs(8, {(0, 1), (2, 3), (4, 5), (6, 7)}, 4)
"""k8s-device-plugin#1193: A40 with NVLink bridges."""


def dgx2(a: int, b: int) -> Link:
    """Sixteen GPUs behind NVSwitches: all six links, PCIe by pairs, quads and halves."""
    level = next(
        (
            level
            for size, level in ((2, P.SINGLE_SWITCH), (4, P.MULTIPLE_SWITCHES), (8, P.NUMA_NODE))
            if a // size == b // size
        ),
        P.SYSTEM,
    )
    return Link(level, 6)


def islands(a: int, b: int) -> Link:
    """Islands of four, two on each socket."""
    return Link(P.NUMA_NODE if a // 8 == b // 8 else P.SYSTEM, 4 if a // 4 == b // 4 else 0)
