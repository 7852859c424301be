from types import SimpleNamespace
from typing import Any

from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import (
    CDIDevice,
    ContainerAllocateResponse,
    DeviceSpec,
    Mount,
)
from gpustow.plugin.containerresponse import container_response


def test_every_part_of_the_edits_is_in_the_message() -> None:
    edits: Any = SimpleNamespace(
        envs={"NVIDIA_VISIBLE_DEVICES": "GPU-0"},
        mounts=[SimpleNamespace(container_path="/c", host_path="/h", read_only=True)],
        device_nodes=[SimpleNamespace(container_path="/dev/c", host_path="/dev/h", permissions="rw")],
        annotations={"cdi.k8s.io/gpu": "v"},
        cdi_devices=["nvidia.com/gpu=0", "nvidia.com/gpu=1"],
    )
    assert container_response(edits) == ContainerAllocateResponse(
        envs={"NVIDIA_VISIBLE_DEVICES": "GPU-0"},
        mounts=[Mount(container_path="/c", host_path="/h", read_only=True)],
        devices=[DeviceSpec(container_path="/dev/c", host_path="/dev/h", permissions="rw")],
        annotations={"cdi.k8s.io/gpu": "v"},
        cdi_devices=[CDIDevice(name="nvidia.com/gpu=0"), CDIDevice(name="nvidia.com/gpu=1")],
    )
