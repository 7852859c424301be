"""How the GPUs of known machines are wired, and synthetic fabrics for tests and benchmarks.

A fabric is what is soldered and plugged: the PCIe level of each pair, NVLinks that go from GPU to GPU, and NVLinks that
go to an NVSwitch. What GPUs report about each other (`Links`) follows: through switches two GPUs have as many NVLinks
as the one with fewer.

GPUs are counted by their position here, not by NVML index. Sources: NVIDIA's DGX documentation and outputs of
`nvidia-smi topo` in public issues (named in the table below). Limits: where only NVLinks were shown, the PCIe levels
are inferred from those of the network cards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from gpustow.hardware.links import Link, Links, PcieLevel


@dataclass(frozen=True, slots=True)
class Fabric:
    """The wires of a node with n GPUs; rows and columns are positions.

    `pcie[i][j]` and `nvlinks[i][j]` are what GPU i reports about GPU j, NVLinks without a switch between;
    `switch_links[i]` is how many NVLinks of GPU i end at an NVSwitch.
    """

    pcie: tuple[tuple[PcieLevel | None, ...], ...]
    nvlinks: tuple[tuple[int, ...], ...]
    switch_links: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many GPUs the fabric joins."""
        return len(self.pcie)

    def links(self, indices: Sequence[int]) -> Links:
        """What the GPUs report, for GPUs that have these NVML indices, in the order of their positions."""
        readings = []
        for row, first in enumerate(indices):
            for column, second in enumerate(indices):
                if row != column:
                    switched = min(self.switch_links[row], self.switch_links[column])
                    link = Link(self.pcie[row][column], self.nvlinks[row][column] + switched)
                    readings.append(((first, second), link))
        return Links(tuple(sorted(readings, key=lambda reading: reading[0])))


_Pairs = Mapping[tuple[int, int], int]
_Tiers = Sequence[tuple[int, PcieLevel]]


def _fabric(n: int, tiers: _Tiers = (), *, pairs: _Pairs = MappingProxyType({}), switch: int = 0) -> Fabric:
    """PCIe in nested blocks: a pair has the level of the first (block size, level) that holds both, else SYSTEM."""

    def level(a: int, b: int) -> PcieLevel | None:
        if a == b:
            return None
        return next((level for size, level in tiers if a // size == b // size), PcieLevel.SYSTEM)

    def nvlinks(a: int, b: int) -> int:
        return pairs.get((min(a, b), max(a, b)), 0)

    return Fabric(
        tuple(tuple(level(a, b) for b in range(n)) for a in range(n)),
        tuple(tuple(nvlinks(a, b) for b in range(n)) for a in range(n)),
        (switch,) * n,
    )


def no_links(n: int) -> Fabric:
    """Nothing is known about any pair."""
    return Fabric(((None,) * n,) * n, ((0,) * n,) * n, (0,) * n)


_DGX_1_V100 = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip

_NEIGHBOURS = {(0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4}

_HGX_A100_4 = {(a, b): 4 for a in range(4) for b in range(a + 1, 4)}

_SWITCH_PAIRS = ((2, PcieLevel.SINGLE_SWITCH), (4, PcieLevel.HOST_BRIDGE))


def _random(n: int, seed: int) -> Fabric:
    """Every pair gets some PCIe level and none to four NVLinks, independently."""
    random = Random(seed)  # noqa: S311 - a reproducible fabric, not a secret
    levels = tuple(PcieLevel)[1:]
    pcie: list[list[PcieLevel | None]] = [[None] * n for _ in range(n)]
    nvlinks = [[0] * n for _ in range(n)]
    for a in range(n):
        for b in range(a + 1, n):
            pcie[a][b] = pcie[b][a] = levels[int(random.random() * len(levels))]
            nvlinks[a][b] = nvlinks[b][a] = int(random.random() * 5)
    return Fabric(tuple(map(tuple, pcie)), tuple(map(tuple, nvlinks)), (0,) * n)


@dataclass(frozen=True, slots=True)
class NamedFabric:
    """A fabric that a node model may name. `sizes` are the numbers of GPUs that it is for; empty: any."""

    build: Callable[[int, int], Fabric]
    description: str
    sizes: tuple[int, ...] = ()


FABRICS: Mapping[str, NamedFabric] = MappingProxyType(
    {
        "dgx-1-v100": NamedFabric(
            lambda n, _: _fabric(n, _SWITCH_PAIRS, pairs=_DGX_1_V100),
            "hybrid cube mesh of six NVLinks per GPU, two sockets (DGX-1 with V100, AWS p3.16xlarge)",
            (8,),
        ),
        "dgx-2": NamedFabric(
            lambda n, _: _fabric(
                n,
                ((2, PcieLevel.SINGLE_SWITCH), (4, PcieLevel.MULTIPLE_SWITCHES), (8, PcieLevel.NUMA_NODE)),
                switch=6,
            ),
            "six NVLinks per GPU to NVSwitches, two sockets (NVIDIA/nccl-tests#78)",
            (16,),
        ),
        "dgx-a100": NamedFabric(
            lambda n, _: _fabric(n, ((2, PcieLevel.MULTIPLE_SWITCHES),), switch=12),
            "twelve NVLinks per GPU to NVSwitches, pairs on PCIe switches (NVIDIA/nccl#1505)",
            (8,),
        ),
        "hgx-a100-4": NamedFabric(
            lambda n, _: _fabric(n, ((2, PcieLevel.NUMA_NODE),), pairs=_HGX_A100_4),
            "four NVLinks between any two of four GPUs, two sockets (HGX A100 with four GPUs)",
            (4,),
        ),
        "hgx": NamedFabric(
            lambda n, _: _fabric(n, ((4, PcieLevel.NUMA_NODE),), switch=18),
            "18 NVLinks per GPU to NVSwitches, two sockets (HGX with H100, H200, B200)",
            (8,),
        ),
        "gb200-tray": NamedFabric(
            lambda n, _: _fabric(n, ((2, PcieLevel.NUMA_NODE),), switch=18),
            "18 NVLinks per GPU to the rack's NVSwitches, two Grace CPUs",
            (4,),
        ),
        "a100-pcie-bridged": NamedFabric(
            lambda n, _: _fabric(n, pairs={(0, 2): 12, (1, 3): 12, (4, 5): 12, (6, 7): 12}),
            "NVLink bridges over four pairs, SYS elsewhere (k8s-device-plugin#546)",
            (8,),
        ),
        "a40-bridged": NamedFabric(
            lambda n, _: _fabric(n, pairs=_NEIGHBOURS),
            "NVLink bridges over four pairs, SYS elsewhere (k8s-device-plugin#1193)",
            (8,),
        ),
        "two-sockets": NamedFabric(
            lambda n, _: _fabric(n, ((-(-n // 2), PcieLevel.NUMA_NODE),)),
            "no NVLink, half of the GPUs on each socket",
        ),
        "one-socket": NamedFabric(
            lambda n, _: _fabric(n, ((n, PcieLevel.HOST_BRIDGE),)),
            "no NVLink, every GPU on its own root port of one host bridge",
        ),
        "pairs": NamedFabric(
            lambda n, _: _fabric(n, ((n, PcieLevel.NUMA_NODE),), pairs={(a, a + 1): 4 for a in range(0, n - 1, 2)}),
            "synthetic: NVLink bridges over neighbours",
        ),
        "islands": NamedFabric(
            lambda n, _: _fabric(
                n,
                ((4, PcieLevel.NUMA_NODE),),
                pairs={(a, b): 4 for a in range(n) for b in range(a + 1, n) if a // 4 == b // 4},
            ),
            "synthetic: islands of four that are fully meshed by NVLink",
        ),
        "uniform": NamedFabric(
            lambda n, _: _fabric(n, ((n, PcieLevel.NUMA_NODE),)),
            "synthetic: every pair alike",
        ),
        "random": NamedFabric(_random, "synthetic: every pair drawn at random from `seed`"),
    }
)
"""Every fabric by name; `build(n, seed)` makes it for n GPUs."""
