"""Choosing a subset of GPUs: the part of every policy that is not arithmetic.

GPUs that can be swapped without a difference (link twins, alike in everything that the caller names) are only ever
taken in index order, so that a set is a count for each class of them; on real fabrics that leaves few sets. Where more
sets remain than the step budget allows, a greedy start and swaps that improve take the place of enumeration: still
deterministic, no longer proven best.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from gpustow.placement.state import State

CLIMB_STEPS = 4_000
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


def sets_of(classes: Sequence[Sequence[int]], size: int, bits: Sequence[int]) -> list[int]:
    """All sets of `size` as masks, each class used in order."""
    by_size: list[list[int]] = [[] for _ in range(size + 1)]
    by_size[0].append(0)
    room = sum(map(len, classes))
    for members in classes:
        room -= len(members)
        prefixes = [0]
        for position in members:
            prefixes.append(prefixes[-1] | bits[position])
        longer: list[list[int]] = [[] for _ in range(size + 1)]
        for total in range(max(0, size - room), size + 1):
            for count in range(min(total, len(members)) + 1):
                prefix = prefixes[count]
                longer[total] += [mask | prefix for mask in by_size[total - count]]
        by_size = longer
    return by_size[size]


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen set of GPUs, how many sets were weighed, and whether it is proven best."""

    mask: int
    weighed: int
    exact: bool = True


def choose(state: State, base: int, candidates: Sequence[int], size: int) -> Choice:
    """The `size` candidates that link best with each other and with `base`.

    Then fewer NUMA nodes, then the lowest indices. The candidates must not lie in `base`.
    """
    bits = state.fabric.bits
    if size in (0, len(candidates)):
        return Choice(sum(bits[position] for position in candidates) if size else 0, 1)
    classes = classes_of(state, candidates, lambda _: None)
    if len(classes) == 1:
        return Choice(sum(bits[position] for position in classes[0][:size]), 1)
    if sets_number(classes, size) > state.fabric.step_budget:
        return _climb(state, base, candidates, size)
    masks = sets_of(classes, size, bits)
    scores = state.fabric.scores([base | mask for mask in masks])
    best = max(scores)
    ties = [mask for mask, score in zip(masks, scores, strict=True) if score == best]
    mask = max(ties, key=lambda mask: (-state.numa_spanned(base | mask), mask))
    return Choice(mask, len(masks))


def _climb(state: State, base: int, candidates: Sequence[int], size: int) -> Choice:
    """A good set by adding the best-linked GPU each time, then trading members for others while that helps."""
    bits = state.fabric.bits

    def worth(mask: int) -> tuple[int, int, int]:
        return state.fabric.score(base | mask), -state.numa_spanned(base | mask), mask

    weighed = 0
    chosen = 0
    for _ in range(size):
        options = [chosen | bits[position] for position in candidates if not chosen & bits[position]]
        weighed += len(options)
        chosen = max(options, key=worth)
    while weighed < CLIMB_STEPS and not state.expired():
        inside = [bits[position] for position in candidates if chosen & bits[position]]
        outside = [bits[position] for position in candidates if not chosen & bits[position]]
        options = [chosen ^ leaving ^ joining for leaving in inside for joining in outside]
        weighed += len(options)
        better = max(options, key=worth)
        if worth(better) <= worth(chosen):
            break
        chosen = better
    return Choice(chosen, weighed, exact=False)
