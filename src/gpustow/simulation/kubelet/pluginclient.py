"""Kubelet's connection to one plugin over its unix socket.

As kubelet does: dial and wait until the connection stands, ask for the options, then watch the list for as long as the
stream lives; nothing is ever tried again. Messages above 4 MiB are refused (kubelet uses gRPC's default), the authority
is `localhost`, and Allocate and GetPreferredAllocation have no time limit.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

import grpc

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_address
from gpustow.simulation.kubelet.answer import ContainerAnswer
from gpustow.simulation.kubelet.devices import PluginDevice
from gpustow.simulation.kubelet.endpoint import EndpointError, PluginOptions, StoppedEndpoint

MESSAGE_LIMIT = 4 << 20
"""Bytes that a message from a plugin may have: gRPC's default, which kubelet leaves as it is."""

DIAL_TIMEOUT = 10.0
"""Seconds that kubelet waits for a plugin's socket to answer."""

PRE_START_TIMEOUT = 30.0
"""Seconds that kubelet waits for PreStartContainer."""

Response = TypeVar("Response")

_GO_NAMES = {grpc.StatusCode.CANCELLED: "Canceled"}


class DialError(EndpointError):
    """The plugin's socket cannot be reached."""


def status_text(error: grpc.aio.AioRpcError) -> str:
    """A failed call as gRPC for Go prints it: `rpc error: code = Unknown desc = ...`."""
    code = error.code()
    name = _GO_NAMES.get(code, code.name.title().replace("_", ""))
    return f"rpc error: code = {name} desc = {error.details()}"


class PluginClient:
    """One connection to one socket; an `Endpoint` for the device manager."""

    def __init__(
        self,
        resource: str,
        socket: Path,
        *,
        dial_timeout: float = DIAL_TIMEOUT,
        pre_start_timeout: float = PRE_START_TIMEOUT,
    ) -> None:
        self.resource = resource
        self.socket = socket
        self._dial_timeout = dial_timeout
        self._pre_start_timeout = pre_start_timeout
        self._channel: grpc.aio.Channel | None = None
        self._calls: DevicePluginCalls | None = None

    async def dial(self) -> None:
        """Connects; DialError if nobody answers in time."""
        channel = grpc.aio.insecure_channel(
            unix_address(self.socket),
            options=(
                ("grpc.default_authority", "localhost"),
                ("grpc.max_receive_message_length", MESSAGE_LIMIT),
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ),
        )
        try:
            await asyncio.wait_for(channel.channel_ready(), self._dial_timeout)
        except TimeoutError as error:
            await channel.close()
            raise DialError("failed to dial device plugin: context deadline exceeded") from error
        except BaseException:
            await channel.close()
            raise
        self._channel, self._calls = channel, DevicePluginCalls(channel)

    async def close(self) -> None:
        """Ends the connection and every call on it."""
        channel, self._channel, self._calls = self._channel, None, None
        if channel is not None:
            await channel.close()

    def _connected(self) -> DevicePluginCalls:
        if self._calls is None:
            raise StoppedEndpoint(self.resource).refusal()
        return self._calls

    async def options(self) -> PluginOptions:
        """What the plugin answers to GetDevicePluginOptions; EndpointError if it does not."""
        try:
            options = await self._finish(self._connected().get_device_plugin_options(wire.Empty()))
        except EndpointError as error:
            raise EndpointError(f"failed to get device plugin options: {error}") from error
        return PluginOptions(options.pre_start_required, options.get_preferred_allocation_available)

    async def lists(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """The plugin's lists as they come, until the stream ends, however it ends."""
        if self._calls is None:
            return
        stream = self._calls.list_and_watch(wire.Empty())
        try:
            async for response in stream:
                yield tuple(PluginDevice.of_message(device) for device in response.devices)
        except grpc.aio.AioRpcError:
            return
        except asyncio.CancelledError:
            if _cancelled_from_outside():
                raise

    async def preferred(self, available: Sequence[str], must_include: Sequence[str], size: int, /) -> Sequence[str]:
        """What the plugin prefers; only the first container's answer is read."""
        request = wire.PreferredAllocationRequest(
            container_requests=[
                wire.ContainerPreferredAllocationRequest(
                    available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
                )
            ]
        )
        response = await self._finish(self._connected().get_preferred_allocation(request))
        return response.container_responses[0].deviceIDs if response.container_responses else ()

    async def allocate(self, device_ids: Sequence[str], /) -> ContainerAnswer | None:
        """The plugin's answer for one container; only the first is read."""
        request = wire.AllocateRequest(container_requests=[wire.ContainerAllocateRequest(devices_ids=device_ids)])
        response = await self._finish(self._connected().allocate(request))
        return ContainerAnswer.of_message(response.container_responses[0]) if response.container_responses else None

    async def pre_start(self, device_ids: Sequence[str], /) -> None:
        """Calls PreStartContainer with kubelet's time limit."""
        request = wire.PreStartContainerRequest(devices_ids=device_ids)
        await self._finish(self._connected().pre_start_container(request, timeout=self._pre_start_timeout))

    @staticmethod
    async def _finish(call: Awaitable[Response]) -> Response:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise EndpointError(status_text(error)) from error
        except asyncio.CancelledError as error:
            if _cancelled_from_outside():
                raise
            raise EndpointError("rpc error: code = Canceled desc = grpc: the client connection is closing") from error


def _cancelled_from_outside() -> bool:
    """Whether the task is to end, rather than the call because somebody closed its connection."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
