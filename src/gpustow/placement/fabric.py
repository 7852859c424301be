"""What the links between the GPUs of an inventory are worth, in tables that are built once per fabric.

A set of GPUs is a mask in which the GPU of the lowest index is the *highest* bit. Of two sets of the same size the one
that comes first by index is then the larger number, which makes the last tie-break of every policy a comparison.

Up to `TABLE_LIMIT` GPUs the score of every set is a table look-up (65,536 integers for 16 GPUs, built in some five
milliseconds). Above that it is added up pair by pair.
"""

from array import array
from collections.abc import Hashable, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from operator import add
from typing import Any

from gpustow.placement.partition import Partitions
from gpustow.placement.tables import Matrix, look_up, masks_by_count, score_table

TABLE_LIMIT = 16
"""The most GPUs for which every subset has an entry in a table."""

STEP_BUDGET = 20_000
"""The most sets that a search enumerates; about the 5 ms of a decision among 16 GPUs."""

PAIRS_BUDGET = 160_000
"""The most pairs of GPUs that it looks at where the score of a set has to be added up."""

ANSWERS_KEPT = 4096
"""How many answers a fabric remembers, by state."""


def _twins(matrix: Matrix) -> tuple[int, ...]:
    """A label for each GPU, equal for GPUs that can be swapped without any score changing."""
    labels: list[int] = []
    for position, row in enumerate(matrix):
        for earlier in range(position):
            other = matrix[earlier]
            pair = (earlier, position)
            if labels[earlier] == earlier and all(
                row[third] == other[third] for third in range(len(row)) if third not in pair
            ):
                labels.append(earlier)
                break
        else:
            labels.append(position)
    return tuple(labels)


class Fabric:
    """The link scores of a set of GPUs, in the order of their NVML indices.

    `matrix` is symmetric with a zero diagonal. `twins` labels interchangeable GPUs alike. `step_budget` is how many
    sets a search may enumerate. `answers` remembers what was decided, by whatever the decision depends on.
    """

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.count = len(matrix)
        self.bits = tuple(1 << (self.count - 1 - position) for position in range(self.count))
        self.twins = _twins(matrix)
        self.everything = (1 << self.count) - 1
        self.table = score_table(matrix) if self.count <= TABLE_LIMIT else None
        self._by_count = masks_by_count(self.count) if self.table is not None else None
        self.step_budget = STEP_BUDGET if self.table is not None else PAIRS_BUDGET // self.count**2
        self.answers: dict[Hashable, Any] = {}

    def positions(self, mask: int) -> list[int]:
        """The positions in a mask, ascending."""
        return [position for position, bit in enumerate(self.bits) if mask & bit]

    def score(self, mask: int) -> int:
        """The link score of a set of GPUs: the sum over its pairs."""
        if self.table is not None:
            return self.table[mask]
        members = self.positions(mask)
        return sum(self.matrix[one][other] for one in members for other in members if one < other)

    def scores(self, masks: Sequence[int]) -> Sequence[int]:
        """The link score of each of the sets."""
        if self.table is not None:
            return look_up(self.table, masks)
        return [self.score(mask) for mask in masks]

    def subsets(self, mask: int, size: int) -> list[int]:
        """All sets of `size` within a mask."""
        if self._by_count is None:
            return [sum(some) for some in combinations([bit for bit in self.bits if mask & bit], size)]
        if mask == self.everything:
            return list(self._by_count[size])
        outside = ~mask
        return [chosen for chosen in self._by_count[size] if not chosen & outside]

    def lone_score(self, position: int, mask: int) -> int:
        """The score of a GPU's links to the GPUs in a mask."""
        row = self.matrix[position]
        return sum(worth for worth, bit in zip(row, self.bits, strict=True) if mask & bit)

    def remember(self, key: Hashable, answer: Any) -> None:
        """Keep an answer; the oldest one makes room."""
        if len(self.answers) >= ANSWERS_KEPT:
            del self.answers[next(iter(self.answers))]
        self.answers[key] = answer

    @cached_property
    def halves(self) -> "array[int] | None":
        """For every set its score and that of all other GPUs together; None where there is no table.

        A set and the rest of the GPUs are one division of them all, and where both are large it is looked up for
        thousands of sets.
        """
        if self.table is None:
            return None
        return array(self.table.typecode, map(add, self.table, reversed(self.table)))

    @cached_property
    def partitions(self) -> Partitions:
        """The best divisions of any set of the GPUs; 0.1 s for 16 GPUs, on odd fabrics up to 0.4 s."""
        _ = self.halves
        return Partitions(self.matrix, self.table)


@lru_cache(maxsize=16)
def fabric_of(matrix: Matrix) -> Fabric:
    """The fabric with these scores; a resource whose devices change health keeps the tables of its fabric."""
    return Fabric(matrix)
