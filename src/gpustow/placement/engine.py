"""From a request to a placement: the one function that the daemon, `explain` and the simulator all call.

The answer holds exactly as many devices as are asked for, must-include among them, each offered and none twice. It
depends on the state alone: not on the order in which ids are listed, and not on time.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gpustow.placement.explain import Decision, Explanation
from gpustow.placement.inventory import Inventory
from gpustow.placement.occupancy import Occupancy
from gpustow.placement.policy import ALIGNED, Policy, PolicyName
from gpustow.placement.request import Request
from gpustow.placement.slots import pick
from gpustow.placement.solver import solve
from gpustow.placement.state import Counts, Offer, never, read_offer, read_state

_UNKNOWN = Occupancy()

_FILLING = frozenset({PolicyName.PACKED, PolicyName.PACKED_ALIGNED})


@dataclass(frozen=True, slots=True)
class Placement:
    """The chosen devices and why.

    `device_ids` are in the order of GPU, MIG device, replica. `per_gpu` is how many of them lie on each GPU (by NVML
    index) that has any. `weighed` candidates were compared; `exact` says whether the answer is proven best. `hurried`
    says that a search ended for want of time.
    """

    device_ids: tuple[str, ...]
    policy: Policy
    per_gpu: Mapping[int, int]
    weighed: int
    exact: bool
    hurried: bool
    decision: Decision = field(compare=False, repr=False)

    def explanation(self) -> Explanation:
        """The reasons, worked out anew at each call: some answers have to be found for it that were not needed."""
        return self.decision.explain()


def place(
    request: Request,
    inventory: Inventory,
    policy: Policy,
    occupancy: Occupancy = _UNKNOWN,
    expired: Callable[[], bool] = never,
) -> Placement:
    """Choose the devices for a request; whole GPUs are placed by `aligned`, whatever the policy.

    Devices that are known to be sick are taken only when fewer healthy ones are offered than asked for. `expired` is
    asked between the steps of a bounded search and ends it with the best answer so far; without it, steps alone do.
    Raises InfeasibleRequest when no answer of that size exists.
    """
    if inventory.whole_gpus:
        policy = ALIGNED if policy.rule is None else replace(ALIGNED, rule=policy.rule)
    clock = _Clock(expired)
    offer = read_offer(request, inventory)
    state = read_state(request.size, offer, inventory, occupancy, clock)
    short = state.wanted - sum(state.free)
    if short > 0:
        state = replace(state, wanted=state.wanted - short)
    solution = solve(policy, state)
    numbers = _numbers(inventory, offer, solution.counts, fill=policy.name in _FILLING)
    numbers += offer.required
    if short > 0:
        numbers += offer.last_resort[:short]
    numbers.sort()
    ids = (*offer.strangers, *map(inventory.ids.__getitem__, numbers))
    decision = Decision(policy, state, solution.counts, inventory.gpu_indices, inventory.whole_gpus)
    return Placement(
        device_ids=ids,
        policy=policy,
        per_gpu=_per_gpu(inventory, numbers),
        weighed=solution.weighed,
        exact=solution.exact,
        hurried=clock.struck,
        decision=decision,
    )


class _Clock:
    """Asks whether time is up, and remembers that it was."""

    def __init__(self, expired: Callable[[], bool]) -> None:
        self._expired = expired
        self.struck = False

    def __call__(self) -> bool:
        self.struck = self.struck or self._expired()
        return self.struck


def _numbers(inventory: Inventory, offer: Offer, counts: Counts, *, fill: bool) -> list[int]:
    """The device numbers that the counts stand for."""
    numbers: list[int] = []
    for position, count in enumerate(counts):
        if count:
            numbers += pick(inventory, position, offer.free, count, fill=fill)
    return numbers


def _per_gpu(inventory: Inventory, numbers: list[int]) -> dict[int, int]:
    """How many of the devices, in ascending order, lie on each GPU that has any."""
    per_gpu: dict[int, int] = {}
    start = 0
    for gpu in inventory.slots:
        stop = bisect_left(numbers, gpu.stop, start)
        if stop > start:
            per_gpu[gpu.gpu_index] = stop - start
        start = stop
    return per_gpu
