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
from gpustow.placement.search import classes_of, sets_number, sets_of
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State

ISLAND, NUMA_NODE, ANYWHERE, UNEVEN = range(4)
"""The values of the line `domain`."""

LINES = (
    Line("domain", "its domain is {}", values=("one NVLink island", "one NUMA node", "the node", "uneven")),
    Line("GPUs", "it uses {} GPU(s)"),
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
class _Fit:
    """The GPUs of a domain that can take a part: those beside must-include's, and all that can take a larger one."""

    others: list[int]
    roomy: int


def _fit(state: State, domain: int, parts: _Parts) -> _Fit | None:
    """How a domain holds the parts; None if it cannot."""
    bits = state.fabric.bits
    must = state.fabric.positions(state.must_mask)
    high = parts.low + bool(parts.extra)
    can_hold = [must + limit for must, limit in zip(state.must, state.limit, strict=True)]
    if (
        state.must_mask & ~domain
        or any(state.must[at] > high or can_hold[at] < parts.low for at in must)
        or sum(state.must[at] > parts.low for at in must) > parts.extra
    ):
        return None
    others = [at for at in state.positions if domain & bits[at] and not state.must[at] and can_hold[at] >= parts.low]
    roomy = sum(bits[at] for at in (*must, *others) if can_hold[at] > parts.low)
    more = parts.gpus - len(must)
    most_roomy = (roomy & state.must_mask).bit_count() + min(more, (roomy & ~state.must_mask).bit_count())
    if not 0 <= more <= len(others) or most_roomy < parts.extra:
        return None
    return _Fit(others, roomy)


def _sets(state: State, fit: _Fit, parts: _Parts) -> tuple[list[int], bool]:
    """The sets of GPUs that hold the parts, and whether they are all of them."""
    bits = state.fabric.bits

    def alike(position: int) -> tuple[int, int, int, bool]:
        return state.free[position], state.limit[position], state.step[position], not state.used[position]

    classes = classes_of(state, fit.others, alike)
    size = parts.gpus - state.must_mask.bit_count()
    if sets_number(classes, size) > state.fabric.step_budget:
        roomiest = sorted(fit.others, key=lambda at: (not fit.roomy & bits[at], at))
        return [state.must_mask | sum(bits[at] for at in roomiest[:size])], False
    masks = [state.must_mask | mask for mask in sets_of(classes, size, bits)]
    return [mask for mask in masks if (mask & fit.roomy).bit_count() >= parts.extra], True


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


def _best(state: State, fits: Sequence[_Fit], parts: _Parts) -> Solution:
    """The best way to hold the parts in one of the domains."""
    found = [_sets(state, fit, parts) for fit in fits]
    masks = [mask for sets, _ in found for mask in sets]
    scores = state.fabric.scores(masks)
    best = max(scores)
    options = [(mask, _divide(state, mask, parts)) for mask, score in zip(masks, scores, strict=True) if score == best]
    _, counts = min(
        options,
        key=lambda option: (
            idle_opened(state, option[1]),
            share_left(state, option[1]),
            state.numa_spanned(option[0]),
            tuple(-count for count in option[1]),
        ),
    )
    return Solution(counts, len(masks), all(exact for _, exact in found))


def solve(state: State) -> Solution:
    """The best counts for `packed-aligned` within the limits, which must leave room for the request."""
    if not state.wanted:
        return Solution((0,) * len(state.free), 1)
    size = state.wanted + sum(state.must)
    everywhere = sum(state.fabric.bits)
    for domains in (state.islands, state.numa_groups, (everywhere,)):
        for gpus in range(1, min(size, len(state.free)) + 1):
            parts = _Parts(gpus, *divmod(size, gpus))
            fits = [fit for domain in domains if (fit := _fit(state, domain, parts)) is not None]
            if fits:
                return _best(state, fits, parts)
    return packed.solve(state)
