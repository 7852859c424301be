"""The devices of one resource, arranged so that a request costs little.

Everything that depends on the devices and the links alone is computed here, once per state of the devices: which GPU a
device lies on, the order in which its GPU gives devices out, shares as integers, which devices are sick, and the link
scores between GPUs. GPUs are called by *position*, their rank by NVML index.

Shares become integers over a common denominator. All devices of a resource on one card stand for the same share of
it; where an operator gathers different MIG profiles under one name, a card's mean share stands for each of its slots
that is still to be placed.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, groupby
from math import lcm
from operator import attrgetter
from typing import Self

from gpustow.hardware.links import UNKNOWN_LINK, Links
from gpustow.placement.fabric import Fabric, fabric_of
from gpustow.placement.tables import Matrix
from gpustow.resources.device import Device


@dataclass(frozen=True, slots=True)
class Slots:
    """The devices of the resource on one GPU: a range of device numbers, and what one of them is worth.

    `shares` are those of its devices, in order, where they are not all alike.
    """

    gpu_index: int
    start: int
    stop: int
    share: Fraction
    healthy: int
    mig: bool
    shares: tuple[Fraction, ...] | None = None


def _slots(gpu_index: int, start: int, members: Sequence[Device]) -> Slots:
    """The devices on one GPU, the first of which has the number `start`."""
    shares = [device.share for device in members]
    alike = shares.count(shares[0]) == len(shares)
    return Slots(
        gpu_index=gpu_index,
        start=start,
        stop=start + len(members),
        share=shares[0] if alike else sum(shares, Fraction(0)) / len(shares),
        healthy=[device.healthy for device in members].count(True),
        mig=any(device.mig is not None for device in members),
        shares=None if alike else tuple(shares),
    )


def _sick(devices: Sequence[Device]) -> tuple[int, ...]:
    """The numbers of the devices that are not healthy."""
    return tuple(number for number, device in enumerate(devices) if not device.healthy)


def _order(device: Device) -> tuple[int, int, str, int]:
    """Devices by GPU, MIG device, replica."""
    return device.gpu_index, device.edge, device.uuid, -1 if device.replica is None else device.replica


def _numa_groups(numa_nodes: Sequence[int | None], fabric: Fabric) -> tuple[int, ...]:
    """One mask of GPUs for each NUMA node; GPUs whose node is unknown count as one more node."""
    masks: dict[int | None, int] = {}
    for node, bit in zip(numa_nodes, fabric.bits, strict=True):
        masks[node] = masks.get(node, 0) | bit
    return tuple(masks.values())


def _islands(adjacent: Sequence[tuple[int, int]], fabric: Fabric) -> tuple[int, ...]:
    """One mask of GPUs for each set that NVLinks connect."""
    islands = list(fabric.bits)
    for one, other in adjacent:
        joined = fabric.bits[one] | fabric.bits[other]
        touched = [island for island in islands if island & joined]
        islands = [island for island in islands if not island & joined]
        merged = 0
        for island in touched:
            merged |= island
        islands.append(merged)
    return tuple(sorted(islands, reverse=True))


class Inventory:
    """The devices of a resource and the fabric between their GPUs. Build it with `Inventory.of`."""

    def __init__(self, devices: Sequence[Device], links: Links) -> None:
        ordered = sorted(devices, key=_order)
        self.devices: tuple[Device, ...] = tuple(ordered)
        self.ids: tuple[str, ...] = tuple(device.id for device in ordered)
        self.number_of: Mapping[str, int] = {id_: number for number, id_ in enumerate(self.ids)}
        self.sick: tuple[int, ...] = _sick(ordered)
        self.healthy: bytes = bytes(device.healthy for device in ordered)
        self.whole_gpus: bool = all(device.mig is None and device.replica is None for device in ordered)

        slots: list[Slots] = []
        numa_nodes: list[int | None] = []
        for gpu_index, group in groupby(ordered, key=attrgetter("gpu_index")):
            members = list(group)
            slots.append(_slots(gpu_index, slots[-1].stop if slots else 0, members))
            numa_nodes.append(members[0].numa_node)
        self.slots: tuple[Slots, ...] = tuple(slots)
        self.gpu_indices: tuple[int, ...] = tuple(gpu.gpu_index for gpu in slots)
        self.position_of: Mapping[int, int] = {index: position for position, index in enumerate(self.gpu_indices)}

        odd = [share for gpu in slots for share in gpu.shares or ()]
        self.denominator: int = lcm(*(share.denominator for share in (*odd, *(gpu.share for gpu in slots))))
        self.steps: tuple[int, ...] = tuple(int(gpu.share * self.denominator) for gpu in slots)
        self._odd_shares: Mapping[int, int] = {
            number: int(share * self.denominator)
            for gpu in slots
            for number, share in enumerate(gpu.shares or (), gpu.start)
        }

        self.fabric: Fabric = fabric_of(self._matrix(links))
        if self.whole_gpus:
            _ = self.fabric.partitions  # filled now, not during the first request
        self.numa_groups: tuple[int, ...] = _numa_groups(numa_nodes, self.fabric)
        self.numa_labels: tuple[int, ...] = tuple(
            next(label for label, mask in enumerate(self.numa_groups) if mask & bit) for bit in self.fabric.bits
        )
        self.islands: tuple[int, ...] = _islands(self._nvlinked(links), self.fabric)

    @classmethod
    def of(cls, devices: Sequence[Device], links: Links) -> Self:
        """The inventory of a resource's devices on a node with these links."""
        return cls(devices, links)

    def with_health(self, sick: Container[str]) -> Self:
        """The same devices, of which those with these ids are sick and all others healthy; costs no look at links."""
        same = copy(self)
        same.devices = tuple(
            device if device.healthy is healthy else replace(device, healthy=healthy)
            for device, healthy in ((device, device.id not in sick) for device in self.devices)
        )
        same.sick = _sick(same.devices)
        same.healthy = bytes(device.healthy for device in same.devices)
        same.slots = tuple(replace(gpu, healthy=same.healthy.count(1, gpu.start, gpu.stop)) for gpu in self.slots)
        return same

    def load_of(self, position: int, numbers: Iterable[int]) -> int:
        """What devices of one GPU hold of it, in units of 1 / `denominator`."""
        if self.slots[position].shares is None:
            return sum(1 for _ in numbers) * self.steps[position]
        return sum(self._odd_shares[number] for number in numbers)

    def _matrix(self, links: Links) -> Matrix:
        """The link scores between GPUs; nothing links to a MIG device, which has no peer-to-peer traffic."""
        scores = links.scores([gpu.gpu_index for gpu in self.slots])
        return tuple(
            tuple(0 if one.mig or other.mig else score for other, score in zip(self.slots, row, strict=True))
            for one, row in zip(self.slots, scores, strict=True)
        )

    def _nvlinked(self, links: Links) -> list[tuple[int, int]]:
        """The pairs of positions with an NVLink that both ends report."""
        table = links.table()
        return [
            (one, other)
            for (one, first), (other, second) in combinations(enumerate(self.slots), 2)
            if not (first.mig or second.mig)
            and all(
                table.get(ends, UNKNOWN_LINK).nvlinks
                for ends in ((first.gpu_index, second.gpu_index), (second.gpu_index, first.gpu_index))
            )
        ]
