"""What others hold, from the ids in use of all resources."""

from fractions import Fraction

from gpustow.placement import Occupancy
from gpustow.resources.device import Device, Resource
from tests.placement.cards import mig


def resources() -> tuple[Resource, Resource]:
    small = mig([[0, 1], [0, 1]])
    large = [
        Device(f"large{d.gpu_index}", f"large{d.gpu_index}", d.gpu_index, d.index, Fraction(1, 2), (), mig=d.mig)
        for d in mig([[4], [4]])
    ]
    sick = Device("sick", "sick", 0, "0:9", Fraction(1, 8), (), mig=small[0].mig, healthy=False)
    return Resource("nvidia.com/mig-1g.5gb", tuple(small)), Resource("nvidia.com/mig-3g.20gb", (*large, sick))


def test_the_shares_of_other_resources_add_up_by_gpu() -> None:
    small, large = resources()
    held = {"nvidia.com/mig-1g.5gb": {"mig0@0", "mig0@1", "mig1@0"}, "nvidia.com/mig-3g.20gb": {"large1"}}
    assert Occupancy.seen(large, [small, large], held) == Occupancy({0: Fraction(1, 4), 1: Fraction(1, 8)}, {"large1"})
    assert Occupancy.seen(small, [small, large], held) == Occupancy({1: Fraction(1, 2)}, {"mig0@0", "mig0@1", "mig1@0"})


def test_nothing_held_is_known_to_be_nothing() -> None:
    small, large = resources()
    assert Occupancy.seen(small, [small, large], {}) == Occupancy({}, frozenset())


def test_unknown_ids_and_sick_devices_hold_nothing() -> None:
    small, large = resources()
    held = {"nvidia.com/mig-3g.20gb": {"gone", "sick"}, "example.com/other": {"x"}}
    assert Occupancy.seen(small, [small, large], held) == Occupancy({}, frozenset())
