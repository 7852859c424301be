"""packed-aligned: the ranks of one parallel job on few, well-linked GPUs, in equal parts.

Wanted are the fewest GPUs that can hold the request in parts that differ by at most one slot, all inside one NVLink
island; if no island can, inside one NUMA node; if none of those can, anywhere. Then the best link score, the fewest
idle GPUs opened, the best fit. So 16 slots of a tenth of a GPU are 8 and 8 on a linked pair, and a fifth of either is
left.

Must-include's slots are part of the parts. Where the request cannot be divided evenly at all, on any GPUs, it is placed
as `packed` would.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpustow.placement import packed
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
from gpustow.placement.search import are_fewer, classes_of, keep_best, sets_of
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State

ISLAND, NUMA_NODE, ANYWHERE, UNEVEN = range(4)
"""The values of the line `domain`."""

LINES = (
    Line(
        "domain", "lies {}", values=("in one NVLink island", "in one NUMA node", "across the node", "in uneven parts")
    ),
    Line("GPUs", "uses {} GPU{s}"),
    LINK_SCORE,
    IDLE_OPENED,
    BEST_FIT,
    NUMA,
    COUNTS,
)


def objective(state: State, counts: Counts) -> Objective:
    """What an answer is worth, line by line."""
    touched = state.mask(counts) | state.must_mask
    return (
        _domain(state, touched, counts),
        touched.bit_count(),
        state.fabric.score(touched),
        idle_opened(state, counts),
        share_left(state, counts),
        state.numa_spanned(touched),
        counts,
    )


def is_even(state: State, counts: Counts) -> bool:
    """Whether the request is divided into parts that differ by at most one slot."""
    own = [must + count for must, count in zip(state.must, counts, strict=True) if must + count]
    return not own or max(own) - min(own) <= 1


def _domain(state: State, touched: int, counts: Counts) -> int:
    """The smallest kind of domain that holds an answer, or UNEVEN."""
    if not is_even(state, counts):
        return UNEVEN
    for kind, domains in ((ISLAND, state.islands), (NUMA_NODE, state.numa_groups)):
        if any(touched & domain == touched for domain in domains):
            return kind
    return ANYWHERE


@dataclass(frozen=True, slots=True)
class _Parts:
    """A request divided among `gpus` GPUs: `low` slots on each, one more on `extra` of them."""

    gpus: int
    low: int
    extra: int


@dataclass(frozen=True, slots=True)
class _Able:
    """The GPUs that can take a part, and those that can take a larger one, must-include's among both, as masks."""

    some: int
    more: int


def _able(state: State, parts: _Parts) -> _Able | None:
    """Which GPUs can take a part; None if must-include's slots alone are against it."""
    some = more = forced = 0
    high = parts.low + bool(parts.extra)
    for bit, must, limit in zip(state.fabric.bits, state.must, state.limit, strict=True):
        if must + limit >= parts.low:
            some |= bit
            if must + limit > parts.low:
                more |= bit
        elif must:
            return None
        if must > high:
            return None
        forced += must > parts.low
    return _Able(some, more) if forced <= parts.extra else None


def _holds(state: State, domain: int, able: _Able, parts: _Parts) -> bool:
    """Whether a domain, which has all of must-include's GPUs, can hold the parts."""
    must_mask = state.must_mask
    beside = parts.gpus - must_mask.bit_count()
    others = able.some & domain & ~must_mask
    larger = (able.more & must_mask).bit_count() + min(beside, (able.more & others).bit_count())
    return 0 <= beside <= others.bit_count() and larger >= parts.extra


def _sets(state: State, domain: int, able: _Able, parts: _Parts) -> tuple[list[int], bool]:
    """The sets of GPUs of a domain that hold the parts, and whether they are all of them."""
    bits, must_mask = state.fabric.bits, state.must_mask
    others = state.fabric.positions(able.some & domain & ~must_mask)
    beside = parts.gpus - must_mask.bit_count()

    def alike(position: int) -> tuple[int, int, int, bool]:
        return state.free[position], state.limit[position], state.step[position], not state.used[position]

    classes = classes_of(state, others, alike)
    if not are_fewer(classes, beside, state.fabric.step_budget):
        roomiest = sorted(others, key=lambda at: (not able.more & bits[at], at))
        return [must_mask | sum(bits[at] for at in roomiest[:beside])], False
    sets = [must_mask | mask for mask in sets_of(classes, beside, bits)]
    return [mask for mask in sets if (mask & able.more).bit_count() >= parts.extra], True


def _divide(state: State, mask: int, parts: _Parts) -> Counts:
    """The parts on the GPUs of a set: the larger ones where a slot is the largest share, then at the lowest index."""
    counts = [0] * len(state.free)
    chosen = state.fabric.positions(mask)
    extra = parts.extra
    for position in chosen:
        counts[position] = max(parts.low, state.must[position]) - state.must[position]
        extra -= state.must[position] > parts.low
    able = [at for at in chosen if state.must[at] <= parts.low and state.must[at] + state.limit[at] > parts.low]
    for position in sorted(able, key=lambda at: (-state.step[at], at))[:extra]:
        counts[position] += 1
    return tuple(counts)


def _best(state: State, domains: Sequence[int], able: _Able, parts: _Parts) -> Solution:
    """The best way to hold the parts in one of the domains: one line of the objective after the other."""
    found = [_sets(state, domain, able, parts) for domain in domains]
    sets = [mask for some, _ in found for mask in some]
    best = keep_best(sets, state.fabric.scores(sets))
    idle = sum(bit for bit, used in zip(state.fabric.bits, state.used, strict=True) if not used) & ~state.must_mask
    best = keep_best(best, [-(mask & idle).bit_count() for mask in best])
    if len(best) > 1 and state.is_uniform:
        best = keep_best(best, [-total for total in state.free_in(best)])
    answers = [(mask, _divide(state, mask, parts)) for mask in best]
    if len(answers) > 1:
        answers = keep_best(answers, [-share_left(state, counts) for _, counts in answers])
        answers = keep_best(answers, [-state.numa_spanned(mask) for mask, _ in answers])
        answers = keep_best(answers, [counts for _, counts in answers])
    return Solution(answers[0][1], len(sets), all(exact for _, exact in found))


def solve(state: State) -> Solution:
    """The best counts for `packed-aligned` within the limits, which must leave room for the request."""
    if not state.wanted:
        return Solution((0,) * len(state.free), 1)
    size = state.wanted + sum(state.must)
    every = [_Parts(gpus, *divmod(size, gpus)) for gpus in range(1, min(size, len(state.free)) + 1)]
    must_mask = state.must_mask
    open_to = state.mask(state.limit) | must_mask
    for kind in (state.islands, state.numa_groups, (sum(state.fabric.bits),)):
        domains = [domain for domain in kind if not must_mask & ~domain]
        largest = max(((domain & open_to).bit_count() for domain in domains), default=0)
        for parts in every[:largest]:
            able = _able(state, parts)
            holding = [domain for domain in domains if able is not None and _holds(state, domain, able, parts)]
            if able is not None and holding:
                return _best(state, holding, able, parts)
    return packed.solve(state)
