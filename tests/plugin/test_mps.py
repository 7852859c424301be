"""A resource that is shared by MPS waits for its MPS control daemon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gpustow.plugin.observer import PluginState
from gpustow.plugin.offer import KubeletPlace, ServedResource
from gpustow.plugin.resource import ResourcePlugin
from gpustow.resources.device import Sharing
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.samples import GPU, SHORT, Recorder, served, surroundings


class Control:
    """Answers for the MPS control daemons; `trouble` is what is wrong with them."""

    def __init__(self) -> None:
        self.trouble: str | None = "no daemon answers"
        self.asked: list[str] = []

    async def __call__(self, resource: str) -> str | None:
        self.asked.append(resource)
        return self.trouble


def shared_by_mps() -> ServedResource:
    whole = served(2)
    return replace(whole, resource=replace(whole.resource, sharing=Sharing.MPS))


def plugin_of(resource: ServedResource, directory: Path, control: Control, recorder: Recorder) -> ResourcePlugin:
    own = replace(surroundings(recorder, replace(SHORT, mps_again=0.01)), mps_trouble=control)
    return ResourcePlugin(resource, KubeletPlace(directory, directory / "kubelet.sock"), own)


@asynccontextmanager
async def running(plugin: ResourcePlugin) -> AsyncIterator[None]:
    task = asyncio.create_task(plugin.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_it_registers_once_its_daemon_answers_and_says_once_what_it_waits_for(tmp_path: Path) -> None:
    control, recorder = Control(), Recorder()
    plugin = plugin_of(shared_by_mps(), tmp_path, control, recorder)
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: len(control.asked) > 3)
        assert set(control.asked) == {GPU}
        assert (plugin.ready, plugin.state, kubelet.requests) == (False, PluginState.INIT, [])
        assert plugin.reason == "it waits for its MPS control daemon: no daemon answers"
        control.trouble = None
        await until(lambda: kubelet.live(GPU))
    assert [state for _, state in recorder.moves] == ["init", "bound", "registered", "streaming", "draining"]


async def test_a_resource_that_is_not_shared_by_mps_asks_no_daemon(tmp_path: Path) -> None:
    control = Control()
    async with FakeKubelet(tmp_path) as kubelet, running(plugin_of(served(2), tmp_path, control, Recorder())):
        await until(lambda: kubelet.live(GPU))
    assert control.asked == []


async def test_a_reload_that_ends_the_sharing_ends_the_wait(tmp_path: Path) -> None:
    control = Control()
    plugin = plugin_of(shared_by_mps(), tmp_path, control, Recorder())
    async with FakeKubelet(tmp_path) as kubelet, running(plugin):
        await until(lambda: control.asked)
        plugin.replace(served(2))
        await until(lambda: kubelet.live(GPU))
