"""A good division of GPUs into sets where the best one would cost too much to find.

From several starts, two GPUs of different sets trade places as long as that raises the total of the sets' scores. The
first start is the best single set with the best rest; the others grow the answer's set from one GPU after another.
Starts, order and number of steps are fixed, so the same state has the same answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpustow.placement.fabric import Fabric

SWAP_STEPS = 2_000
"""The most swaps that are tried in one search, about 3 ms."""

TURNS = 4
"""How often each seed is started from."""


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
    """One division on its way up: the sets, the set of each GPU, and what each GPU's links to each set are worth.

    GPUs that are not offered are in no set, which is written as -1.
    """

    def __init__(self, task: Task, sets: Sequence[list[int]]) -> None:
        self._matrix = task.fabric.matrix
        self._may = [bool(task.may & bit) for bit in task.fabric.bits]
        self._positions = task.fabric.positions(task.offered)
        self._set_of = [-1] * task.fabric.count
        for at, members in enumerate(sets):
            for position in members:
                self._set_of[position] = at
        self._ties = [[sum(row[other] for other in members) for members in sets] for row in self._matrix]

    def sets(self, bits: Sequence[int]) -> tuple[int, ...]:
        """The sets as masks."""
        masks = [0] * len(self._ties[0])
        for position in self._positions:
            masks[self._set_of[position]] |= bits[position]
        return tuple(masks)

    def _trade(self, one: int, other: int) -> None:
        """Let two GPUs of different sets trade places."""
        first, second = self._set_of[one], self._set_of[other]
        self._set_of[one], self._set_of[other] = second, first
        from_one, from_other = self._matrix[one], self._matrix[other]
        for position in self._positions:
            moved = from_other[position] - from_one[position]
            ties = self._ties[position]
            ties[first] += moved
            ties[second] -= moved

    def climb(self, steps: int) -> int:
        """Trade while it helps, at most so many tries and one sweep; returns how many there were."""
        positions, set_of, may = self._positions, self._set_of, self._may
        tried = 0
        better = True
        while better and tried < steps:
            better = False
            for at, one in enumerate(positions):
                ties, row = self._ties[one], self._matrix[one]
                first = set_of[one]
                own = ties[first]
                for other in positions[at + 1 :]:
                    second = set_of[other]
                    if first == second:
                        continue
                    others = self._ties[other]
                    gain = ties[second] - own + others[first] - others[second] - 2 * row[other]
                    if gain > 0 and ((first and second) or (may[one] and may[other])):
                        self._trade(one, other)
                        better = True
                        first = second
                        own = ties[first]
            tried += len(positions) * (len(positions) - 1) // 2
        return tried


def _grow(matrix: Sequence[Sequence[int]], chosen: list[int], left: list[int], size: int) -> None:
    """Add the best-linked of what is left to a set until it has its size; the lowest position among equals."""
    ties = {one: sum(matrix[one][other] for other in chosen) for one in left}
    while len(chosen) < size:
        best = max(left, key=ties.__getitem__)
        left.remove(best)
        chosen.append(best)
        row = matrix[best]
        for one in left:
            ties[one] += row[one]


def _start(task: Task, seed: Sequence[int], turn: int) -> list[list[int]]:
    """Sets grown one after the other, the answer's from a seed.

    `turn` varies where the others begin, and whether the short set is grown before or after them.
    """
    fabric = task.fabric
    answer = list(seed)
    _grow(fabric.matrix, answer, [one for one in fabric.positions(task.may) if one not in answer], task.size)
    left = [position for position in fabric.positions(task.offered) if position not in answer]
    sets = [answer]
    full, short = divmod(len(left), task.size)
    sizes = [task.size] * full
    if short:
        sizes.insert(full * (turn % 2), short)
    for size in sizes:
        grown = [left.pop(turn % len(left))]
        _grow(fabric.matrix, grown, left, size)
        sets.append(grown)
    return sets


def divisions(task: Task, best_single: int, expired: Callable[[], bool]) -> Iterator[Division]:
    """Good divisions, one from each start, until the steps are used up or `expired` says that time is."""
    fabric = task.fabric
    seeds = [fabric.positions(best_single)]
    seeds += [fabric.positions(task.must | bit) for bit in fabric.bits if task.may & bit]
    left = SWAP_STEPS
    for first_turn in range(TURNS):
        for turn, seed in enumerate(seeds, first_turn):
            climb = _Climb(task, _start(task, seed, turn))
            steps = climb.climb(left)
            left -= steps
            yield Division(climb.sets(fabric.bits), steps)
            if left <= 0 or expired():
                return
