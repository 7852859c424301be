"""From what is put into a container to kubelet's message about it."""

from gpustow.injection import ContainerEdits
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import (
    CDIDevice,
    ContainerAllocateResponse,
    DeviceSpec,
    Mount,
)


def container_response(edits: ContainerEdits) -> ContainerAllocateResponse:
    """The message, field by field."""
    return ContainerAllocateResponse(
        envs=dict(edits.envs),
        mounts=[
            Mount(container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only)
            for mount in edits.mounts
        ],
        devices=[
            DeviceSpec(container_path=node.container_path, host_path=node.host_path, permissions=node.permissions)
            for node in edits.device_nodes
        ],
        annotations=dict(edits.annotations),
        cdi_devices=[CDIDevice(name=name) for name in edits.cdi_devices],
    )
