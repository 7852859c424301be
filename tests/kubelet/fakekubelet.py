"""A kubelet that records: takes registrations, dials back inside Register, keeps the streams and what they bring."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import (
    Device,
    DevicePluginOptions,
    Empty,
    RegisterRequest,
)
from gpustow.kubelet.protocol.services import (
    Context,
    DevicePluginCalls,
    registration_handler,
    unix_channel,
)
from tests.kubelet.samples import abandon

Refusal = Callable[[RegisterRequest], Awaitable[str | None]]


async def until(condition: Callable[[], object], *, seconds: float = 10.0) -> None:
    """Waits for the condition; fails the test if it does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        await asyncio.sleep(0.005)


@dataclass
class Plugin:
    """A plugin that registered: its options by both ways, and each list that it sent."""

    request: RegisterRequest
    options: DevicePluginOptions
    calls: DevicePluginCalls
    lists: list[list[Device]] = field(default_factory=list)
    ended: bool = False

    @property
    def healthy(self) -> set[str]:
        return {device.ID for device in self.lists[-1] if device.health == "Healthy"} if self.lists else set()


class FakeKubelet:
    """Serves `directory`/kubelet.sock between `start` and `stop`, or within `async with`.

    `refusal` may be set: it is awaited inside Register before anything else, and a text that it returns is the error.
    Without `listens` it never opens a stream.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "kubelet.sock"
        self.requests: list[RegisterRequest] = []
        self.plugins: list[Plugin] = []
        self.refusal: Refusal | None = None
        self.listens = True
        self._server: grpc.aio.Server | None = None
        self._stack = AsyncExitStack()
        self._streams: dict[int, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """As kubelet does: creates the directory, deletes all sockets in it, serves."""
        self.directory.mkdir(exist_ok=True)
        for path in self.directory.iterdir():
            if path.is_socket():
                path.unlink()
        self._server = grpc.aio.server(handlers=[registration_handler(self)])
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    async def stop(self, *, stale: bool = False) -> None:
        """Ends all connections; removes its socket, or leaves one that nobody serves, as a killed kubelet does."""
        if self._server is None:
            return
        await self._server.stop(None)
        self._server = None
        for index in range(len(self.plugins)):
            await self.end_stream(index)
        await self._stack.aclose()
        if stale:
            abandon(self.socket)

    async def restart(self) -> None:
        """Stops cleanly and starts again."""
        await self.stop()
        await self.start()

    async def end_stream(self, index: int = -1) -> None:
        """Cancels the stream of one plugin and nothing else."""
        task = self._streams.pop(index % len(self.plugins), None)
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def register(self, request: RegisterRequest, context: Context) -> Empty:
        """The Registration service."""
        self.requests.append(request)
        if self.refusal is not None and (text := await self.refusal(request)):
            await context.abort(grpc.StatusCode.UNKNOWN, text)
        channel = await self._stack.enter_async_context(unix_channel(self.directory / request.endpoint))
        calls = DevicePluginCalls(channel)
        try:
            options = await calls.get_device_plugin_options(Empty(), timeout=5)
        except grpc.aio.AioRpcError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed to dial device plugin: {error.details()}")
        plugin = Plugin(request, options, calls)
        self.plugins.append(plugin)
        if self.listens:
            self._streams[len(self.plugins) - 1] = asyncio.create_task(self._listen(plugin))
        return Empty()

    async def _listen(self, plugin: Plugin) -> None:
        try:
            async for response in plugin.calls.list_and_watch(Empty()):
                plugin.lists.append(list(response.devices))
        except grpc.aio.AioRpcError:
            pass
        finally:
            plugin.ended = True

    def live(self, resource: str) -> list[Plugin]:
        """The plugins of a resource whose stream goes on and has brought a list."""
        return [
            plugin
            for plugin in self.plugins
            if plugin.request.resource_name == resource and plugin.lists and not plugin.ended
        ]
