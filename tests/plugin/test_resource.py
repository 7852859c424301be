import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.errors import ApiVersionRefused, KubeletDirectoryError, RegistrationRefused
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import AllocateRequest, Empty, RegisterRequest
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_channel
from gpustow.plugin.observer import PluginState
from gpustow.plugin.offer import KubeletPlace
from gpustow.plugin.resource import ResourcePlugin
from gpustow.plugin.timing import Timing
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.kubelet.samples import abandon
from tests.plugin.samples import GPU, SHORT, Recorder, our_sockets, served, surroundings, with_health


def plugin_at(directory: Path, recorder: Recorder | None = None, timing: Timing = SHORT) -> ResourcePlugin:
    place = KubeletPlace(directory, directory / "kubelet.sock")
    return ResourcePlugin(served(2), place, surroundings(recorder, timing))


@asynccontextmanager
async def running(plugin: ResourcePlugin) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(plugin.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def some_polls() -> None:
    """Long enough for the plugin to look at the sockets several times."""
    await asyncio.sleep(10 * SHORT.poll)


async def test_it_serves_before_it_registers_and_sends_its_options_both_ways(tmp_path: Path) -> None:
    recorder = Recorder()
    plugin = plugin_at(tmp_path, recorder)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: plugin.ready)
        registered = kubelet.plugins[0]
        assert registered.request.version == "v1beta1"
        assert registered.request.resource_name == GPU
        assert registered.request.options == registered.options
        assert [registered.request.endpoint] == our_sockets(tmp_path)
        await until(lambda: kubelet.live(GPU))
        assert registered.healthy == {"GPU-0", "GPU-1"}
    assert [state for _, state in recorder.moves] == ["bound", "registered", "streaming", "draining"]
    assert our_sockets(tmp_path) == []


async def test_nothing_restarts_while_the_facts_stay_the_same(tmp_path: Path) -> None:
    plugin = plugin_at(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: plugin.ready)
        os.utime(tmp_path)
        (tmp_path / "other").touch()
        (tmp_path / "other").unlink()
        kubelet.socket.chmod(0o660)
        await some_polls()
        assert plugin.ready
        assert len(kubelet.requests) == 1
        assert [len(each.lists) for each in kubelet.plugins] == [1]


async def test_a_restarted_kubelet_gets_one_registration_with_a_new_socket(tmp_path: Path) -> None:
    plugin = plugin_at(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        await kubelet.restart()
        await until(lambda: len(kubelet.plugins) == 2 and kubelet.live(GPU))
        await some_polls()
        first, second = kubelet.requests
        assert first.endpoint != second.endpoint
        assert our_sockets(tmp_path) == [second.endpoint]


async def test_a_kubelet_that_stops_is_told_from_one_that_was_replaced(tmp_path: Path) -> None:
    recorder = Recorder()
    async with FakeKubelet(tmp_path) as kubelet, running(plugin_at(tmp_path, recorder)):
        await until(lambda: kubelet.live(GPU))
        await kubelet.stop()
        await until(lambda: "waits" in recorder.reasons[-1])
        assert "kubelet's socket is gone: kubelet stopped" in recorder.reasons
        await kubelet.start()
        await until(lambda: kubelet.live(GPU))
        abandon(tmp_path / "next")
        (tmp_path / "next").rename(kubelet.socket)
        await until(lambda: "kubelet's socket is another one: kubelet was restarted" in recorder.reasons)


async def test_a_killed_kubelet_is_waited_for_without_an_end_and_registered_with_once_it_is_back(
    tmp_path: Path,
) -> None:
    recorder = Recorder()
    plugin = plugin_at(tmp_path, recorder)
    kubelet = FakeKubelet(tmp_path)
    async with kubelet, running(plugin) as task:
        await until(lambda: kubelet.live(GPU))
        await kubelet.stop(stale=True)
        await until(lambda: sum("does not answer" in reason for reason in recorder.reasons) >= 3)
        assert not task.done()
        await kubelet.start()
        await until(lambda: kubelet.live(GPU))
        assert len(kubelet.requests) == 2


async def test_a_kubelet_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    recorder = Recorder()
    plugin = plugin_at(tmp_path, recorder)
    async with running(plugin):
        await until(lambda: recorder.moves == [(GPU, PluginState.INIT)])
        await some_polls()
        assert not plugin.ready
        assert our_sockets(tmp_path) == []
        async with FakeKubelet(tmp_path) as kubelet:
            await until(lambda: kubelet.live(GPU))
            assert len(kubelet.requests) == 1
            assert len(recorder.moves) == 4


async def test_its_own_socket_deleted_means_a_new_server_and_a_new_registration(tmp_path: Path) -> None:
    plugin = plugin_at(tmp_path)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        (tmp_path / our_sockets(tmp_path)[0]).unlink()
        await until(lambda: len(kubelet.plugins) == 2 and kubelet.live(GPU))
        assert kubelet.plugins[0].ended
        assert len(kubelet.live(GPU)) == 1


async def test_a_stream_that_kubelet_ends_alone_means_a_new_registration(tmp_path: Path) -> None:
    recorder = Recorder()
    plugin = plugin_at(tmp_path, recorder)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        await kubelet.end_stream()
        await until(lambda: len(kubelet.plugins) == 2 and kubelet.live(GPU))
        assert "kubelet ended its stream" in recorder.reasons


async def test_a_registration_that_no_stream_follows_is_made_again(tmp_path: Path) -> None:
    recorder = Recorder()
    plugin = plugin_at(tmp_path, recorder, replace(SHORT, stream_deadline=0.05))
    kubelet = FakeKubelet(tmp_path)
    kubelet.listens = False
    async with kubelet, running(plugin):
        await until(lambda: len(kubelet.requests) >= 2)
        assert "kubelet opened no stream in 0.05 s" in recorder.reasons


async def test_a_socket_wiped_before_register_is_bound_anew_before_kubelet_hears_of_it(tmp_path: Path) -> None:
    def wipe_once(state: PluginState) -> None:
        if state is PluginState.BOUND and len(recorder.moves) == 1:
            (tmp_path / our_sockets(tmp_path)[0]).unlink()

    recorder = Recorder(wipe_once)
    plugin = plugin_at(tmp_path, recorder)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        assert len(kubelet.requests) == 1
    assert any("deleted before the registration" in reason for reason in recorder.reasons)


async def test_a_socket_wiped_during_register_is_bound_anew_without_waiting_for_kubelet(tmp_path: Path) -> None:
    async def wipe_and_hang(_request: RegisterRequest) -> None:
        if len(kubelet.requests) == 1:
            (tmp_path / our_sockets(tmp_path)[0]).unlink()
            await asyncio.Event().wait()

    recorder = Recorder()
    plugin = plugin_at(tmp_path, recorder)
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = wipe_and_hang
    async with kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        assert len(kubelet.requests) == 2
    assert any("deleted during the registration" in reason for reason in recorder.reasons)


async def test_a_kubelet_socket_that_changes_during_register_costs_no_second_registration(tmp_path: Path) -> None:
    async def touch(_request: RegisterRequest) -> None:
        os.utime(kubelet.socket)

    plugin = plugin_at(tmp_path)
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = touch
    async with kubelet, running(plugin):
        await until(lambda: plugin.ready)
        await some_polls()
        assert len(kubelet.requests) == 1


async def test_an_older_instance_that_ends_last_leaves_the_newer_ones_socket(tmp_path: Path) -> None:
    older, newer = plugin_at(tmp_path), plugin_at(tmp_path)
    newer._random.seed(2)
    async with FakeKubelet(tmp_path) as kubelet:
        async with running(older):
            await until(lambda: kubelet.live(GPU))
            newer_task = asyncio.create_task(newer.run())
            await until(lambda: len(our_sockets(tmp_path)) == 2 and newer.ready)
        assert our_sockets(tmp_path) == [kubelet.requests[-1].endpoint]
        newer_task.cancel()
        with suppress(asyncio.CancelledError):
            await newer_task


async def test_a_refusal_that_may_pass_is_tried_again_until_it_passes(tmp_path: Path) -> None:
    async def thrice(_request: RegisterRequest) -> str | None:
        return "failed to get device plugin options: EOF" if len(kubelet.requests) <= 3 else None

    plugin = plugin_at(tmp_path)
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = thrice
    async with kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        assert len(kubelet.requests) == 4
        assert len(kubelet.plugins) == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('the ResourceName "nvidia.com/gpu" is invalid', RegistrationRefused),
        ('requested API version "v1beta1" is not supported by kubelet', ApiVersionRefused),
    ],
)
async def test_a_refusal_for_ever_ends_it(tmp_path: Path, text: str, error: type[RegistrationRefused]) -> None:
    async def refuse(_request: RegisterRequest) -> str:
        return text

    plugin = plugin_at(tmp_path)
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = refuse
    async with kubelet:
        with pytest.raises(error):
            await plugin.run()
    assert plugin.state is PluginState.REFUSED
    assert our_sockets(tmp_path) == []


async def test_while_register_hangs_the_server_answers(tmp_path: Path) -> None:
    async def hang(_request: RegisterRequest) -> None:
        await asyncio.Event().wait()

    plugin = plugin_at(tmp_path)
    kubelet = FakeKubelet(tmp_path)
    kubelet.refusal = hang
    async with kubelet, running(plugin):
        await until(lambda: kubelet.requests)
        async with unix_channel(tmp_path / our_sockets(tmp_path)[0]) as channel:
            await DevicePluginCalls(channel).allocate(AllocateRequest(), timeout=5)
        assert plugin.state is PluginState.BOUND
    assert our_sockets(tmp_path) == []


async def test_a_device_that_fails_and_recovers_is_told_in_one_message_each(tmp_path: Path) -> None:
    plugin = plugin_at(tmp_path)
    healthy = served(2)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        lists = kubelet.plugins[0].lists
        plugin.replace(with_health(healthy, _0=False))
        await until(lambda: len(lists) == 2)
        plugin.replace(healthy)
        await until(lambda: len(lists) == 3)
        plugin.replace(healthy)
        await some_polls()
        health = [{device.ID: device.health for device in each} for each in lists]
        assert health == [
            {"GPU-0": "Healthy", "GPU-1": "Healthy"},
            {"GPU-0": "Unhealthy", "GPU-1": "Healthy"},
            {"GPU-0": "Healthy", "GPU-1": "Healthy"},
        ]
        assert len(kubelet.requests) == 1


async def test_devices_replaced_while_kubelet_is_away_are_served_when_it_is_back(tmp_path: Path) -> None:
    plugin = plugin_at(tmp_path)
    async with running(plugin):
        await until(lambda: "waits" in plugin.reason)
        plugin.replace(with_health(served(2), _1=False))
        async with FakeKubelet(tmp_path) as kubelet:
            await until(lambda: kubelet.live(GPU))
            assert kubelet.plugins[0].healthy == {"GPU-0"}


async def test_devices_replaced_while_the_server_starts_are_served(tmp_path: Path) -> None:
    def replace_once(state: PluginState) -> None:
        if state is PluginState.BOUND:
            plugin.replace(with_health(served(2), _1=False))

    plugin = plugin_at(tmp_path, Recorder(replace_once))
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        assert [len(each.lists) for each in kubelet.plugins] == [1]
        assert kubelet.plugins[0].healthy == {"GPU-0"}


async def test_a_retired_plugin_tells_kubelet_that_nothing_is_left(tmp_path: Path) -> None:
    plugin = plugin_at(tmp_path)
    plugin.retire()
    async with FakeKubelet(tmp_path) as kubelet:
        async with running(plugin):
            await until(lambda: kubelet.live(GPU))
            plugin.retire()
        await until(lambda: kubelet.plugins[0].ended)
        assert [len(each) for each in kubelet.plugins[0].lists] == [2, 0]


async def test_without_a_kubelet_to_register_with_it_serves_and_keeps_its_socket(tmp_path: Path) -> None:
    recorder = Recorder()
    plugin = ResourcePlugin(served(2), KubeletPlace(tmp_path, None), surroundings(recorder))
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: plugin.ready)
        (first,) = our_sockets(tmp_path)
        async with unix_channel(tmp_path / first) as channel:
            message = await anext(aiter(DevicePluginCalls(channel).list_and_watch(Empty())))
            assert [device.ID for device in message.devices] == ["GPU-0", "GPU-1"]
        (tmp_path / first).unlink()
        await until(lambda: our_sockets(tmp_path) not in ([], [first]) and plugin.ready)
        assert kubelet.requests == []


async def test_a_socket_that_cannot_be_bound_is_tried_again(tmp_path: Path) -> None:
    recorder = Recorder()
    kubelet_directory, ours = tmp_path / "k", tmp_path / "ours"
    kubelet_directory.mkdir()
    plugin = ResourcePlugin(served(2), KubeletPlace(ours, kubelet_directory / "kubelet.sock"), surroundings(recorder))
    async with FakeKubelet(kubelet_directory), running(plugin):
        await until(lambda: sum("cannot serve on" in reason for reason in recorder.reasons) >= 2)
        ours.mkdir()
        await until(lambda: PluginState.BOUND in [state for _, state in recorder.moves])


async def test_a_directory_that_is_replaced_is_served_in_again(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    plugin = plugin_at(directory)
    kubelet = FakeKubelet(directory)
    async with kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU))
        await kubelet.stop()
        shutil.rmtree(directory)
        await until(lambda: "waits" in plugin.reason)
        await kubelet.start()
        await until(lambda: kubelet.live(GPU))
        assert len(kubelet.requests) == 2


@pytest.mark.parametrize("registers", [True, False])
async def test_a_directory_deleted_under_its_mount_ends_it(tmp_path: Path, registers: bool) -> None:  # noqa: FBT001 - a parameter of the test
    directory = tmp_path / "d"
    directory.mkdir()
    handle = os.open(directory, os.O_RDONLY)
    directory.rmdir()
    mount = Path(f"/proc/self/fd/{handle}")
    place = KubeletPlace(mount, mount / "kubelet.sock" if registers else None)
    try:
        with pytest.raises(KubeletDirectoryError, match="was deleted"):
            await ResourcePlugin(served(2), place, surroundings()).run()
    finally:
        os.close(handle)


async def test_another_kubelet_does_not_pay_for_the_failures_of_the_one_before(tmp_path: Path) -> None:
    abandon(tmp_path / "kubelet.sock")
    plugin = plugin_at(tmp_path, timing=replace(SHORT, retry_first=0.01, retry_most=100.0))
    async with running(plugin):
        await until(lambda: plugin._backoff._next > 0.05)
        async with FakeKubelet(tmp_path) as kubelet:
            await until(lambda: kubelet.live(GPU) and plugin.ready)
            assert plugin._backoff._next == 0.01
            (tmp_path / kubelet.plugins[0].request.endpoint).unlink()
            await until(lambda: len(kubelet.plugins) == 2 and plugin.ready)


async def test_a_stream_that_lasts_makes_the_next_failure_the_first_again(tmp_path: Path) -> None:
    plugin = plugin_at(tmp_path, timing=replace(SHORT, stable_after=0.05, retry_first=0.01, retry_most=100.0))
    for _ in range(13):
        plugin._backoff.next()
    assert plugin._backoff._next == 0.01 * 2**13
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: kubelet.live(GPU) and plugin._backoff._next == 0.01)
