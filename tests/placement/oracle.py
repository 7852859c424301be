"""The objectives of the policies by brute force, written from their definition and from nothing of the engine.

A scene is a node in plain numbers. Every way to put the slots onto the GPUs is valued line by line, with shares as
whole multiples of a small part of a GPU, and the best one is the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Counts = tuple[int, ...]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Scene:
    """One entry a GPU: free slots, share of a slot, load before (must-include counted), must-include's slots.

    Shares and loads are in parts of a GPU, all of one size.

    `taken` are used slots of the resource, `links` the score matrix, `numa` the NUMA nodes, `island` the NVLink island.
    """

    size: int
    free: Counts
    share: Counts
    load: Counts
    must: Counts
    taken: Counts
    links: tuple[tuple[int, ...], ...]
    numa: tuple[int | None, ...]
    island: Counts

    @property
    def gpus(self) -> range:
        return range(len(self.free))

    @property
    def wanted(self) -> int:
        return self.size - sum(self.must)

    def touched(self, counts: Counts) -> list[int]:
        return [gpu for gpu in self.gpus if counts[gpu] or self.must[gpu]]

    def link_score(self, gpus: Sequence[int]) -> int:
        return sum(self.links[a][b] for a, b in combinations(gpus, 2))


def all_counts(free: Sequence[int], wanted: int) -> Iterator[Counts]:
    """Every way to take `wanted` slots."""
    if not free:
        if wanted == 0:
            yield ()
        return
    for count in range(min(free[0], wanted) + 1):
        for rest in all_counts(free[1:], wanted - count):
            yield (count, *rest)


def _descending(values: Sequence[int]) -> Counts:
    return tuple(sorted(values, reverse=True))


def _tail(scene: Scene, counts: Counts) -> Key:
    """Fewer NUMA nodes, then most on the lowest index."""
    return (len({scene.numa[gpu] for gpu in scene.touched(counts)}), tuple(-count for count in counts))


def _idle_opened(scene: Scene, counts: Counts) -> int:
    return sum(1 for gpu in scene.gpus if counts[gpu] and scene.load[gpu] == 0 and not scene.must[gpu])


def _left(scene: Scene, counts: Counts) -> list[int]:
    return [(scene.free[gpu] - counts[gpu]) * scene.share[gpu] for gpu in scene.gpus]


def packed(scene: Scene, counts: Counts) -> Key:
    touched = scene.touched(counts)
    left = _left(scene, counts)
    return (
        _idle_opened(scene, counts),
        len([gpu for gpu in touched if not scene.must[gpu]]),
        -scene.link_score(touched),
        sum(left[gpu] for gpu in touched),
        tuple(-hole for hole in _descending(left)),
        *_tail(scene, counts),
    )


def _levels(scene: Scene, counts: Counts) -> Counts:
    return _descending(
        [scene.load[gpu] + scene.share[gpu] * slot for gpu in scene.gpus for slot in range(1, counts[gpu] + 1)]
    )


def distributed(scene: Scene, counts: Counts) -> Key:
    touched = scene.touched(counts)
    return (_levels(scene, counts), -len(touched), -scene.link_score(touched), *_tail(scene, counts))


def spread(scene: Scene, counts: Counts) -> Key:
    own = [scene.must[gpu] + counts[gpu] for gpu in scene.gpus]
    return (-len(scene.touched(counts)), _descending(own), *distributed(scene, counts))


def packed_aligned(scene: Scene, counts: Counts) -> Key | None:
    """None where the parts differ by more than one slot."""
    touched = scene.touched(counts)
    own = [scene.must[gpu] + counts[gpu] for gpu in touched]
    if own and max(own) - min(own) > 1:
        return None
    if len({scene.island[gpu] for gpu in touched}) <= 1:
        domain = 0
    elif len({scene.numa[gpu] for gpu in touched}) <= 1:
        domain = 1
    else:
        domain = 2
    left = _left(scene, counts)
    return (
        domain,
        len(touched),
        -scene.link_score(touched),
        _idle_opened(scene, counts),
        sum(left[gpu] for gpu in touched),
        *_tail(scene, counts),
    )


def keeps_cap(scene: Scene, counts: Counts, cap: int) -> bool:
    """No GPU goes above the cap while another that can take a slot is below it."""
    after = [scene.taken[gpu] + counts[gpu] for gpu in scene.gpus]
    goes_above = any(counts[gpu] and after[gpu] > cap for gpu in scene.gpus)
    can_take_below = any(after[gpu] < cap and counts[gpu] < scene.free[gpu] for gpu in scene.gpus)
    return not (goes_above and can_take_below)


def ranked(scene: Scene, key: Callable[[Scene, Counts], Key | None], cap: int | None = None) -> list[Counts]:
    """All answers that the policy allows, from the best."""
    valued = [
        (value, counts)
        for counts in all_counts(scene.free, scene.wanted)
        if (value := key(scene, counts)) is not None and (cap is None or keeps_cap(scene, counts, cap))
    ]
    return [counts for _, counts in sorted(valued)]


def partitions(gpus: Sequence[int], size: int, *, short_allowed: bool = True) -> Iterator[list[tuple[int, ...]]]:
    """All divisions of GPUs into sets of a size and, if the number does not divide, one short set."""
    if not gpus:
        yield []
        return
    first, others = gpus[0], gpus[1:]
    short = len(gpus) % size if short_allowed else 0
    sizes = [size] if len(gpus) >= size else []
    if short:
        sizes.append(short)
    for number in sizes:
        for more in combinations(others, number - 1):
            rest = [gpu for gpu in others if gpu not in more]
            for division in partitions(rest, size, short_allowed=short_allowed and number == size):
                yield [(first, *more), *division]


def aligned(scene: Scene) -> list[tuple[int, ...]]:
    """All sets that could be the answer for whole GPUs, from the best."""
    offered = [gpu for gpu in scene.gpus if scene.free[gpu] or scene.must[gpu]]
    must = {gpu for gpu in scene.gpus if scene.must[gpu]}
    best: dict[tuple[int, ...], Key] = {}
    if scene.size == 1:
        for gpu in sorted(must) or offered:
            best[gpu,] = (sum(scene.links[gpu][other] for other in offered if other != gpu), gpu)
        return sorted(best, key=lambda chosen: best[chosen])
    for division in partitions(offered, scene.size):
        full = [part for part in division if len(part) == scene.size]
        total = sum(map(scene.link_score, division))
        weakest = min(map(scene.link_score, full))
        for part in full:
            if must <= set(part):
                key = (
                    -total,
                    -weakest,
                    -scene.link_score(part),
                    len({scene.numa[gpu] for gpu in part}),
                    part,
                )
                best[part] = min(best.get(part, key), key)
    return sorted(best, key=lambda chosen: best[chosen])
