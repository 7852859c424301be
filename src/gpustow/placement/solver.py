"""One way in to all policies: the best answer, the next best, and the measure that both are compared by.

A hard rule turns one state into several with tighter limits (see `rules`); the best of their answers is the answer.

The next best answer is as exact as the policy's own search: with the same number of slots in all, any other answer puts
fewer on some GPU than the best one does, so it is the best of those found with each of the winner's GPUs held a slot
below.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpustow.placement import aligned, distributed, packed, packed_aligned, spread
from gpustow.placement.objective import Line, Objective, rank
from gpustow.placement.policy import Policy, PolicyName
from gpustow.placement.rules import states_within
from gpustow.placement.solution import Solution
from gpustow.placement.state import Counts, State


class Solver(Protocol):
    """Finds the best counts within the limits of a state, which leave room for the request."""

    def __call__(self, state: State, policy: Policy) -> Solution:
        """The best counts."""
        ...


_SOLVERS: Mapping[PolicyName, Solver] = {
    PolicyName.DISTRIBUTED: lambda state, policy: distributed.solve(state),  # noqa: ARG005 - one signature for all
    PolicyName.PACKED: lambda state, policy: packed.solve(state, policy.cap),
    PolicyName.SPREAD: lambda state, policy: spread.solve(state),  # noqa: ARG005
    PolicyName.PACKED_ALIGNED: lambda state, policy: packed_aligned.solve(state),  # noqa: ARG005
    PolicyName.ALIGNED: lambda state, policy: aligned.solve(state),  # noqa: ARG005
}


@dataclass(frozen=True, slots=True)
class Measure:
    """The lines by which the answers to one request are compared, and how to value an answer."""

    lines: Sequence[Line]
    value: Callable[[State, Counts], Objective]


def measure_of(policy: Policy, state: State, counts: Counts) -> Measure:
    """The measure of a policy for a state and what was answered: another one where `packed` had to stand in."""
    match policy.name:
        case PolicyName.PACKED:
            return Measure(packed.LINES, packed.objective)
        case PolicyName.SPREAD:
            return Measure(spread.LINES, spread.objective)
        case PolicyName.ALIGNED:
            return Measure(aligned.lines(state), aligned.objective)
        case PolicyName.PACKED_ALIGNED if packed_aligned.is_even(state, counts):
            return Measure(packed_aligned.LINES, packed_aligned.objective)
        case PolicyName.PACKED_ALIGNED:
            return Measure(packed.LINES, packed.objective)
        case PolicyName.DISTRIBUTED:
            return Measure(distributed.LINES, distributed.objective)


def _keeps_cap(policy: Policy, states: Sequence[State], counts: Counts) -> bool:
    """Whether an answer keeps the cap among the GPUs that a rule leaves open; `states` are those of the rule."""
    if policy.cap is None:
        return True
    open_to = tuple(map(max, zip(*(within.limit for within in states), strict=True)))
    return packed.keeps_cap(states[0].limited(open_to), counts, policy.cap)


def solve(policy: Policy, state: State) -> Solution:
    """The best counts for a policy and its rule; those that keep the cap come before those that cannot."""
    states = states_within(policy.rule, state)
    solutions = [_SOLVERS[policy.name](within, policy) for within in states]
    if len(solutions) == 1:
        return solutions[0]
    measure = measure_of(policy, state, solutions[0].counts)
    allowed = [solution for solution in solutions if _keeps_cap(policy, states, solution.counts)] or solutions
    best = min(allowed, key=lambda solution: rank(measure.lines, measure.value(state, solution.counts)))
    weighed = sum(solution.weighed for solution in solutions)
    return Solution(best.counts, weighed, all(solution.exact for solution in solutions))


def _others(policy: Policy, state: State, counts: Counts) -> Iterator[Counts]:
    """Answers among which is the best one but for the winner."""
    for position, count in enumerate(counts):
        if count:
            limit = list(state.limit)
            limit[position] = min(limit[position], count - 1)
            if sum(limit) >= state.wanted:
                yield _SOLVERS[policy.name](state.limited(tuple(limit)), policy).counts


def second_best(policy: Policy, state: State, counts: Counts) -> Counts | None:
    """The best answer but for this one; None if there is no other, or a bounded search met none."""
    others: list[Counts] = []
    states = states_within(policy.rule, state)
    for within in states:
        if policy.name is PolicyName.ALIGNED:
            other = aligned.second_best(within, counts)
            others += [] if other is None else [other]
        else:
            others += _others(policy, within, counts)
    if _keeps_cap(policy, states, counts):
        others = [other for other in others if _keeps_cap(policy, states, other)]
    if not others:
        return None
    measure = measure_of(policy, state, counts)
    return min(others, key=lambda other: rank(measure.lines, measure.value(state, other)))
