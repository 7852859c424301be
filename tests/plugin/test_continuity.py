from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.plugin import continuity
from gpustow.plugin.continuity import successor
from gpustow.resources.device import Device, Resource
from gpustow.resources.listsize import largest_list
from tests.placement.cards import mig, replicas, whole

POOL = [*whole(4), *replicas([2, 3]), *mig([[0, 1], [4]])]
RESOURCES = st.lists(st.sampled_from(POOL), min_size=1, max_size=8, unique_by=lambda device: device.id).map(
    lambda devices: Resource("nvidia.com/gpu", tuple(devices))
)


def ids(devices: Sequence[Device]) -> list[str]:
    return [device.id for device in devices]


@given(RESOURCES | st.none(), RESOURCES | st.none(), st.sets(st.sampled_from(ids(POOL))))
def test_what_is_found_is_served_as_it_is_and_what_is_gone_stays_unhealthy_only_while_it_may_be_held(
    old: Resource | None, new: Resource | None, held: set[str]
) -> None:
    before = () if old is None else old.devices
    found = () if new is None else new.devices
    gone = [replace(device, healthy=False) for device in before if device.id not in ids(found) and device.id in held]
    served = successor(old, new, lambda device: device.id in held)
    if served is None:
        assert not found
        assert not gone
        return
    assert len(set(ids(served.devices))) == len(served.devices)
    assert {device for device in served.devices if device.healthy} == set(found)
    assert {device for device in served.devices if not device.healthy} == set(gone)
    if new is not None:
        assert replace(served, devices=()) == replace(new, devices=())
    assert successor(served, new, lambda device: device.id in held) == served


@given(RESOURCES, RESOURCES, st.data())
def test_the_order_of_the_list_does_not_depend_on_the_order_in_which_devices_left(
    old: Resource, new: Resource, data: st.DataObject
) -> None:
    shuffled = replace(old, devices=tuple(data.draw(st.permutations(old.devices))))
    one = successor(old, new, lambda _: True)
    other = successor(shuffled, new, lambda _: True)
    assert one is not None
    assert other is not None
    if set(ids(old.devices)) - set(ids(new.devices)):
        assert one == other
    else:
        assert one is other is new


def test_what_is_gone_is_given_up_where_kubelet_could_not_take_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = Resource("r", tuple(replicas([8]))), Resource("r", tuple(whole(2)))
    monkeypatch.setattr(continuity, "LIMIT", largest_list((*old.devices, *new.devices)))
    assert successor(old, new, lambda _: True) is not new
    monkeypatch.setattr(continuity, "LIMIT", largest_list((*old.devices, *new.devices)) - 1)
    assert successor(old, new, lambda _: True) is new


def test_devices_stay_between_those_of_their_card() -> None:
    old, new = Resource("r", tuple(whole(4))), Resource("r", (whole(4)[0], whole(4)[3]))
    served = successor(old, new, lambda device: device.id == "gpu2")
    assert served is not None
    assert ids(served.devices) == ["gpu0", "gpu2", "gpu3"]
    assert [device.share for device in served.devices] == [Fraction(1)] * 3
