"""The recent decisions: which devices were preferred, by which policy, why, and how long that took.

The newest are kept, with their reasons as text, so that a long life costs no more memory than a short one.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpustow.placement import Placement
from gpustow.placement.explain import Explanation

MOST = 50
"""How many are kept."""

ONLY_ANSWER = "only answer"
"""What decided where there was nothing else to choose."""


@dataclass(frozen=True, slots=True)
class DecisionStatus:
    """One answer to GetPreferredAllocation. `at` is in seconds since 1970.

    `decided_by` is the line of the policy's objective on which the winner beat the next best answer. `devices_by_gpu`
    is how many of the devices lie on each GPU, by its index. `exact` is whether the answer is proven best, `hurried`
    whether the search ended for want of time.
    """

    at: float
    resource: str
    policy: str
    ids: tuple[str, ...]
    devices_by_gpu: dict[str, int]
    decided_by: str
    sentence: str
    seconds: float
    exact: bool
    hurried: bool

    @classmethod
    def of(
        cls, at: float, resource: str, placement: Placement, explanation: Explanation, seconds: float
    ) -> "DecisionStatus":
        """What is kept of a placement and its reasons."""
        return cls(
            at=at,
            resource=resource,
            policy=placement.policy.name.value,
            ids=placement.device_ids,
            devices_by_gpu={str(index): count for index, count in placement.per_gpu.items()},
            decided_by=explanation.decided_by or ONLY_ANSWER,
            sentence=explanation.sentence,
            seconds=seconds,
            exact=placement.exact,
            hurried=placement.hurried,
        )


class Decisions:
    """The newest `most` decisions; `clock` gives seconds since 1970."""

    def __init__(self, most: int = MOST, clock: Callable[[], float] = time.time) -> None:
        self._kept: deque[DecisionStatus] = deque(maxlen=most)
        self._clock = clock

    def add(self, resource: str, placement: Placement, explanation: Explanation, seconds: float) -> DecisionStatus:
        """Keeps one, and returns what is kept of it."""
        decision = DecisionStatus.of(self._clock(), resource, placement, explanation, seconds)
        self._kept.append(decision)
        return decision

    def __iter__(self) -> Iterator[DecisionStatus]:
        """The newest first."""
        return reversed(self._kept)
