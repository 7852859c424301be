"""The best division of every set of GPUs into pairs, in one sweep over all masks.

The pair table of 16 GPUs that are all different has 65,536 entries. Filled entry by entry it would take more than a
second; here each pair of GPUs is applied to all masks that hold it at once, by slices, in some 0.2 s. Where GPUs are
interchangeable the tables by form (see `partition`) are smaller and quicker.
"""

from collections.abc import Iterator

Matrix = tuple[tuple[int, ...], ...]


def _blocks(size: int, step: int) -> Iterator[tuple[slice, slice]]:
    """All numbers below `size` without the bit `step`, and the same with it, in as few slices as either way needs."""
    if 2 * step * step >= size:
        for at in range(0, size, 2 * step):
            yield slice(at, at + step), slice(at + step, at + 2 * step)
    else:
        for at in range(step):
            yield slice(at, None, 2 * step), slice(at + step, None, 2 * step)


def pair_tables(matrix: Matrix, no_pair: int) -> tuple[list[int], list[int]]:
    """For every mask the total of its best division into pairs, and the weakest pair of it at its best.

    One GPU of an odd number stays alone. `no_pair` stands for the weakest pair where there is none. The GPU of the
    lowest position is the highest bit.
    """
    count = len(matrix)
    above = max(map(max, matrix), default=0) + 1
    base = above + 1
    totals, weakest, keys, odd = [0], [above], [above], [False]
    for first in range(count):
        row = matrix[count - 1 - first]
        size = 1 << first
        longer = [-1 if lone else key for lone, key in zip(odd, keys, strict=True)]
        for second in range(first):
            worth = row[count - 1 - second]
            gain = worth * base
            for rest, whole in _blocks(size, 1 << second):
                paired = [
                    total * base + gain + (worth if worth < weak else weak)  # noqa: FURB136 - min() is three times slower, half a million times
                    for total, weak in zip(totals[rest], weakest[rest], strict=True)
                ]
                longer[whole] = map(max, longer[whole], paired)
        keys += longer
        totals += [key // base for key in longer]
        weakest += [key % base for key in longer]
        odd += [not lone for lone in odd]
    return totals, [no_pair if weak == above else weak for weak in weakest]
