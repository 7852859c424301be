"""What the links between the GPUs of an inventory are worth, in tables that are built once per fabric.

A set of GPUs is a mask in which the GPU of the lowest index is the *highest* bit. Of two sets of the same size the one
that comes first by index is then the larger number, which makes the last tie-break of every policy a comparison.

Up to `TABLE_LIMIT` GPUs the score of every set is a table look-up (65,536 integers for 16 GPUs, built in some ten
milliseconds). Above that it is added up pair by pair.
"""

from collections.abc import Sequence
from functools import lru_cache

Matrix = tuple[tuple[int, ...], ...]

TABLE_LIMIT = 16
"""The most GPUs for which every subset has an entry in a table."""


def positions_of(mask: int, count: int) -> list[int]:
    """The positions in a mask over `count` GPUs, ascending."""
    top = count - 1
    return [position for position in range(count) if mask >> (top - position) & 1]


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

    `matrix` is symmetric with a zero diagonal. `twins` labels interchangeable GPUs alike.
    """

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.count = len(matrix)
        self.bits = tuple(1 << (self.count - 1 - position) for position in range(self.count))
        self.twins = _twins(matrix)
        self._scores = self._tabulate() if self.count <= TABLE_LIMIT else None

    def _tabulate(self) -> list[int]:
        """The score of every mask: each doubling adds the next GPU from the end to all sets of those after it."""
        scores = [0]
        for position in range(self.count - 1, -1, -1):
            row = self.matrix[position]
            added = [0]
            for other in range(self.count - 1, position, -1):
                worth = row[other]
                added += [score + worth for score in added]
            scores += [score + more for score, more in zip(scores, added, strict=True)]
        return scores

    def score(self, mask: int) -> int:
        """The link score of a set of GPUs: the sum over its pairs."""
        if self._scores is not None:
            return self._scores[mask]
        members = positions_of(mask, self.count)
        return sum(self.matrix[one][other] for one in members for other in members if one < other)

    def scores(self, masks: Sequence[int]) -> list[int]:
        """The link score of each of the sets."""
        if self._scores is not None:
            return list(map(self._scores.__getitem__, masks))
        return [self.score(mask) for mask in masks]


@lru_cache(maxsize=16)
def fabric_of(matrix: Matrix) -> Fabric:
    """The fabric with these scores; a resource whose devices change health keeps the tables of its fabric."""
    return Fabric(matrix)
