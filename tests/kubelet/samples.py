"""Devices and services for the tests of this folder."""

import socket
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path

from gpustow.kubelet.devicefeed import DeviceFeed
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import Context
from gpustow.resources.device import Device

OPTIONS = protocol.DevicePluginOptions(get_preferred_allocation_available=True)


def device(number: int, *, healthy: bool = True, numa_node: int | None = None) -> Device:
    return Device(
        id=f"GPU-{number}",
        uuid=f"GPU-{number}",
        gpu_index=number,
        index=str(number),
        share=Fraction(1),
        paths=(f"/dev/nvidia{number}",),
        numa_node=numa_node,
        healthy=healthy,
    )


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def bind(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    return bound


def abandon(path: Path) -> None:
    """Leaves a socket file that nobody serves."""
    bind(path).close()


class EchoService:
    """A plugin that answers each call with what it was asked."""

    def __init__(self, first: bytes = b"") -> None:
        self.feed = DeviceFeed(first, lambda: None)

    async def get_device_plugin_options(
        self, _request: protocol.Empty, _context: Context
    ) -> protocol.DevicePluginOptions:
        return OPTIONS

    async def list_and_watch(self, _request: protocol.Empty, _context: Context) -> AsyncIterator[bytes]:
        async for message in self.feed.stream():
            yield message

    async def get_preferred_allocation(
        self, request: protocol.PreferredAllocationRequest, _context: Context
    ) -> protocol.PreferredAllocationResponse:
        return protocol.PreferredAllocationResponse(
            container_responses=[
                protocol.ContainerPreferredAllocationResponse(deviceIDs=asked.available_deviceIDs)
                for asked in request.container_requests
            ]
        )

    async def allocate(self, request: protocol.AllocateRequest, _context: Context) -> protocol.AllocateResponse:
        return protocol.AllocateResponse(
            container_responses=[
                protocol.ContainerAllocateResponse(envs={"IDS": ",".join(asked.devices_ids)})
                for asked in request.container_requests
            ]
        )

    async def pre_start_container(
        self, _request: protocol.PreStartContainerRequest, _context: Context
    ) -> protocol.PreStartContainerResponse:
        return protocol.PreStartContainerResponse()
