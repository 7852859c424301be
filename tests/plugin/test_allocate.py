"""Allocate over the wire: every part of each answer arrives, and an error costs the one request."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import grpc
import pytest

from gpustow.hardware.node import Platform
from gpustow.injection.hostdevices import simulated_host_devices
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_channel
from gpustow.kubelet.server import PluginServer
from gpustow.plugin.occupancy import NodeUsage
from gpustow.plugin.offer import Offer, ServedResource
from gpustow.plugin.service import ResourceService
from gpustow.plugin.timing import Timing
from tests.plugin.samples import GPU, Recorder, config, gpu, node, with_health

VENDOR = "k8s.device-plugin.nvidia.com"
EVERYTHING = {
    "device_list_strategy": "envvar,volume-mounts,cdi-annotations,cdi-cri",
    "pass_device_specs": "true",
    "imex_channel_ids": "0",
    "gds_enabled": "true",
    "dev_root": "/host",
}


def served(gpus: int = 3, **flags: object) -> ServedResource:
    settings = config(**(flags or EVERYTHING))
    host = simulated_host_devices(settings, Platform.NVML)
    return Offer.of(node(*(gpu(index) for index in range(gpus))), settings, host).served[0]


@asynccontextmanager
async def serving(directory: Path, resource: ServedResource, recorder: Recorder) -> AsyncIterator[DevicePluginCalls]:
    usage = NodeUsage(Timing(), lambda: 0.0)
    service = ResourceService(resource, recorder, lambda: None, usage, Random(1))
    server = PluginServer(service, directory / "s")
    await server.start()
    async with unix_channel(directory / "s") as channel:
        yield DevicePluginCalls(channel)
        service.feed.close()
    await server.stop()


def request(*containers: list[str]) -> protocol.AllocateRequest:
    return protocol.AllocateRequest(
        container_requests=[protocol.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
    )


async def test_every_part_of_an_answer_arrives_for_each_container(tmp_path: Path) -> None:
    async with serving(tmp_path, served(), Recorder()) as calls:
        response = await calls.allocate(request(["GPU-2", "GPU-0"], ["GPU-1"]))
    first, second = response.container_responses
    assert dict(first.envs) == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-2,GPU-0",
        "NVIDIA_IMEX_CHANNELS": "0",
        "NVIDIA_GDS": "enabled",
    }
    directory = "/var/run/nvidia-container-devices"
    assert [(mount.host_path, mount.container_path, mount.read_only) for mount in first.mounts] == [
        ("/dev/null", f"{directory}/{name}", False) for name in ("GPU-2", "GPU-0", "imex/0")
    ]
    names = "nvidiactl nvidia-uvm nvidia-uvm-tools nvidia-modeset nvidia2 nvidia0 nvidia-caps-imex-channels/channel0"
    assert [(node.host_path, node.container_path, node.permissions) for node in first.devices] == [
        (f"/host/dev/{name}", f"/dev/{name}", "rw") for name in names.split()
    ]
    cdi = [f"{VENDOR}/{name}" for name in ("gpu=GPU-2", "gpu=GPU-0", "imex-channel=0", "gds=all")]
    assert [device.name for device in first.cdi_devices] == cdi
    assert list(first.annotations.values()) == [",".join(cdi)]
    assert second.envs["NVIDIA_VISIBLE_DEVICES"] == "GPU-1"
    assert [device.name for device in second.cdi_devices] == [f"{VENDOR}/gpu=GPU-1", *cdi[2:]]


async def test_no_two_annotations_have_the_same_key(tmp_path: Path) -> None:
    async with serving(tmp_path, served(), Recorder()) as calls:
        answers = [await calls.allocate(request(["GPU-0"], ["GPU-0"], ["GPU-1"])) for _ in range(3)]
    keys = [key for answer in answers for container in answer.container_responses for key in container.annotations]
    assert len(set(keys)) == len(keys) == 9
    uuid4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(rf"cdi\.k8s\.io/nvidia-device-plugin_{uuid4}", key) for key in keys)


ERRORS = {
    "unknown": (["GPU-9"], "unknown device: GPU-9"),
    "unknown beside known": (["GPU-0", "GPU-9"], "unknown device: GPU-9"),
    "unhealthy": (["GPU-1"], "unhealthy device: GPU-1"),
    "unhealthy beside healthy": (["GPU-0", "GPU-1"], "unhealthy device: GPU-1"),
    "empty": ([], "no devices are asked for"),
    "an empty id": ([""], "unknown device: "),
    "a replica of what is not shared": (["GPU-0::0"], "unknown device: GPU-0::0"),
}


@pytest.mark.parametrize(("ids", "message"), ERRORS.values(), ids=ERRORS.keys())
@pytest.mark.parametrize("position", [0, 1, 2])
async def test_a_request_that_cannot_be_is_a_clear_error_and_costs_nothing_else(
    tmp_path: Path, ids: list[str], message: str, position: int
) -> None:
    recorder = Recorder()
    containers = [["GPU-0"], ["GPU-2"]]
    containers.insert(position, ids)
    async with serving(tmp_path, with_health(served(device_list_strategy="envvar"), _1=False), recorder) as calls:
        before = await calls.allocate(request(["GPU-0"], ["GPU-2"]))
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await calls.allocate(request(*containers))
        after = await calls.allocate(request(["GPU-0"], ["GPU-2"]))
    assert error.value.code() is grpc.StatusCode.UNKNOWN
    assert f"invalid allocation request for 'nvidia.com/gpu': {message}" in str(error.value.details())
    assert after == before
    assert recorder.events == [f"allocated {GPU}"] * 2 + [f"allocation failed {GPU}"] + [f"allocated {GPU}"] * 2
