"""How a resource comes to kubelet, and what becomes of a refusal."""

import asyncio
from pathlib import Path

import pytest

from gpustow.errors import ApiVersionRefused
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import DevicePluginOptions, Empty, RegisterRequest
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_channel
from gpustow.plugin.observer import PluginState
from tests.contract.scene import VERSIONS, allocation, embedded, preference
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, gpu, node, our_sockets

TWO_RESOURCES = node(gpu(0), gpu(1, mig_devices=2))


async def test_01_serve_before_register_all_calls_are_answered_while_register_is_pending(directory: Path) -> None:
    answered: list[str] = []

    async def dial_back(request: RegisterRequest) -> None:
        async with unix_channel(directory / request.endpoint) as channel:
            calls = DevicePluginCalls(channel)
            options = await calls.get_device_plugin_options(Empty(), timeout=10)
            assert options.get_preferred_allocation_available
            preferred = await calls.get_preferred_allocation(preference(["GPU-1"], [], 1), timeout=10)
            answered.extend(preferred.container_responses[0].deviceIDs)
            await calls.allocate(allocation(answered), timeout=10)

    kubelet = FakeKubelet(directory)
    kubelet.refusal = dial_back
    async with kubelet, Daemon(directory).running() as supervisor:
        await until(lambda: supervisor.not_ready is None)
        assert answered == ["GPU-1"]
        assert len(kubelet.requests) == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_01_serve_before_register_with_every_way_of_kubelet_to_connect(directory: Path, version: str) -> None:
    async with embedded(directory, version) as kubelet, Daemon(kubelet.plugin_directory).running():
        await kubelet.wait_for(GPU, at_least=2)
        assert [call.refusal for call in kubelet.registrations] == [None]


async def test_02_both_options_are_the_same(directory: Path) -> None:
    async with FakeKubelet(directory) as kubelet, Daemon(directory).running():
        await until(lambda: kubelet.live(GPU))
        [plugin] = kubelet.plugins
        assert plugin.request.options == plugin.options
        assert plugin.options == DevicePluginOptions(get_preferred_allocation_available=True)


async def test_12_register_refused_for_its_name_is_fatal_for_that_resource_alone(directory: Path) -> None:
    async def refuse_mig(request: RegisterRequest) -> str | None:
        return f'the ResourceName "{MIG}" is invalid' if request.resource_name == MIG else None

    kubelet = FakeKubelet(directory)
    kubelet.refusal = refuse_mig
    async with kubelet, Daemon(directory, TWO_RESOURCES, mig_strategy="mixed").running() as supervisor:
        await until(lambda: supervisor.states.get(MIG) is PluginState.REFUSED and kubelet.live(GPU))
        assert f'the ResourceName "{MIG}" is invalid' in str(supervisor.not_ready)
        assert supervisor.states[GPU] is PluginState.STREAMING
        assert len(our_sockets(directory)) == 1
        assert [request.resource_name for request in kubelet.requests].count(MIG) == 1


async def test_12_register_refused_for_the_version_ends_the_daemon_with_an_exit_code(directory: Path) -> None:
    async def refuse(_request: RegisterRequest) -> str:
        return 'requested API version "v1beta1" is not supported by kubelet. Supported version is ["v2"]'

    kubelet = FakeKubelet(directory)
    kubelet.refusal = refuse
    async with kubelet:
        with pytest.raises(ApiVersionRefused) as ended:
            await Daemon(directory).supervisor.run()
    assert ended.value.exit_code != 0
    assert our_sockets(directory) == []


@pytest.mark.parametrize(
    "text", ["failed to dial device plugin: context deadline exceeded", "failed to get device plugin options: EOF", "?"]
)
async def test_12_register_refused_for_anything_else_is_tried_again(directory: Path, text: str) -> None:
    async def refuse_thrice(_request: RegisterRequest) -> str | None:
        return text if len(kubelet.requests) <= 3 else None

    kubelet = FakeKubelet(directory)
    kubelet.refusal = refuse_thrice
    async with kubelet, Daemon(directory).running():
        await until(lambda: kubelet.live(GPU))
        assert len(kubelet.requests) == 4
        assert our_sockets(directory) == [kubelet.requests[-1].endpoint]


async def test_13_hung_dial_holds_up_neither_the_other_resources_nor_the_word_on_readiness(directory: Path) -> None:
    async def hang_for_mig(request: RegisterRequest) -> None:
        if request.resource_name == MIG:
            await asyncio.Event().wait()

    kubelet = FakeKubelet(directory)
    kubelet.refusal = hang_for_mig
    async with kubelet, Daemon(directory, TWO_RESOURCES, mig_strategy="mixed").running() as supervisor:
        await until(lambda: kubelet.live(GPU) and any(each.resource_name == MIG for each in kubelet.requests))
        await kubelet.live(GPU)[0].calls.allocate(allocation(["GPU-0"]), timeout=10)
        [endpoint] = [each.endpoint for each in kubelet.requests if each.resource_name == MIG]
        async with unix_channel(directory / endpoint) as channel:
            await DevicePluginCalls(channel).allocate(allocation(["MIG-1-0"]), timeout=10)
        assert supervisor.states == {GPU: PluginState.STREAMING, MIG: PluginState.BOUND}
        assert f"{MIG} is bound" in str(supervisor.not_ready)
    assert our_sockets(directory) == []
