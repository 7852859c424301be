"""Choosing a subset of GPUs: the part of every policy that is not arithmetic.

GPUs that can be swapped without a difference (link twins, alike in everything that the caller names) are only ever
taken in index order, so that a set is a count for each class of them; on real fabrics that leaves few sets. Where more
sets remain than the step budget allows, a greedy start and swaps that improve take the place of enumeration: still
deterministic, no longer proven best.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from math import comb, prod
from typing import TypeVar

from gpustow.placement.fabric import STEP_BUDGET, Fabric
from gpustow.placement.state import State

Option = TypeVar("Option")
Ordered = TypeVar("Ordered", int, tuple[int, ...], tuple[int, tuple[int, ...]])

FOLD_FROM = 1_000
"""From how many sets on it is quicker to build them from smaller sets than one by one."""

SIFT_UP_TO = 1_000
"""Up to how many sets of every size it is quicker to build them all and keep those of one size."""

SUBSETS_FROM = 11
"""From how many GPUs on, all different, it is quicker to sift all masks of the fabric than to build them."""

CLIMB_STEPS = 2_000
"""The most sets that are looked at where there are too many to enumerate."""


def classes_of(state: State, candidates: Sequence[int], alike: Callable[[int], Hashable]) -> list[list[int]]:
    """The candidates in classes of interchangeable ones: link twins on one NUMA node for which `alike` is equal."""
    classes: dict[Hashable, list[int]] = {}
    for position in candidates:
        key = (state.fabric.twins[position], state.numa_labels[position], alike(position))
        classes.setdefault(key, []).append(position)
    return list(classes.values())


def sets_number(classes: Sequence[Sequence[int]], size: int) -> int:
    """How many sets of `size` the classes allow when each is used in order."""
    ways = [1] + [0] * size
    for members in classes:
        ways = [sum(ways[max(0, total - len(members)) : total + 1]) for total in range(size + 1)]
    return ways[size]


def are_fewer(classes: Sequence[Sequence[int]], size: int, most: int) -> bool:
    """Whether the classes allow no more than `most` sets of `size`."""
    return comb(sum(map(len, classes)), size) <= most or sets_number(classes, size) <= most


def sets_of(classes: Sequence[Sequence[int]], size: int, worth: Sequence[int]) -> list[int]:
    """All sets of `size`, each class used in order, as the sums of what each position is worth.

    With bits for worth the sets are masks. With an amount above the bits they are masks and the sum of the amounts in
    one number.
    """
    if len(classes) == sum(map(len, classes)) and comb(len(classes), size) <= FOLD_FROM:
        return list(map(sum, combinations([worth[members[0]] for members in classes], size)))
    if prod(len(members) + 1 for members in classes) <= SIFT_UP_TO:
        return _sifted(classes, size, worth)
    return _folded(classes, size, worth)


def _prefixes(members: Sequence[int], worth: Sequence[int]) -> list[int]:
    """What the first members of a class are worth together: none, one, two and so on."""
    return list(accumulate((worth[position] for position in members), initial=0))


def _sifted(classes: Sequence[Sequence[int]], size: int, worth: Sequence[int]) -> list[int]:
    """The sets of `size` out of those of every size; each carries its size above its worth."""
    one = 1 << sum(worth).bit_length()
    sets = [0]
    for members in classes:
        prefixes = [prefix + one * count for count, prefix in enumerate(_prefixes(members, worth))]
        sets = [chosen + prefix for prefix in prefixes for chosen in sets]
    low, high = size * one, (size + 1) * one
    return [chosen - low for chosen in sets if low <= chosen < high]


def _folded(classes: Sequence[Sequence[int]], size: int, worth: Sequence[int]) -> list[int]:
    """The sets of `size`, grown class by class, sets that could not reach it left out."""
    by_size: list[list[int]] = [[] for _ in range(size + 1)]
    by_size[0].append(0)
    room = sum(map(len, classes))
    for members in classes:
        room -= len(members)
        prefixes = _prefixes(members, worth)
        longer: list[list[int]] = [[] for _ in range(size + 1)]
        for total in range(max(0, size - room), size + 1):
            for count in range(min(total, len(members)) + 1):
                prefix = prefixes[count]
                longer[total] += [chosen + prefix for chosen in by_size[total - count]]
        by_size = longer
    return by_size[size]


def masks_of(fabric: Fabric, classes: Sequence[Sequence[int]], size: int) -> list[int]:
    """All sets of `size` as masks, each class used in order."""
    if len(classes) > SUBSETS_FROM and all(len(members) == 1 for members in classes):
        return fabric.subsets(sum(fabric.bits[members[0]] for members in classes), size)
    return sets_of(classes, size, fabric.bits)


def keep_best(options: Sequence[Option], values: Sequence[Ordered]) -> list[Option]:
    """The options of the largest value."""
    best = max(values)
    return [option for option, value in zip(options, values, strict=True) if value == best]


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen set of GPUs, how many sets were weighed, and whether it is proven best."""

    mask: int
    weighed: int
    exact: bool = True


def choose(state: State, base: int, candidates: Sequence[int], size: int, most: int = STEP_BUDGET) -> Choice:
    """The `size` candidates that link best with each other and with `base`.

    Then fewer NUMA nodes, then the lowest indices. The candidates must not lie in `base`. At most `most` sets are
    enumerated, and no more than the fabric's step budget allows.
    """
    bits = state.fabric.bits
    if size in (0, len(candidates)):
        return Choice(sum(bits[position] for position in candidates) if size else 0, 1)
    classes = classes_of(state, candidates, lambda _: None)
    if len(classes) == 1:
        return Choice(sum(bits[position] for position in classes[0][:size]), 1)
    if not are_fewer(classes, size, min(most, state.fabric.step_budget)):
        return _climb(state, base, candidates, size)
    masks = masks_of(state.fabric, classes, size)
    scores = state.fabric.scores([base | mask for mask in masks])
    best = max(scores)
    ties = [mask for mask, score in zip(masks, scores, strict=True) if score == best]
    mask = max(ties, key=lambda mask: (-state.numa_spanned(base | mask), mask))
    return Choice(mask, len(masks))


def _climb(state: State, base: int, candidates: Sequence[int], size: int) -> Choice:
    """A good set by adding the best-linked GPU each time, then trading members for others while that helps."""
    fabric = state.fabric
    matrix, bits = fabric.matrix, fabric.bits
    ties = {one: fabric.lone_score(one, base) for one in candidates}
    chosen = 0

    def take(one: int, sign: int) -> None:
        row = matrix[one]
        for other in ties:
            ties[other] += sign * row[other]

    outside = list(candidates)
    inside: list[int] = []
    for _ in range(size):
        best = max(outside, key=lambda one: (ties[one], -one))
        outside.remove(best)
        inside.append(best)
        chosen |= bits[best]
        take(best, 1)

    def worth(trade: tuple[int, int]) -> tuple[int, int, int]:
        leaving, joining = trade
        mask = chosen ^ bits[leaving] ^ bits[joining]
        gain = ties[joining] - ties[leaving] - matrix[leaving][joining]
        return gain, -state.numa_spanned(base | mask), mask

    weighed = len(candidates)
    while weighed < CLIMB_STEPS and not state.expired():
        trades = [(leaving, joining) for leaving in inside for joining in outside]
        weighed += len(trades)
        leaving, joining = max(trades, key=worth)
        if worth((leaving, joining)) <= (0, -state.numa_spanned(base | chosen), chosen):
            break
        inside[inside.index(leaving)] = joining
        outside[outside.index(joining)] = leaving
        chosen ^= bits[leaving] | bits[joining]
        take(leaving, -1)
        take(joining, 1)
    return Choice(chosen, weighed, exact=False)
