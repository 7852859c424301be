"""How much of a GPU that is cut for MIG lies idle where no MIG device could be made of it.

Free memory slices are of use only where a profile may start. For each profile that a GPU offers, the measure counts the
devices of it that the free slices would be enough for and that find no place, in memory slices. An empty card is zero:
what even it cannot place is not counted, since no placement can help that.

The formula is ours, in the spirit of the fragmentation gradient of Weng et al., "Beware of Fragmentation" (USENIX ATC
2023): the part of what is free that a task of a given size cannot use.
"""

from collections.abc import Iterable, Sequence

from gpustow.hardware.mig import MigDevice, MigProfile


def slices_of(part: MigDevice) -> range | None:
    """The memory slices that a MIG device occupies; None where that is not known."""
    if part.start is None or part.profile.memory_slices is None:
        return None
    return range(part.start, part.start + part.profile.memory_slices)


def placeable(starts: Sequence[int], size: int, free: Iterable[int]) -> int:
    """How many devices of `size` memory slices fit into the free slices side by side, each at one of its starts."""
    left = set(free)
    placed = 0
    for start in sorted(starts):
        needed = set(range(start, start + size))
        if needed <= left:
            left -= needed
            placed += 1
    return placed


def fragmentation(profiles: Sequence[MigProfile], memory_slices: int, free: Iterable[int]) -> int:
    """The fragmentation of a GPU in memory slices, summed over its profiles; 0 is none.

    `free` are the memory slices that no MIG device in use occupies. Profiles whose size or placements are unknown are
    left out, and profiles of the same size and placements count once.
    """
    left = frozenset(free)
    shapes = {
        (profile.memory_slices, profile.placements)
        for profile in profiles
        if profile.memory_slices and profile.placements
    }
    total = 0
    for size, starts in shapes:
        possible = min(len(left) // size, placeable(starts, size, range(memory_slices)))
        total += max(0, possible - placeable(starts, size, left)) * size
    return total
