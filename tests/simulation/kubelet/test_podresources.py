"""PodResources over its socket: what is listed, how, and what a List does to the device manager."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import grpc
import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as plugin_wire
from gpustow.kubelet.protocol import podresources_v1_pb2 as wire
from gpustow.kubelet.protocol.services import PodResourcesCalls, unix_channel
from gpustow.simulation.kubelet import Behaviour, Container, EmbeddedKubelet, Pod
from gpustow.simulation.kubelet.behaviour import DEFAULT_BEHAVIOUR
from tests.simulation.kubelet.core import THING, FakeClock, Nodes, wanting
from tests.simulation.kubelet.fakeplugin import FakePlugin, device, devices, until

Shown = list[tuple[str, tuple[str, ...], Nodes]]


@asynccontextmanager
async def node(
    directory: Path, random: Random, listed: list[plugin_wire.Device], behaviour: Behaviour = DEFAULT_BEHAVIOUR
) -> AsyncIterator[tuple[EmbeddedKubelet, FakePlugin, PodResourcesCalls]]:
    async with EmbeddedKubelet(directory, random=random, clock=FakeClock(), behaviour=behaviour) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, listed)
        channel = unix_channel(kubelet.pod_resources_socket)
        async with plugin, channel:
            await kubelet.wait_for(THING)
            yield kubelet, plugin, PodResourcesCalls(channel)


def shown(entries: "list[wire.ContainerDevices]") -> Shown:
    """Resource, ids and NUMA nodes (None: no topology) of each entry."""
    return [
        (
            entry.resource_name,
            tuple(entry.device_ids),
            tuple(numa.ID for numa in entry.topology.nodes) if entry.HasField("topology") else None,
        )
        for entry in entries
    ]


async def listed_pods(calls: PodResourcesCalls) -> dict[str, dict[str, Shown]]:
    response = await calls.list(wire.ListPodResourcesRequest())
    return {
        pod.name: {container.name: shown([*container.devices]) for container in pod.containers}
        for pod in response.pod_resources
    }


async def allocatable(calls: PodResourcesCalls) -> Shown:
    response = await calls.get_allocatable_resources(wire.AllocatableResourcesRequest())
    return shown([*response.devices])


async def get(calls: PodResourcesCalls, name: str) -> wire.PodResources:
    response = await calls.get(wire.GetPodResourcesRequest(pod_name=name, pod_namespace="default"))
    return response.pod_resources


async def test_a_device_near_two_nodes_has_two_entries(directory: Path, random: Random) -> None:
    async with node(directory, random, [device("d0", (0, 1)), device("d1")]) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 2))
        entries = (await listed_pods(calls))["a"]["main"]
    assert sorted(entries, key=str) == sorted(
        [(THING, ("d0",), (0,)), (THING, ("d0",), (1,)), (THING, ("d1",), None)], key=str
    )


async def test_a_pod_without_devices_is_listed_with_nothing(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0")) as (kubelet, _, calls):
        await kubelet.admit(Pod("a", containers=(Container("main"),)))
        assert await listed_pods(calls) == {"a": {"main": []}}


async def test_list_skips_init_containers_and_shows_sidecars(directory: Path, random: Random) -> None:
    pod = Pod(
        "a",
        containers=(Container("app", {THING: 1}),),
        init_containers=(Container("init", {THING: 1}), Container("sidecar", {THING: 2}, restartable=True)),
    )
    async with node(directory, random, devices("d0 d1 d2")) as (kubelet, _, calls):
        await kubelet.admit(pod)
        assert list((await listed_pods(calls))["a"]) == ["sidecar", "app"]


async def test_the_recorded_placement_is_shown_even_if_the_plugin_has_changed_it(
    directory: Path, random: Random
) -> None:
    async with node(directory, random, devices("d0", (0,))) as (kubelet, plugin, calls):
        await kubelet.admit(wanting("a", 1))
        plugin.send(devices("d0 d1", (1,)))
        await kubelet.wait_for(THING, at_least=2)
        assert (await listed_pods(calls))["a"]["main"] == [(THING, ("d0",), (0,))]


@pytest.mark.parametrize(("version", "names"), [("1.33", ["a", "b"]), ("1.34", ["b"])])
async def test_pods_that_have_ended_are_listed_until_1_33(
    version: str, names: list[str], directory: Path, random: Random
) -> None:
    async with node(directory, random, devices("d0 d1"), Behaviour.of(version)) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 1))
        await kubelet.admit(wanting("b", 1))
        kubelet.finish("default", "a")
        assert list(await listed_pods(calls)) == names


async def test_a_list_frees_the_devices_of_pods_that_have_gone(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0 d1")) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 1))
        await kubelet.admit(wanting("b", 1))
        kubelet.remove("default", "a")
        assert kubelet.manager.state.free(THING) == set()
        await listed_pods(calls)
        assert kubelet.manager.state.free(THING) == {"d0"}


async def test_get_and_get_allocatable_free_nothing(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0 d1")) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 1))
        await kubelet.admit(wanting("b", 1))
        kubelet.remove("default", "a")
        await get(calls, "b")
        await allocatable(calls)
        assert kubelet.manager.state.free(THING) == set()


async def test_get_gives_one_pod_and_until_1_34_even_if_it_has_ended(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0"), Behaviour.of("1.34")) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 1))
        kubelet.finish("default", "a")
        pod = await get(calls, "a")
        assert (pod.namespace, pod.name) == ("default", "a")
        assert shown([*pod.containers[0].devices]) == [(THING, ("d0",), None)]


async def test_get_does_not_find_a_pod_that_has_ended(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0")) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 1))
        assert (await get(calls, "a")).name == "a"
        kubelet.finish("default", "a")
        with pytest.raises(grpc.aio.AioRpcError, match="pod a in namespace default not found"):
            await get(calls, "a")


async def test_get_of_an_unknown_pod_is_an_error_of_code_unknown(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0")) as (_, _, calls):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await get(calls, "nobody")
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == "pod nobody in namespace default not found"


async def test_get_is_disabled_until_1_33(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0"), Behaviour.of("1.33")) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 1))
        with pytest.raises(grpc.aio.AioRpcError, match="PodResources API Get method disabled"):
            await get(calls, "a")


async def test_get_allocatable_is_disabled_until_1_22(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0"), Behaviour.of("1.22")) as (_, _, calls):
        with pytest.raises(grpc.aio.AioRpcError, match="PodResources API GetAllocatableResources disabled"):
            await allocatable(calls)


async def test_get_allocatable_names_the_healthy_devices_taken_or_not(directory: Path, random: Random) -> None:
    layout = [device("d0"), device("d1", None, "Unhealthy"), device("d2")]
    async with node(directory, random, layout) as (kubelet, _, calls):
        await kubelet.admit(wanting("a", 1))
        assert [device_ids[0] for _, device_ids, _ in await allocatable(calls)] == ["d0", "d2"]


async def test_a_pod_that_is_being_admitted_is_listed_with_what_it_has_so_far(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0 d1")) as (kubelet, plugin, calls):
        plugin.hold_allocate = asyncio.Event()
        admission = asyncio.create_task(kubelet.admit(wanting("a", 1)))
        await until(lambda: plugin.allocations)
        assert await listed_pods(calls) == {"a": {"main": []}}
        plugin.hold_allocate.set()
        await admission
        assert await listed_pods(calls) == {"a": {"main": [(THING, ("d0",), None)]}}


async def test_get_allocatable_has_an_entry_a_node_and_none_for_an_empty_topology(
    directory: Path, random: Random
) -> None:
    layout = [device("d0", (0, 1)), device("d1"), device("d2", ())]
    async with node(directory, random, layout) as (_, _, calls):
        assert await allocatable(calls) == [
            (THING, ("d0",), (0,)),
            (THING, ("d0",), (1,)),
            (THING, ("d1",), None),
        ]


async def test_eleven_requests_at_once_are_too_many(directory: Path, random: Random) -> None:
    async with node(directory, random, devices("d0")) as (_, _, calls):
        for _ in range(10):
            await allocatable(calls)
        with pytest.raises(grpc.aio.AioRpcError, match="rejected by rate limit") as refused:
            await listed_pods(calls)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
