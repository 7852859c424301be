"""From a request to a placement: the one function that the daemon, `explain` and the simulator all call.

The answer holds exactly as many devices as are asked for, must-include among them, each offered and none twice. It
depends on the state alone: not on the order in which ids are listed, and not on time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gpustow.placement import aligned, distributed, packed
from gpustow.placement.inventory import Inventory
from gpustow.placement.occupancy import Occupancy
from gpustow.placement.policy import ALIGNED, Policy, PolicyName
from gpustow.placement.request import Request
from gpustow.placement.slots import pick
from gpustow.placement.solution import Solution
from gpustow.placement.state import Offer, State, read_offer, read_state

_UNKNOWN = Occupancy()

_SOLVERS: Mapping[PolicyName, Callable[[State, Policy], Solution]] = {
    PolicyName.DISTRIBUTED: lambda state, _: distributed.solve(state),
    PolicyName.PACKED: lambda state, policy: packed.solve(state, policy.cap),
    PolicyName.ALIGNED: lambda state, _: aligned.solve(state),
}


@dataclass(frozen=True, slots=True)
class Placement:
    """The chosen devices and why.

    `device_ids` are in the order of GPU, MIG device, replica. `per_gpu` is how many of them lie on each GPU (by NVML
    index) that has any. `weighed` candidates were compared; `exact` says whether the answer is proven best.
    """

    device_ids: tuple[str, ...]
    policy: Policy
    per_gpu: Mapping[int, int]
    weighed: int
    exact: bool


def place(request: Request, inventory: Inventory, policy: Policy, occupancy: Occupancy = _UNKNOWN) -> Placement:
    """Choose the devices for a request; whole GPUs are placed by `aligned`, whatever the policy.

    Devices that are known to be sick are taken only when fewer healthy ones are offered than asked for. Raises
    InfeasibleRequest when no answer of that size exists.
    """
    if inventory.whole_gpus:
        policy = ALIGNED
    offer = read_offer(request, inventory)
    state = read_state(request.size, offer, inventory, occupancy)
    short = state.wanted - sum(state.free)
    if short > 0:
        state = replace(state, wanted=state.wanted - short)
    solution = _SOLVERS[policy.name](state, policy)
    numbers = [*offer.required, *_numbers(inventory, offer, solution, policy)]
    if short > 0:
        numbers += offer.last_resort[:short]
    numbers.sort()
    per_gpu: dict[int, int] = {}
    for number in numbers:
        gpu_index = inventory.devices[number].gpu_index
        per_gpu[gpu_index] = per_gpu.get(gpu_index, 0) + 1
    ids = (*offer.strangers, *(inventory.ids[number] for number in numbers))
    return Placement(ids, policy, per_gpu, solution.weighed, solution.exact)


def _numbers(inventory: Inventory, offer: Offer, solution: Solution, policy: Policy) -> list[int]:
    """The device numbers that the counts stand for."""
    fill = policy.name is PolicyName.PACKED
    return [
        number
        for position, count in enumerate(solution.counts)
        if count
        for number in pick(inventory, position, offer.free, count, fill=fill)
    ]
