"""The best-effort rule for whole GPUs of NVIDIA/go-gpuallocator, written plainly from its description.

The devices are padded with blanks to a multiple of the size. Every partition into sets of the size is valued, a set
being allowed to hold no blanks or all of them; the first of the highest total is kept, and of its sets that hold what
is required the first of the highest score is the answer. That set may be the one with the blanks.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

Matrix = Sequence[Sequence[int]]
Blank = None


def set_score(matrix: Matrix, members: Sequence[int | None]) -> int:
    """The sum over the pairs; a blank is worth nothing."""
    known = [member for member in members if member is not None]
    return sum(matrix[a][b] for a, b in combinations(known, 2))


def _partitions(devices: list[int | None], size: int, blanks: int) -> Iterator[list[tuple[int | None, ...]]]:
    """All partitions; the first device left is always in the next set."""
    if not devices:
        yield []
        return
    first, others = devices[0], devices[1:]
    seen: set[tuple[int | None, ...]] = set()
    for more in combinations(others, size - 1):
        chosen = (first, *more)
        if chosen in seen or chosen.count(Blank) not in {0, blanks}:
            continue
        seen.add(chosen)
        rest = others.copy()
        for member in more:
            rest.remove(member)
        for partition in _partitions(rest, size, blanks):
            yield [chosen, *partition]


def plain_best_effort(
    matrix: Matrix, available: Sequence[int], required: Sequence[int], size: int
) -> tuple[list[int | None], int | None]:
    """The answer, which may be empty or hold blanks, and the total of the partition that it is from."""
    if size <= 0 or len(available) < size or len(required) > size or len(required) > len(available):
        return [], None
    blanks = -len(available) % size
    needed = set(required)
    best: tuple[int, list[tuple[int | None, ...]]] | None = None
    for partition in _partitions([*available, *[Blank] * blanks], size, blanks):
        if not any(needed <= set(part) for part in partition if Blank not in part):
            continue
        total = sum(set_score(matrix, part) for part in partition)
        if best is None or total > best[0]:
            best = (total, partition)
    if best is None:
        return [], None
    holding = [part for part in best[1] if needed <= set(part)]
    scores = [set_score(matrix, part) for part in holding]
    return list(holding[scores.index(max(scores))]), best[0]
