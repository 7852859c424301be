import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.holdings import Entry, Held
from gpustow.simulation.kubelet.predicates import Demand, check_fit
from gpustow.simulation.kubelet.state import DeviceState
from tests.simulation.kubelet.core import THING, wanting

POD = wanting("a", 2)


def state(*held: str) -> DeviceState:
    made = DeviceState()
    if held:
        made.holdings.record(Entry(POD.uid, "main", THING, Held({-1: held}, ContainerAnswer())))
        made.rebuild_in_use()
    return made


def demand(size: int, used: int = 0) -> Demand:
    return Demand({THING: size}, {THING: used})


def test_a_resource_that_the_node_does_not_name_is_somebody_elses() -> None:
    check_fit(POD, demand(2), {}, state())


def test_a_resource_that_kubelet_has_forgotten_is_named_with_zero_and_refused() -> None:
    with pytest.raises(AdmissionError) as refused:
        check_fit(POD, demand(2), {THING: 0}, state())
    assert refused.value.reason == f"OutOf{THING}"
    assert refused.value.status_message == (
        f"Node didn't have enough resource: {THING}, requested: 2, used: 0, capacity: 0"
    )


def test_what_other_pods_want_is_not_there() -> None:
    check_fit(POD, demand(2, used=2), {THING: 4}, state())
    with pytest.raises(AdmissionError, match="requested: 2, used: 3, capacity: 4"):
        check_fit(POD, demand(2, used=3), {THING: 4}, state())


def test_a_pod_that_holds_its_devices_fits_whatever_the_node_says() -> None:
    check_fit(POD, demand(2), {THING: 0}, state("d0", "d1"))


def test_an_amount_of_zero_fits_anywhere() -> None:
    check_fit(POD, demand(0), {THING: 0}, state())
