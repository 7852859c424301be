"""Two instances of a plugin: which of them kubelet loses when one of their streams ends."""

import asyncio
from pathlib import Path
from random import Random

import grpc
import pytest

from gpustow.simulation.kubelet import Behaviour, EmbeddedKubelet
from tests.simulation.kubelet.core import THING, wanting
from tests.simulation.kubelet.fakeplugin import FakePlugin, devices, until

VERSIONS = ["1.24", "1.36", "1.37"]


def kubelet_of(version: str, directory: Path, random: Random) -> EmbeddedKubelet:
    return EmbeddedKubelet(directory, random=random, behaviour=Behaviour.of(version), dial_timeout=0.2)


async def settle(plugin: FakePlugin) -> None:
    """Until the plugin's streams have ended and kubelet has had time to see it."""
    await until(lambda: not plugin.open_streams)
    await asyncio.sleep(0.05)


@pytest.mark.parametrize(("version", "allocatable"), [("1.24", 2), ("1.25", 0), ("1.36", 0), ("1.37", 2)])
async def test_the_end_of_the_old_stream_disconnects_the_new_plugin_from_1_25_to_1_36(
    version: str, allocatable: int, directory: Path, random: Random
) -> None:
    async with kubelet_of(version, directory, random) as kubelet:
        old = FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1"), endpoint="old.sock")
        new = FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1"), endpoint="new.sock")
        async with old:
            await kubelet.wait_for(THING, at_least=2)
            async with new:
                await kubelet.wait_until(lambda: new.open_streams == 1 and len(kubelet.registrations) == 2)
                old.end_streams()
                await settle(old)
                assert kubelet.allocatable() == {THING: allocatable}
                assert kubelet.capacity() == {THING: 2}


async def test_on_the_same_socket_the_end_of_the_old_stream_disconnects_the_new_plugin_until_1_36(
    directory: Path, random: Random
) -> None:
    async with kubelet_of("1.36", directory, random) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        async with plugin:
            await kubelet.wait_for(THING)
            await plugin.register()
            await kubelet.wait_until(lambda: plugin.open_streams == 2)
            plugin.end_one_stream()
            await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})


async def test_on_the_same_socket_the_second_registration_is_refused_from_1_37_on_and_the_first_is_lost_sight_of(
    directory: Path, random: Random
) -> None:
    async with kubelet_of("1.37", directory, random) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        async with plugin:
            await kubelet.wait_for(THING)
            with pytest.raises(grpc.aio.AioRpcError, match=f"device plugin already connected: {plugin.socket}"):
                await plugin.register()
            plugin.end_streams()
            await settle(plugin)
            assert kubelet.allocatable() == {THING: 1}
            with pytest.raises(grpc.aio.AioRpcError, match="device plugin already connected"):
                await plugin.register()
            await kubelet.restart()
            await plugin.stop()
            await plugin.serve()
            await plugin.register()
            await kubelet.wait_for(THING)


async def test_from_1_37_on_another_instance_takes_over_when_the_one_that_speaks_is_lost(
    directory: Path, random: Random
) -> None:
    async with kubelet_of("1.37", directory, random) as kubelet:
        old = FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1"), endpoint="old.sock")
        new = FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1"), endpoint="new.sock")
        async with old, new:
            await kubelet.wait_until(lambda: old.open_streams == new.open_streams == 1)
            await kubelet.admit(wanting("a", 1))
            assert (old.allocations, new.allocations) == ([], [("d0",)])
            new.end_streams()
            await settle(new)
            assert kubelet.allocatable() == {THING: 2}
            await kubelet.admit(wanting("b", 1))
            assert old.allocations == [("d1",)]
            old.end_streams()
            await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})


@pytest.mark.parametrize(("version", "allocatable"), [("1.36", 1), ("1.37", 0)])
async def test_after_a_failed_registration_the_end_of_the_old_stream_is_never_noticed_until_1_36(
    version: str, allocatable: int, directory: Path, random: Random
) -> None:
    async with kubelet_of(version, directory, random) as kubelet:
        old = FakePlugin(THING, kubelet.plugin_directory, devices("d0"), endpoint="old.sock")
        async with old:
            await kubelet.wait_for(THING)
            with pytest.raises(grpc.aio.AioRpcError, match="failed to dial"):
                await FakePlugin(THING, kubelet.plugin_directory, endpoint="absent.sock").register()
            old.end_streams()
            await settle(old)
            assert kubelet.allocatable() == {THING: allocatable}


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_end_of_the_only_stream_takes_allocatable(version: str, directory: Path, random: Random) -> None:
    async with kubelet_of(version, directory, random) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1"))
        async with plugin:
            await kubelet.wait_for(THING, at_least=2)
            plugin.end_streams()
            await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})
            assert kubelet.capacity() == {THING: 2}


@pytest.mark.parametrize("version", VERSIONS)
async def test_kubelet_never_lists_again_and_only_a_registration_repairs(
    version: str, directory: Path, random: Random
) -> None:
    async with kubelet_of(version, directory, random) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        async with plugin:
            await kubelet.wait_for(THING)
            plugin.end_streams()
            await settle(plugin)
            assert plugin.open_streams == 0
            await plugin.register()
            await kubelet.wait_for(THING)


@pytest.mark.parametrize("version", VERSIONS)
async def test_while_two_instances_overlap_every_list_counts(version: str, directory: Path, random: Random) -> None:
    async with kubelet_of(version, directory, random) as kubelet:
        old = FakePlugin(THING, kubelet.plugin_directory, devices("d0"), endpoint="old.sock")
        new = FakePlugin(THING, kubelet.plugin_directory, devices("d0"), endpoint="new.sock")
        async with old, new:
            await kubelet.wait_until(lambda: old.open_streams == new.open_streams == 1)
            old.send(devices("d0 d1 d2"))
            await kubelet.wait_for(THING, at_least=3)


async def test_many_re_registrations_leave_nothing_open(directory: Path, random: Random) -> None:
    async with kubelet_of("1.36", directory, random) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        async with plugin:
            for _ in range(10):
                await plugin.register()
                await kubelet.wait_for(THING)
                plugin.end_streams()
                await settle(plugin)
            assert not kubelet._last().clients.open
