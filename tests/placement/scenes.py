"""Random nodes and requests, as devices for the engine and as plain numbers for the oracle."""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from random import Random

from hypothesis import strategies as st

from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.hardware.mig import MigDevice, MigProfile
from gpustow.placement import Inventory, Occupancy, Placement, Policy, Request, place
from gpustow.resources.device import Device
from tests.placement.oracle import Scene

PROFILES = (
    MigProfile(1, 1, 5, 4864, memory_slices=1),
    MigProfile(2, 2, 10, 9856, memory_slices=2),
)


@dataclass(frozen=True)
class Case:
    """What the engine is asked, and the same for the oracle."""

    devices: tuple[Device, ...]
    links: Links
    request: Request
    occupancy: Occupancy
    scene: Scene

    def place(self, policy: Policy) -> Placement:
        return place(self.request, Inventory.of(self.devices, self.links), policy, self.occupancy)

    def counts(self, placement: Placement) -> tuple[int, ...]:
        """New slots on each GPU of the scene."""
        chosen = set(placement.device_ids) - set(self.request.must_include)
        order = sorted({device.gpu_index for device in self.devices})
        totals = dict.fromkeys(order, 0)
        for device in self.devices:
            if device.id in chosen:
                totals[device.gpu_index] += 1
        return tuple(totals[index] for index in order)


def _links(rng: Random, indices: list[int]) -> Links:
    """Links of a random kind: none, arbitrary, pairs, or a tree; sometimes with missing or one-sided readings."""
    kind = rng.choice(("none", "any", "any", "pairs", "tree", "flat"))
    if kind == "none":
        return Links()
    readings: list[tuple[tuple[int, int], Link]] = []
    for at, a in enumerate(indices):
        for place_, b in enumerate(indices[at + 1 :], at + 1):
            if kind == "any":
                link = Link(rng.choice([None, *PcieLevel]), rng.choice((0, 0, 1, 2, 4)))
            elif kind == "pairs":
                link = Link(PcieLevel.SYSTEM, 4 if at // 2 == place_ // 2 else 0)
            elif kind == "tree":
                near = PcieLevel.SINGLE_SWITCH if at // 2 == place_ // 2 else PcieLevel.HOST_BRIDGE
                link = Link(near if at // 4 == place_ // 4 else PcieLevel.SYSTEM, 1 if at // 4 == place_ // 4 else 0)
            else:
                link = Link(PcieLevel.NUMA_NODE, 2)
            readings.append(((a, b), link))
            back = Link(link.pcie, rng.randint(0, 2)) if kind == "any" and rng.random() < 0.1 else link
            if rng.random() > 0.03:
                readings.append(((b, a), back))
    return Links(tuple(readings))


def _score(links: Links, a: int, b: int) -> int:
    table = dict(links.readings)
    ends = [table.get(pair, Link()) for pair in ((a, b), (b, a))]
    return min((0 if e.pcie is None else 60 - e.pcie.value) + 100 * e.nvlinks for e in ends)


def _linked(links: Links, a: int, b: int) -> bool:
    table = dict(links.readings)
    return all(table.get(pair, Link()).nvlinks for pair in ((a, b), (b, a)))


def _islands(links: Links, indices: list[int], *, mig: bool) -> list[int]:
    labels = {index: index for index in indices}
    if not mig:
        for _ in indices:
            for a in indices:
                for b in indices:
                    if a != b and _linked(links, a, b):
                        labels[a] = labels[b] = min(labels[a], labels[b])
    return [labels[index] for index in indices]


def _device(rng: Random, kind: str, gpu: int, slots: int, numa: int | None) -> list[Device]:
    """The devices of one GPU."""
    if kind == "whole":
        return [Device(f"gpu{gpu}", f"gpu{gpu}", gpu, str(gpu), Fraction(1), (), numa)]
    if kind == "shared":
        return [
            Device(f"gpu{gpu}::{r}", f"gpu{gpu}", gpu, str(gpu), Fraction(1, slots), (), numa, None, r)
            for r in range(slots)
        ]
    profile = rng.choice(PROFILES)
    size = profile.memory_slices or 1
    devices = []
    for at in range(min(slots, 7 // size)):
        part = MigDevice(at, f"mig{gpu}-{at}", profile, at, 0, 1, (), at * size)
        share = Fraction(size, 8)
        devices.append(Device(part.uuid, part.uuid, gpu, f"{gpu}:{at}", share, (), numa, part, None, at * size))
    return devices


def build(rng: Random, kind: str, *, gpus: int, most: int) -> Case | None:
    """A random case on at most so many GPUs with so many slots each; None if no slot is free."""
    indices = sorted(rng.sample(range(gpus + 2), rng.randint(1, gpus)))
    numa = [rng.choice((0, 0, 1, None)) for _ in indices]
    devices: list[Device] = []
    for gpu, node in zip(indices, numa, strict=True):
        devices += _device(rng, kind, gpu, rng.randint(1, most), node)
    busy, sick = rng.random(), rng.choice((0.0, 0.0, 0.2))
    state = {device.id: rng.random() < busy for device in devices}
    devices = [
        Device(
            d.id, d.uuid, d.gpu_index, d.index, d.share, (), d.numa_node, d.mig, d.replica, d.edge, rng.random() >= sick
        )
        for d in devices
    ]
    used = {device.id for device in devices if state[device.id] and device.healthy}
    offered = [device for device in devices if device.id not in used and device.healthy]
    withheld: set[str] = set()
    in_use: frozenset[str] | None = None
    if rng.random() < 0.3:
        withheld = {device.id for device in offered if rng.random() < 0.3}
        in_use = frozenset(used) | {device.id for device in devices if not device.healthy}
    offered = [device for device in offered if device.id not in withheld]
    if not offered:
        return None
    size = rng.randint(1, min(len(offered), 7))
    must = rng.sample(offered, rng.randint(0, size)) if rng.random() < 0.4 else []
    others = {gpu: Fraction(rng.randint(0, 4), rng.choice((7, 8))) for gpu in indices if rng.random() < 0.4}
    links = _links(rng, indices)
    rng.shuffle(offered)
    on = {gpu: [device for device in devices if device.gpu_index == gpu] for gpu in indices}
    must_ids = {device.id for device in must}
    offered_ids = {device.id for device in offered}
    known_used = (used if in_use is None else used & in_use) | must_ids
    mig = kind == "mig"
    loads = [sum((d.share for d in on[gpu] if d.id in known_used), others.get(gpu, Fraction(0))) for gpu in indices]
    shares = [on[gpu][0].share for gpu in indices]
    unit = lcm(*(part.denominator for part in (*loads, *shares)))
    scene = Scene(
        size=size,
        free=tuple(sum(d.id in offered_ids - must_ids for d in on[gpu]) for gpu in indices),
        share=tuple(int(share * unit) for share in shares),
        load=tuple(int(load * unit) for load in loads),
        must=tuple(sum(d.id in must_ids for d in on[gpu]) for gpu in indices),
        taken=tuple(sum(d.id in known_used for d in on[gpu]) for gpu in indices),
        links=tuple(tuple(0 if mig or a == b else _score(links, a, b) for b in indices) for a in indices),
        numa=tuple(numa),
        island=tuple(_islands(links, indices, mig=mig)),
    )
    return Case(
        tuple(devices),
        links,
        Request([device.id for device in offered], [device.id for device in must], size),
        Occupancy(others, in_use),
        scene,
    )


def cases(*kinds: str, gpus: int = 6, most: int = 6) -> st.SearchStrategy[Case]:
    """Random cases of these kinds."""

    def made(seed: int, kind: str) -> Case:
        rng = Random(seed)
        while (case := build(rng, kind, gpus=gpus, most=most)) is None:
            pass
        return case

    return st.builds(made, st.integers(0, 1 << 48), st.sampled_from(kinds))
