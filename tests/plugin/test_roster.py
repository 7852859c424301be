"""What is served, of what is found, what is sick, and what has left and may be held."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gpustow.hardware.node import Node, Platform
from gpustow.kubelet.podresources import HeldDevice
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import ListAndWatchResponse
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import Offer
from gpustow.plugin.roster import GONE, UNREADABLE, Roster
from gpustow.plugin.timing import Timing
from tests.plugin.samples import GPU, MIG, config, gpu, node
from tests.plugin.test_occupancy import Clock

TIMING = Timing(usage_settles=2, kubelet_settles=0)


class World:
    """A roster, with a clock and with what kubelet says is held."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.usage = NodeUsage(TIMING, self.clock)
        self.roster = Roster(self.usage, self.clock)

    def find(self, found: Node, strategy: str = "mixed") -> None:
        self.roster.see(found)
        self.roster.take(Offer.of(found, config(mig_strategy=strategy)))

    def list_held(self, *held: tuple[str, str], after: float = 5) -> None:
        """So much later kubelet lists these."""

        async def answer() -> tuple[HeldDevice, ...]:
            return tuple(HeldDevice(resource, id_, "default", "pod", "main") for resource, id_ in held)

        self.clock.now += after
        asyncio.run(self.usage.read(answer))
        self.roster.settle()

    def know(self, reasons: dict[str, str]) -> None:
        """This and nothing else is known against devices."""

        def sick(uuid: str) -> str | None:
            return reasons.get(uuid)

        self.roster.mark(sick)

    def complaints(self) -> tuple[str, ...]:
        return self.roster.complaints

    def has_leaving(self) -> bool:
        return self.roster.leaving

    @property
    def health(self) -> dict[str, dict[str, bool]]:
        """By resource and id, what kubelet is told."""
        return {
            name: {
                device.ID: device.health == "Healthy"
                for device in ListAndWatchResponse.FromString(served.device_list).devices
            }
            for name, served in self.roster.served.items()
        }


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.find(node(gpu(0), gpu(1, mig_devices=2)))
    assert world.health == {GPU: {"GPU-0": True}, MIG: {"MIG-1-0": True, "MIG-1-1": True}}
    yield world
    for served in world.roster.served.values():
        inventory = served.inventory
        assert {id_ for id_, healthy in zip(inventory.ids, inventory.healthy, strict=True) if healthy} == {
            device.id for device in served.resource.devices if device.healthy
        }


def test_what_is_gone_stays_unhealthy_while_it_is_held_and_leaves_when_it_is_not_case_c24(world: World) -> None:
    world.find(node(gpu(0), gpu(1, mig_devices=1)))
    assert world.has_leaving()
    assert world.health[MIG] == {"MIG-1-0": True, "MIG-1-1": False}
    world.list_held((MIG, "MIG-1-1"), (GPU, "GPU-0"))
    assert world.health[MIG] == {"MIG-1-0": True, "MIG-1-1": False}
    world.list_held((GPU, "GPU-0"))
    assert world.health == {GPU: {"GPU-0": True}, MIG: {"MIG-1-0": True}}
    assert not world.has_leaving()
    assert world.complaints() == ()


def test_a_list_from_before_or_right_after_it_left_proves_nothing(world: World) -> None:
    world.list_held()
    world.find(node(gpu(0), gpu(1, mig_devices=1)))
    world.roster.settle()
    assert len(world.health[MIG]) == 2
    world.list_held(after=1)
    assert len(world.health[MIG]) == 2
    world.list_held(after=1)
    assert len(world.health[MIG]) == 1


def test_a_resource_of_which_nothing_is_left_stays_while_something_of_it_is_held(world: World) -> None:
    world.find(node(gpu(0), gpu(1)))
    assert world.health == {GPU: {"GPU-0": True, "GPU-1": True}, MIG: {"MIG-1-0": False, "MIG-1-1": False}}
    world.list_held((MIG, "MIG-1-0"))
    assert world.health[MIG] == {"MIG-1-0": False}
    world.find(node(gpu(0)))
    world.list_held((GPU, "GPU-1"))
    assert world.health == {GPU: {"GPU-0": True, "GPU-1": False}}


def test_what_only_the_configuration_does_not_offer_any_more_is_withdrawn(world: World) -> None:
    found = node(gpu(0), gpu(1, mig_devices=2))
    world.find(found)
    assert world.roster.served[MIG].withdrawn == frozenset()
    world.find(found, "none")
    assert world.roster.served[MIG].withdrawn == {"MIG-1-0", "MIG-1-1"}
    world.know({"MIG-1-1": "XID 62"})
    assert world.roster.served[MIG].withdrawn == {"MIG-1-0"}
    assert world.health[MIG] == {"MIG-1-0": False, "MIG-1-1": False}
    world.find(node(gpu(0), gpu(1)), "none")
    assert world.roster.served[MIG].withdrawn == frozenset(), "it is not there any more"


def test_what_comes_back_is_as_before(world: World) -> None:
    world.find(node(gpu(0), gpu(1, mig_devices=1)))
    world.find(node(gpu(0), gpu(1, mig_devices=2)))
    assert world.health[MIG] == {"MIG-1-0": True, "MIG-1-1": True}
    assert not world.has_leaving()
    world.find(node(gpu(0), gpu(1, mig_devices=1)))
    world.list_held(after=1)
    assert len(world.health[MIG]) == 2, "it has left a second time"


def test_a_resource_for_which_nothing_has_changed_is_the_same_object(world: World) -> None:
    before = dict(world.roster.served)
    world.roster.settle()
    world.know({"MIG-1-0": "XID 79"})
    assert world.roster.served[GPU] is before[GPU]
    assert world.roster.served[MIG] is not before[MIG]
    assert world.roster.served[MIG].inventory.fabric is before[MIG].inventory.fabric
    marked = world.roster.served[MIG]
    world.know({"MIG-1-0": "XID 79 again"})
    assert world.roster.served[MIG] is marked


def test_what_is_known_against_a_device_holds_through_rescans_until_it_is_taken_back(world: World) -> None:
    world.know({"MIG-1-0": "XID 94"})
    world.find(node(gpu(0), gpu(1, mig_devices=3)))
    assert world.health[MIG] == {"MIG-1-0": False, "MIG-1-1": True, "MIG-1-2": True}
    assert world.complaints() == ("unhealthy: MIG-1-0 (XID 94)",)
    world.find(node(gpu(0), gpu(1)))
    world.find(node(gpu(0), gpu(1, mig_devices=3)))
    assert world.health[MIG]["MIG-1-0"] is False
    world.know({})
    assert all(world.health[MIG].values())
    assert world.complaints() == ()


def test_a_gpu_that_is_lost_stays_listed_though_nobody_holds_it_and_is_told(world: World) -> None:
    world.find(replace(node(gpu(0)), unreadable=(1,)))
    world.list_held()
    assert world.health == {GPU: {"GPU-0": True}, MIG: {"MIG-1-0": False, "MIG-1-1": False}}
    assert world.complaints() == (f"unhealthy: MIG-1-0, MIG-1-1 ({UNREADABLE})",)
    world.find(node(gpu(0), gpu(1, mig_devices=2)))
    assert all(world.health[MIG].values())


def test_a_gpu_that_is_gone_is_told_while_a_container_may_hold_it(world: World) -> None:
    world.find(node(gpu(1, mig_devices=2)))
    assert world.complaints() == (f"unhealthy: GPU-0 ({GONE})",)
    world.list_held()
    assert world.health == {MIG: {"MIG-1-0": True, "MIG-1-1": True}}
    assert world.complaints() == ()


def test_where_the_node_does_not_go_with_the_configuration_what_was_not_found_is_unhealthy(world: World) -> None:
    world.find(node(gpu(1, mig_devices=2)), "single")
    world.list_held()
    assert world.health == {GPU: {"MIG-1-0": True, "MIG-1-1": True}}
    world.roster.see(node(gpu(0), gpu(1, mig_devices=1)))
    world.roster.settle()
    world.list_held()
    assert world.health == {GPU: {"MIG-1-0": True, "MIG-1-1": False}}
    assert world.complaints() == (f"unhealthy: MIG-1-1 ({GONE})",)


def test_another_kubelet_is_not_told_of_what_has_left(world: World) -> None:
    world.find(node(gpu(0), gpu(1)))
    world.roster.forget()
    assert world.health == {GPU: {"GPU-0": True, "GPU-1": True}}
    assert not world.has_leaving()


def test_on_other_platforms_devices_have_names_of_their_own(world: World) -> None:
    tegra = replace(node(gpu(0)), platform=Platform.TEGRA)
    world.find(tegra, "none")
    world.list_held()
    assert world.health == {GPU: {"tegra": True}}


def test_many_devices_are_told_by_some_of_them(world: World) -> None:
    world.find(node(gpu(0), gpu(1, mig_devices=10)))
    world.roster.mark(lambda uuid: "XID 79" if uuid.startswith("MIG") else None)
    (complaint,) = world.complaints()
    assert complaint.endswith("MIG-1-6, MIG-1-7 and 2 more (XID 79)")
