"""A device plugin under the test's control, over a real socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.kubelet.protocol.services import Context, RegistrationCalls, device_plugin_handler, unix_channel

Nodes = tuple[int, ...] | None


def device(name: str, nodes: Nodes = None, health: str = "Healthy") -> wire.Device:
    topology = None if nodes is None else wire.TopologyInfo(nodes=[wire.NUMANode(ID=node) for node in nodes])
    return wire.Device(ID=name, health=health, topology=topology)


def devices(names: str, nodes: Nodes = None, health: str = "Healthy") -> list[wire.Device]:
    return [device(name, nodes, health) for name in names.split()]


async def until(condition: Callable[[], object]) -> None:
    """Waits for what no event tells, such as that a call has arrived."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.001)


def must_include_then_lowest(request: wire.ContainerPreferredAllocationRequest) -> Sequence[str]:
    others = sorted(set(request.available_deviceIDs).difference(request.must_include_deviceIDs))
    return [*sorted(request.must_include_deviceIDs), *others][: request.allocation_size]


def name_the_devices(ids: Sequence[str]) -> wire.ContainerAllocateResponse:
    return wire.ContainerAllocateResponse(envs={"DEVICES": ",".join(sorted(ids))})


@dataclass
class FakePlugin:
    """Serves `resource` on `directory/endpoint`; what it answers can be changed at any time."""

    resource: str
    directory: Path
    listed: Iterable[wire.Device] = ()
    endpoint: str = "fake.sock"
    options: wire.DevicePluginOptions = field(
        default_factory=lambda: wire.DevicePluginOptions(get_preferred_allocation_available=True)
    )
    registered_options: wire.DevicePluginOptions | None = None
    prefer: Callable[[wire.ContainerPreferredAllocationRequest], Sequence[str]] = must_include_then_lowest
    answer: Callable[[Sequence[str]], wire.ContainerAllocateResponse] = name_the_devices
    preferences: list[tuple[tuple[str, ...], tuple[str, ...], int]] = field(default_factory=list)
    allocations: list[tuple[str, ...]] = field(default_factory=list)
    pre_starts: list[tuple[str, ...]] = field(default_factory=list)
    options_error: str | None = None
    prefer_error: str | None = None
    allocate_error: str | None = None
    empty_answers: bool = False
    list_at_once: bool = True
    hold_options: asyncio.Event | None = None
    hold_allocate: asyncio.Event | None = None
    hold_pre_start: asyncio.Event | None = None
    options_calls: int = 0
    during_allocate: Callable[[], Awaitable[None]] | None = None
    _streams: list[asyncio.Queue[wire.ListAndWatchResponse | None]] = field(default_factory=list)
    _server: grpc.aio.Server | None = None

    @property
    def socket(self) -> Path:
        return self.directory / self.endpoint

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    async def serve(self) -> None:
        self._server = grpc.aio.server(handlers=[device_plugin_handler(self)])
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    async def stop(self) -> None:
        self.end_streams()
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def register(self, version: str = "v1beta1", timeout: float = 15) -> None:  # noqa: ASYNC109 - the deadline of the call
        channel = unix_channel(self.directory / "kubelet.sock")
        try:
            request = wire.RegisterRequest(
                version=version,
                endpoint=self.endpoint,
                resource_name=self.resource,
                options=self.registered_options or self.options,
            )
            await RegistrationCalls(channel).register(request, timeout=timeout)
        finally:
            await channel.close()

    async def __aenter__(self) -> Self:
        await self.serve()
        await self.register()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def send(self, listed: Iterable[wire.Device]) -> None:
        self.listed = [*listed]
        for stream in self._streams:
            stream.put_nowait(wire.ListAndWatchResponse(devices=self.listed))

    def end_streams(self) -> None:
        for stream in self._streams:
            stream.put_nowait(None)

    def end_one_stream(self) -> None:
        self._streams[0].put_nowait(None)

    async def get_device_plugin_options(self, request: wire.Empty, context: Context) -> wire.DevicePluginOptions:
        del request
        self.options_calls += 1
        if self.hold_options is not None:
            await self.hold_options.wait()
        if self.options_error is not None:
            await context.abort(grpc.StatusCode.INTERNAL, self.options_error)
        return self.options

    async def list_and_watch(self, request: wire.Empty, context: Context) -> AsyncIterator[wire.ListAndWatchResponse]:
        del request, context
        stream: asyncio.Queue[wire.ListAndWatchResponse | None] = asyncio.Queue()
        self._streams.append(stream)
        try:
            if self.list_at_once:
                yield wire.ListAndWatchResponse(devices=self.listed)
            while (response := await stream.get()) is not None:
                yield response
        finally:
            self._streams.remove(stream)

    async def get_preferred_allocation(
        self, request: wire.PreferredAllocationRequest, context: Context
    ) -> wire.PreferredAllocationResponse:
        asked = request.container_requests[0]
        available, must = tuple(sorted(asked.available_deviceIDs)), tuple(sorted(asked.must_include_deviceIDs))
        self.preferences.append((available, must, asked.allocation_size))
        if self.prefer_error is not None:
            await context.abort(grpc.StatusCode.UNKNOWN, self.prefer_error)
        if self.empty_answers:
            return wire.PreferredAllocationResponse()
        response = wire.ContainerPreferredAllocationResponse(deviceIDs=self.prefer(asked))
        return wire.PreferredAllocationResponse(container_responses=[response])

    async def allocate(self, request: wire.AllocateRequest, context: Context) -> wire.AllocateResponse:
        ids = tuple(request.container_requests[0].devices_ids)
        self.allocations.append(tuple(sorted(ids)))
        if self.during_allocate is not None:
            await self.during_allocate()
        if self.hold_allocate is not None:
            await self.hold_allocate.wait()
        if self.allocate_error is not None:
            await context.abort(grpc.StatusCode.UNKNOWN, self.allocate_error)
        return wire.AllocateResponse(container_responses=[] if self.empty_answers else [self.answer(ids)])

    async def pre_start_container(
        self, request: wire.PreStartContainerRequest, context: Context
    ) -> wire.PreStartContainerResponse:
        del context
        if self.hold_pre_start is not None:
            await self.hold_pre_start.wait()
        self.pre_starts.append(tuple(sorted(request.devices_ids)))
        return wire.PreStartContainerResponse()
