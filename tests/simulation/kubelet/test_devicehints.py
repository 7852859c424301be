"""Which resources have hints, and what is looked at before they are made; the hints themselves are in the vectors."""

import pytest

from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.topology.hints import Hints
from gpustow.simulation.kubelet.topology.settings import TopologySettings
from tests.simulation.kubelet.core import THING, Core, listed, wanting

SCOPES = ["container", "pod"]


def core_with(scope: str, nodes: int = 2) -> Core:
    most = {"max-allowable-numa-nodes": str(max(nodes, 8))}
    return Core(settings=TopologySettings("best-effort", scope, tuple(range(nodes)), most))


def hints(core: Core, pod: Pod) -> Hints:
    if core.topology.settings.scope == "pod":
        return core.manager.pod_hints(pod)
    return core.manager.hints(pod, pod.containers[0])


@pytest.mark.parametrize("scope", SCOPES)
def test_a_resource_that_no_plugin_serves_is_left_out(scope: str) -> None:
    assert hints(core_with(scope), wanting("a", 1)) == {}


@pytest.mark.parametrize("scope", SCOPES)
def test_a_resource_without_healthy_devices_cannot_be_served(scope: str) -> None:
    core = core_with(scope)
    core.plug(listed("d0", (0,), "Unhealthy"))
    assert hints(core, wanting("a", 1)) == {THING: ()}


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_forgotten_resource_that_somebody_holds_is_still_looked_at(scope: str) -> None:
    core = core_with(scope)
    core.plug(listed("d0 d1", (0,)))
    await core.admit(wanting("a", 1))
    core.lose()
    core.clock.now += 301
    core.manager.quantities()
    assert hints(core, wanting("b", 1)) == {THING: ()}


@pytest.mark.parametrize("scope", SCOPES)
async def test_devices_of_pods_that_have_gone_are_collected_first(scope: str) -> None:
    core = core_with(scope)
    core.plug(listed("d0", (0,)))
    await core.admit(wanting("a", 1))
    core.active.clear()
    (hint,) = hints(core, wanting("b", 1))[THING] or ()
    assert str(hint) == "0P"


async def test_a_container_that_holds_sick_devices_has_hints_from_them() -> None:
    core = core_with("container")
    core.plug(listed("d0", (0,)) + listed("d1", (1,)))
    await core.admit(wanting("a", 1))
    core.manager.listed(THING, listed("d0", (0,), "Unhealthy") + listed("d1", (1,)))
    assert [str(hint) for hint in hints(core, wanting("a", 1))[THING] or ()] == ["0P", "01"]


@pytest.mark.parametrize("scope", SCOPES)
def test_devices_on_two_of_36_nodes_have_hints_over_these_two(scope: str) -> None:
    core = core_with(scope, nodes=36)
    core.plug(listed("d0", (0,)) + listed("d1", (1,)))
    assert [str(hint) for hint in hints(core, wanting("a", 2))[THING] or ()] == ["01P"]


async def test_the_pod_scope_reuses_nothing_while_it_makes_hints() -> None:
    core = core_with("pod")
    core.plug(listed("d0 d1", (0,)))
    pod = Pod("a", containers=(Container("main", {THING: 2}),), init_containers=(Container("init", {THING: 2}),))
    await core.admit(pod)
    assert [str(hint) for hint in core.journal.decisions[0].hints[0][THING] or ()] == ["0P"]
    assert core.allocated() == ["d0 d1", "d0 d1"]
