"""aligned: whole GPUs that link well with each other, and leave well-linked GPUs. For whole GPUs always, and only.

Not the best single set: of all ways to divide the GPUs offered into sets of the asked size, and one short set if the
number does not divide, the one whose sets score most together; among those the one whose weakest full set scores most;
and of its full sets the one that scores most itself. The short set is never the answer. So a request does not break the
pair that the next one would have got.

A division that holds a given set is that set and the best division of the rest, so every set that could be the answer
is valued by one look-up in the tables of `partition`. Where those do not reach, `swaps` finds a good division.

A request for one GPU takes the GPU with the least link score to the others offered: it breaks what is already broken.
"""

from collections.abc import Iterator, Sequence
from operator import add

from gpustow.placement.objective import COUNTS, LINK_SCORE, NUMA, Line, Objective
from gpustow.placement.search import are_fewer, choose, classes_of, keep_best, masks_of
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State
from gpustow.placement.swaps import Task, divisions
from gpustow.placement.tables import look_up

LINES = (
    Line("partition score", "divides the GPUs offered into sets worth {}", largest=True),
    Line("weakest set", "leaves no full set worth less than {}", largest=True),
    LINK_SCORE,
    NUMA,
    COUNTS,
)

SINGLE_STEPS = 2_000
"""The most sets among which the best single one is looked for, where divisions cannot all be valued."""

LONE_LINES = (Line("links given up", "gives up links worth {}"), COUNTS)


def _offered(state: State) -> int:
    """The GPUs offered, must-include's among them."""
    return state.mask(state.free) | state.must_mask


def _is_lone(state: State) -> bool:
    """Whether one GPU is asked for, and it is open which."""
    return state.wanted == 1 and not state.must_mask


def lines(state: State) -> Sequence[Line]:
    """The lines of the objective for this request."""
    return LONE_LINES if _is_lone(state) else LINES


def objective(state: State, counts: Counts) -> Objective:
    """What an answer is worth, line by line."""
    chosen = state.mask(counts) | state.must_mask
    fabric = state.fabric
    if _is_lone(state):
        offered = _offered(state)
        return (sum(fabric.lone_score(position, offered) for position in fabric.positions(chosen)), counts)
    total, weakest = _value(state, chosen)
    return (total, weakest, fabric.score(chosen), state.numa_spanned(chosen), counts)


def _value(state: State, chosen: int) -> tuple[int, int]:
    """The score of the best known division that holds the chosen set, and of its weakest full set."""
    offered, size = _offered(state), chosen.bit_count()
    rest = offered ^ chosen
    score = state.fabric.score(chosen)
    if not size:
        return 0, 0
    if rest.bit_count() <= size:
        beside = state.fabric.score(rest)
        return score + beside, min(score, beside) if rest.bit_count() == size else score
    if _is_exact(state, offered.bit_count(), size):
        totals, weakest = state.fabric.partitions.divisions([rest], size)
        return score + totals[0], min(score, weakest[0])
    task = Task(state.fabric, offered, chosen, 0, size)
    return max(_worth(state, division.sets, size) for division in divisions(task, chosen, state.expired))


def _worth(state: State, sets: Sequence[int], size: int) -> tuple[int, int]:
    """The total score of a division and the score of its weakest full set."""
    scores = state.fabric.scores(sets)
    return sum(scores), min(score for score, mask in zip(scores, sets, strict=True) if mask.bit_count() == size)


def _is_exact(state: State, offered: int, size: int) -> bool:
    """Whether the best division is found for certain."""
    return offered < 2 * size or state.fabric.partitions.exact(offered, size)


def _solution(state: State, mask: int, weighed: int, *, exact: bool = True) -> Solution:
    """The answer that consists of must-include's GPUs and those in the mask."""
    new = mask & ~state.must_mask
    return Solution(tuple(1 if new & bit else 0 for bit in state.fabric.bits), weighed, exact)


def _loosest(state: State, open_to: Sequence[int]) -> Solution:
    """Of these GPUs the one with the least link score to the others offered; the lowest index among equals."""
    offered = _offered(state)
    best = min(open_to, key=lambda position: (state.fabric.lone_score(position, offered), position))
    return _solution(state, state.fabric.bits[best], len(open_to))


def _totals(state: State, candidates: Sequence[int], size: int) -> Sequence[int]:
    """For each set the total of the best division that holds it."""
    fabric = state.fabric
    offered = _offered(state)
    beside = offered.bit_count() - size
    if beside <= size and offered == fabric.everything and fabric.halves is not None:
        return look_up(fabric.halves, candidates)
    rests = list(map(offered.__xor__, candidates))
    totals = fabric.scores(rests) if beside <= size else fabric.partitions.divisions(rests, size)[0]
    return list(map(add, fabric.scores(candidates), totals))


def _weakest(state: State, candidates: Sequence[int], size: int) -> Sequence[int]:
    """For each set the score of the weakest full set of the best division that holds it."""
    offered = _offered(state)
    scores = state.fabric.scores(candidates)
    if offered.bit_count() < 2 * size:
        return scores
    rests = [offered ^ mask for mask in candidates]
    if offered.bit_count() == 2 * size:
        return list(map(min, scores, state.fabric.scores(rests)))
    return list(map(min, scores, state.fabric.partitions.divisions(rests, size)[1]))


def _from_tables(state: State, candidates: Sequence[int], size: int) -> Solution:
    """The best of these sets, each valued with the best division of what it leaves: one line after the other."""
    best = keep_best(candidates, _totals(state, candidates, size))
    if len(best) > 1:
        best = keep_best(best, _weakest(state, best, size))
        best = keep_best(best, state.fabric.scores(best))
    mask = max(best, key=lambda mask: (-state.numa_spanned(mask), mask))
    return _solution(state, mask, len(candidates))


def _from_swaps(state: State, size: int) -> tuple[list[int], int]:
    """The sets that could be the answer in the divisions that the bounded search meets, from the best; its steps."""
    must, may = state.must_mask, state.mask(state.limit)
    single = choose(state, must, state.fabric.positions(may), state.wanted, most=SINGLE_STEPS)
    values: set[tuple[int, int, int, int, int]] = set()
    weighed = single.weighed
    task = Task(state.fabric, _offered(state), must, may, size)
    for division in divisions(task, must | single.mask, state.expired):
        weighed += division.steps
        worth = _worth(state, division.sets, size)
        values |= {
            (*worth, state.fabric.score(mask), -state.numa_spanned(mask), mask)
            for mask in division.sets
            if mask.bit_count() == size and mask & must == must and mask & (may | must) == mask
        }
    return [value[-1] for value in sorted(values, reverse=True)], weighed


def _enumerable(state: State, classes: Sequence[Sequence[int]], size: int) -> bool:
    """Whether all sets can be valued within the step budget."""
    few = are_fewer(classes, state.wanted, state.fabric.step_budget)
    return few and _is_exact(state, _offered(state).bit_count(), size)


def solve(state: State) -> Solution:
    """The best counts, 0 or 1 on each GPU, within the limits, which must leave room for the request."""
    may = state.mask(state.limit)
    if may.bit_count() == state.wanted or not state.wanted:
        return _solution(state, may if state.wanted else 0, 1)
    if _is_lone(state):
        return _loosest(state, state.fabric.positions(may))
    must = state.must_mask
    size = state.wanted + must.bit_count()
    key = (_offered(state), must, may, size, state.numa_groups)
    known = state.fabric.answers.get(key)
    if isinstance(known, Solution):
        return known
    classes = classes_of(state, state.fabric.positions(may), lambda _: None)
    if _enumerable(state, classes, size):
        masks = masks_of(state.fabric, classes, state.wanted)
        solution = _from_tables(state, [must | mask for mask in masks] if must else masks, size)
    else:
        masks, weighed = _from_swaps(state, size)
        solution = _solution(state, masks[0], weighed, exact=False)
    if solution.exact or not state.expired():
        state.fabric.remember(key, solution)
    return solution


def second_best(state: State, counts: Counts) -> Counts | None:
    """The best answer but for one; None if there is no other, or the bounded search met none."""
    may = state.mask(state.limit)
    if may.bit_count() == state.wanted or not state.wanted:
        return None
    if _is_lone(state):
        return _loosest(state, [at for at in state.fabric.positions(may) if not counts[at]]).counts
    must = state.must_mask
    chosen = state.mask(counts)
    size = state.wanted + must.bit_count()
    classes = classes_of(state, state.fabric.positions(may), lambda _: None)
    if not _enumerable(state, classes, size):
        others = [mask for mask in _from_swaps(state, size)[0] if mask != chosen | must]
        return _solution(state, others[0], 0).counts if others else None
    masks = [mask for mask in masks_of(state.fabric, classes, state.wanted) if mask != chosen]
    masks += [chosen ^ bits for bits in _twin_trades(state, classes, chosen)]
    return _from_tables(state, [must | mask for mask in masks], size).counts


def _twin_trades(state: State, classes: Sequence[Sequence[int]], chosen: int) -> Iterator[int]:
    """For each class of interchangeable GPUs that is used in part, the trade that changes the set the least."""
    bits = state.fabric.bits
    for members in classes:
        inside = [bits[at] for at in members if bits[at] & chosen]
        outside = [bits[at] for at in members if not bits[at] & chosen]
        if inside and outside:
            yield inside[-1] | outside[0]
