from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.holdings import Entry, Held, Holdings
from tests.simulation.kubelet.core import THING

OTHER = "example.com/other"


def entry(uid: str, container: str, ids: str, resource: str = THING, node: int = -1) -> Entry:
    return Entry(uid, container, resource, Held({node: tuple(ids.split())}, ContainerAnswer({"IDS": ids})))


BOOKS = [
    entry("a", "one", "d0 d1"),
    entry("a", "one", "o0", OTHER),
    entry("a", "two", "d1 d2"),
    entry("b", "one", "d3"),
]


def test_entries_come_out_as_they_went_in() -> None:
    assert [*Holdings(BOOKS).entries()] == BOOKS


def test_a_later_line_replaces_the_one_for_the_same_container_and_resource() -> None:
    holdings = Holdings([*BOOKS, entry("b", "one", "d4")])
    assert holdings.ids("b", "one", THING) == frozenset({"d4"})


def test_nothing_recorded_is_something_else_than_nothing_held() -> None:
    holdings = Holdings([entry("a", "one", "")])
    assert holdings.ids("a", "one", THING) == frozenset()
    assert holdings.ids("a", "two", THING) is None
    assert holdings.ids("z", "one", THING) is None


def test_a_pod_holds_the_union_of_its_containers() -> None:
    holdings = Holdings(BOOKS)
    assert holdings.pod_ids("a", THING) == {"d0", "d1", "d2"}
    assert holdings.pod_ids("b", OTHER) == holdings.pod_ids("z", THING) == set()


def test_all_that_is_held_by_resource() -> None:
    assert Holdings(BOOKS).allocated() == {THING: {"d0", "d1", "d2", "d3"}, OTHER: {"o0"}}


def test_forgotten_pods_hold_nothing() -> None:
    holdings = Holdings(BOOKS)
    holdings.forget_pods(["a", "never seen"])
    assert holdings.pods() == {"b"}


def test_the_holder_of_a_device_is_the_first_pod_that_has_the_id_of_whatever_resource() -> None:
    holdings = Holdings([entry("a", "one", "same", OTHER), entry("b", "two", "same d0")])
    assert holdings.holders() == {"same": "a", "d0": "b"}


def test_a_device_near_two_nodes_is_one_device() -> None:
    assert Held({0: ("d0",), 1: ("d0", "d1")}, ContainerAnswer()).ids == {"d0", "d1"}
