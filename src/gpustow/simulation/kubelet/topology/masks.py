"""Sets of NUMA nodes as kubelet keeps them: one 64-bit word, bit i for node i.

The order of masks matters to kubelet: fewer nodes is narrower, and among equals the smaller word is. So nodes 0 and 3
(9) lose to 1 and 2 (6).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from gpustow.errors import UsageError

WORD = 64
"""How many NUMA nodes a mask has room for; ids run from 0 to 63."""


@dataclass(frozen=True, slots=True, order=False)
class Mask:
    """A set of NUMA nodes."""

    word: int = 0

    @classmethod
    def of(cls, nodes: Iterable[int]) -> "Mask":
        """The mask with these nodes; UsageError if one does not fit."""
        word = 0
        for node in nodes:
            if not 0 <= node < WORD:
                raise UsageError(f"NUMA node {node} does not fit into a mask: bit number must be in range 0-63")
            word |= 1 << node
        return cls(word)

    @property
    def count(self) -> int:
        """How many nodes are in it."""
        return self.word.bit_count()

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes, ascending."""
        return tuple(node for node in range(self.word.bit_length()) if self.word >> node & 1)

    def has(self, node: int) -> bool:
        """Whether a node is in it; never for an id that does not fit."""
        return 0 <= node < WORD and bool(self.word >> node & 1)

    def has_any(self, nodes: Iterable[int]) -> bool:
        """Whether one of the nodes is in it; False for none at all."""
        return any(self.has(node) for node in nodes)

    def narrower_than(self, other: "Mask") -> bool:
        """Fewer nodes, or as many and a smaller word."""
        return (self.count, self.word) < (other.count, other.word)

    def __and__(self, other: "Mask") -> "Mask":
        return Mask(self.word & other.word)

    def __str__(self) -> str:
        """As kubelet logs it: binary, two digits wide or an even number of them.

        A lone power of four loses a digit there, as does the empty mask nothing: `00`, `01`, `10`, `100`, `0101`.
        """
        digits = f"{self.word:b}"
        lone_power_of_four = self.count == 1 and len(digits) % 2 == 1 and len(digits) > 1
        return digits if lone_power_of_four else digits.zfill(2 + (len(digits) - 1) // 2 * 2)


def subsets(nodes: Sequence[int]) -> Iterator[Mask]:
    """Every non-empty mask over the nodes: by size, and in one size in the order of the list as given."""
    for size in range(1, len(nodes) + 1):
        for chosen in combinations(nodes, size):
            yield Mask.of(chosen)
