"""Which devices a container gets: kubelet's checks, what the plugin is asked, and what its answer does."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet.allocation import split
from gpustow.simulation.kubelet.devices import DeviceTable, PluginDevice
from gpustow.simulation.kubelet.endpoint import PluginOptions
from gpustow.simulation.kubelet.pod import Container, Pod
from gpustow.simulation.kubelet.topology.hints import Hint
from gpustow.simulation.kubelet.topology.masks import Mask
from gpustow.simulation.kubelet.topology.settings import TopologySettings
from tests.simulation.kubelet.core import THING, Core, FakeEndpoint, listed, wanting

Prefer = Callable[[Sequence[str], Sequence[str], int], Sequence[str]]

A2B4 = listed("a0 a1", (0,)) + listed("b0 b1 b2 b3", (1,))
BEST_EFFORT = TopologySettings("best-effort", numa_nodes=(0, 1))


async def refusal(core: Core, pod: Pod) -> str:
    with pytest.raises(AdmissionError) as refused:
        await core.admit(pod)
    return refused.value.status_message


def answering(*ids: str) -> Prefer:
    return lambda *_: ids


async def given_for(pod: Pod, prefer: Prefer, settings: TopologySettings, seeds: int = 12) -> set[frozenset[str]]:
    """All the sets that the pod can get when the plugin answers like that."""
    outcomes = set()
    for seed in range(seeds):
        core = Core(seed, settings=settings)
        core.plug(A2B4, FakeEndpoint(prefer=prefer))
        await core.admit(pod)
        outcomes.add(frozenset(core.held(pod)))
    return outcomes


async def test_without_hints_all_free_healthy_devices_are_offered_and_nothing_must_be_included() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2") + listed("d3", None, "Unhealthy"))
    await core.admit(wanting("a", 1))
    await core.admit(wanting("b", 1))
    assert core.asked() == [("d0 d1 d2", "", 1), ("d1 d2", "", 1)]


async def test_the_plugin_is_asked_even_when_there_is_no_real_choice() -> None:
    core = Core()
    core.plug(listed("d0 d1"))
    await core.admit(wanting("a", 2))
    assert core.asked() == [("d0 d1", "", 2)]


async def test_a_plugin_without_the_option_is_not_asked_and_the_choice_is_arbitrary() -> None:
    outcomes: set[str] = set()
    for seed in range(8):
        core = Core(seed)
        core.plug(listed("d0 d1 d2"), options=PluginOptions())
        await core.admit(wanting("a", 1))
        assert core.asked() == []
        outcomes |= core.held(wanting("a", 1))
    assert outcomes == {"d0", "d1", "d2"}


async def test_an_amount_of_zero_makes_no_call() -> None:
    core = Core()
    core.plug(listed("d0"))
    await core.admit(wanting("a", 0))
    assert (core.asked(), core.allocated()) == ([], [])


async def test_a_resource_that_no_plugin_serves_is_none_of_kubelets_business() -> None:
    core = Core()
    await core.admit(wanting("a", 1))
    assert core.held(wanting("a", 1)) == set()


async def test_an_answer_outside_the_hinted_node_is_ignored() -> None:
    assert await given_for(wanting("a", 1), answering("b0"), BEST_EFFORT) == {frozenset({"a0"}), frozenset({"a1"})}


async def test_of_an_answer_that_is_too_long_an_arbitrary_part_is_taken() -> None:
    outcomes = await given_for(wanting("a", 1), answering("a0", "a1", "b0"), BEST_EFFORT)
    assert outcomes == {frozenset({"a0"}), frozenset({"a1"})}


async def test_duplicates_in_an_answer_collapse_and_the_rest_is_filled_up() -> None:
    outcomes = await given_for(wanting("a", 2), answering("b3", "b3"), TopologySettings())
    assert all("b3" in outcome for outcome in outcomes)
    assert len(outcomes) > 1


async def test_unknown_ids_in_an_answer_are_ignored() -> None:
    outcomes = await given_for(wanting("a", 1), answering("nonsense"), TopologySettings(), seeds=40)
    assert outcomes <= {frozenset({device.id}) for device in A2B4}
    assert len(outcomes) > 3


async def test_busy_and_unhealthy_ids_in_an_answer_are_ignored() -> None:
    core = Core()
    endpoint = core.plug(listed("d0 d2") + listed("d1", None, "Unhealthy"))
    await core.admit(wanting("a", 1))
    endpoint.prefer = answering("d0", "d1")
    await core.admit(wanting("b", 1))
    assert core.held(wanting("b", 1)) == {"d2"}


async def test_a_must_include_that_the_answer_leaves_out_does_no_harm() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2"), FakeEndpoint(prefer=answering("d2")))
    pod = Pod("a", containers=(Container("main", {THING: 2}),), init_containers=(Container("init", {THING: 1}),))
    await core.admit(pod)
    assert core.asked() == [("d0 d1 d2", "", 1), ("d0 d1 d2", "d2", 2)]
    assert len(core.held(pod)) == 2
    assert "d2" in core.held(pod)


async def test_a_pool_device_without_topology_is_reused_though_the_hints_did_not_count_it() -> None:
    core = Core(settings=BEST_EFFORT)
    core.plug(listed("a0 a1", (0,)) + listed("x"))
    pod = Pod("a", containers=(Container("main", {THING: 3}),), init_containers=(Container("init", {THING: 3}),))
    await core.admit(pod)
    assert core.journal.decisions[-1].hints[0] == {THING: ()}
    assert core.held(pod) == {"a0", "a1", "x"}


async def test_what_exceeds_the_aligned_devices_comes_from_other_nodes_before_those_without() -> None:
    core = Core(settings=BEST_EFFORT)
    core.plug(listed("a0", (0,)) + listed("u0", (7,)) + listed("x0 x1"), FakeEndpoint(prefer=answering()))
    pod = wanting("a", 3)
    await core.admit(pod)
    assert core.asked() == [("a0 u0 x0 x1", "a0", 3)]
    assert {"a0", "u0"} < core.held(pod)


async def test_an_error_of_get_preferred_allocation_refuses_the_pod() -> None:
    core = Core()
    core.plug(listed("d0"), FakeEndpoint(prefer_error="rpc error: code = Unknown desc = GPU is lost"))
    assert await refusal(core, wanting("a", 1)) == (
        "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: "
        "rpc error: code = Unknown desc = GPU is lost, which is unexpected"
    )


async def test_an_error_of_get_preferred_allocation_leaks_the_aligned_devices_until_a_pod_goes() -> None:
    core = Core(settings=BEST_EFFORT)
    layout = listed("a0 a1", (0,)) + listed("x0 x1 x2 x3")
    endpoint = core.plug(layout)
    await core.admit(wanting("first", 1))
    endpoint.prefer_error = "boom"
    await refusal(core, wanting("second", 3))
    assert core.manager.state.in_use[THING] == {"a0", "a1"}
    assert set(core.manager.state.holdings.allocated()[THING]) == {"a0"}
    core.active.clear()
    core.manager.hints(wanting("third", 1), Container("main", {THING: 1}))
    assert core.manager.state.in_use == {}


async def test_too_few_devices_are_told_with_what_is_missing_after_the_pool() -> None:
    core = Core()
    core.plug(listed("d0 d1 d2"))
    pod = Pod("a", containers=(Container("main", {THING: 4}),), init_containers=(Container("init", {THING: 1}),))
    assert await refusal(core, pod) == (
        f"Allocate failed due to requested number of devices unavailable for {THING}. Requested: 3, Available: 2, "
        "which is unexpected"
    )


async def test_the_lists_reach_the_plugin_in_random_order() -> None:
    orders = set()

    def note(available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        del must_include, size
        orders.add(tuple(available))
        return ()

    for seed in range(10):
        core = Core(seed)
        core.plug(listed("d0 d1 d2 d3"), FakeEndpoint(prefer=note))
        await core.admit(wanting("a", 1))
    assert len(orders) > 3


async def test_the_same_seed_makes_the_same_choices() -> None:
    outcomes = []
    for _ in range(2):
        core = Core(7)
        core.plug(listed("d0 d1 d2 d3 d4 d5 d6 d7"), options=PluginOptions())
        await core.admit(wanting("a", 3))
        outcomes.append(core.held(wanting("a", 3)))
    assert outcomes[0] == outcomes[1]


def table(*devices: PluginDevice) -> DeviceTable:
    made = DeviceTable()
    made.replace(THING, devices)
    return made


def test_a_device_that_spans_the_mask_and_another_node_is_aligned() -> None:
    parts = split(table(PluginDevice("m", "Healthy", (0, 1))), THING, {"m"}, Mask.of((0,)))
    assert parts.aligned == {"m"}


def test_a_device_on_minus_one_and_a_node_is_judged_by_the_node() -> None:
    devices = table(PluginDevice("on", "Healthy", (-1, 0)), PluginDevice("off", "Healthy", (-1, 1)))
    parts = split(devices, THING, {"on", "off"}, Mask.of((0,)))
    assert (parts.aligned, parts.unaligned) == ({"on"}, {"off"})


def test_a_device_on_minus_one_alone_has_no_affinity() -> None:
    devices = table(PluginDevice("x", "Healthy", (-1,)), PluginDevice("e", "Healthy", ()))
    parts = split(devices, THING, {"x", "e"}, Mask.of((0,)))
    assert parts.without_affinity == {"x", "e"}


NODES = st.none() | st.lists(st.sampled_from([-1, 0, 1, 7]), max_size=2).map(tuple)


@given(st.lists(NODES, min_size=1, max_size=6), st.none() | st.sampled_from([(0,), (1,), (0, 1)]))
def test_every_free_device_is_in_exactly_one_part(
    nodes: list[tuple[int, ...] | None], mask: tuple[int, ...] | None
) -> None:
    devices = [PluginDevice(f"d{number}", "Healthy", of_device) for number, of_device in enumerate(nodes)]
    free = {device.id for device in devices}
    parts = split(table(*devices), THING, free, None if mask is None else Mask.of(mask))
    assert len(parts.aligned) + len(parts.unaligned) + len(parts.without_affinity) == len(free)
    assert parts.aligned | parts.unaligned | parts.without_affinity == free


SIZES = st.integers(1, 6)


@st.composite
def answers(draw: st.DrawFn) -> list[str]:
    return draw(st.lists(st.sampled_from(["a0", "a1", "b0", "b1", "b2", "b3", "zz", ""]), max_size=9))


@given(size=SIZES, answer=answers(), seed=st.integers(0, 99), mask=st.sampled_from([None, (0,), (1,), (0, 1)]))
async def test_whatever_the_plugin_answers_the_pod_gets_as_many_as_it_asked_for(
    size: int, answer: list[str], seed: int, mask: tuple[int, ...] | None
) -> None:
    core = Core(seed)
    core.plug(A2B4, FakeEndpoint(prefer=answering(*answer)))
    pod = wanting("a", size)
    core.affinities.store(pod.uid, "main", Hint(None if mask is None else Mask.of(mask), preferred=True))
    await core.admit(pod)
    held = core.held(pod)
    assert len(held) == size
    for available, must, asked in core.asked():
        assert asked == size
        assert set(must.split()) <= set(available.split())
        assert len(must.split()) <= size <= len(available.split())
