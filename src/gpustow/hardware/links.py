"""How the GPUs of a node are linked, and what a link is worth.

The scores are those of NVIDIA's go-gpuallocator, so that placements stay comparable: 10 to 60 by how close two GPUs
are on PCIe, plus 100 for each NVLink. Unlike there, NVLinks that go through an NVSwitch count. A pair that is read
differently from its two ends counts as the lower of the two, and what is unknown counts as the lowest: a link that may
not be there must never win.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations


class PcieLevel(IntEnum):
    """The closest common ancestor of two GPUs on PCIe; the values are NVML's `nvmlGpuTopologyLevel_t`."""

    SAME_BOARD = 0
    SINGLE_SWITCH = 10
    MULTIPLE_SWITCHES = 20
    HOST_BRIDGE = 30
    NUMA_NODE = 40
    SYSTEM = 50

    @property
    def label(self) -> str:
        """What `nvidia-smi topo` prints for this level."""
        return _LABELS[self]

    @property
    def score(self) -> int:
        """What the level adds to a pair's score: 60 on one board down to 10 across sockets."""
        return 60 - self.value


_LABELS = {
    PcieLevel.SAME_BOARD: "PSB",
    PcieLevel.SINGLE_SWITCH: "PIX",
    PcieLevel.MULTIPLE_SWITCHES: "PXB",
    PcieLevel.HOST_BRIDGE: "PHB",
    PcieLevel.NUMA_NODE: "NODE",
    PcieLevel.SYSTEM: "SYS",
}

NVLINK_SCORE = 100
"""What each NVLink adds to a pair's score."""

MAX_NVLINKS = 18
"""More NVLinks than this between two GPUs count as this many (NVML's NVLINK_MAX_LINKS)."""


@dataclass(frozen=True, slots=True)
class Link:
    """What one GPU reports about the way to another: the PCIe level (None is unknown) and the NVLinks."""

    pcie: PcieLevel | None = None
    nvlinks: int = 0

    @property
    def score(self) -> int:
        """The score of the link as seen from this end."""
        pcie = 0 if self.pcie is None else self.pcie.score
        return pcie + NVLINK_SCORE * min(self.nvlinks, MAX_NVLINKS)

    @property
    def label(self) -> str:
        """What `nvidia-smi topo -m` prints: NVLinks hide the PCIe level."""
        if self.nvlinks:
            return f"NV{self.nvlinks}"
        return "?" if self.pcie is None else self.pcie.label


UNKNOWN_LINK = Link()


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a node, keyed by the NVML indices of both GPUs; each ordered pair is one reading.

    Pairs that are missing are unknown.
    """

    readings: tuple[tuple[tuple[int, int], Link], ...] = ()

    @classmethod
    def symmetric(cls, pairs: Sequence[tuple[int, int, Link]]) -> "Links":
        """Links that both ends report alike, from one entry a pair."""
        both = [((a, b), link) for a, b, link in pairs] + [((b, a), link) for a, b, link in pairs]
        return cls(tuple(sorted(both, key=lambda reading: reading[0])))

    def table(self) -> dict[tuple[int, int], Link]:
        """The readings by ordered pair of GPU indices."""
        return dict(self.readings)

    def scores(self, indices: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The symmetric score matrix for the GPUs with these NVML indices, in this order; 0 on the diagonal."""
        table = self.table()
        matrix = [[0] * len(indices) for _ in indices]
        for (row, first), (column, second) in combinations(enumerate(indices), 2):
            ends = (table.get((first, second), UNKNOWN_LINK), table.get((second, first), UNKNOWN_LINK))
            matrix[row][column] = matrix[column][row] = min(end.score for end in ends)
        return tuple(tuple(row) for row in matrix)
