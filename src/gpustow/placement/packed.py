"""packed: as few GPUs as possible, so that whole GPUs stay free.

Lines of the objective: fewest idle GPUs opened; fewest GPUs touched beyond must-include's; best link score of the
touched set; best fit, the least free share left on touched GPUs; the biggest hole kept, the free shares left on all
GPUs sorted from the largest.

The first two lines are arithmetic. Must-include's GPUs cost nothing; then begun GPUs, then idle ones: `j` of the
largest idle GPUs are the fewest that suffice with everything else, `q` of the largest begun ones the fewest that
complete them. Any set of that composition with enough room is a candidate, and each candidate touches all of its GPUs.
What remains is to compare the candidates on the other lines, and to divide the slots inside each.

A cap bounds what a GPU takes while another can still take a slot below it. If the request fits below the cap, the cap
is a limit like any other; if not, everything below it is taken first, and the rest is packed on top.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpustow.placement.objective import (
    BEST_FIT,
    COUNTS,
    IDLE_OPENED,
    LINK_SCORE,
    NUMA,
    Line,
    Objective,
    idle_opened,
    share_left,
)
from gpustow.placement.search import classes_of, sets_number, sets_of
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State

LINES = (
    IDLE_OPENED,
    Line("GPUs touched", "it touches {} GPU(s)"),
    LINK_SCORE,
    BEST_FIT,
    Line("biggest hole", "it keeps a hole of {} of a GPU", largest=True, shares=True),
    NUMA,
    COUNTS,
)


def objective(state: State, counts: Counts) -> Objective:
    """What an answer is worth, line by line."""
    must_mask = state.must_mask
    touched = state.mask(counts) | must_mask
    return (
        idle_opened(state, counts),
        (touched & ~must_mask).bit_count(),
        state.fabric.score(touched),
        share_left(state, counts),
        holes(state, counts),
        state.numa_spanned(touched),
        counts,
    )


@dataclass(frozen=True, slots=True)
class _Room:
    """How many slots of a GPU may stay free: a GPU in the class whose slots are divided."""

    position: int
    low: int
    high: int


def _largest_holes(rooms: Sequence[_Room], total: int) -> list[int]:
    """`total` free slots left over the rooms so that, sorted from the largest, they are the largest.

    The largest that can be reached comes first. Among rooms that reach it, the one with the highest lower bound leaves
    the most to the others, so that any continuation with another is one with it too.
    """
    left = list(rooms)
    spare = total - sum(room.low for room in rooms)
    holes: list[int] = []
    while left:
        best = max(left, key=lambda room: (min(room.high, room.low + spare), room.low))
        hole = min(best.high, best.low + spare)
        spare -= hole - best.low
        holes.append(hole)
        left.remove(best)
    return holes


def _fits(rooms: Sequence[_Room], holes: Sequence[int]) -> bool:
    """Whether each hole finds a room: from the smallest hole, the room that closes first."""
    left = list(rooms)
    for hole in sorted(holes):
        open_ = [room for room in left if room.low <= hole <= room.high]
        if not open_:
            return False
        left.remove(min(open_, key=lambda room: room.high))
    return True


def _assign(rooms: Sequence[_Room], holes: Sequence[int]) -> dict[int, int]:
    """The hole for each position, the smallest holes at the lowest positions that allow it."""
    left = sorted(holes)
    assigned: dict[int, int] = {}
    for at, room in enumerate(rooms):
        for hole in dict.fromkeys(left):
            rest = left.copy()
            rest.remove(hole)
            if room.low <= hole <= room.high and _fits(rooms[at + 1 :], rest):
                assigned[room.position] = hole
                left = rest
                break
    return assigned


def _divide(state: State, opened: int) -> Counts:
    """The counts for a request that touches all GPUs in `opened` and any of must-include's.

    Slots of larger shares go first, since that leaves the least free; only in the class of equal shares that is not
    used up is there a choice, and the biggest holes make it.
    """
    participants = opened | state.must_mask
    lowest: dict[int, int] = {}
    by_step: dict[int, list[int]] = {}
    for position, bit in enumerate(state.fabric.bits):
        if participants & bit:
            lowest[position] = 1 if opened & bit else 0
            by_step.setdefault(state.step[position], []).append(position)
    counts = [0] * len(state.free)
    for position, least in lowest.items():
        counts[position] = least
    extra = state.wanted - sum(counts)
    for step in sorted(by_step, reverse=True):
        members = by_step[step]
        capacity = sum(state.limit[position] - lowest[position] for position in members)
        if extra >= capacity:
            for position in members:
                counts[position] = state.limit[position]
            extra -= capacity
            continue
        if extra:
            rooms = [
                _Room(
                    position,
                    state.free[position] - state.limit[position],
                    state.free[position] - lowest[position],
                )
                for position in members
            ]
            total = sum(room.high for room in rooms) - extra
            for position, hole in _assign(rooms, _largest_holes(rooms, total)).items():
                counts[position] = state.free[position] - hole
        break
    return tuple(counts)


def holes(state: State, counts: Counts) -> tuple[int, ...]:
    """The free shares left on all GPUs, from the largest."""
    left = [(free - count) * step for free, count, step in zip(state.free, counts, state.step, strict=True)]
    return tuple(sorted(left, reverse=True))


def _fewest(capacities: Sequence[int], needed: int) -> int:
    """How many of the largest capacities reach what is needed."""
    reached = 0
    for number, capacity in enumerate(sorted(capacities, reverse=True)):
        if reached >= needed:
            return number
        reached += capacity
    return len(capacities)


def _top(capacities: Sequence[int], number: int) -> int:
    """The sum of the `number` largest capacities."""
    return sum(sorted(capacities, reverse=True)[:number])


def _solve_within(state: State) -> Solution:
    """The best counts within the limits, without regard to a cap."""
    must_mask = state.must_mask
    limit = state.limit
    needed = state.wanted - sum(limit[at] for at, bit in enumerate(state.fabric.bits) if must_mask & bit)
    if needed <= 0:
        return Solution(_divide(state, 0), 1)
    open_to = [at for at, bit in enumerate(state.fabric.bits) if limit[at] and not must_mask & bit]
    idle = [at for at in open_to if not state.used[at]]
    begun = [at for at in open_to if state.used[at]]
    idle_count = _fewest([limit[at] for at in idle], needed - sum(limit[at] for at in begun))
    begun_count = _fewest([limit[at] for at in begun], needed - _top([limit[at] for at in idle], idle_count))
    return _best_set(state, (idle, idle_count), (begun, begun_count), needed)


def _best_set(state: State, idle: tuple[list[int], int], begun: tuple[list[int], int], needed: int) -> Solution:
    """The best of the sets with so many of the idle and so many of the begun GPUs, and room for what is needed."""
    bits = state.fabric.bits

    def alike(position: int) -> tuple[int, int, int]:
        return state.free[position], state.limit[position], state.step[position]

    idle_classes = classes_of(state, idle[0], alike)
    begun_classes = classes_of(state, begun[0], alike)
    number = sets_number(idle_classes, idle[1]) * sets_number(begun_classes, begun[1])
    room = [(bit, state.limit[at]) for at, bit in enumerate(bits)]

    def capacities(masks: Sequence[int]) -> list[tuple[int, int]]:
        return [(mask, sum(limit for bit, limit in room if mask & bit)) for mask in masks]

    exact = number <= state.fabric.step_budget
    if exact:
        some_idle = capacities(sets_of(idle_classes, idle[1], bits))
        some_begun = capacities(sets_of(begun_classes, begun[1], bits))
    else:
        some_idle = capacities([_largest(state, *idle)])
        some_begun = capacities([_largest(state, *begun)])
    sets = [one | other for one, more in some_idle for other, yet in some_begun if more + yet >= needed]

    must_mask = state.must_mask
    scores = state.fabric.scores([mask | must_mask for mask in sets])
    best_score = max(scores)
    tied = [mask for mask, score in zip(sets, scores, strict=True) if score == best_score]
    best = max(
        ((mask, _divide(state, mask)) for mask in tied),
        key=lambda pair: (
            -share_left(state, pair[1]),
            holes(state, pair[1]),
            -state.numa_spanned(pair[0] | must_mask),
            pair[1],
        ),
    )
    return Solution(best[1], len(sets), exact)


def _largest(state: State, candidates: list[int], count: int) -> int:
    """The mask of the `count` candidates with the most room."""
    ordered = sorted(candidates, key=lambda at: (-state.limit[at], at))
    return sum(state.fabric.bits[at] for at in ordered[:count])


def _below_cap(state: State, cap: int) -> Counts:
    """How many slots each GPU takes before it stands at the cap."""
    return tuple(min(limit, max(0, cap - taken)) for limit, taken in zip(state.limit, state.taken, strict=True))


def keeps_cap(state: State, counts: Counts, cap: int) -> bool:
    """Whether no GPU goes above the cap while another that could take a slot is below it."""
    after = [taken + count for taken, count in zip(state.taken, counts, strict=True)]
    above = any(total > cap and count for total, count in zip(after, counts, strict=True))
    below = any(total < cap and count < limit for total, count, limit in zip(after, counts, state.limit, strict=True))
    return not (above and below)


def solve(state: State, cap: int | None = None) -> Solution:
    """The best counts for `packed` within the limits, which must leave room for the request."""
    if not state.wanted:
        return Solution((0,) * len(state.free), 1)
    if cap is None:
        return _solve_within(state)
    below = _below_cap(state, cap)
    over = state.wanted - sum(below)
    if over <= 0:
        return _solve_within(state.limited(below))
    rest = replace(
        state,
        wanted=over,
        free=tuple(free - count for free, count in zip(state.free, below, strict=True)),
        limit=tuple(limit - count for limit, count in zip(state.limit, below, strict=True)),
        used=tuple(used + count * step for used, count, step in zip(state.used, below, state.step, strict=True)),
        must=tuple(must + count for must, count in zip(state.must, below, strict=True)),
    )
    more = _solve_within(rest)
    return replace(more, counts=tuple(one + other for one, other in zip(below, more.counts, strict=True)))
