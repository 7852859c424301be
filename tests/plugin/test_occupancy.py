"""What is in use: remembered from the calls, read from kubelet when all is quiet."""

import asyncio
import logging
from collections.abc import Callable
from fractions import Fraction

import pytest

from gpustow.errors import PodResourcesError
from gpustow.kubelet.podresources import HeldDevice
from gpustow.kubelet.socketfile import SocketFacts
from gpustow.placement import Occupancy
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.timing import Timing
from gpustow.resources.device import Device, Resource
from tests.placement.cards import mig, replicas

TIMING = Timing(poll=0.01, usage_every=30, usage_settles=2, admission=10)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Kubelet:
    """Lists what it is told to; counts how often; waits for `gate` if there is one."""

    def __init__(self) -> None:
        self.held: list[HeldDevice] = []
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.lists = 0
        self.listing = asyncio.Event()

    async def __call__(self) -> tuple[HeldDevice, ...]:
        self.lists += 1
        self.listing.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return tuple(self.held)

    def holds(self, resource: Resource, *ids: str) -> None:
        self.held = [HeldDevice(resource.name, id_, "default", "pod", "main") for id_ in ids]


def small_and_large() -> tuple[Resource, Resource]:
    large = [
        Device(f"large{d.gpu_index}", f"large{d.gpu_index}", d.gpu_index, d.index, Fraction(1, 2), (), mig=d.mig)
        for d in mig([[4], [4]])
    ]
    return Resource("nvidia.com/small", tuple(mig([[0, 1], [0, 1]]))), Resource("nvidia.com/large", tuple(large))


SMALL, LARGE = small_and_large()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def usage(clock: Clock) -> NodeUsage:
    usage = NodeUsage(TIMING, clock)
    usage.serve([SMALL, LARGE])
    return usage


def ids_of(resource: Resource) -> list[str]:
    return [device.id for device in resource.devices]


def test_nothing_is_known_at_the_start(usage: NodeUsage) -> None:
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy()


def test_what_was_allocated_of_one_resource_is_in_use_for_the_other(usage: NodeUsage) -> None:
    usage.asked(LARGE, ids_of(LARGE), numa_nodes=1)
    usage.allocated(LARGE, ["large1"])
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy({1: Fraction(1, 2)})


def test_what_is_offered_again_is_free_again(usage: NodeUsage) -> None:
    usage.allocated(LARGE, ["large1"])
    usage.asked(LARGE, ids_of(LARGE), numa_nodes=1)
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy()


def test_what_is_not_offered_counts_as_used_while_no_list_says_otherwise(usage: NodeUsage) -> None:
    usage.asked(LARGE, ["large0"], numa_nodes=1)
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy({1: Fraction(1, 2)})


async def test_the_list_replaces_what_is_remembered(usage: NodeUsage) -> None:
    kubelet = Kubelet()
    usage.allocated(LARGE, ["large1"])
    kubelet.holds(LARGE, "large0")
    await usage.read(kubelet)
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy({0: Fraction(1, 2)})


async def test_after_a_list_what_is_not_offered_is_not_in_use_for_that(usage: NodeUsage) -> None:
    await usage.read(Kubelet())
    usage.asked(LARGE, ["large0"], numa_nodes=1)
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy()


async def test_own_devices_in_use_are_known_only_where_kubelet_may_withhold_free_ones(clock: Clock) -> None:
    near = Resource("nvidia.com/gpu", tuple(replicas([2, 2], numa=[0, 1])))
    usage = NodeUsage(TIMING, clock)
    usage.serve([near])
    kubelet = Kubelet()
    kubelet.holds(near, "gpu0::0")
    assert usage.asked(near, ["gpu0::1"], numa_nodes=2).in_use is None
    await usage.read(kubelet)
    assert usage.asked(near, ["gpu0::1"], numa_nodes=2).in_use == {"gpu0::0"}


async def test_a_list_that_fails_is_told_once_and_costs_nothing(
    usage: NodeUsage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kubelet = Kubelet()
    kubelet.error = PodResourcesError("/x", "gone")
    usage.allocated(LARGE, ["large1"])
    await usage.read(kubelet)
    await usage.read(kubelet)
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy({1: Fraction(1, 2)})
    assert caplog.text.count("taken from the calls of kubelet alone: cannot read the pods' resources") == 1


async def test_an_admission_that_begins_ends_the_list(usage: NodeUsage) -> None:
    kubelet = Kubelet()
    kubelet.gate = asyncio.Event()
    kubelet.holds(LARGE, "large0")
    usage.allocated(LARGE, ["large1"])
    reading = asyncio.create_task(usage.read(kubelet))
    await kubelet.listing.wait()
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy({1: Fraction(1, 2)})
    await reading
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy({1: Fraction(1, 2)})


async def test_what_is_allocated_while_the_list_is_made_is_not_lost(usage: NodeUsage) -> None:
    kubelet = Kubelet()
    kubelet.gate = asyncio.Event()
    reading = asyncio.create_task(usage.read(kubelet))
    await kubelet.listing.wait()
    usage.allocated(LARGE, ["large1"])
    kubelet.gate.set()
    await reading
    assert usage.asked(SMALL, ids_of(SMALL), numa_nodes=1) == Occupancy({1: Fraction(1, 2)})


async def test_a_reader_that_is_stopped_stops_the_list(usage: NodeUsage) -> None:
    kubelet = Kubelet()
    kubelet.gate = asyncio.Event()
    reading = asyncio.create_task(usage.read(kubelet))
    await kubelet.listing.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def _lists_after(usage: NodeUsage, seconds: float, clock: Clock, kubelet: Kubelet) -> bool:
    """Whether the watch reads the list when so much time has passed."""
    clock.now += seconds
    before = kubelet.lists
    watch = asyncio.create_task(usage.watch(kubelet))
    await asyncio.sleep(0.1)
    for _ in range(20):  # on a busy machine both sleeps end in the same turn, and the list takes some more
        await asyncio.sleep(0)
    watch.cancel()
    return kubelet.lists > before


def _nothing(_usage: NodeUsage) -> None:
    pass


def _asked(usage: NodeUsage) -> None:
    usage.asked(SMALL, ids_of(SMALL), numa_nodes=1)


def _admitted(usage: NodeUsage) -> None:
    _asked(usage)
    usage.allocated(SMALL, ["mig0@0"])


@pytest.mark.parametrize(
    ("happens", "seconds", "lists"),
    [
        (_nothing, 29, False),
        (_nothing, 31, True),
        (_admitted, 1, False),
        (_admitted, 3, True),
        (_asked, 9, False),
        (_asked, 31, True),
    ],
)
async def test_the_list_is_read_when_due_and_never_during_an_admission(
    usage: NodeUsage, clock: Clock, happens: Callable[[NodeUsage], None], seconds: float, *, lists: bool
) -> None:
    happens(usage)
    assert await _lists_after(usage, seconds, clock, Kubelet()) is lists


async def test_an_admission_in_the_last_moment_puts_off_the_list(usage: NodeUsage, clock: Clock) -> None:
    clock.now += 29
    _asked(usage)
    assert not await _lists_after(usage, 2, clock, Kubelet())
    usage.allocated(SMALL, ["mig0@0"])
    kubelet = Kubelet()
    assert not await _lists_after(usage, 1, clock, kubelet)
    assert await _lists_after(usage, 2, clock, kubelet)
    assert not await _lists_after(usage, 3, clock, kubelet)


async def test_admissions_without_an_end_do_not_put_off_the_list_for_ever(usage: NodeUsage, clock: Clock) -> None:
    kubelet = Kubelet()
    for _ in range(17):
        _admitted(usage)
        assert not await _lists_after(usage, 1.7, clock, kubelet)
    _admitted(usage)
    assert await _lists_after(usage, 1.7, clock, kubelet)
    _admitted(usage)
    assert not await _lists_after(usage, 1.7, clock, kubelet)


def _left(usage: NodeUsage) -> None:
    usage.changed()


async def test_a_device_that_has_left_has_the_list_read_soon(usage: NodeUsage, clock: Clock) -> None:
    _left(usage)
    assert not await _lists_after(usage, 1, clock, Kubelet())
    assert await _lists_after(usage, 2, clock, Kubelet())
    assert not await _lists_after(usage, 3, clock, Kubelet())


async def test_each_list_is_told(usage: NodeUsage, clock: Clock) -> None:
    told: list[int] = []
    kubelet = Kubelet()
    clock.now += 31
    watch = asyncio.create_task(usage.watch(kubelet, lambda: told.append(kubelet.lists)))
    await asyncio.sleep(0.1)
    watch.cancel()
    assert told == [1]


def held(usage: NodeUsage, since: float) -> list[bool]:
    return [usage.may_be_held(SMALL.name, id_, since=since) for id_ in ("mig0@0", "mig0@1")]


async def test_only_a_list_that_is_new_enough_proves_that_a_device_is_not_held(usage: NodeUsage, clock: Clock) -> None:
    kubelet = Kubelet()
    kubelet.holds(SMALL, "mig0@0")
    since = clock.now
    assert held(usage, since) == [True, True]
    for later, expected in ((1, [True, True]), (29, [True, False])):
        clock.now += later
        await usage.read(kubelet)
        assert held(usage, since) == expected
    assert held(usage, clock.now) == [True, True]
    usage.allocated(SMALL, ["mig0@1"])
    assert held(usage, since) == [True, True]


async def test_a_list_that_cannot_be_had_any_more_proves_nothing(usage: NodeUsage, clock: Clock) -> None:
    kubelet = Kubelet()
    since = clock.now
    clock.now += 60
    await usage.read(kubelet)
    assert held(usage, since) == [False, False]
    kubelet.error = PodResourcesError("s", "gone")
    await usage.read(kubelet)
    assert held(usage, since) == [True, True]


async def test_a_kubelet_that_has_just_started_is_not_believed_when_it_lists_nothing(
    usage: NodeUsage, clock: Clock
) -> None:
    kubelet = Kubelet()
    since = clock.now
    clock.now += 60
    usage.registered(SocketFacts(1, 2, 3))
    clock.now += 29
    await usage.read(kubelet)
    assert held(usage, since) == [True, True]
    usage.registered(SocketFacts(1, 2, 3))
    clock.now += 2
    await usage.read(kubelet)
    assert held(usage, since) == [False, False]
    usage.registered(SocketFacts(1, 2, 4))
    await usage.read(kubelet)
    assert held(usage, since) == [True, True]


async def test_who_holds_what_is_known_from_the_list_alone() -> None:
    small, _ = small_and_large()
    clock, kubelet = Clock(), Kubelet()
    usage = NodeUsage(TIMING, clock)
    usage.serve([small])
    first, second, *_ = (device.id for device in small.devices)
    kubelet.holds(small, first)
    await usage.read(kubelet)
    usage.allocated(small, [second])
    assert (usage.is_listed, usage.held) == (True, {small.name: {first, second}})
    assert usage.holders == {(small.name, first): kubelet.held}
    kubelet.error = PodResourcesError("socket", "away")
    await usage.read(kubelet)
    assert not usage.is_listed
    assert usage.holders == {}


def test_without_a_list_what_is_offered_again_is_not_in_use_any_more() -> None:
    small, _ = small_and_large()
    usage = NodeUsage(TIMING, Clock())
    usage.serve([small])
    ids = [device.id for device in small.devices]
    usage.allocated(small, ids[:2])
    usage.asked(small, ids[1:], numa_nodes=1)
    assert usage.held == {small.name: {ids[0]}}
