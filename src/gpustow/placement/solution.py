"""What a policy answers: a count for each GPU position, and how it was found."""

from dataclasses import dataclass

from gpustow.placement.state import Counts


@dataclass(frozen=True, slots=True)
class Solution:
    """New slots on each GPU; how many candidates were weighed; whether the counts are proven best."""

    counts: Counts
    weighed: int
    exact: bool = True
