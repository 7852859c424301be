import asyncio
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.plugin.observer import GuardedObserver, PluginState, SilentObserver
from gpustow.plugin.offer import KubeletPlace
from gpustow.plugin.resource import ResourcePlugin
from gpustow.plugin.supervisor import Supervisor
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.samples import GPU, SHORT, Reader, Recorder, gpu, loaded, node, our_sockets, served, surroundings

TOLD = (
    "moved",
    "list_sent",
    "preferred",
    "explained",
    "preference_failed",
    "allocated",
    "allocation_failed",
    "reloaded",
    "surveyed",
)


def failing() -> Mock:
    """An observer that raises at whatever it is told."""
    raising = {f"{name}.side_effect": ZeroDivisionError(name) for name in TOLD}
    return Mock(spec_set=SilentObserver(), **raising)


def preference(size: int) -> protocol.PreferredAllocationRequest:
    asked = protocol.ContainerPreferredAllocationRequest(available_deviceIDs=["GPU-0", "GPU-1"], allocation_size=size)
    return protocol.PreferredAllocationRequest(container_requests=[asked])


def allocation(device: str) -> protocol.AllocateRequest:
    return protocol.AllocateRequest(container_requests=[protocol.ContainerAllocateRequest(devices_ids=[device])])


async def test_an_observer_that_always_raises_costs_no_pod_and_no_socket(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    observer = failing()
    config = loaded(kubelet_socket=str(tmp_path / "kubelet.sock"))
    reader = Reader(node(gpu(0), gpu(1)))
    supervisor = Supervisor(lambda: config, reader.make, timing=SHORT, observer=observer)
    async with FakeKubelet(tmp_path) as kubelet:
        running = asyncio.create_task(supervisor.run())
        await until(lambda: kubelet.live(GPU))
        calls = kubelet.plugins[0].calls
        assert (await calls.get_preferred_allocation(preference(1))).container_responses[0].deviceIDs == ["GPU-0"]
        assert (await calls.get_preferred_allocation(preference(3))).container_responses[0].deviceIDs == []
        assert len((await calls.allocate(allocation("GPU-0"))).container_responses) == 1
        with pytest.raises(Exception, match="GPU-9"):
            await calls.allocate(allocation("GPU-9"))
        supervisor.reload()
        await until(lambda: observer.reloaded.called)
        supervisor.stop()
        await running
        assert len(kubelet.requests) == 1
    assert our_sockets(tmp_path) == []
    assert {name for name, _, _ in observer.method_calls} == set(TOLD)
    assert "an observer failed, and the daemon goes on" in caplog.text


async def test_even_an_unguarded_observer_that_raises_leaves_no_server_behind(tmp_path: Path) -> None:
    plugin = ResourcePlugin(served(1), KubeletPlace(tmp_path, None), surroundings(failing()))
    with pytest.raises(ZeroDivisionError):
        await plugin.run()
    assert our_sockets(tmp_path) == []


async def test_what_is_told_is_passed_on(tmp_path: Path) -> None:
    recorder = Recorder()
    plugin = ResourcePlugin(served(1), KubeletPlace(tmp_path, None), surroundings(GuardedObserver(recorder)))
    running = asyncio.create_task(plugin.run())
    await until(lambda: plugin.ready)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert recorder.moves == [(GPU, PluginState.BOUND), (GPU, PluginState.DRAINING)]


@pytest.mark.parametrize("state", PluginState)
def test_each_state_has_words_of_its_own(state: PluginState) -> None:
    assert state.words
    assert [other for other in PluginState if other.words == state.words] == [state]


async def test_the_log_tells_people_what_a_state_means(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    plugin = ResourcePlugin(served(1), KubeletPlace(tmp_path, tmp_path / "kubelet.sock"), surroundings())
    running = asyncio.create_task(plugin.run())
    await until(lambda: f"{GPU}: not in use: it waits for kubelet to create {tmp_path}" in caplog.text)
    async with FakeKubelet(tmp_path):
        await until(lambda: f"{GPU}: in use: kubelet has the list of devices" in caplog.text)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert f"{GPU}: ending: " in caplog.text
    assert f"{GPU} is" not in caplog.text


def test_one_that_is_added_is_told_from_then_on() -> None:
    first, second = Recorder(), Recorder()
    guarded = GuardedObserver(first)
    guarded.moved(GPU, PluginState.BOUND, "")
    guarded.add(second)
    guarded.moved(GPU, PluginState.STREAMING, "")
    assert first.moves == [(GPU, PluginState.BOUND), (GPU, PluginState.STREAMING)]
    assert second.moves == [(GPU, PluginState.STREAMING)]
    assert not guarded.explains
