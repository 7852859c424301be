"""Restart and reboot, without a wire: what a pod that was there before meets at its re-admission.

The setting of most tests: devices d0-d3 on node 0 and d4-d7 on node 1; pod `a` holds two; pod `b` has an init
container with one and an app container with two, of which one is the same.
"""

import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.topology.hints import KubeletPanicError
from gpustow.simulation.kubelet.topology.settings import TopologySettings
from tests.simulation.kubelet.core import THING, Core, listed, wanting
from tests.simulation.kubelet.topology.test_vectors import decision

LAYOUT = listed("d0 d1 d2 d3", (0,)) + listed("d4 d5 d6 d7", (1,))
POLICIES = ["none", "restricted", "single-numa-node"]
ALIGNING = ["restricted", "single-numa-node"]
A = wanting("a", 2)
B = Pod("b", containers=(Container("app", {THING: 2}),), init_containers=(Container("init", {THING: 1}),), uid="uid-b")
RUNNING = [("uid-a", "main"), ("uid-b", "app")]


async def before(policy: str) -> Core:
    core = Core(settings=TopologySettings(policy, numa_nodes=(0, 1)))
    core.plug(LAYOUT)
    await core.admit(A)
    await core.admit(B)
    return core


async def refusal(core: Core, pod: Pod) -> str:
    with pytest.raises(AdmissionError) as refused:
        await core.admit(pod)
    return refused.value.status_message


def decisions(core: Core) -> list[tuple[str | None, str]]:
    return [decision(made) for made in core.journal.decisions]


async def test_the_setting_is_as_described() -> None:
    core = await before("none")
    assert (core.held(A), core.held(B, "init"), core.held(B, "app")) == ({"d0", "d1"}, {"d2"}, {"d2", "d3"})


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_running_pod_is_admitted_before_its_plugin_is_back(policy: str) -> None:
    after = (await before(policy)).restart(RUNNING)
    await after.admit(A)
    assert after.allocated() == []
    assert [hints for hints, _ in decisions(after)] == ([] if policy == "none" else [None])


@pytest.mark.parametrize("policy", POLICIES)
async def test_after_a_reboot_a_pod_is_refused_before_its_plugin_is_back(policy: str) -> None:
    after = (await before(policy)).restart(running=[])
    assert "no healthy devices present" in await refusal(after, A)


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_pod_whose_init_container_had_devices_is_refused_even_after_a_plain_restart(policy: str) -> None:
    after = (await before(policy)).restart(RUNNING)
    assert "no healthy devices present" in await refusal(after, B)


@pytest.mark.parametrize("policy", POLICIES)
async def test_once_the_plugin_is_back_pods_are_admitted_without_a_call(policy: str) -> None:
    after = (await before(policy)).restart(running=[])
    after.plug(LAYOUT)
    await after.admit(A)
    await after.admit(B)
    assert (after.allocated(), after.asked()) == ([], [])


@pytest.mark.parametrize("policy", ALIGNING)
async def test_once_the_plugin_is_back_hints_come_from_the_pods_own_devices(policy: str) -> None:
    after = (await before(policy)).restart(running=[])
    after.plug(LAYOUT)
    await after.admit(A)
    await after.admit(B)
    assert decisions(after) == [("0P 01", "0P")] * 3


@pytest.mark.parametrize("policy", POLICIES)
async def test_with_sources_ready_it_stays_so(policy: str) -> None:
    after = (await before(policy)).restart(running=[])
    after.plug(LAYOUT)
    after.manager.sources_ready = True
    await after.admit(B)
    assert (after.allocated(), after.asked()) == ([], [])


async def test_a_new_pod_after_the_restart_is_offered_what_is_left() -> None:
    after = (await before("none")).restart(RUNNING)
    after.plug(LAYOUT)
    await after.admit(wanting("new", 2))
    assert after.asked() == [("d4 d5 d6 d7", "", 2)]


@pytest.mark.parametrize("policy", ALIGNING)
async def test_a_new_pod_after_the_restart_has_hints_for_what_is_left(policy: str) -> None:
    after = (await before(policy)).restart(RUNNING)
    after.plug(LAYOUT)
    await after.admit(wanting("new", 2))
    assert decisions(after) == [("1P 01", "1P")]
    assert after.asked() == [("d4 d5 d6 d7", "", 2)]


async def last_two(policy: str) -> Core:
    after = (await before(policy)).restart(RUNNING)
    after.plug(LAYOUT)
    await after.admit(wanting("new", 2))
    after.journal.clear()
    await after.admit(
        Pod("c", containers=(Container("app", {THING: 2}),), init_containers=(Container("init", {THING: 1}),))
    )
    return after


async def test_an_init_container_and_an_app_container_on_the_last_two_devices() -> None:
    assert (await last_two("none")).asked() == [("d6 d7", "", 1), ("d6 d7", "d6", 2)]


@pytest.mark.parametrize("policy", ALIGNING)
async def test_and_with_a_hint_the_plugin_is_not_asked_for_the_last_one(policy: str) -> None:
    after = await last_two(policy)
    assert after.asked() == [("d6 d7", "", 1)]
    assert after.allocated() == ["d6", "d6 d7"]


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_pod_whose_device_has_become_sick_is_refused(policy: str) -> None:
    after = (await before(policy)).restart(running=[])
    after.plug(listed("d1 d2 d3", (0,)) + listed("d0", (0,), "Unhealthy") + LAYOUT[4:])
    assert "previously allocated devices are no longer healthy" in await refusal(after, A)
    assert decisions(after) == ([] if policy == "none" else [("0P 01", "0P")])


async def test_a_pod_whose_device_has_left_the_list_is_refused() -> None:
    after = (await before("none")).restart(running=[])
    after.plug(listed("d1 d2 d3", (0,)) + LAYOUT[4:])
    assert "previously allocated devices are no longer healthy" in await refusal(after, A)


async def test_and_with_hints_kubelet_crashes_on_it() -> None:
    after = (await before("best-effort")).restart(running=[])
    after.plug(listed("d1 d2 d3", (0,)) + LAYOUT[4:])
    with pytest.raises(KubeletPanicError, match="d0"):
        await after.admit(A)


async def test_a_changed_request_is_told_before_the_container_is_trusted() -> None:
    after = (await before("none")).restart(RUNNING)
    changed = Pod("a", containers=(Container("main", {THING: 3}),), uid="uid-a")
    assert f'changed request for resource "{THING}" from 2 to 3' in await refusal(after, changed)


async def test_a_running_pod_is_refused_when_its_device_reports_another_node() -> None:
    after = (await before("restricted")).restart(RUNNING)
    after.plug(listed("d0 d2 d3", (0,)) + listed("d1", (1,)) + LAYOUT[4:])
    assert await refusal(after, A) == "Resources cannot be allocated with Topology locality"
    assert decisions(after) == [("01", "01")]


async def test_pod_scope_gives_hints_from_the_union_of_all_containers() -> None:
    core = Core(settings=TopologySettings("restricted", "pod", (0, 1)))
    core.plug(LAYOUT)
    pod = Pod("p", containers=(Container("app", {THING: 3}),), init_containers=(Container("init", {THING: 2}),))
    await core.admit(pod)
    after = core.restart(running=[])
    after.plug(LAYOUT)
    await after.admit(pod)
    assert decisions(after) == [("0P 01", "0P")]
    assert after.allocated() == []


async def test_the_admission_of_an_init_container_fills_the_pool_anew() -> None:
    after = (await before("none")).restart(running=[])
    after.plug(LAYOUT)
    after.activate(B)
    await after.manager.allocate(B, B.init_containers[0])
    more = Pod("b", containers=(Container("more", {THING: 2}),), init_containers=B.init_containers, uid="uid-b")
    await after.manager.allocate(more, more.containers[0])
    assert after.asked() == [("d2 d4 d5 d6 d7", "d2", 2)]


async def test_the_grace_of_a_plugin_that_does_not_come_back_starts_at_the_restart() -> None:
    core = await before("none")
    core.clock.now = 1000.0
    after = core.restart(RUNNING)
    assert after.manager.quantities().capacity == {THING: 0}
    core.clock.now += 301
    assert after.manager.quantities().capacity == {}
