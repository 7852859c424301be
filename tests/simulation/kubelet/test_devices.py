import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.simulation.kubelet.devices import DeviceTable, PluginDevice
from tests.simulation.kubelet.core import THING, Nodes, listed


@pytest.mark.parametrize(
    ("topology", "nodes"),
    [
        (None, None),
        (wire.TopologyInfo(), ()),
        (wire.TopologyInfo(nodes=[wire.NUMANode(ID=1), wire.NUMANode(ID=-1)]), (1, -1)),
    ],
)
def test_no_topology_is_something_else_than_an_empty_one(topology: wire.TopologyInfo | None, nodes: Nodes) -> None:
    message = wire.Device(ID="d0", health="Healthy", topology=topology)
    assert PluginDevice.of_message(message) == PluginDevice("d0", "Healthy", nodes)


@pytest.mark.parametrize(("nodes", "has"), [(None, False), ((), False), ((-1,), True), ((7,), True), ((0,), True)])
def test_minus_one_and_unknown_nodes_count_as_topology_and_an_empty_one_does_not(nodes: Nodes, *, has: bool) -> None:
    table = DeviceTable()
    table.replace(THING, listed("a b") + listed("c", nodes))
    assert table.has_topology(THING) is has


def test_an_unhealthy_device_has_topology_too() -> None:
    table = DeviceTable()
    table.replace(THING, listed("a") + listed("b", (0,), "Unhealthy"))
    assert table.has_topology(THING)


def test_a_list_tells_the_ids_that_are_new_or_whose_health_has_changed() -> None:
    table = DeviceTable()
    assert table.replace(THING, listed("a b")) == {"a", "b"}
    assert table.replace(THING, listed("a") + listed("b", None, "Unhealthy")) == {"b"}
    assert table.replace(THING, listed("a")) == set()
    assert table.replace(THING, listed("a b")) == {"b"}


def test_a_loss_makes_all_devices_unhealthy() -> None:
    table = DeviceTable()
    table.replace(THING, listed("a") + listed("b", None, "Unhealthy"))
    table.lose(THING)
    assert (table.healthy[THING], table.unhealthy[THING]) == (set(), {"a", "b"})


def test_a_resource_that_is_lost_before_its_first_list_is_known_to_the_node_alone() -> None:
    table = DeviceTable()
    table.lose(THING)
    assert THING not in table.healthy
    assert (table.known(), table.count(THING)) == ((THING,), 0)


def test_forgetting_a_resource_keeps_what_was_listed() -> None:
    table = DeviceTable()
    table.replace(THING, listed("a", (1,)))
    table.forget(THING)
    assert THING not in table.healthy
    assert table.numa_nodes(THING, "a") == (1,)


def test_an_unknown_device_is_near_no_node() -> None:
    table = DeviceTable()
    table.replace(THING, listed("a"))
    assert table.numa_nodes(THING, "a") == table.numa_nodes(THING, "b") == table.numa_nodes("x.io/y", "a") == ()
