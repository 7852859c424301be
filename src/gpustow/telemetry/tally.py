"""How many devices there are, in use and free: counted once, for the picture and for the metrics.

A device is in one of three states: in use (healthy or not), free, or unhealthy and not in use. A GPU is wholly free if
it is served, all of its devices are healthy, and nothing on it is in use, of any resource.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import attrgetter

from gpustow.resources.device import Device
from gpustow.telemetry.facts import Facts, ServedFacts


@dataclass(slots=True)
class Slots:
    """Devices by state; `healthy` counts those in use as well."""

    total: int = 0
    used: int = 0
    free: int = 0
    unhealthy: int = 0
    healthy: int = 0

    def add(self, other: "Slots") -> None:
        """Counts those of another one, too."""
        self.total += other.total
        self.used += other.used
        self.free += other.free
        self.unhealthy += other.unhealthy
        self.healthy += other.healthy


@dataclass(frozen=True, slots=True)
class CardPart:
    """A GPU or MIG device as one resource has it: the first of its devices, how many there are, and those in use."""

    served: ServedFacts
    device: Device
    slots: Slots
    held: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """The parts, in the order of resource and device; see the module."""

    parts: tuple[CardPart, ...]

    @classmethod
    def of(cls, facts: Facts) -> "Tally":
        """Counts."""
        return cls(tuple(part for served in facts.served for part in _parts(facts, served)))

    def of_resource(self, name: str) -> Slots:
        """The devices of a resource."""
        return _sum(part.slots for part in self.parts if part.served.resource.name == name)

    def of_gpus(self) -> dict[tuple[str, int], Slots]:
        """The devices of each resource on each GPU, by name of the resource and index of the GPU."""
        slots: dict[tuple[str, int], Slots] = {}
        for part in self.parts:
            slots.setdefault((part.served.resource.name, part.device.gpu_index), Slots()).add(part.slots)
        return slots

    def used_shares(self) -> dict[int, Fraction]:
        """The share in use of each GPU that is served, over all resources."""
        shares: dict[int, Fraction] = {}
        for part in self.parts:
            index = part.device.gpu_index
            shares[index] = shares.get(index, Fraction(0)) + part.device.share * part.slots.used
        return shares

    def wholly_free(self) -> tuple[int, ...]:
        """The GPUs that are wholly free, by index."""
        seen: dict[int, bool] = {}
        for part in self.parts:
            index = part.device.gpu_index
            seen[index] = seen.get(index, True) and part.slots.free == part.slots.total
        return tuple(sorted(index for index, free in seen.items() if free))


def _parts(facts: Facts, served: ServedFacts) -> Iterator[CardPart]:
    """The GPUs and MIG devices of one resource. Devices of one come one after the other, so no search is needed."""
    by_id = served.resource.by_id
    held: dict[tuple[int, str], list[Device]] = {}
    for id_ in facts.held.get(served.resource.name, ()):
        device = by_id.get(id_)
        if device is not None:
            held.setdefault(_card_part(device), []).append(device)
    for key, devices in groupby(served.resource.devices, key=_card_part):
        all_of_it = list(devices)
        mine = sorted(held.get(key, ()), key=_replica)
        slots = Slots(total=len(all_of_it), healthy=sum([device.healthy for device in all_of_it]), used=len(mine))
        slots.free = slots.healthy - sum(device.healthy for device in mine)
        slots.unhealthy = slots.total - slots.used - slots.free
        yield CardPart(served, all_of_it[0], slots, tuple(mine))


_card_part = attrgetter("gpu_index", "uuid")


def _replica(device: Device) -> int:
    return -1 if device.replica is None else device.replica


def _sum(parts: Iterable[Slots]) -> Slots:
    total = Slots()
    for slots in parts:
        total.add(slots)
    return total
