from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as device_plugin
from gpustow.kubelet.protocol import podresources_v1_pb2 as pod_resources
from gpustow.kubelet.protocol.services import (
    DEVICE_PLUGIN,
    GET_DEVICE_PLUGIN_OPTIONS,
    METHODS,
    Context,
    DevicePluginCalls,
    PodResourcesCalls,
    device_plugin_handler,
    encode,
    pod_resources_handler,
    unix_channel,
)
from tests.kubelet.samples import OPTIONS, EchoService


class Lister:
    async def list(
        self, _request: pod_resources.ListPodResourcesRequest, _context: Context
    ) -> pod_resources.ListPodResourcesResponse:
        return pod_resources.ListPodResourcesResponse(pod_resources=[pod_resources.PodResources(name="p")])

    async def get_allocatable_resources(
        self, _request: pod_resources.AllocatableResourcesRequest, _context: Context
    ) -> pod_resources.AllocatableResourcesResponse:
        return pod_resources.AllocatableResourcesResponse(cpu_ids=[1, 2])

    async def get(
        self, request: pod_resources.GetPodResourcesRequest, context: Context
    ) -> pod_resources.GetPodResourcesResponse:
        if request.pod_name != "p":
            await context.abort(grpc.StatusCode.UNKNOWN, f"pod {request.pod_name} not found")
        return pod_resources.GetPodResourcesResponse(pod_resources=pod_resources.PodResources(name="p"))


def test_the_methods_are_those_of_the_proto_files_with_their_messages() -> None:
    def described(module: ModuleType) -> set[tuple[str, str, str]]:
        return {
            (f"/{service.full_name}/{method.name}", method.input_type.name, method.output_type.name)
            for service in module.DESCRIPTOR.services_by_name.values()
            for method in service.methods
        }

    typed = {(method.path, method.request.DESCRIPTOR.name, method.response.DESCRIPTOR.name) for method in METHODS}
    assert typed == described(device_plugin) | described(pod_resources)


def test_a_message_that_is_serialised_already_is_sent_as_it_is() -> None:
    assert encode(b"\x08\x01") == b"\x08\x01"
    assert encode(device_plugin.NUMANode(ID=1)) == b"\x08\x01"


async def test_every_call_of_a_device_plugin_arrives(tmp_path: Path) -> None:
    service = EchoService(
        device_plugin.ListAndWatchResponse(devices=[device_plugin.Device(ID="a")]).SerializeToString()
    )
    server = grpc.aio.server(handlers=[device_plugin_handler(service)])
    server.add_insecure_port(f"unix:{tmp_path / 's'}")
    await server.start()
    async with unix_channel(tmp_path / "s") as channel:
        calls = DevicePluginCalls(channel)
        assert await calls.get_device_plugin_options(device_plugin.Empty()) == OPTIONS
        service.feed.close()
        assert [list(message.devices) async for message in calls.list_and_watch(device_plugin.Empty())] == [
            [device_plugin.Device(ID="a")]
        ]
        asked = device_plugin.ContainerPreferredAllocationRequest(available_deviceIDs=["b"], allocation_size=1)
        preferred = await calls.get_preferred_allocation(
            device_plugin.PreferredAllocationRequest(container_requests=[asked])
        )
        assert list(preferred.container_responses[0].deviceIDs) == ["b"]
        wanted = device_plugin.ContainerAllocateRequest(devices_ids=["c"])
        allocated = await calls.allocate(device_plugin.AllocateRequest(container_requests=[wanted]))
        assert dict(allocated.container_responses[0].envs) == {"IDS": "c"}
        started = await calls.pre_start_container(device_plugin.PreStartContainerRequest(devices_ids=["c"]))
        assert started == device_plugin.PreStartContainerResponse()
    await server.stop(None)


async def test_every_call_of_pod_resources_arrives(tmp_path: Path) -> None:
    server = grpc.aio.server(handlers=[pod_resources_handler(Lister())])
    server.add_insecure_port(f"unix:{tmp_path / 's'}")
    await server.start()
    async with unix_channel(tmp_path / "s") as channel:
        calls = PodResourcesCalls(channel)
        assert (await calls.list(pod_resources.ListPodResourcesRequest())).pod_resources[0].name == "p"
        allocatable = await calls.get_allocatable_resources(pod_resources.AllocatableResourcesRequest())
        assert list(allocatable.cpu_ids) == [1, 2]
        assert (await calls.get(pod_resources.GetPodResourcesRequest(pod_name="p"))).pod_resources.name == "p"
        with pytest.raises(grpc.aio.AioRpcError, match="pod q not found"):
            await calls.get(pod_resources.GetPodResourcesRequest(pod_name="q"))
    await server.stop(None)


async def test_a_client_calls_itself_localhost_as_strict_servers_want(tmp_path: Path) -> None:
    hosts: list[bytes] = []

    def options(_request: device_plugin.Empty, context: Any) -> device_plugin.DevicePluginOptions:
        hosts.append(context._rpc_event.call_details.host)
        return OPTIONS

    # Only the server with threads lets a handler see the authority.
    handler = grpc.method_handlers_generic_handler(
        DEVICE_PLUGIN, {GET_DEVICE_PLUGIN_OPTIONS.name: GET_DEVICE_PLUGIN_OPTIONS.serve(options)}
    )
    server = grpc.server(ThreadPoolExecutor(1), handlers=[handler])
    server.add_insecure_port(f"unix:{tmp_path / 's'}")
    server.start()
    async with unix_channel(tmp_path / "s") as channel:
        await DevicePluginCalls(channel).get_device_plugin_options(device_plugin.Empty())
    server.stop(None).wait()
    assert hosts == [b"localhost"]


async def test_a_message_above_grpcs_own_limit_of_4_mib_is_received(tmp_path: Path) -> None:
    large = device_plugin.ListAndWatchResponse(devices=[device_plugin.Device(ID="x" * (5 << 20))]).SerializeToString()
    service = EchoService(large)
    service.feed.close()
    server = grpc.aio.server(handlers=[device_plugin_handler(service)])
    server.add_insecure_port(f"unix:{tmp_path / 's'}")
    await server.start()
    async with unix_channel(tmp_path / "s") as channel:
        sizes = [
            message.ByteSize() async for message in DevicePluginCalls(channel).list_and_watch(device_plugin.Empty())
        ]
    await server.stop(None)
    assert sizes == [len(large)]
