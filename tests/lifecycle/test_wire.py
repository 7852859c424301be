"""The wire ends calls as grpcio does: each test runs on both."""

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Self

import grpc
import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.kubelet.protocol.services import (
    REGISTER,
    Context,
    DevicePluginCalls,
    device_plugin_handler,
    unix_address,
    unix_channel,
)
from tests.lifecycle.virtualtime import StuckError, run_virtually
from tests.lifecycle.wire import Process, Wire, running_as

SOON = 0.1

Play = Callable[["Stage"], Coroutine[Any, Any, object]]


class Service:
    """Answers some calls, fails others, and holds others up until `open` is set; `ended` is what became of those."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.ended: list[str] = []

    async def get_device_plugin_options(self, request: wire.Empty, context: Context) -> wire.DevicePluginOptions:
        del request, context
        return wire.DevicePluginOptions(pre_start_required=True)

    async def list_and_watch(self, request: wire.Empty, context: Context) -> AsyncIterator[wire.ListAndWatchResponse]:
        del request, context
        try:
            yield wire.ListAndWatchResponse(devices=[wire.Device(ID="one")])
            await self.open.wait()
            yield wire.ListAndWatchResponse(devices=[wire.Device(ID="two")])
        finally:
            self.ended.append("stream")

    async def get_preferred_allocation(
        self, request: wire.PreferredAllocationRequest, context: Context
    ) -> wire.PreferredAllocationResponse:
        del request
        await context.abort(grpc.StatusCode.UNKNOWN, "not today")

    async def allocate(self, request: wire.AllocateRequest, context: Context) -> wire.AllocateResponse:
        del request, context
        try:
            await self.open.wait()
        finally:
            self.ended.append("call")
        return wire.AllocateResponse()

    async def pre_start_container(
        self, request: wire.PreStartContainerRequest, context: Context
    ) -> wire.PreStartContainerResponse:
        del request, context
        raise ValueError("a fault")


class Stage:
    """A server, a channel to it, and what its calls end in."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "s"
        self.service = Service()
        self.lists: list[str] = []

    async def __aenter__(self) -> Self:
        self.server = grpc.aio.server(handlers=[device_plugin_handler(self.service)])
        self.server.add_insecure_port(unix_address(self.socket))
        await self.server.start()
        self.channel = unix_channel(self.socket)
        self.calls = DevicePluginCalls(self.channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()
        await self.server.stop(None)

    async def outcome(self, call: Awaitable[object]) -> str:
        try:
            return str(await call).strip()
        except grpc.aio.AioRpcError as error:
            return f"{error.code()} {error.details()}".partition(" to all addresses")[0]
        except asyncio.CancelledError:
            return "cancelled"
        except grpc.aio.UsageError as error:
            return f"misused: {error}"

    async def _listen(self) -> str:
        async for response in self.calls.list_and_watch(wire.Empty()):
            self.lists += [device.ID for device in response.devices]
        return "over"

    async def ask(self) -> str:
        return await self.outcome(self.calls.get_device_plugin_options(wire.Empty()))

    async def under_way(self) -> "tuple[asyncio.Task[str], asyncio.Task[str]]":
        """A call and a stream that go on."""
        call = asyncio.create_task(self.outcome(self.calls.allocate(wire.AllocateRequest())))
        stream = asyncio.create_task(self.outcome(self._listen()))
        await asyncio.sleep(SOON)
        return call, stream


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wire-") as name:
        yield Path(name)


async def _act(play: Play, directory: Path) -> object:
    async with Stage(directory) as stage:
        return await play(stage)


def _on_both(directory: Path, play: Play) -> tuple[object, object]:
    """What a play says on grpcio, and on the wire."""
    real = asyncio.run(_act(play, directory))
    graveyard = directory / "graveyard"
    graveyard.mkdir()
    with Wire(graveyard, lambda: 0.001).installed():
        return real, run_virtually(_act(play, directory))


async def every_end_of_a_call(stage: Stage) -> object:
    calls = stage.calls
    return [
        await stage.ask(),
        await stage.outcome(calls.get_preferred_allocation(wire.PreferredAllocationRequest())),
        await stage.outcome(calls.pre_start_container(wire.PreStartContainerRequest())),
        await stage.outcome(calls.allocate(wire.AllocateRequest(), timeout=SOON)),
        await stage.outcome(REGISTER.call(stage.channel)(wire.RegisterRequest())),
        await _ended(stage, 1),
    ]


async def _ended(stage: Stage, times: int) -> list[str]:
    async with asyncio.timeout(10):
        while len(stage.service.ended) < times:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
    return sorted(stage.service.ended)


async def a_server_that_stops_at_once(stage: Stage) -> object:
    call, stream = await stage.under_way()
    await stage.server.stop(None)
    ended = await _ended(stage, 2)
    return await call, await stream, stage.lists, ended, stage.socket.exists(), await stage.ask()


async def a_server_that_stops_with_grace(stage: Stage) -> object:
    call, stream = await stage.under_way()
    stopping = asyncio.create_task(stage.server.stop(10))
    await asyncio.sleep(SOON)
    meanwhile = stage.socket.exists(), await stage.ask()
    stage.service.open.set()
    results = await call, await stream
    await stopping
    return meanwhile, results, stage.lists


async def a_server_whose_grace_is_over(stage: Stage) -> object:
    call, stream = await stage.under_way()
    await stage.server.stop(SOON)
    return await call, await stream, sorted(stage.service.ended)


async def a_channel_that_is_closed(stage: Stage) -> object:
    call, stream = await stage.under_way()
    await stage.channel.close()
    return await call, await stream, await _ended(stage, 2), await stage.outcome(_used_after_its_end(stage))


async def _used_after_its_end(stage: Stage) -> object:
    return await stage.calls.get_device_plugin_options(wire.Empty())


async def a_call_that_is_cancelled(stage: Stage) -> object:
    call, stream = await stage.under_way()
    call.cancel()
    stream.cancel()
    return await call, await stream, await _ended(stage, 2)


async def a_socket_that_nobody_serves(stage: Stage) -> object:
    other = stage.socket.with_name("other")
    async with unix_channel(other) as channel:
        missing = await stage.outcome(DevicePluginCalls(channel).get_device_plugin_options(wire.Empty()))
        try:
            await asyncio.wait_for(channel.channel_ready(), 0.3)
            ready = True
        except TimeoutError:
            ready = False
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(other))
    async with unix_channel(other) as channel:
        refused = await stage.outcome(DevicePluginCalls(channel).get_device_plugin_options(wire.Empty()))
    other.unlink()
    return missing, ready, refused


async def a_socket_that_is_deleted(stage: Stage) -> object:
    before = await stage.ask()
    stage.socket.unlink()
    async with unix_channel(stage.socket) as channel:
        new = await stage.outcome(DevicePluginCalls(channel).get_device_plugin_options(wire.Empty()))
    return before, await stage.ask(), new


async def two_servers_on_one_path(stage: Stage) -> object:
    async with Stage(stage.socket.parent) as second:
        second.service.open.set()
        answers = await stage.ask(), await second.outcome(second.calls.allocate(wire.AllocateRequest()))
        await stage.server.stop(None)
        return answers, stage.socket.exists()


async def a_file_in_the_way(stage: Stage) -> object:
    path = stage.socket.with_name("file")
    path.write_text("a file")
    try:
        grpc.aio.server(handlers=[]).add_insecure_port(unix_address(path))
    except RuntimeError as error:
        return str(error).partition(" unix:")[0]
    return "bound"


@pytest.mark.parametrize(
    "play",
    [
        every_end_of_a_call,
        a_server_that_stops_at_once,
        a_server_that_stops_with_grace,
        a_server_whose_grace_is_over,
        a_channel_that_is_closed,
        a_call_that_is_cancelled,
        a_socket_that_nobody_serves,
        a_socket_that_is_deleted,
        two_servers_on_one_path,
        a_file_in_the_way,
    ],
)
def test_calls_end_as_grpcios(directory: Path, play: Play) -> None:
    real, virtual = _on_both(directory, play)
    assert virtual == real


async def a_process_that_is_killed(directory: Path) -> object:
    process = Process("plugin")
    with running_as(process):
        server = await Stage(directory).__aenter__()
    async with Stage(directory.with_name(f"{directory.name}-2")) as client:
        client.channel = unix_channel(server.socket)
        client.calls = DevicePluginCalls(client.channel)
        call, stream = await client.under_way()
        process.kill()
        return await call, await stream, (await client.ask()), server.socket.exists(), await _ended(server, 2)


def test_a_process_that_is_killed_leaves_its_socket_and_its_peers_notice(directory: Path) -> None:
    for name in ("d", "d-2", "graveyard"):
        (directory / name).mkdir()
    broken = "StatusCode.UNAVAILABLE Stream removed (Socket closed)"  # as with grpcio and a true process
    with Wire(directory / "graveyard", lambda: 0.001).installed():
        assert run_virtually(a_process_that_is_killed(directory / "d")) == (
            broken,
            broken,
            "StatusCode.UNAVAILABLE failed to connect",
            True,
            ["call", "stream"],
        )


async def _two_lists(stage: Stage) -> float:
    began = asyncio.get_running_loop().time()
    _, stream = await stage.under_way()
    stage.service.open.set()
    assert await stream == "over"
    assert stage.lists == ["one", "two"]
    return asyncio.get_running_loop().time() - began


def test_messages_take_their_time_and_come_in_order(directory: Path) -> None:
    graveyard = directory / "graveyard"
    graveyard.mkdir()
    lags = iter([0.0, 0.0, 5.0, 0.0, 0.0])
    with Wire(graveyard, lambda: next(lags, 0.0)).installed():
        assert 5 <= run_virtually(_act(_two_lists, directory)) < 6  # type: ignore[operator] # it is seconds


def test_time_passes_when_there_is_nothing_to_do() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run_virtually(main()) == pytest.approx(3600)


def test_what_waits_for_nothing_is_told() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StuckError):
        run_virtually(main())
