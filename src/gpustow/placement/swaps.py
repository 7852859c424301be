"""A good division of GPUs into sets where the best one would cost too much to find.

From several starts, two GPUs of different sets trade places as long as that raises the total of the sets' scores. The
first start is the best single set with the best rest; the others grow the answer's set from one GPU after another.
Starts, order and number of steps are fixed, so the same state has the same answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpustow.placement.fabric import Fabric

SWAP_STEPS = 9_000
"""The most swaps that are tried in one search, about 4 ms."""


@dataclass(frozen=True, slots=True)
class Division:
    """GPUs divided into sets; the first is the answer's, the last may be short. `steps` swaps were tried."""

    sets: tuple[int, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be divided: the GPUs offered, into sets of `size`, the first of which is `must` and some of `may`."""

    fabric: Fabric
    offered: int
    must: int
    may: int
    size: int


class _Climb:
    """One division on its way up: the sets, the set of each GPU, and what each GPU's links to each set are worth."""

    def __init__(self, task: Task, sets: Sequence[list[int]]) -> None:
        self._matrix = task.fabric.matrix
        self._bits = task.fabric.bits
        self._may = task.may
        self.sets = [set(members) for members in sets]
        self._set_of = {position: at for at, members in enumerate(sets) for position in members}
        self._ties = {
            position: [sum(self._matrix[position][other] for other in members) for members in sets]
            for position in self._set_of
        }

    def _allowed(self, leaving: int, joining: int) -> bool:
        """Whether the answer's set may trade one GPU for another."""
        return bool(self._may & self._bits[leaving] and self._may & self._bits[joining])

    def _trade(self, one: int, other: int) -> None:
        """Let two GPUs of different sets trade places."""
        first, second = self._set_of[one], self._set_of[other]
        self.sets[first] ^= {one, other}
        self.sets[second] ^= {one, other}
        self._set_of[one], self._set_of[other] = second, first
        from_one, from_other = self._matrix[one], self._matrix[other]
        for position, ties in self._ties.items():
            moved = from_other[position] - from_one[position]
            ties[first] += moved
            ties[second] -= moved

    def climb(self, steps: int) -> int:
        """Trade while it helps, at most so many tries; returns how many there were."""
        positions = sorted(self._set_of)
        matrix, set_of, all_ties = self._matrix, self._set_of, self._ties
        tried = 0
        better = True
        while better and tried < steps:
            better = False
            for at, one in enumerate(positions):
                ties = all_ties[one]
                row = matrix[one]
                for other in positions[at + 1 :]:
                    first, second = set_of[one], set_of[other]
                    if first == second:
                        continue
                    tried += 1
                    others = all_ties[other]
                    gain = ties[second] - ties[first] + others[first] - others[second] - 2 * row[other]
                    if gain > 0 and ((first and second) or self._allowed(one, other)):
                        self._trade(one, other)
                        better = True
        return tried


def _grow(task: Task, chosen: list[int], left: list[int], size: int) -> None:
    """Add the best-linked of what is left to a set until it has its size."""
    matrix = task.fabric.matrix
    while len(chosen) < size:
        best = max(left, key=lambda one: (sum(matrix[one][other] for other in chosen), -one))
        chosen.append(best)
        left.remove(best)


def _start(task: Task, seed: Sequence[int]) -> list[list[int]]:
    """Sets grown one after the other, the answer's from a seed."""
    fabric = task.fabric
    answer = list(seed)
    may = [position for position in fabric.positions(task.may) if position not in answer]
    _grow(task, answer, may, task.size)
    left = [position for position in fabric.positions(task.offered) if position not in answer]
    sets = [answer]
    while left:
        grown = [left.pop(0)]
        _grow(task, grown, left, min(task.size, len(left) + 1))
        sets.append(grown)
    return sets


def divisions(task: Task, best_single: int, expired: Callable[[], bool]) -> Iterator[Division]:
    """Good divisions, one from each start, until the steps are used up or `expired` says that time is."""
    fabric = task.fabric
    must = fabric.positions(task.must)
    seeds = [fabric.positions(best_single)]
    seeds += [[position] for position in fabric.positions(task.may)] if not must else [must]
    left = SWAP_STEPS
    for seed in seeds:
        climb = _Climb(task, _start(task, seed))
        steps = climb.climb(left)
        left -= steps
        yield Division(tuple(sum(fabric.bits[one] for one in members) for members in climb.sets), steps)
        if left <= 0 or expired():
            return
