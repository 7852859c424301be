"""Devices for the tests of placement: shared GPUs, whole GPUs and MIG devices, by counts."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.placement import Inventory, Occupancy, Placement, Policy, Request, place
from gpustow.placement.policy import Rule
from gpustow.resources.device import Device

NO_LINKS = Links()

ONE_SLICE = MigProfile(1, 1, 5, 4864, memory_slices=1, placements=(0, 1, 2, 3, 4, 5, 6))


def replicas(counts: Sequence[int], *, numa: Sequence[int | None] | None = None) -> list[Device]:
    """`counts[i]` replicas of GPU i, ids `gpu<i>::<r>`."""
    return [
        Device(
            id=f"gpu{gpu}::{replica}",
            uuid=f"gpu{gpu}",
            gpu_index=gpu,
            index=str(gpu),
            share=Fraction(1, count),
            paths=(),
            numa_node=None if numa is None else numa[gpu],
            replica=replica,
        )
        for gpu, count in enumerate(counts)
        for replica in range(count)
    ]


def whole(count: int, *, numa: Sequence[int | None] | None = None) -> list[Device]:
    """Unshared GPUs, ids `gpu<i>`."""
    return [
        Device(
            id=f"gpu{gpu}",
            uuid=f"gpu{gpu}",
            gpu_index=gpu,
            index=str(gpu),
            share=Fraction(1),
            paths=(),
            numa_node=None if numa is None else numa[gpu],
        )
        for gpu in range(count)
    ]


def mig(
    starts: Sequence[Sequence[int]], *, profile: MigProfile = ONE_SLICE, slices: int = 8, shared: int = 1
) -> list[Device]:
    """MIG devices on GPU i at the memory slices `starts[i]`, ids `mig<i>@<start>`, with `::<r>` where shared."""
    size = profile.memory_slices or 1
    devices = []
    for gpu, at_slices in enumerate(starts):
        for index, start in enumerate(at_slices):
            part = MigDevice(index, f"mig{gpu}@{start}", profile, index, 0, profile.memory_mib << 20, (), start)
            devices += [
                Device(
                    id=part.uuid if shared == 1 else f"{part.uuid}::{replica}",
                    uuid=part.uuid,
                    gpu_index=gpu,
                    index=f"{gpu}:{index}",
                    share=Fraction(size, slices * shared),
                    paths=(),
                    mig=part,
                    replica=None if shared == 1 else replica,
                    edge=start,
                )
                for replica in range(shared)
            ]
    return devices


def linked(count: int, nvlinks: Iterable[tuple[int, int, int]], *, pcie: PcieLevel | None = PcieLevel.SYSTEM) -> Links:
    """Links between `count` GPUs: NVLinks as (a, b, number), one PCIe level between all."""
    numbers = {(a, b): number for a, b, number in nvlinks}
    return Links.symmetric(
        [(a, b, Link(pcie, numbers.get((a, b), 0))) for a in range(count) for b in range(a + 1, count)]
    )


def free_after(devices: Sequence[Device], used: Mapping[int, int]) -> list[str]:
    """The ids offered when the first `used[i]` devices of GPU i are in use."""
    left = dict(used)
    offered = []
    for device in devices:
        if left.get(device.gpu_index, 0):
            left[device.gpu_index] -= 1
        else:
            offered.append(device.id)
    return offered


def counts(placement: Placement, gpus: int) -> list[int]:
    """Devices on each GPU."""
    return [placement.per_gpu.get(gpu, 0) for gpu in range(gpus)]


def ask(
    policy: str,
    devices: Sequence[Device],
    size: int,
    *,
    available: Sequence[str] | None = None,
    must_include: Sequence[str] = (),
    links: Links = NO_LINKS,
    occupancy: Occupancy | None = None,
    cap: int | None = None,
    rule: Rule | None = None,
) -> Placement:
    """Place a request on these devices; all of them are offered unless `available` says otherwise."""
    offered = [device.id for device in devices] if available is None else available
    return place(
        Request(offered, must_include, size),
        Inventory.of(devices, links),
        Policy.named(policy, cap=cap, rule=rule),
        Occupancy() if occupancy is None else occupancy,
    )


def ask_counts(policy: str, totals: Sequence[int], used: Sequence[int], size: int, **more: object) -> list[int]:
    """The counts for a request on GPUs with `totals` replicas of which `used` are in use."""
    devices = replicas(totals)
    links = more.get("links", NO_LINKS)
    assert isinstance(links, Links)
    placement = ask(policy, devices, size, available=free_after(devices, dict(enumerate(used))), links=links)
    return counts(placement, len(totals))
