from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpustow.hardware.links import Link, Links, PcieLevel
from gpustow.placement import Inventory
from gpustow.resources.device import Device
from tests.placement.cards import mig, replicas, whole

LINKS = Links.symmetric([(0, 1, Link(PcieLevel.SINGLE_SWITCH, 12)), (1, 2, Link(PcieLevel.MULTIPLE_SWITCHES))])

DEVICES = st.sampled_from([whole(3), replicas([2, 1, 3]), mig([[0, 1], [], [4]])])


@given(DEVICES, st.data())
def test_health_is_changed_as_if_all_had_been_built_anew(devices: list[Device], data: st.DataObject) -> None:
    ids = [device.id for device in devices]
    built = Inventory.of(devices, LINKS)
    for _ in range(2):
        sick = data.draw(st.sets(st.sampled_from([*ids, "unknown"])))
        marked = [replace(device, healthy=device.id not in sick) for device in devices]
        changed, anew = built.with_health(sick), Inventory.of(marked, LINKS)
        assert {name: value for name, value in vars(changed).items() if name != "fabric"} == {
            name: value for name, value in vars(anew).items() if name != "fabric"
        }
        assert changed.fabric is built.fabric
        assert built.sick == ()
