"""Kubelet stops, dies, comes back, and wipes its directory; or only seems to."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import psutil
import pytest

from gpustow.errors import KubeletDirectoryError
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import Empty, RegisterRequest
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_channel
from gpustow.plugin.observer import PluginState
from gpustow.plugin.timing import Backoff, Timing
from tests.contract.process import plugin_process
from tests.contract.scene import VERSIONS, embedded, some_polls
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.kubelet.samples import abandon
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, SHORT, our_sockets, random


@asynccontextmanager
async def registered(directory: Path, *, timing: Timing = SHORT) -> AsyncIterator[tuple[FakeKubelet, Daemon]]:
    """A daemon whose devices kubelet has."""
    daemon = Daemon(directory, timing=timing)
    async with FakeKubelet(directory) as kubelet, daemon.running():
        await until(lambda: kubelet.live(GPU))
        yield kubelet, daemon


async def test_04_kubelet_restart_clean_brings_a_new_registration_and_ends_the_old_server(directory: Path) -> None:
    async with registered(directory, timing=Timing()) as (kubelet, _):
        async with unix_channel(directory / kubelet.requests[0].endpoint) as channel:
            old = DevicePluginCalls(channel)
            await old.get_device_plugin_options(Empty(), timeout=10)
            await kubelet.restart()
            await until(lambda: kubelet.live(GPU))
            with pytest.raises(grpc.aio.AioRpcError) as gone:
                await old.get_device_plugin_options(Empty(), timeout=10)
        assert gone.value.code() is grpc.StatusCode.UNAVAILABLE
        first, second = (request.endpoint for request in kubelet.requests)
        assert first != second
        assert our_sockets(directory) == [second]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("killed", [False, True])
async def test_04_kubelet_restart_with_each_version_registers_once(
    directory: Path, version: str, *, killed: bool
) -> None:
    async with embedded(directory, version) as kubelet, Daemon(kubelet.plugin_directory).running():
        for _ in range(3):
            await kubelet.wait_for(GPU, at_least=2)
            await some_polls()
            assert [call.refusal for call in kubelet.registrations] == [None]
            assert len(our_sockets(kubelet.plugin_directory)) == 1
            kubelet.registrations.clear()
            await kubelet.restart(killed=killed)


async def test_05_kubelet_killed_is_waited_for_ever_more_rarely_and_registered_with_when_it_is_back(
    directory: Path,
) -> None:
    async with registered(directory) as (kubelet, daemon):
        await kubelet.stop(stale=True)
        reasons = daemon.recorder.reasons
        await until(lambda: sum("does not answer on its socket" in reason for reason in reasons) >= 3)
        assert "does not answer on its socket" in str(daemon.supervisor.not_ready)
        await kubelet.start()
        await until(lambda: kubelet.live(GPU) and daemon.supervisor.not_ready is None)
        assert len(kubelet.requests) == 2


def test_05_kubelet_killed_costs_at_most_one_try_a_second_and_few_in_a_minute() -> None:
    timing = Timing()
    backoff = Backoff(timing.retry_first, timing.retry_most, random())
    waits = [backoff.next() for _ in range(6)]
    assert min(waits) >= 1
    assert sum(waits) > 60


@pytest.mark.slow
async def test_05_kubelet_killed_lets_the_process_idle(directory: Path) -> None:
    kubelet = FakeKubelet(directory)
    abandon(kubelet.socket)
    async with plugin_process(directory) as daemon:
        await daemon.logged("does not answer on its socket", times=2)
        process = psutil.Process(daemon.pid)
        before = process.cpu_times()
        await asyncio.sleep(2)
        after = process.cpu_times()
        assert process.is_running()
        assert after.user + after.system - before.user - before.system < 0.5
        async with kubelet:
            await until(lambda: kubelet.live(GPU), seconds=60)
            assert await daemon.stop() == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_06_own_socket_deleted_rebuilds_server_and_registration(directory: Path, version: str) -> None:
    async with embedded(directory, version) as kubelet, Daemon(kubelet.plugin_directory).running() as supervisor:
        await kubelet.wait_for(GPU, at_least=2)
        [first] = our_sockets(kubelet.plugin_directory)
        (kubelet.plugin_directory / first).unlink()
        await until(lambda: our_sockets(kubelet.plugin_directory) not in ([], [first]))
        await until(lambda: supervisor.not_ready is None and kubelet.allocatable() == {GPU: 2})
        await some_polls()
        assert kubelet.allocatable() == {GPU: 2}


async def test_08_spurious_event_for_the_same_kubelet_socket_restarts_nothing(directory: Path) -> None:
    async with registered(directory) as (kubelet, daemon):
        aside = directory / "aside"
        for _ in range(3):
            kubelet.socket.rename(aside)  # for whoever watches the directory, it is created when it comes back
            aside.rename(kubelet.socket)
            await some_polls()
        os.utime(kubelet.socket)
        aside.hardlink_to(kubelet.socket)
        aside.unlink()
        os.utime(directory)
        await some_polls()
        assert daemon.supervisor.states == {GPU: PluginState.STREAMING}
        assert len(kubelet.requests) == 1
        assert [len(plugin.lists) for plugin in kubelet.plugins] == [1]


async def test_10_late_wipe_before_register_is_followed_by_a_new_bind(directory: Path) -> None:
    daemon = Daemon(directory)

    def wipe_once(state: PluginState) -> None:
        if state is PluginState.BOUND and len(daemon.recorder.moves) == 1:
            for name in our_sockets(directory):
                (directory / name).unlink()

    daemon.recorder._on_move = wipe_once
    async with FakeKubelet(directory) as kubelet, daemon.running():
        await until(lambda: kubelet.live(GPU))
        assert len(kubelet.requests) == len(kubelet.plugins) == 1, "kubelet hears of no socket that is gone"
        assert our_sockets(directory) == [kubelet.requests[0].endpoint]


async def test_10_late_wipe_during_register_is_not_waited_out(directory: Path) -> None:
    async def wipe_once_and_dial_in_vain(request: RegisterRequest) -> None:
        if len(kubelet.requests) == 1:
            (directory / request.endpoint).unlink()
            await asyncio.Event().wait()

    kubelet = FakeKubelet(directory)
    kubelet.refusal = wipe_once_and_dial_in_vain
    async with kubelet, Daemon(directory, timing=replace(SHORT, register=600)).running():
        await until(lambda: kubelet.live(GPU))
        assert our_sockets(directory) == [kubelet.requests[-1].endpoint]


async def test_28_directory_replaced_is_served_in_again(directory: Path) -> None:
    place = directory / "device-plugins"
    place.mkdir()
    async with registered(place) as (kubelet, daemon):
        await kubelet.stop()
        shutil.rmtree(place)
        await until(lambda: "waits for kubelet" in str(daemon.supervisor.not_ready))
        await kubelet.start()
        await until(lambda: kubelet.live(GPU) and daemon.supervisor.not_ready is None)


async def test_28_directory_replaced_within_a_moment_is_served_in_again(directory: Path) -> None:
    place = directory / "device-plugins"
    place.mkdir()
    async with registered(place) as (kubelet, _):
        await kubelet.stop()
        shutil.rmtree(place)
        await kubelet.start()
        await until(lambda: kubelet.live(GPU))
        assert our_sockets(place) == [kubelet.requests[-1].endpoint]


async def test_28_directory_deleted_under_its_mount_ends_the_process_for_a_new_mount(directory: Path) -> None:
    place = directory / "device-plugins"
    place.mkdir()
    mount = os.open(place, os.O_RDONLY)  # like a mount, it goes on showing a directory that has been deleted
    try:
        kubelet = FakeKubelet(place)
        daemon = Daemon(Path(f"/proc/self/fd/{mount}"))
        await kubelet.start()
        running = asyncio.create_task(daemon.supervisor.run())
        await until(lambda: kubelet.live(GPU))
        await kubelet.stop()
        shutil.rmtree(place)
        with pytest.raises(KubeletDirectoryError, match="was deleted") as ended:
            await asyncio.wait_for(running, 10)
        assert ended.value.exit_code != 0
    finally:
        os.close(mount)
