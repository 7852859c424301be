"""A reload that is asked for at a bad moment of the start: in the end all devices are there, case C15."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gpustow.config import Config, LoadedConfig
from gpustow.hardware.node import Node, NodeReader
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import DevicePluginOptions, Empty, RegisterRequest
from gpustow.kubelet.protocol.services import Context
from gpustow.plugin.observer import PluginState
from gpustow.plugin.service import ResourceService
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, Reader, gpu, node

EXPECTED = {GPU: {"GPU-0"}, MIG: {"MIG-1-0", "MIG-1-1"}}

STEPS = (
    "before anything",
    "the configuration is read",
    "the configuration has been read",
    "the reader is made",
    "the node is read",
    "the node has been read",
    "kubelet is waited for",
    "the server dials itself",
    "the server is bound",
    "kubelet is registered with",
    "kubelet has registered it",
    "kubelet opens its stream",
    "kubelet has the list",
)


class Start:
    """A start with hooks: at the step, as often as it is to be, a reload is asked for, from whatever thread."""

    def __init__(self, directory: Path, step: str, times: int) -> None:
        self.daemon = Daemon(directory, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed", held=[])
        self.kubelet = FakeKubelet(directory)
        self.kubelet.refusal = self._register
        self.daemon.supervisor._load_config = self._load
        self.daemon.supervisor._surveyor._make_reader = self._make
        self.daemon.recorder._on_move = self._move
        self.times = times
        self._step = step
        self._loop = asyncio.get_running_loop()

    def reach(self, step: str) -> None:
        if step == self._step and self.times:
            self.times -= 1
            self._loop.call_soon_threadsafe(self.daemon.supervisor.reload)

    def _load(self) -> LoadedConfig:
        self.reach("the configuration is read")
        loaded = self.daemon.load()
        self.reach("the configuration has been read")
        return loaded

    def _make(self, _config: Config) -> NodeReader:
        self.reach("the reader is made")
        return _Hooked(self.daemon.reader, self.reach)

    def _move(self, state: PluginState) -> None:
        steps = {
            PluginState.INIT: "kubelet is waited for",
            PluginState.BOUND: "the server is bound",
            PluginState.REGISTERED: "kubelet has registered it",
            PluginState.STREAMING: "kubelet has the list",
        }
        if state in steps:
            self.reach(steps[state])

    async def _register(self, _request: RegisterRequest) -> None:
        self.reach("kubelet is registered with")


class _Hooked:
    def __init__(self, reader: Reader, reach: Callable[[str], None]) -> None:
        self._reader = reader
        self._reach = reach

    def read(self) -> Node:
        self._reach("the node is read")
        found = self._reader.read()
        self._reach("the node has been read")
        return found


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("step", STEPS)
async def test_a_reload_at_any_step_ends_with_one_registration_each_and_all_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, times: int
) -> None:
    start = Start(tmp_path, step, times)
    options, watch = ResourceService.get_device_plugin_options, ResourceService.list_and_watch

    async def hooked_options(service: ResourceService, request: Empty, context: Context) -> DevicePluginOptions:
        start.reach("the server dials itself")
        return await options(service, request, context)

    async def hooked_watch(service: ResourceService, request: Empty, context: Context) -> AsyncIterator[bytes]:
        start.reach("kubelet opens its stream")
        async for message in watch(service, request, context):
            yield message

    monkeypatch.setattr(ResourceService, "get_device_plugin_options", hooked_options)
    monkeypatch.setattr(ResourceService, "list_and_watch", hooked_watch)
    for _ in range(times if step == "before anything" else 0):
        start.daemon.supervisor.reload()
    async with start.daemon.running() as supervisor:
        await until(lambda: "waits for kubelet" in str(supervisor.not_ready))
        async with start.kubelet as kubelet:
            await until(lambda: all(kubelet.live(name) for name in EXPECTED) and supervisor.not_ready is None)
            await until(lambda: start.daemon.reader.reads > 1)
            await asyncio.sleep(10 * SHORT.poll)
            assert sorted(request.resource_name for request in kubelet.requests) == sorted(EXPECTED)
            for name, devices in EXPECTED.items():
                (plugin,) = kubelet.live(name)
                assert [{device.ID for device in each} for each in plugin.lists] == [devices]
            assert supervisor.not_ready is None
            assert step == "before anything" or start.times < times, "the step was never reached"
