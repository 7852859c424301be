from gpustow.simulation.kubelet.devicemanager import Quantities
from gpustow.simulation.kubelet.nodestatus import PERIOD, NodeObject
from tests.simulation.kubelet.core import THING, FakeClock


class Reported:
    """What the device manager would say."""

    def __init__(self, capacity: int, allocatable: int) -> None:
        self.quantities = Quantities({THING: capacity}, {THING: allocatable})

    def __call__(self) -> Quantities:
        return self.quantities


def test_the_status_is_up_to_ten_seconds_old() -> None:
    clock = FakeClock()
    node = NodeObject(clock, {})
    reported = Reported(4, 3)
    assert node.status(reported).allocatable == {THING: 3}
    reported.quantities = Quantities({THING: 4}, {THING: 1})
    clock.now += PERIOD - 0.1
    assert node.status(reported).allocatable == {THING: 3}
    clock.now += 0.1
    status = node.status(reported)
    assert (status.capacity, status.allocatable) == ({THING: 4}, {THING: 1})


def test_a_forgotten_resource_stays_in_the_status_with_zero() -> None:
    clock = FakeClock()
    node = NodeObject(clock, {})
    node.status(Reported(4, 3))
    clock.now += PERIOD
    status = node.status(lambda: Quantities({}, {}, frozenset({THING})))
    assert (status.capacity, status.allocatable) == ({THING: 0}, {THING: 0})


def test_a_resource_that_an_administrator_has_set_is_left_alone() -> None:
    node = NodeObject(FakeClock(), {"example.com/dongle": 2})
    node.kubelet_started(new_node=False)
    assert node.status(Reported(1, 1)).allocatable == {"example.com/dongle": 2, THING: 1}


def test_a_start_without_a_checkpoint_sets_all_extended_resources_to_zero() -> None:
    node = NodeObject(FakeClock(), {"example.com/dongle": 2})
    node.kubelet_started(new_node=True)
    status = node.status(lambda: Quantities({}, {}))
    assert status.capacity == status.allocatable == {"example.com/dongle": 0}


def test_a_start_writes_the_status_at_once() -> None:
    node = NodeObject(FakeClock(), {})
    node.status(Reported(4, 4))
    node.kubelet_started(new_node=False)
    assert node.status(Reported(4, 0)).allocatable == {THING: 0}
