"""Tables with an entry for every set of GPUs: how they are built, kept and read.

They are arrays of numbers of 2 or 4 bytes: in lists, whose entries are objects of some 36 bytes, those of 16 GPUs
would take 10 MiB instead of 1.
"""

from array import array
from collections.abc import Mapping, Sequence
from operator import itemgetter

from gpustow.placement.lanes import Lanes

Matrix = tuple[tuple[int, ...], ...]


def look_up(table: Sequence[int] | Mapping[int, int], keys: Sequence[int]) -> Sequence[int]:
    """The entries of a table at many keys; KeyError if a mapping lacks one of them."""
    if len(keys) > 1:
        entries: tuple[int, ...] = itemgetter(*keys)(table)  # twice as quick as a loop, thousands of times a decision
        return entries
    return [table[key] for key in keys]


def masks_by_count(count: int) -> "list[array[int]]":
    """All masks over `count` GPUs, which are at most 16, by how many they hold, ascending."""
    masks: list[list[int]] = [[0], *([] for _ in range(count))]
    for place in range(count):
        for held in range(place + 1, 0, -1):
            masks[held] += [mask | 1 << place for mask in masks[held - 1]]
    return [array("H", some) for some in masks]


def score_table(matrix: Matrix) -> "array[int]":
    """The score of every mask: each doubling adds the next GPU from the end to all sets of those after it."""
    lanes = Lanes.up_to(sum(map(sum, matrix)))
    scores = 0
    every = [1]  # for each number of GPUs a one at every mask over the last so many
    for number, row in enumerate(reversed(matrix)):
        added = 0
        for after, worth in enumerate(row[: -number - 1 : -1]):
            added |= lanes.moved(added + worth * every[after], 1 << after)
        scores |= lanes.moved(scores + added, 1 << number)
        every.append(every[-1] | lanes.moved(every[-1], 1 << number))
    return lanes.numbers(scores, 1 << len(matrix))
