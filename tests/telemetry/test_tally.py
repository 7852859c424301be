from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpustow.telemetry.tally import Tally
from tests.telemetry.samples import facts, hold, unhealthy


def test_a_device_is_in_use_or_free_or_unhealthy() -> None:
    known = unhealthy(hold(facts("t4-4", replicas=4), 0, 1, 5), 1, 2)
    slots = Tally.of(known).of_resource(known.served[0].resource.name)
    assert (slots.total, slots.used, slots.free, slots.unhealthy, slots.healthy) == (16, 3, 12, 1, 14)


def test_gpus_are_wholly_free_if_nothing_on_them_is_in_use_and_all_of_them_is_well() -> None:
    known = unhealthy(hold(facts("t4-4", replicas=4), 0), 4)
    assert Tally.of(known).wholly_free() == (2, 3)


def test_use_by_any_resource_takes_from_a_gpu() -> None:
    known = facts("hgx-h100-mig")
    before = Tally.of(known)
    assert len(known.served) > 1
    now = Tally.of(hold(known, 0, resource=len(known.served) - 1))
    index = known.served[-1].resource.devices[0].gpu_index
    assert index in before.wholly_free()
    assert index not in now.wholly_free()
    assert now.used_shares()[index] == known.served[-1].resource.devices[0].share


def test_ids_that_are_not_there_are_not_counted() -> None:
    known = hold(facts("t4-4"), 0)
    strange = known.held[known.served[0].resource.name]
    assert isinstance(strange, set)
    strange.add("GPU-of-old")
    assert Tally.of(known).of_resource(known.served[0].resource.name).used == 1


@given(st.sets(st.integers(0, 15)), st.sets(st.integers(0, 15)))
def test_every_device_is_counted_once(held: set[int], sick: set[int]) -> None:
    known = unhealthy(hold(facts("t4-4", replicas=4), *held), *sick)
    tally = Tally.of(known)
    slots = tally.of_resource(known.served[0].resource.name)
    assert slots.total == 16
    assert slots.used == len(held)
    assert slots.healthy == 16 - len(sick)
    assert slots.free == 16 - len(held | sick)
    assert slots.unhealthy == len(sick - held)
    assert sum(tally.used_shares().values()) == Fraction(len(held), 4)
    by_gpu = tally.of_gpus()
    assert sum(each.used for each in by_gpu.values()) == slots.used
    assert sum(each.free for each in by_gpu.values()) == slots.free
