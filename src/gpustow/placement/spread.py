"""spread: the slots of one request on as many GPUs as there are, whatever else runs there.

The most distinct GPUs, must-include counted; then the evenest own slots (own counts sorted from the highest, smallest);
then as distributed.

Own slots are filled like water into vessels whose floors are must-include's counts: every GPU that can reaches the same
height, which also makes the GPUs most distinct. Only the slots above the last full height leave a choice. They go where
they reach the lowest levels, and between equal levels as distributed decides.
"""

from gpustow.placement.distributed import LEVELS, levels, settle, threshold
from gpustow.placement.objective import COUNTS, DISTINCT, LINK_SCORE, NUMA, Line, Objective
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State

LINES = (
    DISTINCT,
    Line("own slots", "puts {} slot{s} on a GPU"),
    LEVELS,
    LINK_SCORE,
    NUMA,
    COUNTS,
)


def objective(state: State, counts: Counts) -> Objective:
    """What an answer is worth, line by line."""
    touched = state.mask(counts) | state.must_mask
    own = sorted((must + count for must, count in zip(state.must, counts, strict=True)), reverse=True)
    return (
        touched.bit_count(),
        tuple(own),
        levels(state, counts),
        state.fabric.score(touched),
        state.numa_spanned(touched),
        counts,
    )


def solve(state: State) -> Solution:
    """The best counts for `spread` within the limits, which must leave room for the request."""
    if not state.wanted:
        return Solution((0,) * len(state.free), 1)
    height = threshold(state.must, (1,) * len(state.must), state.limit, state.wanted)
    counts = [min(limit, max(0, height - 1 - must)) for limit, must in zip(state.limit, state.must, strict=True)]
    left = state.wanted - sum(counts)
    next_level = {
        position: state.used[position] + (counts[position] + 1) * state.step[position]
        for position in state.positions
        if counts[position] < state.limit[position] and state.must[position] + counts[position] == height - 1
    }
    last = sorted(next_level.values())[left - 1]
    for position, level in next_level.items():
        if level < last:
            counts[position] += 1
            left -= 1
    ties = [position for position, level in next_level.items() if level == last]
    return settle(state, counts, ties, left)
