"""distributed: the load spread as evenly as it can be. The default.

Each new slot brings its GPU to a level, the load after it. The levels that all new slots reach, sorted from the
highest, are made smallest; then the most distinct GPUs are used; then those that link best.

The smallest levels are the `k` smallest of all that could be reached, since the levels of one GPU ascend. So every slot
below a threshold is taken, and a choice exists only among GPUs that reach exactly the threshold. The threshold is found
by bisection over integers: the cost does not depend on how many replicas there are.
"""

from collections.abc import Sequence

from gpustow.placement.objective import COUNTS, DISTINCT, LINK_SCORE, NUMA, Line, Objective
from gpustow.placement.search import choose
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State

LEVELS = Line("load levels", "brings a GPU to a load of {}", shares=True)

LINES = (
    LEVELS,
    DISTINCT,
    LINK_SCORE,
    NUMA,
    COUNTS,
)


def objective(state: State, counts: Counts) -> Objective:
    """What an answer is worth, line by line."""
    touched = state.mask(counts) | state.must_mask
    return (
        levels(state, counts),
        touched.bit_count(),
        state.fabric.score(touched),
        state.numa_spanned(touched),
        counts,
    )


def levels(state: State, counts: Counts) -> tuple[int, ...]:
    """The load after each new slot, from the highest."""
    reached = [
        used + step * slot
        for used, step, count in zip(state.used, state.step, counts, strict=True)
        for slot in range(1, count + 1)
    ]
    return tuple(sorted(reached, reverse=True))


def threshold(starts: Sequence[int], steps: Sequence[int], limits: Sequence[int], wanted: int) -> int:
    """The lowest level at or below which at least `wanted` slots lie; slot j of a GPU lies at start + j * step."""
    low = min(start for start, limit in zip(starts, limits, strict=True) if limit)
    high = max(start + step * limit for start, step, limit in zip(starts, steps, limits, strict=True) if limit)
    rows = [(s, p, c) for s, p, c in zip(starts, steps, limits, strict=True) if c]
    while low + 1 < high:
        middle = (low + high) // 2
        below = 0
        for start, step, limit in rows:
            if middle > start:
                below += min(limit, (middle - start) // step)
        if below >= wanted:
            high = middle
        else:
            low = middle
    return high


def settle(state: State, base: Sequence[int], ties: Sequence[int], wanted: int) -> Solution:
    """Add `wanted` slots, one each to some of the tied GPUs, to `base`: distinct GPUs first, then links, then index."""
    counts = list(base)
    touched = state.mask(counts) | state.must_mask
    bits = state.fabric.bits
    fresh = [position for position in ties if not touched & bits[position]]
    if wanted <= len(fresh):
        choice = choose(state, touched, fresh, wanted)
        for position in fresh:
            if choice.mask & bits[position]:
                counts[position] += 1
        return Solution(tuple(counts), choice.weighed, choice.exact)
    for position in fresh:
        counts[position] += 1
    again = [position for position in ties if touched & bits[position]]
    for position in again[: wanted - len(fresh)]:
        counts[position] += 1
    return Solution(tuple(counts), 1)


def solve(state: State) -> Solution:
    """The best counts for `distributed` within the limits, which must leave room for the request."""
    if not state.wanted:
        return Solution((0,) * len(state.free), 1)
    level = threshold(state.used, state.step, state.limit, state.wanted)
    base = [
        min(limit, max(0, (level - 1 - used) // step))
        for used, step, limit in zip(state.used, state.step, state.limit, strict=True)
    ]
    ties = [
        position
        for position in state.positions
        if base[position] < state.limit[position]
        and state.used[position] + (base[position] + 1) * state.step[position] == level
    ]
    return settle(state, base, ties, state.wanted - sum(base))
