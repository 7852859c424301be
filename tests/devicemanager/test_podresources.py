"""What kubelet's PodResources service tells of pods with our devices."""

from pathlib import Path

import grpc
import pytest

from gpustow.errors import AdmissionError
from gpustow.kubelet.podresources import HeldDevice, PodResources
from gpustow.kubelet.protocol import podresources_v1_pb2 as wire
from gpustow.kubelet.protocol.services import PodResourcesCalls, unix_channel
from gpustow.simulation.kubelet import Container
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU
from tests.devicemanager.scene import scene


async def test_list_tells_which_container_holds_which_device(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        init, sidecar = Container("init", {GPU: 1}), Container("sidecar", {GPU: 1}, restartable=True)
        pod = await at.kubelet.admit(at.pod({GPU: 2}, init, sidecar))
        held = await PodResources(at.kubelet.pod_resources_socket).held()
        assert held == tuple(
            sorted(
                HeldDevice(GPU, device, "default", pod.pod.name, name)
                for name in ("sidecar", "main")
                for device in pod.container(name).device_ids[GPU]
            )
        )


async def test_list_shows_no_pod_that_has_ended_and_frees_its_devices(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(4)
        at.kubelet.finish("default", pod.pod.name)
        assert at.held(pod) == pod.device_ids(GPU)
        assert await PodResources(at.kubelet.pod_resources_socket).held() == ()
        assert at.held(pod) == ()


async def test_allocatable_resources_are_the_healthy_devices_taken_or_not(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        await at.admit(1)
        await at.plugin.set_sick(at.plugin.ids()[3:])
        async with unix_channel(at.kubelet.pod_resources_socket) as channel:
            answer = await PodResourcesCalls(channel).get_allocatable_resources(wire.AllocatableResourcesRequest())
        named = sorted(device for entry in answer.devices for device in entry.device_ids)
        assert named == sorted(at.plugin.ids()[:3])


async def test_get_tells_of_one_pod(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pods = [await at.admit(1) for _ in range(2)]
        async with unix_channel(at.kubelet.pod_resources_socket) as channel:
            calls = PodResourcesCalls(channel)
            answer = await calls.get(wire.GetPodResourcesRequest(pod_name=pods[1].pod.name, pod_namespace="default"))
            (container,) = answer.pod_resources.containers
            assert [*container.devices[0].device_ids] == [*pods[1].device_ids(GPU)]
            with pytest.raises(grpc.aio.AioRpcError, match="pod nobody in namespace default not found") as refused:
                await calls.get(wire.GetPodResourcesRequest(pod_name="nobody", pod_namespace="default"))
        assert refused.value.code() is grpc.StatusCode.UNKNOWN


async def test_more_than_ten_calls_at_once_are_refused(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at, unix_channel(at.kubelet.pod_resources_socket) as channel:
        calls = [PodResourcesCalls(channel).list(wire.ListPodResourcesRequest()) for _ in range(60)]
        refused = 0
        for call in calls:
            try:
                await call
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                assert error.details() == "rejected by rate limit"
                refused += 1
        assert refused
        with pytest.raises(AdmissionError):
            await at.admit(5)
