"""A stop at the worst moments: it ends all, and no socket of ours is left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from gpustow.kubelet import server as server_module
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import AllocateRequest, RegisterRequest
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_channel
from gpustow.kubelet.server import PluginServer
from gpustow.plugin.observer import PluginState
from gpustow.plugin.service import ResourceService
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, gpu, node, our_sockets


def hang_in(monkeypatch: pytest.MonkeyPatch, method: str) -> asyncio.Event:
    """Makes a call of the service one that never ends; the event is that it has begun."""
    begun = asyncio.Event()

    async def hang(*_: object) -> Any:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(ResourceService, method, hang)
    return begun


async def stops(daemon: Daemon, running: "asyncio.Task[None]", directory: Path) -> None:
    daemon.supervisor.stop()
    await until(running.done)
    await running
    assert our_sockets(directory) == []


async def test_while_the_server_dials_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SELF_DIAL_SECONDS", 600)
    begun = hang_in(monkeypatch, "get_device_plugin_options")
    daemon = Daemon(tmp_path)
    async with FakeKubelet(tmp_path):
        running = asyncio.create_task(daemon.supervisor.run())
        await until(begun.is_set)
        assert len(our_sockets(tmp_path)) == 1
        await stops(daemon, running, tmp_path)


async def test_while_it_waits_before_another_try(tmp_path: Path) -> None:
    async def refuse(_request: RegisterRequest) -> str:
        return "not now"

    daemon = Daemon(tmp_path, timing=replace(SHORT, retry_first=600, retry_most=600))
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = refuse
    async with kubelet:
        running = asyncio.create_task(daemon.supervisor.run())
        await until(lambda: "not now" in str(daemon.supervisor.not_ready))
        await stops(daemon, running, tmp_path)
        assert len(kubelet.requests) == 1


@asynccontextmanager
async def allocating(socket: Path) -> AsyncIterator["asyncio.Task[None]"]:
    """An Allocate that somebody waits for."""

    async def allocate() -> None:
        await DevicePluginCalls(channel).allocate(AllocateRequest())

    async with unix_channel(socket) as channel:
        call = asyncio.create_task(allocate())
        yield call
        call.cancel()
        with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
            await call


async def test_while_an_allocate_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = hang_in(monkeypatch, "allocate")
    daemon = Daemon(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet:
        running = asyncio.create_task(daemon.supervisor.run())
        await until(lambda: kubelet.live(GPU))
        async with allocating(tmp_path / our_sockets(tmp_path)[0]) as call:
            await until(begun.is_set)
            await stops(daemon, running, tmp_path)
            await until(call.done)
            assert isinstance(call.exception(), grpc.aio.AioRpcError)


async def test_while_a_reload_ends_a_resource(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = hang_in(monkeypatch, "allocate")
    daemon = Daemon(tmp_path, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed", held=[])
    async with FakeKubelet(tmp_path) as kubelet:
        running = asyncio.create_task(daemon.supervisor.run())
        await until(lambda: kubelet.live(GPU) and kubelet.live(MIG))
        [endpoint] = [each.endpoint for each in kubelet.requests if each.resource_name == MIG]
        async with allocating(tmp_path / endpoint):
            await until(begun.is_set)
            daemon.reader.answer = node(gpu(0))
            daemon.supervisor.reload()
            await until(lambda: (MIG, PluginState.DRAINING) in daemon.recorder.moves)
            await stops(daemon, running, tmp_path)


@pytest.mark.parametrize("cancels", [False, True])
async def test_while_a_server_is_being_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancels: bool) -> None:  # noqa: FBT001 - a parameter of the test
    stop, entered = PluginServer.stop, asyncio.Event()

    async def announced(server: PluginServer) -> None:
        entered.set()
        await stop(server)

    begun = hang_in(monkeypatch, "allocate")
    monkeypatch.setattr(PluginServer, "stop", announced)
    daemon = Daemon(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet:
        running = asyncio.create_task(daemon.supervisor.run())
        await until(lambda: kubelet.live(GPU))
        async with allocating(tmp_path / our_sockets(tmp_path)[0]) as call:
            await until(begun.is_set)
            await kubelet.end_stream()
            await entered.wait()
            if cancels:
                running.cancel()
                await until(running.done)
                assert running.cancelled()
                assert our_sockets(tmp_path) == []
            else:
                await stops(daemon, running, tmp_path)
            await until(call.done)
