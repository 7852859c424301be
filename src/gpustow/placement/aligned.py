"""aligned: whole GPUs that link well with each other. For whole GPUs always, and for nothing else.

The best single set: the GPUs whose links to each other are worth the most. A request for one GPU takes the one with the
least link score to the others that are offered, so that a well-linked group stays whole.
"""

from gpustow.placement.search import Choice, choose
from gpustow.placement.solution import Solution
from gpustow.placement.state import State


def _loosest(state: State, offered: list[int]) -> Choice:
    """The GPU with the least link score to the others offered; the lowest index among equals."""
    matrix = state.fabric.matrix
    position = min(offered, key=lambda one: (sum(matrix[one][other] for other in offered), one))
    return Choice(state.fabric.bits[position], len(offered))


def solve(state: State) -> Solution:
    """The best counts, 0 or 1 on each GPU, for `aligned`."""
    offered = [position for position in state.positions if state.limit[position]]
    must_mask = state.must_mask
    if state.wanted == 1 and not must_mask:
        choice = _loosest(state, offered)
    else:
        choice = choose(state, must_mask, offered, state.wanted)
    counts = tuple(1 if choice.mask & bit else 0 for bit in state.fabric.bits)
    return Solution(counts, choice.weighed, choice.exact)
