"""One request against one inventory, as integers: the view that every policy works on.

All loads are in units of 1 / `denominator` of a card. A policy sees, for each GPU position, how many slots are free,
how many of them it may take, what is in use and what one slot adds; it answers with a count for each position.
"""

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import repeat
from math import lcm
from typing import Self

from gpustow.errors import InfeasibleRequest
from gpustow.placement.fabric import Fabric
from gpustow.placement.inventory import Inventory
from gpustow.placement.occupancy import Occupancy
from gpustow.placement.request import Request

Counts = tuple[int, ...]


def never() -> bool:
    """Time is never up."""
    return False


@dataclass(frozen=True, slots=True)
class State:
    """What a policy decides on. Every tuple has one entry for each GPU position.

    `wanted` slots are still to be placed. `free` slots are offered and healthy; a policy may take `limit` of them.
    `used` is the load before the request, must-include counted, and `step` what a slot adds to it. `must` slots are
    must-include's, on the GPUs of `must_mask`; `taken` slots of the resource are in use, must-include counted.
    `expired` says that time is up; it is asked between the steps of a bounded search only.
    """

    fabric: Fabric
    numa_groups: tuple[int, ...]
    numa_labels: tuple[int, ...]
    islands: tuple[int, ...]
    denominator: int
    wanted: int
    free: Counts
    limit: Counts
    used: Counts
    step: Counts
    must: Counts
    must_mask: int
    taken: Counts
    expired: Callable[[], bool] = never

    @property
    def positions(self) -> range:
        """All GPU positions."""
        return range(len(self.free))

    def mask(self, counts: Sequence[int]) -> int:
        """The GPUs with a count above zero."""
        mask = 0
        for count, bit in zip(counts, self.fabric.bits, strict=True):
            if count:
                mask |= bit
        return mask

    def numa_spanned(self, mask: int) -> int:
        """How many NUMA nodes a set of GPUs spans."""
        return sum(1 for group in self.numa_groups if group & mask)

    @property
    def is_uniform(self) -> bool:
        """Whether a slot adds the same load on every GPU."""
        return len(set(self.step)) == 1

    def free_in(self, masks: Sequence[int]) -> list[int]:
        """How many slots are free on each set of GPUs."""
        room = list(zip(self.fabric.bits, self.free, strict=True))
        return [sum(free for bit, free in room if mask & bit) for mask in masks]

    def limited(self, limit: Counts) -> Self:
        """The same state with other limits."""
        return replace(self, limit=limit)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request names, in device numbers.

    `free` flags the devices that a policy may take. `required` are must-include's known devices; `strangers` its ids
    that the resource does not have; `last_resort` are the devices offered that are known to be sick.
    """

    free: bytearray
    required: tuple[int, ...]
    strangers: tuple[str, ...]
    last_resort: tuple[int, ...]


def _flags(inventory: Inventory, ids: Collection[str]) -> bytearray:
    """A flag for each device: whether it is among the ids. Ids that the resource does not have are passed over.

    Where most devices are named it is quicker to look each of them up among the ids, in order, than the other way.
    """
    unknown = len(inventory.ids)
    if 2 * len(ids) > unknown:
        return bytearray(map(set(ids).__contains__, inventory.ids))
    flags = bytearray(unknown + 1)
    for number in map(inventory.number_of.get, ids, repeat(unknown)):
        flags[number] = 1
    flags.pop()
    return flags


def read_offer(request: Request, inventory: Inventory) -> Offer:
    """Sort out the ids of a request; raises InfeasibleRequest when too few devices of the resource are offered."""
    request.check_form()
    free = _flags(inventory, request.available)
    number_of = inventory.number_of
    required: list[int] = []
    strangers: set[str] = set()
    for id_ in request.must_include:
        number = number_of.get(id_)
        if number is None:
            strangers.add(id_)
        elif free[number]:
            free[number] = 0
            required.append(number)
    total = free.count(1) + len(required) + len(strangers)
    if total < request.size:
        raise InfeasibleRequest(f"{request.size} devices are asked for, but only {total} are offered")

    last_resort = tuple(number for number in inventory.sick if free[number])
    for number in last_resort:
        free[number] = 0
    return Offer(free, tuple(sorted(required)), tuple(sorted(strangers)), last_resort)


def _own_use(inventory: Inventory, offer: Offer, occupancy: Occupancy) -> tuple[list[int], list[int]]:
    """The slots of the resource in use at each position, and their load; must-include counts as in use."""
    if occupancy.in_use is None:
        used = None
        taken = [gpu.healthy - offer.free.count(1, gpu.start, gpu.stop) for gpu in inventory.slots]
    else:
        used = _known_in_use(inventory, offer, occupancy.in_use)
        taken = [used.count(1, gpu.start, gpu.stop) for gpu in inventory.slots]
    load = [count * step for count, step in zip(taken, inventory.steps, strict=True)]
    for position, gpu in enumerate(inventory.slots):
        if gpu.shares is not None:
            flags = _not_offered(inventory, offer) if used is None else used
            load[position] = inventory.load_of(position, (at for at in range(gpu.start, gpu.stop) if flags[at]))
    return taken, load


def _not_offered(inventory: Inventory, offer: Offer) -> bytes:
    """Flags for the healthy devices that a policy may not take."""
    return _without(inventory.healthy, offer.free)


def _known_in_use(inventory: Inventory, offer: Offer, in_use: AbstractSet[str]) -> bytes:
    """Flags for the healthy devices known to be in use and not offered, must-include's among them."""
    used = _flags(inventory, in_use)
    for number in offer.required:
        used[number] = 1
    return _without(used, offer.free, inventory.healthy)


def _without(flags: bytes | bytearray, barred: bytearray, among: bytes | None = None) -> bytes:
    """The flags that are not barred, of those `among`; all at once, as large numbers."""
    left = int.from_bytes(flags, "little") & ~int.from_bytes(barred, "little")
    if among is not None:
        left &= int.from_bytes(among, "little")
    return left.to_bytes(len(flags), "little")


def read_state(
    size: int,
    offer: Offer,
    inventory: Inventory,
    occupancy: Occupancy,
    expired: Callable[[], bool] = never,
) -> State:
    """The integers of a request of `size` devices."""
    must = [0] * len(inventory.slots)
    must_mask = 0
    for number in offer.required:
        position = inventory.position_of[inventory.devices[number].gpu_index]
        must[position] += 1
        must_mask |= inventory.fabric.bits[position]
    taken, load = _own_use(inventory, offer, occupancy)

    denominator = inventory.denominator
    step = inventory.steps
    others = {index: share for index, share in occupancy.others.items() if share and index in inventory.position_of}
    if others:
        denominator = lcm(denominator, *(share.denominator for share in others.values()))
        scale = denominator // inventory.denominator
        step = tuple(share * scale for share in step)
        load = [share * scale for share in load]
        for index, share in others.items():
            load[inventory.position_of[index]] += int(share * denominator)

    free = tuple(offer.free.count(1, gpu.start, gpu.stop) for gpu in inventory.slots)
    return State(
        fabric=inventory.fabric,
        numa_groups=inventory.numa_groups,
        numa_labels=inventory.numa_labels,
        islands=inventory.islands,
        denominator=denominator,
        wanted=size - len(offer.required) - len(offer.strangers),
        free=free,
        limit=free,
        used=tuple(load),
        step=step,
        must=tuple(must),
        must_mask=must_mask,
        taken=tuple(taken),
        expired=expired,
    )
