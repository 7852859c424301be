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
from math import comb
from operator import le

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
from gpustow.placement.search import classes_of, keep_best, sets_number, sets_of
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State

LINES = (
    IDLE_OPENED,
    Line("GPUs touched", "touches {} GPU{s}"),
    LINK_SCORE,
    BEST_FIT,
    Line("biggest hole", "keeps a hole of {} of a GPU", largest=True, shares=True),
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
    """How many slots of a GPU may stay free: a GPU of the share whose slots are to be divided."""

    position: int
    low: int
    high: int


def _largest_holes(rooms: Sequence[_Room], total: int) -> list[int]:
    """`total` free slots left over the rooms so that, sorted from the largest, they are the largest.

    The largest that can be reached comes first. Among rooms that reach it, the one with the highest lower bound leaves
    the most to the others, so that any continuation with another is one with it too.
    """
    left = sorted(rooms, key=lambda room: (-room.high, -room.low))
    spare = total - sum(room.low for room in rooms)
    holes: list[int] = []
    while left:
        best = max(left, key=lambda room: (min(room.high, room.low + spare), room.low))
        hole = min(best.high, best.low + spare)
        spare -= hole - best.low
        holes.append(hole)
        left.remove(best)
        if not spare:
            holes += [room.low for room in left]
            break
    return holes


def _fits(rooms: Sequence[_Room], holes: Sequence[int]) -> bool:
    """Whether each of the ascending holes finds a room: from the smallest hole, the room that closes first."""
    if all(room.low <= holes[0] for room in rooms):
        return all(map(le, holes, sorted(room.high for room in rooms)))
    left = sorted(rooms, key=lambda room: room.high)
    for hole in holes:
        fitting = next((room for room in left if room.low <= hole <= room.high), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return True


def _assign(rooms: Sequence[_Room], holes: Sequence[int]) -> dict[int, int]:
    """The hole for each position, the smallest holes at the lowest positions that allow it."""
    left = sorted(holes)
    assigned: dict[int, int] = {}
    for at, room in enumerate(rooms):
        if left[0] == left[-1]:
            return assigned | {room.position: left[0] for room in rooms[at:]}
        for hole in dict.fromkeys(left):
            rest = left.copy()
            rest.remove(hole)
            if room.low <= hole <= room.high and _fits(rooms[at + 1 :], rest):
                assigned[room.position] = hole
                left = rest
                break
    return assigned


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a set of GPUs shares the request, up to the one choice that may be left.

    `counts` is final but for the GPUs in `rooms`, over which slots are to be divided so that `holes` stay free.
    """

    mask: int
    counts: list[int]
    rooms: list[_Room]
    holes: list[int]

    def settled(self, state: State) -> Counts:
        """The counts with the choice made: most at the lowest index."""
        counts = self.counts.copy()
        for position, hole in _assign(self.rooms, self.holes).items():
            counts[position] = state.free[position] - hole
        return tuple(counts)

    def worth(self, state: State) -> tuple[int, tuple[int, ...]]:
        """Best fit and biggest hole, to be made largest; both are known before the choice is made."""
        touched = 0
        shares: list[int] = []
        open_ = {room.position for room in self.rooms}
        members = self.mask | state.must_mask
        for position, bit in enumerate(state.fabric.bits):
            if position not in open_:
                share = (state.free[position] - self.counts[position]) * state.step[position]
                shares.append(share)
                touched += share if members & bit else 0
        if self.rooms:
            step = state.step[self.rooms[0].position]
            shares += [hole * step for hole in self.holes]
            touched += sum(self.holes) * step
        return -touched, tuple(sorted(shares, reverse=True))


def _plan(state: State, opened: int) -> _Plan:
    """The plan for a request that touches all GPUs in `opened` and any of must-include's.

    Slots of larger shares go first, since that leaves the least free; only in the class of equal shares that is not
    used up is there a choice, and the biggest holes make it.
    """
    counts = [0] * len(state.free)
    by_step: dict[int, list[int]] = {}
    for position, bit in enumerate(state.fabric.bits):
        if opened & bit:
            counts[position] = 1
        elif not state.must[position]:
            continue
        by_step.setdefault(state.step[position], []).append(position)
    extra = state.wanted - opened.bit_count()
    for step in sorted(by_step, reverse=True):
        members = by_step[step]
        capacity = sum(state.limit[position] - counts[position] for position in members)
        if extra >= capacity:
            for position in members:
                counts[position] = state.limit[position]
            extra -= capacity
            continue
        if not extra:
            break
        free, limit = state.free, state.limit
        rooms = [_Room(at, free[at] - limit[at], free[at] - counts[at]) for at in members]
        return _Plan(opened, counts, rooms, _largest_holes(rooms, sum(room.high for room in rooms) - extra))
    return _Plan(opened, counts, [], [])


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
        return Solution(_plan(state, 0).settled(state), 1)
    open_to = [at for at, bit in enumerate(state.fabric.bits) if limit[at] and not must_mask & bit]
    idle = [at for at in open_to if not state.used[at]]
    begun = [at for at in open_to if state.used[at]]
    idle_count = _fewest([limit[at] for at in idle], needed - sum(limit[at] for at in begun))
    begun_count = _fewest([limit[at] for at in begun], needed - _top([limit[at] for at in idle], idle_count))
    return _best_set(state, (idle, idle_count), (begun, begun_count), needed)


def _best_set(state: State, idle: tuple[list[int], int], begun: tuple[list[int], int], needed: int) -> Solution:
    """The best of the sets with so many of the idle and so many of the begun GPUs, and room for what is needed."""
    free, limit, step, bits = state.free, state.limit, state.step, state.fabric.bits

    def alike(position: int) -> tuple[int, int, int]:
        return free[position], limit[position], step[position]

    idle_classes = classes_of(state, idle[0], alike)
    begun_classes = classes_of(state, begun[0], alike)
    most = state.fabric.step_budget
    if comb(len(idle[0]), idle[1]) * comb(len(begun[0]), begun[1]) > most and (
        sets_number(idle_classes, idle[1]) * sets_number(begun_classes, begun[1]) > most
    ):
        largest = _largest(state, *idle) | _largest(state, *begun)
        return Solution(_plan(state, largest).settled(state), 1, exact=False)
    # A set is its mask below its room, in one number: the sum of two sets is the set of both, with the room of both.
    width = state.fabric.count
    worth = [bit + (room << width) for bit, room in zip(bits, limit, strict=True)]
    some_idle = sets_of(idle_classes, idle[1], worth)
    some_begun = sets_of(begun_classes, begun[1], worth)
    enough = needed << width
    below = (1 << width) - 1
    sets = [both & below for one in some_idle for other in some_begun if (both := one + other) >= enough]
    return Solution(_best_plan(state, sets).settled(state), len(sets))


def _best_plan(state: State, sets: Sequence[int]) -> _Plan:
    """The best of sets that open and touch equally many GPUs: one line of the objective after the other."""
    must_mask = state.must_mask
    best = keep_best(sets, state.fabric.scores([mask | must_mask for mask in sets]))
    if len(best) > 1 and state.is_uniform:
        best = keep_best(best, [-total for total in state.free_in(best)])
    plans = [_plan(state, mask) for mask in best]
    if len(plans) > 1:
        plans = keep_best(plans, [plan.worth(state) for plan in plans])
    if len(plans) > 1:
        plans = keep_best(plans, [-state.numa_spanned(plan.mask | must_mask) for plan in plans])
    if len(plans) > 1:
        plans = keep_best(plans, [plan.settled(state) for plan in plans])
    return plans[0]


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
        must_mask=state.must_mask | state.mask(below),
    )
    more = _solve_within(rest)
    return replace(more, counts=tuple(one + other for one, other in zip(below, more.counts, strict=True)))
