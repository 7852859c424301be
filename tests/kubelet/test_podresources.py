import asyncio
from pathlib import Path
from socket import AF_UNIX, socket

import grpc
import pytest

from gpustow.errors import PodResourcesError
from gpustow.kubelet.podresources import HeldDevice, PodResources, held_devices
from gpustow.kubelet.protocol import podresources_v1_pb2 as protocol
from gpustow.kubelet.protocol.services import Context, pod_resources_handler


def pod(name: str, container: str, *entries: tuple[str, str, int]) -> protocol.PodResources:
    devices = [
        protocol.ContainerDevices(
            resource_name=resource,
            device_ids=[device],
            topology=protocol.TopologyInfo(nodes=[protocol.NUMANode(ID=node)]),
        )
        for resource, device, node in entries
    ]
    return protocol.PodResources(
        name=name, namespace="default", containers=[protocol.ContainerResources(name=container, devices=devices)]
    )


class Lister:
    def __init__(self, response: protocol.ListPodResourcesResponse) -> None:
        self.response = response

    async def list(
        self, _request: protocol.ListPodResourcesRequest, _context: Context
    ) -> protocol.ListPodResourcesResponse:
        return self.response

    async def get_allocatable_resources(
        self, _request: protocol.AllocatableResourcesRequest, _context: Context
    ) -> protocol.AllocatableResourcesResponse:
        raise NotImplementedError

    async def get(
        self, _request: protocol.GetPodResourcesRequest, _context: Context
    ) -> protocol.GetPodResourcesResponse:
        raise NotImplementedError


class Slow(Lister):
    def __init__(self) -> None:
        super().__init__(protocol.ListPodResourcesResponse())

    async def list(
        self, request: protocol.ListPodResourcesRequest, context: Context
    ) -> protocol.ListPodResourcesResponse:
        await asyncio.sleep(60)
        return await super().list(request, context)


class Refusing(Slow):
    async def list(
        self, _request: protocol.ListPodResourcesRequest, context: Context
    ) -> protocol.ListPodResourcesResponse:
        return await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests")


async def serve(path: Path, answer: protocol.ListPodResourcesResponse | Lister) -> grpc.aio.Server:
    lister = answer if isinstance(answer, Lister) else Lister(answer)
    server = grpc.aio.server(handlers=[pod_resources_handler(lister)])
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


def test_a_device_near_two_numa_nodes_is_held_once() -> None:
    response = protocol.ListPodResourcesResponse(
        pod_resources=[
            pod("b", "main", ("nvidia.com/gpu", "GPU-1", 0), ("nvidia.com/gpu", "GPU-1", 1)),
            pod("a", "main", ("nvidia.com/gpu", "GPU-0", 0)),
            pod("c", "idle"),
        ]
    )
    assert held_devices(response) == (
        HeldDevice("nvidia.com/gpu", "GPU-0", "default", "a", "main"),
        HeldDevice("nvidia.com/gpu", "GPU-1", "default", "b", "main"),
    )


async def test_the_devices_of_all_pods_are_read_from_kubelets_socket(tmp_path: Path) -> None:
    response = protocol.ListPodResourcesResponse(pod_resources=[pod("a", "main", ("nvidia.com/gpu", "GPU-0", 0))])
    server = await serve(tmp_path / "s", response)
    assert [held.device_id for held in await PodResources(tmp_path / "s").held()] == ["GPU-0"]
    await server.stop(None)


async def test_a_list_above_grpcs_own_limit_of_4_mib_is_read(tmp_path: Path) -> None:
    many = [pod(f"pod-{number}", "main", ("nvidia.com/gpu", "G" * 1000, 0)) for number in range(5000)]
    server = await serve(tmp_path / "s", protocol.ListPodResourcesResponse(pod_resources=many))
    assert len(await PodResources(tmp_path / "s").held()) == 5000
    await server.stop(None)


async def test_a_kubelet_that_is_not_there_is_told_with_its_socket(tmp_path: Path) -> None:
    with pytest.raises(PodResourcesError, match=f"from {tmp_path / 's'}: the socket is not there$") as error:
        await PodResources(tmp_path / "s").held()
    assert error.value.socket == str(tmp_path / "s")


async def test_why_there_is_no_list_is_said_in_words(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket(AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    with pytest.raises(PodResourcesError) as nobody:
        await PodResources(path).held()
    assert nobody.value.reason == "nobody answers there"
    path.unlink()
    server = await serve(path, Slow())
    with pytest.raises(PodResourcesError) as slow:
        await PodResources(path).held(seconds=0.05)
    assert slow.value.reason == "no answer within 0.05 s"
    await server.stop(None)


async def test_what_kubelet_itself_says_is_told_as_it_is(tmp_path: Path) -> None:
    server = await serve(tmp_path / "s", Refusing())
    with pytest.raises(PodResourcesError) as refused:
        await PodResources(tmp_path / "s").held()
    assert refused.value.reason == "too many requests"
    await server.stop(None)
