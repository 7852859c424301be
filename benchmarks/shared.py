"""Decisions about replicas of eight GPUs in four linked pairs.

Each timing has a request of its own: as many devices in use as the generator will have it, so that all policies meet
nodes that are idle, begun and nearly full.
"""

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random

from benchmarks.measurement import Measurement
from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.placement import Inventory, Policy, Request, place
from gpustow.placement.policy import SHARED_POLICIES
from gpustow.resources.device import Device

GPUS = 8
SIZES = (1, 8, 64, 256)
REPLICAS = (10, 100, 1_000, 7_000)
MANY = 5_000
"""From so many replicas a GPU on, a tenth of the repetitions is enough."""

LINKS = Links.symmetric(
    [
        (one, other, Link(PcieLevel.SYSTEM, 4 if one // 2 == other // 2 else 0))
        for one in range(GPUS)
        for other in range(one + 1, GPUS)
    ]
)


def devices(replicas: int) -> list[Device]:
    """Replicas with ids as long as real ones."""
    return [
        Device(
            id=f"GPU-{gpu:08x}-1b2c-4d3e-8f4a-5b6c7d8e9f00::{replica}",
            uuid=f"GPU-{gpu:08x}-1b2c-4d3e-8f4a-5b6c7d8e9f00",
            gpu_index=gpu,
            index=str(gpu),
            share=Fraction(1, replicas),
            paths=(),
            numa_node=gpu // 4,
            replica=replica,
        )
        for gpu in range(GPUS)
        for replica in range(replicas)
    ]


def _as_from_the_wire(ids: Sequence[str]) -> list[str]:
    """The same ids in new strings, as a decoder makes them: without a hash yet."""
    return [bytes(id_, "ascii").decode() for id_ in ids]


def _requests(inventory: Inventory, size: int, repeat: int) -> Iterator[Request]:
    rng = Random(size)  # noqa: S311 - to be repeated
    for _ in range(repeat):
        offered = rng.randint(size, len(inventory.ids))
        yield Request(_as_from_the_wire(rng.sample(inventory.ids, offered)), (), size)


def _time(request: Request, inventory: Inventory, policy: Policy) -> float:
    """The milliseconds of one decision."""
    start = time.perf_counter_ns()
    place(request, inventory, policy)
    return (time.perf_counter_ns() - start) / 1e6


def measure_shared(*, repeat: int) -> Iterator[Measurement]:
    """Rows by policy, replicas a GPU and size; what an inventory costs; and the slopes."""
    inventories = {}
    for replicas in REPLICAS:
        some = devices(replicas)
        start = time.perf_counter_ns()
        inventories[replicas] = Inventory.of(some, LINKS)
        yield Measurement.of(f"inventory/{GPUS}x{replicas}", "ms", [(time.perf_counter_ns() - start) / 1e6])
    for name in SHARED_POLICIES:
        policy = Policy.named(name)
        for replicas, inventory in inventories.items():
            times = repeat if replicas < MANY else max(1, repeat // 10)
            half = GPUS * replicas // 2
            for size in (*(size for size in SIZES if size < half), half):
                values = [_time(request, inventory, policy) for request in _requests(inventory, size, times)]
                yield Measurement.of(f"place/{name}/{GPUS}x{replicas}/{size}", "ms", values)
    yield from _slopes(inventories[7_000], max(1, repeat // 10))


def _slopes(inventory: Inventory, repeat: int) -> Iterator[Measurement]:
    """What one more id offered, and one more device asked for, costs."""
    few, many = 2_000, len(inventory.ids)
    policy = Policy.named("packed")
    offers = [
        (_offering(inventory, many, 8, policy) - _offering(inventory, few, 8, policy)) / (many - few) * 1e3
        for _ in range(repeat)
    ]
    yield Measurement.of("slope/ids offered", "us per id", offers)
    sizes = [
        (_offering(inventory, many, many // 2, policy) - _offering(inventory, many, 8, policy)) / (many // 2 - 8) * 1e3
        for _ in range(repeat)
    ]
    yield Measurement.of("slope/size", "us per id", sizes)


def _offering(inventory: Inventory, offered: int, size: int, policy: Policy) -> float:
    """The best of three timings with the first replicas of all GPUs offered."""
    each = offered // GPUS
    ids = [id_ for gpu in inventory.slots for id_ in inventory.ids[gpu.start : gpu.start + each]]
    return min(_time(Request(_as_from_the_wire(ids), (), size), inventory, policy) for _ in range(3))
