"""What the loss of a connection means to the resource, by version; over sockets in test_clients."""

import pytest

from gpustow.simulation.kubelet.behaviour import Behaviour
from gpustow.simulation.kubelet.endpoint import EndpointError
from gpustow.simulation.kubelet.instances import Instances, instances
from gpustow.simulation.kubelet.state import DeviceState, Plugin
from tests.simulation.kubelet.core import THING, FakeEndpoint, seeded

VERSIONS = ["1.24", "1.36", "1.37"]


def of_version(version: str, seed: int = 1) -> tuple[DeviceState, Instances]:
    state = DeviceState()
    return state, instances(state, Behaviour.of(version), seeded(seed))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_plugin_that_connected_last_speaks_for_the_resource(version: str) -> None:
    state, kept = of_version(version)
    first, second = Plugin(FakeEndpoint()), Plugin(FakeEndpoint())
    kept.connected(THING, first, "first")
    kept.connected(THING, second, "second")
    assert state.plugins[THING] is second


@pytest.mark.parametrize("version", VERSIONS)
def test_the_loss_of_the_only_plugin_leaves_the_resource_without(version: str) -> None:
    state, kept = of_version(version)
    plugin = Plugin(FakeEndpoint())
    kept.connected(THING, plugin, "socket")
    assert kept.disconnected(THING, plugin.endpoint, "socket", now=7.0)
    assert state.plugins[THING].stopped_at == 7.0


@pytest.mark.parametrize("version", VERSIONS)
def test_the_loss_of_what_was_never_there_means_nothing(version: str) -> None:
    _, kept = of_version(version)
    assert not kept.disconnected(THING, FakeEndpoint(), "socket", now=7.0)


@pytest.mark.parametrize(("version", "lost"), [("1.24", False), ("1.36", True), ("1.37", False)])
def test_the_loss_of_the_plugin_before_takes_the_new_one_with_it_until_1_36(version: str, *, lost: bool) -> None:
    state, kept = of_version(version)
    first, second = Plugin(FakeEndpoint()), Plugin(FakeEndpoint())
    kept.connected(THING, first, "first")
    kept.connected(THING, second, "second")
    assert kept.disconnected(THING, first.endpoint, "first", now=7.0) is lost
    assert state.plugins[THING] is second
    assert (second.stopped_at is not None) is lost


def test_from_1_37_on_a_second_plugin_on_a_socket_is_refused() -> None:
    state, kept = of_version("1.37")
    first = Plugin(FakeEndpoint())
    kept.connected(THING, first, "/d/x.sock")
    with pytest.raises(EndpointError, match=r"^device plugin already connected: /d/x\.sock$"):
        kept.connected(THING, Plugin(FakeEndpoint()), "/d/x.sock")
    assert state.plugins[THING] is first


def test_from_1_37_on_any_of_those_that_are_left_takes_over() -> None:
    successors = set()
    for seed in range(10):
        state, kept = of_version("1.37", seed)
        plugins = {name: Plugin(FakeEndpoint()) for name in ("first", "second", "third")}
        for name, plugin in plugins.items():
            kept.connected(THING, plugin, name)
        assert not kept.disconnected(THING, plugins["third"].endpoint, "third", now=7.0)
        (successor,) = [name for name, plugin in plugins.items() if plugin is state.plugins[THING]]
        successors.add(successor)
    assert successors == {"first", "second"}
