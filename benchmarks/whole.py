"""Decisions about whole GPUs: every size, random offers, and no answer remembered from before."""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random

from benchmarks.measurement import Measurement
from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.hardware.nodemodel import load_node_model, shipped_models
from gpustow.placement import Inventory, Policy, Request, place
from gpustow.placement.fabric import Fabric
from gpustow.resources.device import Device

POLICY = Policy.named("packed")
LARGE = 16

_TIERS = ((2, PcieLevel.SINGLE_SWITCH), (4, PcieLevel.MULTIPLE_SWITCHES), (8, PcieLevel.NUMA_NODE))


def _dgx2(one: int, other: int) -> Link:
    level = next((level for size, level in _TIERS if one // size == other // size), PcieLevel.SYSTEM)
    return Link(level, 6)


def _islands(one: int, other: int) -> Link:
    level = PcieLevel.NUMA_NODE if one // 8 == other // 8 else PcieLevel.SYSTEM
    return Link(level, 4 if one // 4 == other // 4 else 0)


def _random() -> Callable[[int, int], Link]:
    rng = Random(16)  # noqa: S311 - to be repeated
    return lambda _one, _other: Link(rng.choice(list(PcieLevel)), rng.randrange(13))


FABRICS: dict[str, Callable[[int, int], Link]] = {
    "DGX-2": _dgx2,
    "eight pairs": lambda one, other: Link(PcieLevel.SYSTEM, 4 if one // 2 == other // 2 else 0),
    "four islands": _islands,
    "uniform": lambda _one, _other: Link(PcieLevel.SYSTEM, 6),
    "random": _random(),
}


def whole(count: int) -> list[Device]:
    """Whole GPUs on two NUMA nodes."""
    return [
        Device(f"GPU-{gpu}", f"GPU-{gpu}", gpu, str(gpu), Fraction(1), (), numa_node=gpu * 2 // count)
        for gpu in range(count)
    ]


def links_of(count: int, link: Callable[[int, int], Link]) -> Links:
    """The links of a fabric with `count` GPUs."""
    return Links.symmetric([(one, other, link(one, other)) for one in range(count) for other in range(one + 1, count)])


def measure_whole(*, repeat: int) -> Iterator[Measurement]:
    """A row for each shipped fabric of eight GPUs, and for each of sixteen; before it, the time of its tables."""
    for model in shipped_models():
        node = load_node_model(model).node
        count = len(node.gpus)
        if count == 8 and not any(gpu.mig_devices for gpu in node.gpus):
            yield from _rows(model, whole(8), node.links, repeat)
    for name, link in FABRICS.items():
        yield from _rows(name, whole(LARGE), links_of(LARGE, link), repeat)


def _rows(name: str, devices: list[Device], links: Links, repeat: int) -> Iterator[Measurement]:
    count = len(devices)
    matrix = links.scores(range(count))
    start = time.perf_counter_ns()
    _ = Fabric(matrix).partitions
    yield Measurement.of(f"tables/{count} GPUs/{name}", "ms", [(time.perf_counter_ns() - start) / 1e6])
    inventory = Inventory.of(devices, links)
    rng = Random(count)  # noqa: S311 - to be repeated
    times = []
    for size in range(1, count + 1):
        for _ in range(repeat):
            request = Request(rng.sample(inventory.ids, rng.randint(size, count)), (), size)
            inventory.fabric.answers.clear()
            start = time.perf_counter_ns()
            place(request, inventory, POLICY)
            times.append((time.perf_counter_ns() - start) / 1e6)
    yield Measurement.of(f"place/aligned/{count} GPUs/{name}/any size", "ms", times)
