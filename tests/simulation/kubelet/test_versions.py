"""Each switch of `Behaviour` that shows inside the device manager: before and after.

The others are shown over their sockets: connections in test_clients, Register in test_registration, PodResources in
test_podresources, pod status and finished pods in test_embedded.
"""

import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.behaviour import Behaviour
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.topology.settings import TopologySettings
from tests.simulation.kubelet.core import THING, Core, FakeEndpoint, listed, wanting
from tests.simulation.kubelet.topology.test_vectors import hints_text


def core_of(version: str, policy: str = "none", numa_nodes: tuple[int, ...] = (0,)) -> Core:
    return Core(settings=TopologySettings(policy, numa_nodes=numa_nodes), behaviour=Behaviour.of(version))


@pytest.mark.parametrize(("version", "hints"), [("1.25", ""), ("1.26", None)])
async def test_an_empty_topology_counted_as_topology_that_nothing_matches(version: str, hints: str | None) -> None:
    core = core_of(version, "restricted", (0, 1))
    core.plug(listed("d0", ()))
    if hints is None:
        await core.admit(wanting("a", 1))
    else:
        with pytest.raises(AdmissionError, match="TopologyAffinityError"):
            await core.admit(wanting("a", 1))
    assert hints_text(core.journal.decisions[0].hints[0]) == hints


@pytest.mark.parametrize(("version", "refused"), [("1.26", False), ("1.27", True)])
async def test_a_pod_whose_device_is_sick_was_admitted_again_without_a_word(version: str, *, refused: bool) -> None:
    core = core_of(version)
    core.plug(listed("d0 d1"))
    await core.admit(wanting("a", 1))
    after = core.restart(running=[])
    after.plug(listed("d0", None, "Unhealthy") + listed("d1"))
    if refused:
        with pytest.raises(AdmissionError, match="previously allocated devices are no longer healthy"):
            await after.admit(wanting("a", 1))
    else:
        await after.admit(wanting("a", 1))
    assert after.held(wanting("a", 1)) == {"d0"}


@pytest.mark.parametrize(("version", "refused"), [("1.27", True), ("1.28", False)])
async def test_even_a_running_pod_was_refused_when_its_plugin_was_not_back(version: str, *, refused: bool) -> None:
    core = core_of(version)
    core.plug(listed("d0"))
    await core.admit(wanting("a", 1))
    after = core.restart(running=[("uid-a", "main")])
    if refused:
        with pytest.raises(AdmissionError, match="no healthy devices present"):
            await after.admit(wanting("a", 1))
    else:
        await after.admit(wanting("a", 1))


async def test_without_the_check_a_pool_device_of_a_forgotten_plugin_has_nobody_to_ask() -> None:
    core = core_of("1.26")
    core.plug(listed("d0"))
    pod = Pod("a", containers=(Container("app", {THING: 1}),), init_containers=(Container("init", {THING: 1}),))
    core.activate(pod)
    await core.manager.allocate(pod, pod.init_containers[0])
    core.lose()
    core.clock.now += 301
    core.manager.quantities()
    with pytest.raises(AdmissionError, match=f"unknown Device Plugin {THING}"):
        await core.admit(pod)


@pytest.mark.parametrize(("version", "names"), [("1.28", ()), ("1.29", ("v.io/c=0",))])
async def test_cdi_names_did_not_reach_the_runtime(version: str, names: tuple[str, ...]) -> None:
    core = core_of(version)
    core.plug(listed("d0"), FakeEndpoint(answer=lambda _: ContainerAnswer({"K": "v"}, cdi_devices=("v.io/c=0",))))
    await core.admit(wanting("a", 1))
    edits, _ = core.manager.edits("uid-a", "main")
    assert (edits.envs, edits.cdi_devices) == ({"K": "v"}, names)


@pytest.mark.parametrize(("version", "shared"), [("1.28", True), ("1.29", False)])
async def test_app_containers_got_the_devices_of_a_sidecar(version: str, *, shared: bool) -> None:
    core = core_of(version)
    core.plug(listed("d0 d1"))
    sidecar = Container("sidecar", {THING: 1}, restartable=True)
    pod = Pod("a", containers=(Container("app", {THING: 1}),), init_containers=(sidecar,))
    await core.admit(pod)
    assert (core.held(pod, "app") == core.held(pod, "sidecar")) is shared


@pytest.mark.parametrize(("version", "holder"), [("1.36", "uid-other"), ("1.37", "uid-a")])
async def test_a_change_of_health_was_told_to_whoever_held_a_device_of_that_id(version: str, holder: str) -> None:
    core = core_of(version)
    core.plug(listed("same"), resource="example.com/other")
    core.plug(listed("same"))
    await core.admit(wanting("other", 1, "example.com/other"))
    await core.admit(wanting("a", 1))
    core.manager.health_updates.take()
    core.manager.listed(THING, listed("same", None, "Unhealthy"))
    assert core.manager.health_updates.take() == {holder}


@pytest.mark.parametrize(("version", "held"), [("1.31", {"d0"}), ("1.32", set())])
async def test_the_pod_that_was_admitted_last_kept_its_devices_until_the_next_one_came(
    version: str, held: set[str]
) -> None:
    core = core_of(version)
    core.plug(listed("d0"))
    await core.admit(wanting("a", 1))
    core.active.clear()
    core.manager.collect()
    assert core.held(wanting("a", 1)) == held
    await core.admit(wanting("b", 1))
    assert core.held(wanting("b", 1)) == {"d0"}


@pytest.mark.parametrize(("version", "hints"), [("1.35", "1P 01"), ("1.36", "1P")])
async def test_hints_were_made_over_all_nodes_of_the_machine(version: str, hints: str) -> None:
    core = core_of(version, "best-effort", (0, 1))
    core.plug(listed("d0 d1", (1,)))
    await core.admit(wanting("a", 2))
    assert hints_text(core.journal.decisions[0].hints[0]) == hints
