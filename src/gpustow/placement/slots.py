"""Which devices of a GPU are handed out, once it is decided how many.

A shared GPU gives its lowest free replica numbers. A GPU cut into MIG devices gives those at the edge of the free
window: of the runs of free MIG devices that lie side by side, the shortest is used up first, from its lower end, so
that the longest run stays whole for a later re-partition. Where the MIG devices are shared themselves, the rule of the
policy goes on one level down: packing fills a device that is begun before it opens another, the rest takes turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, groupby, islice

from gpustow.placement.inventory import Inventory
from gpustow.resources.device import Device


@dataclass(slots=True)
class _Unit:
    """A MIG device: its free device numbers, how many of its slots are in use, and its place in the giving order."""

    first: Device
    free: list[int]
    used: int
    rank: tuple[int, int] = (0, 0)


def _side_by_side(lower: Device, upper: Device) -> bool:
    """Whether no memory slice lies between two MIG devices that follow each other; unknown is taken as yes."""
    if lower.mig is None or upper.mig is None:
        return True
    size = lower.mig.profile.memory_slices
    if lower.mig.start is None or upper.mig.start is None or size is None:
        return True
    return upper.mig.start <= lower.mig.start + size


def _units(inventory: Inventory, position: int, free: bytearray) -> list[_Unit]:
    """The MIG devices of a GPU with free slots, ranked by the window that they lie in, shortest first."""
    gpu = inventory.slots[position]
    units: list[_Unit] = []
    windows: list[list[_Unit]] = []
    previous: Device | None = None
    for _, group in groupby(range(gpu.start, gpu.stop), key=lambda number: inventory.devices[number].uuid):
        numbers = list(group)
        first = inventory.devices[numbers[0]]
        healthy = sum(inventory.devices[number].healthy for number in numbers)
        vacant = [number for number in numbers if free[number]]
        unit = _Unit(first, vacant, healthy - len(vacant))
        if vacant:
            units.append(unit)
            if windows and previous is not None and _side_by_side(previous, first):
                windows[-1].append(unit)
            else:
                windows.append([unit])
        previous = first if vacant else None
    for window in windows:
        for unit in window:
            unit.rank = (len(window), window[0].first.edge)
    return sorted(units, key=lambda unit: (unit.rank, unit.first.edge, unit.first.uuid))


def _filled(units: Sequence[_Unit]) -> list[int]:
    """Device numbers in the order in which packing takes them."""
    order = sorted(
        range(len(units)), key=lambda at: (units[at].used == 0, len(units[at].free) if units[at].used else 0, at)
    )
    return [number for at in order for number in units[at].free]


def _in_turn(units: Sequence[_Unit], count: int) -> list[int]:
    """`count` device numbers, each from the MIG device with the fewest slots in use by then."""
    heads = [0] * len(units)
    picked: list[int] = []
    for _ in range(count):
        at = min(
            (at for at, unit in enumerate(units) if heads[at] < len(unit.free)),
            key=lambda at: (units[at].used + heads[at], at),
        )
        picked.append(units[at].free[heads[at]])
        heads[at] += 1
    return picked


def pick(inventory: Inventory, position: int, free: bytearray, count: int, *, fill: bool) -> list[int]:
    """`count` free device numbers of a GPU; `fill` is whether begun MIG devices are used up first."""
    gpu = inventory.slots[position]
    if gpu.stop - gpu.start == count:
        return list(range(gpu.start, gpu.stop))
    if not gpu.mig:
        vacant = compress(range(gpu.start, gpu.stop), memoryview(free)[gpu.start : gpu.stop])
        return list(islice(vacant, count))
    units = _units(inventory, position, free)
    return _filled(units)[:count] if fill else _in_turn(units, count)
