"""What makes one answer better than another: lines, compared one after the other.

Each policy has its own lines and ends with the same two: fewer NUMA nodes spanned, and the counts that put most on the
lowest GPU index. The values here are what an explanation shows and what two answers are compared by. A policy finds its
answer by quicker ways; that both agree is what its tests are for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpustow.placement.state import Counts, State

Value = int | tuple[int, ...]
Objective = tuple[Value, ...]
"""One value for each line."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an objective.

    `phrase` says what an answer does, with `{}` for the value and `{s}` for a plural s. `largest` is whether a larger
    value is better. `shares` is whether the values are parts of a GPU, in units of the state's denominator. `values`
    are names for the values.
    """

    name: str
    phrase: str
    largest: bool = False
    shares: bool = False
    values: tuple[str, ...] = ()


IDLE_OPENED = Line("idle GPUs opened", "opens {} idle GPU{s}")
BEST_FIT = Line("best fit", "leaves {} of a GPU free where it lies", shares=True)
DISTINCT = Line("distinct GPUs", "uses {} GPU{s}", largest=True)
LINK_SCORE = Line("link score", "has a link score of {}", largest=True)
NUMA = Line("NUMA nodes", "spans {} NUMA node{s}")
COUNTS = Line("GPU index", "comes first by GPU index", largest=True)


def idle_opened(state: State, counts: Counts) -> int:
    """How many GPUs on which nothing was in use get a slot."""
    return sum(
        1 for count, used, must in zip(counts, state.used, state.must, strict=True) if count and not used and not must
    )


def share_left(state: State, counts: Counts) -> int:
    """The free share left on the touched GPUs, must-include's among them."""
    return sum(
        (free - count) * step
        for free, count, step, must in zip(state.free, counts, state.step, state.must, strict=True)
        if count or must
    )


def deciding_line(one: Objective, other: Objective) -> int:
    """The number of the first line on which two answers differ; they do on the last one, if not before."""
    return next(at for at, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs)


def rank(lines: Sequence[Line], objective: Objective) -> tuple[tuple[int, ...], ...]:
    """A key that sorts objectives from the best."""
    key: list[tuple[int, ...]] = []
    for line, value in zip(lines, objective, strict=True):
        vector = value if isinstance(value, tuple) else (value,)
        key.append(tuple(-entry for entry in vector) if line.largest else vector)
    return tuple(key)
