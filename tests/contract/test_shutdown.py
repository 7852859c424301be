"""The end of an instance: of its process, and of the older of two."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.contract.process import plugin_process
from tests.contract.scene import VERSIONS, embedded, reseeded, some_polls
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.kubelet.samples import abandon, names
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, our_sockets


@pytest.mark.parametrize("version", VERSIONS)
async def test_11_foreign_socket_safety_when_the_older_of_two_instances_stops_last(
    directory: Path, version: str
) -> None:
    async with embedded(directory, version) as kubelet, AsyncExitStack() as newer_runs:
        place = kubelet.plugin_directory
        newer = reseeded(Daemon(place), 2)
        async with Daemon(place).running():
            await kubelet.wait_for(GPU, at_least=2)
            [old_socket] = our_sockets(place)
            await newer_runs.enter_async_context(newer.running())
            await until(lambda: newer.supervisor.not_ready is None and kubelet.allocatable() == {GPU: 2})
            assert old_socket in our_sockets(place)
            assert len(our_sockets(place)) == 2
        await until(lambda: newer.supervisor.not_ready is None and kubelet.allocatable() == {GPU: 2})
        await some_polls()
        assert kubelet.allocatable() == {GPU: 2}
        [new_socket] = our_sockets(place)
        assert new_socket != old_socket


async def test_11_foreign_socket_safety_costs_kubelet_1_37_not_a_moment_without_devices(directory: Path) -> None:
    async with embedded(directory, "1.37") as kubelet, AsyncExitStack() as newer_runs:
        newer = reseeded(Daemon(kubelet.plugin_directory), 2)
        seen: set[int] = set()

        def note() -> bool:
            seen.add(kubelet.allocatable()[GPU])
            return newer.supervisor.not_ready is None

        async with Daemon(kubelet.plugin_directory).running():
            await kubelet.wait_for(GPU, at_least=2)
            await newer_runs.enter_async_context(newer.running())
            await kubelet.wait_until(note)
            ending = asyncio.create_task(some_polls())
        await kubelet.wait_until(lambda: note() and ending.done())
        assert seen == {2}
        assert len(kubelet.registrations) == 2


async def test_27_sigterm_ends_the_process_and_removes_its_own_socket_alone(directory: Path) -> None:
    (directory / "kubelet_internal_checkpoint").write_text("{}", encoding="utf-8")
    async with FakeKubelet(directory) as kubelet, plugin_process(directory) as daemon:
        abandon(directory / "nvidia-gpu.sock")
        (directory / "gpustow-notes").touch()
        await until(lambda: kubelet.live(GPU), seconds=60)
        assert await daemon.stop() == 0
        await until(lambda: kubelet.plugins[0].ended)
        assert names(directory) == [
            "gpustow-notes",
            "kubelet.sock",
            "kubelet_internal_checkpoint",
            "log",
            "nvidia-gpu.sock",
        ]
        assert (directory / "kubelet_internal_checkpoint").read_text(encoding="utf-8") == "{}"
