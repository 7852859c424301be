"""Lists, losses, quantities, pools, stored answers: the device manager without a wire."""

import asyncio
from collections.abc import Sequence

import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.devicemanager import STOP_GRACE, Quantities
from gpustow.simulation.kubelet.endpoint import EndpointError, PluginOptions
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.state import AllocationError
from gpustow.simulation.kubelet.topology.hints import KubeletPanicError
from gpustow.simulation.kubelet.topology.settings import TopologySettings
from tests.simulation.kubelet.core import PREFERS, THING, Core, FakeEndpoint, listed, wanting

OTHER = "example.com/other"
PRE_START = PluginOptions(pre_start_required=True, get_preferred_allocation_available=True)


def quantities(core: Core) -> tuple[int | None, int | None]:
    now = core.manager.quantities()
    return now.capacity.get(THING), now.allocatable.get(THING)


def test_capacity_counts_all_devices_and_allocatable_the_healthy_ones() -> None:
    core = Core()
    core.plug(listed("d0 d1") + listed("d2", None, "Unhealthy"))
    assert quantities(core) == (3, 2)


@pytest.mark.parametrize("health", ["Unhealthy", "healthy", "HEALTHY", ""])
def test_only_the_exact_word_is_healthy(health: str) -> None:
    core = Core()
    core.plug(listed("d0", None, health))
    assert quantities(core) == (1, 0)


def test_an_empty_list_leaves_the_resource_known_with_nothing() -> None:
    core = Core()
    core.plug(listed("d0"))
    core.manager.listed(THING, [])
    assert quantities(core) == (0, 0)


def test_a_list_replaces_the_one_before() -> None:
    core = Core()
    core.plug(listed("d0 d1"))
    core.manager.listed(THING, listed("d2"))
    assert quantities(core) == (1, 1)


def test_duplicates_collapse_but_count_twice_with_differing_health() -> None:
    core = Core()
    core.plug(listed("d0 d0"))
    assert quantities(core) == (1, 1)
    core.manager.listed(THING, listed("d0") + listed("d0", None, "Unhealthy"))
    assert quantities(core) == (2, 1)


def test_every_list_is_written_to_the_checkpoint() -> None:
    core = Core()
    core.plug(listed("d0"))
    core.manager.listed(THING, listed("d0"))
    assert core.saves == 2


def test_a_lost_plugin_leaves_capacity_and_takes_allocatable() -> None:
    core = Core()
    core.plug(listed("d0 d1"))
    core.lose()
    assert quantities(core) == (2, 0)


def test_five_minutes_after_the_loss_the_resource_is_forgotten() -> None:
    core = Core()
    core.plug(listed("d0 d1"))
    core.lose()
    core.clock.now += STOP_GRACE
    assert quantities(core) == (2, 0)
    core.clock.now += 0.1
    saves = core.saves
    assert core.manager.quantities().deleted == {THING}
    assert quantities(core) == (None, None)
    assert core.saves == saves + 1


def test_a_plugin_that_is_lost_before_its_first_list_is_forgotten_too() -> None:
    core = Core()
    endpoint = FakeEndpoint()
    core.manager.connected(THING, endpoint, PluginOptions())
    core.manager.disconnected(THING, endpoint)
    assert core.manager.quantities() == Quantities({THING: 0}, {})
    core.clock.now += 301
    assert core.manager.quantities() == Quantities({}, {}, frozenset({THING}))


def test_a_resource_that_was_forgotten_comes_back_with_its_plugin() -> None:
    core = Core()
    core.plug(listed("d0"))
    core.lose()
    core.clock.now += STOP_GRACE + 1
    core.manager.quantities()
    core.plug(listed("d0 d1"))
    assert quantities(core) == (2, 2)
    assert core.manager.quantities().deleted == frozenset()


def test_a_plugin_that_is_back_in_time_is_never_forgotten() -> None:
    core = Core()
    core.plug(listed("d0"))
    core.lose()
    core.clock.now += STOP_GRACE - 1
    core.plug(listed("d0"))
    core.clock.now += STOP_GRACE + 1
    assert quantities(core) == (1, 1)


def test_the_loss_of_a_plugin_that_was_never_known_means_nothing() -> None:
    core = Core()
    core.manager.disconnected(THING, FakeEndpoint())
    assert quantities(core) == (None, None)


async def test_devices_come_back_when_a_pod_has_gone_and_somebody_looks() -> None:
    core = Core()
    core.plug(listed("d0"))
    await core.admit(wanting("a", 1))
    core.active.clear()
    assert core.manager.state.free(THING) == set()
    await core.admit(wanting("b", 1))
    assert core.held(wanting("b", 1)) == {"d0"}


async def test_nobody_is_collected_while_the_sources_are_not_ready() -> None:
    core = Core()
    core.plug(listed("d0 d1"))
    await core.admit(wanting("a", 1))
    core.active.clear()
    core.manager.sources_ready = False
    await core.admit(wanting("b", 1))
    assert core.held(wanting("a", 1)) == {"d0"}


async def test_a_refused_pod_leaves_its_devices_reserved_until_the_next_one_comes() -> None:
    core = Core()
    core.plug(listed("d0 d1"))
    pod = Pod("a", containers=(Container("one", {THING: 1}), Container("two", {THING: 2})), uid="uid-a")
    with pytest.raises(AdmissionError):
        await core.admit(pod)
    assert core.held(pod, "one") == {"d0"}
    await core.admit(wanting("b", 2))
    assert core.held(wanting("b", 2)) == {"d0", "d1"}


async def test_one_allocate_call_is_made_for_each_container_and_resource() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2"))
    core.plug(listed("o0"), resource=OTHER)
    pod = Pod("a", containers=(Container("one", {THING: 1, OTHER: 1}), Container("two", {THING: 2})))
    await core.admit(pod)
    calls = {(call.container, call.resource, call.device_ids) for call in core.journal.allocations}
    assert calls == {("one", THING, ("d0",)), ("one", OTHER, ("o0",)), ("two", THING, ("d1", "d2"))}


async def test_init_containers_come_first_in_their_order() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2"))
    pod = Pod(
        "a",
        containers=(Container("app", {THING: 1}),),
        init_containers=(Container("first", {THING: 1}), Container("second", {THING: 1})),
    )
    await core.admit(pod)
    assert [call.container for call in core.journal.allocations] == ["first", "second", "app"]


async def test_the_resources_of_a_container_come_in_random_order() -> None:
    firsts = set()
    for seed in range(10):
        core = Core(seed)
        core.plug(listed("d0"))
        core.plug(listed("o0"), resource=OTHER)
        await core.admit(Pod("a", containers=(Container("main", {THING: 1, OTHER: 1}),)))
        firsts.add(core.journal.allocations[0].resource)
    assert firsts == {THING, OTHER}


def eight(*, init: int = 0, sidecar: int = 0, app: int) -> Pod:
    init_containers = []
    if sidecar:
        init_containers.append(Container("sidecar", {THING: sidecar}, restartable=True))
    if init:
        init_containers.append(Container("init", {THING: init}))
    return Pod("a", containers=(Container("app", {THING: app}),), init_containers=tuple(init_containers), uid="uid-a")


async def test_an_app_container_reuses_all_that_the_init_container_had() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2 d3 d4 d5 d6 d7"))
    pod = eight(init=8, app=8)
    await core.admit(pod)
    assert len(core.held(pod, "app")) == 8
    assert len(core.asked()) == 1


async def test_a_sidecar_shares_nothing_with_the_app_container() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2 d3 d4 d5 d6 d7"))
    with pytest.raises(AdmissionError, match="Requested: 8, Available: 0"):
        await core.admit(eight(sidecar=8, app=8))


async def test_what_nobody_takes_from_the_pool_stays_reserved_until_the_pod_ends() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2"))
    await core.admit(eight(init=2, app=1))
    with pytest.raises(AdmissionError, match="Requested: 2, Available: 1"):
        await core.admit(wanting("b", 2))


async def test_what_an_app_container_takes_leaves_the_pool() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2"))
    pod = Pod(
        "a",
        containers=(Container("one", {THING: 1}), Container("two", {THING: 1}), Container("three", {THING: 1})),
        init_containers=(Container("init", {THING: 2}),),
    )
    await core.admit(pod)
    held = [core.held(pod, name) for name in ("one", "two", "three")]
    assert set().union(*held) == {"d0", "d1", "d2"}
    assert sum(map(len, held)) == 3


async def test_devices_from_the_pool_are_not_checked_for_health() -> None:
    core = Core()
    endpoint = core.plug(listed("d0 d1"))
    pod = eight(init=1, app=1)
    endpoint.during_allocate = lambda: core.manager.listed(THING, listed("d1") + listed("d0", None, "Unhealthy"))
    await core.admit(pod)
    assert core.held(pod, "app") == {"d0"}


async def test_the_pool_of_another_pod_is_dropped() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2 d3"))
    first, second = eight(init=1, app=1), wanting("b", 1)
    core.activate(first)
    await core.manager.allocate(first, first.init_containers[0])
    await core.admit(second)
    await core.manager.allocate(first, first.containers[0])
    assert core.held(first, "init").isdisjoint(core.held(first, "app"))


async def test_a_failed_allocate_refuses_the_pod_with_the_plugins_words_and_frees_the_devices() -> None:
    core = Core()
    endpoint = core.plug(listed("d0"))
    endpoint.allocate_error = "rpc error: code = Unknown desc = no such device"
    with pytest.raises(AdmissionError) as refused:
        await core.admit(wanting("a", 1))
    assert refused.value.reason == "UnexpectedAdmissionError"
    assert refused.value.status_message == (
        "Allocate failed due to rpc error: code = Unknown desc = no such device, which is unexpected"
    )
    endpoint.allocate_error = None
    await core.admit(wanting("b", 1))


async def test_an_answer_without_a_container_refuses_the_pod_and_leaks_its_devices() -> None:
    core = Core()
    endpoint = core.plug(listed("d0"))
    endpoint.no_containers = True
    with pytest.raises(AdmissionError, match="no containers return in allocation response"):
        await core.admit(wanting("a", 1))
    endpoint.no_containers = False
    with pytest.raises(AdmissionError, match="Requested: 1, Available: 0"):
        await core.admit(wanting("b", 1))


async def test_a_leaked_device_comes_back_when_a_recorded_pod_goes() -> None:
    core = Core()
    endpoint = core.plug(listed("d0 d1"))
    await core.admit(wanting("old", 1))
    endpoint.no_containers = True
    with pytest.raises(AdmissionError):
        await core.admit(wanting("a", 1))
    endpoint.no_containers = False
    core.active.clear()
    await core.admit(wanting("b", 2))


async def test_a_device_is_given_to_two_pods_when_the_tables_are_rebuilt_during_a_call() -> None:
    core = Core()
    calls = 0
    endpoint = core.plug(listed("d0 d1"))
    await core.admit(wanting("gone", 1))
    core.active.clear()

    def rebuild() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            core.manager.state.rebuild_in_use()

    endpoint.during_allocate = rebuild
    first, second = wanting("first", 1), wanting("second", 1)
    waiting = asyncio.Event()
    allocate = endpoint.allocate

    async def slowly(device_ids: Sequence[str], /) -> ContainerAnswer | None:
        answer = await allocate(device_ids)
        if calls == 1:
            await waiting.wait()
        return answer

    endpoint.allocate = slowly  # type: ignore[method-assign]  # the first call takes its time
    core.activate(first)
    core.activate(second)
    slow = asyncio.create_task(core.manager.allocate(first, first.containers[0]))
    await asyncio.sleep(0)
    await core.manager.allocate(second, second.containers[0])
    waiting.set()
    await slow
    assert core.held(first) == core.held(second) == {"d0"}


async def test_kubelet_crashes_when_a_device_leaves_the_list_during_its_allocate() -> None:
    core = Core()
    endpoint = core.plug(listed("d0 d1"))
    endpoint.during_allocate = lambda: core.manager.listed(THING, listed("d1"))
    with pytest.raises(KubeletPanicError, match="d0"):
        await core.admit(wanting("a", 1))


async def test_kubelet_crashes_when_a_pool_device_leaves_the_list() -> None:
    core = Core()
    endpoint = core.plug(listed("d0 d1 d2"))
    pod = eight(init=1, app=2)
    core.activate(pod)
    await core.manager.allocate(pod, pod.init_containers[0])
    endpoint.during_preferred = lambda: core.manager.listed(THING, listed("d1 d2"))
    with pytest.raises(KubeletPanicError, match="d0"):
        await core.manager.allocate(pod, pod.containers[0])


async def test_the_numa_placement_is_recorded_as_it_was() -> None:
    core = Core(settings=TopologySettings("best-effort", numa_nodes=(0, 1)))
    core.plug(listed("d0", (0, 1)) + listed("d1"))
    await core.admit(wanting("a", 2))
    core.manager.listed(THING, listed("d0 d1", (1,)))
    held = core.manager.state.holdings.of_container("uid-a", "main")[THING]
    assert held.by_node == {0: ("d0",), 1: ("d0",), -1: ("d1",)}


async def test_the_stored_answer_is_replayed_at_every_start_of_the_container() -> None:
    core = Core()
    core.plug(listed("d0"))
    pod = wanting("a", 1)
    await core.admit(pod)
    for _ in range(3):
        assert (await core.manager.start(pod, pod.containers[0])).envs == {"IDS": "d0"}
    assert core.allocated() == ["d0"]


async def test_a_container_without_stored_state_is_allocated_for_at_its_start() -> None:
    core = Core()
    pod = wanting("a", 1)
    await core.admit(pod)
    core.plug(listed("d0"))
    assert (await core.manager.start(pod, pod.containers[0])).envs == {"IDS": "d0"}
    assert core.allocated() == ["d0"]


async def test_a_pod_that_has_gone_is_not_allocated_for_at_a_start() -> None:
    core = Core()
    pod = wanting("a", 1)
    await core.admit(pod)
    core.active.clear()
    core.plug(listed("d0"))
    assert await core.manager.start(pod, pod.containers[0]) == ContainerAnswer()


async def test_an_amount_of_zero_starts_without_a_call() -> None:
    core = Core()
    endpoint = core.plug(listed("d0"), options=PRE_START)
    pod = wanting("a", 0)
    await core.admit(pod)
    await core.manager.start(pod, pod.containers[0])
    assert endpoint.pre_starts == []


async def test_pre_start_is_called_before_every_start_if_the_plugin_wants_it() -> None:
    core = Core()
    endpoint = core.plug(listed("d0 d1"), options=PRE_START)
    pod = wanting("a", 2)
    await core.admit(pod)
    assert endpoint.pre_starts == []
    for _ in range(2):
        await core.manager.start(pod, pod.containers[0])
    assert endpoint.pre_starts == [("d0", "d1")] * 2


async def test_an_error_of_pre_start_fails_that_start_only() -> None:
    core = Core()
    endpoint = core.plug(listed("d0"), options=PRE_START)
    pod = wanting("a", 1)
    await core.admit(pod)
    endpoint.pre_start_error = "not ready"
    with pytest.raises(AllocationError, match="device plugin PreStartContainer rpc failed with err: not ready"):
        await core.manager.start(pod, pod.containers[0])
    endpoint.pre_start_error = None
    await core.manager.start(pod, pod.containers[0])


async def test_pre_start_of_a_lost_plugin_fails_because_its_endpoint_has_been_stopped() -> None:
    core = Core()
    core.plug(listed("d0"), options=PRE_START)
    pod = wanting("a", 1)
    await core.admit(pod)
    core.lose()
    with pytest.raises(AllocationError, match="has been stopped"):
        await core.manager.start(pod, pod.containers[0])


async def test_pre_start_of_a_container_that_has_nothing_fails() -> None:
    core = Core()
    pod = wanting("a", 1)
    await core.admit(pod)
    core.plug(listed("d0"), options=PRE_START)
    with pytest.raises(AllocationError, match="no devices found allocated in local cache for pod uid-a"):
        await core.manager.start(pod, pod.containers[0])


async def test_after_a_restart_pre_start_is_silently_skipped_until_the_plugin_is_back() -> None:
    core = Core()
    core.plug(listed("d0"), options=PRE_START)
    pod = wanting("a", 1)
    await core.admit(pod)
    after = core.restart(running=[("uid-a", "main")])
    assert (await after.manager.start(pod, pod.containers[0])).envs == {"IDS": "d0"}
    back = after.plug(listed("d0"), options=PRE_START)
    await after.manager.start(pod, pod.containers[0])
    assert back.pre_starts == [("d0",)]


async def test_a_start_after_the_plugin_was_forgotten_fails() -> None:
    core = Core()
    core.plug(listed("d0"), options=PRE_START)
    pod = wanting("a", 1)
    await core.admit(pod)
    core.lose()
    core.clock.now += STOP_GRACE + 1
    core.manager.quantities()
    with pytest.raises(AllocationError, match="endpoint not found in cache for a registered resource"):
        await core.manager.start(pod, pod.containers[0])


async def test_a_lost_plugin_has_no_healthy_devices_to_allocate() -> None:
    core = Core()
    core.plug(listed("d0"))
    core.lose()
    with pytest.raises(AdmissionError, match=f"no healthy devices present; cannot allocate unhealthy devices {THING}"):
        await core.admit(wanting("a", 1))


async def test_a_plugin_that_is_lost_during_get_preferred_allocation_refuses_the_allocate() -> None:
    core = Core()
    endpoint = core.plug(listed("d0"))
    endpoint.during_preferred = core.lose
    with pytest.raises(AdmissionError, match=f"endpoint {THING} has been stopped"):
        await core.admit(wanting("a", 1))


async def test_a_resource_that_is_forgotten_but_held_is_unregistered() -> None:
    core = Core()
    core.plug(listed("d0"))
    await core.admit(wanting("a", 1))
    core.lose()
    core.clock.now += STOP_GRACE + 1
    core.manager.quantities()
    with pytest.raises(AdmissionError, match=f"cannot allocate unregistered device {THING}"):
        await core.admit(wanting("b", 1))


async def test_a_running_pod_keeps_its_sick_device() -> None:
    core = Core()
    core.plug(listed("d0"))
    pod = wanting("a", 1)
    await core.admit(pod)
    core.manager.listed(THING, listed("d0", None, "Unhealthy"))
    assert (await core.manager.start(pod, pod.containers[0])).envs == {"IDS": "d0"}


async def test_where_answers_conflict_either_resource_may_win() -> None:
    winners = set()
    for seed in range(12):
        core = Core(seed)
        core.plug(listed("d0"))
        core.plug(listed("o0"), resource=OTHER)
        pod = Pod("a", containers=(Container("main", {THING: 1, OTHER: 1}),))
        await core.admit(pod)
        edits, conflicts = core.manager.edits(pod.uid, "main")
        assert {edits.envs["IDS"], conflicts[0].dropped} == {"d0", "o0"}
        winners.add(edits.envs["IDS"])
    assert winners == {"d0", "o0"}


async def test_calls_to_a_stopped_endpoint_fail() -> None:
    core = Core()
    core.manager.restore(core.manager.state.holdings, [THING])
    endpoint = core.manager.state.plugins[THING].reachable(THING)
    for call in (endpoint.preferred([], [], 1), endpoint.allocate([]), endpoint.pre_start([])):
        with pytest.raises(EndpointError, match=f"endpoint {THING} has been stopped"):
            await call


async def test_an_endpoint_can_answer_nothing_at_all() -> None:
    core = Core()
    core.plug(listed("d0"), FakeEndpoint(answer=lambda _: ContainerAnswer()), options=PREFERS)
    await core.admit(wanting("a", 1))
    assert core.manager.edits("uid-a", "main") == (ContainerAnswer(), ())
