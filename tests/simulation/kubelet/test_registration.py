"""Register: what kubelet checks, in which order, and the words it refuses with."""

import asyncio
from pathlib import Path
from random import Random

import grpc
import pytest

from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as wire
from gpustow.simulation.kubelet import Behaviour, EmbeddedKubelet, PluginOptions
from tests.simulation.kubelet.core import THING
from tests.simulation.kubelet.fakeplugin import FakePlugin, devices, until

OLD = Behaviour.of("1.24")


async def refusal(plugin: FakePlugin, version: str = "v1beta1") -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await plugin.register(version)
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    return refused.value.details() or ""


@pytest.fixture
def kubelet(directory: Path, random: Random) -> EmbeddedKubelet:
    return EmbeddedKubelet(directory, random=random, dial_timeout=0.3)


async def test_another_api_version_is_refused(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        text = await refusal(FakePlugin(THING, kubelet.plugin_directory), "v1alpha")
    assert text == 'requested API version "v1alpha" is not supported by kubelet. Supported version is ["v1beta1"]'


async def test_a_wrong_resource_name_is_refused(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        text = await refusal(FakePlugin("gpu+me", kubelet.plugin_directory))
    assert text == 'the ResourceName "gpu+me" is invalid'


async def test_the_version_is_checked_before_the_name(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        assert "API version" in await refusal(FakePlugin("gpu+me", kubelet.plugin_directory), "v2")


async def test_a_plugin_that_does_not_serve_cannot_be_dialled(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        text = await refusal(FakePlugin(THING, kubelet.plugin_directory))
    assert text.startswith("failed to dial device plugin:")


async def test_a_plugin_whose_options_fail_is_not_used(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"), options_error="broken")
        await plugin.serve()
        text = await refusal(plugin)
        assert text == "failed to get device plugin options: rpc error: code = Internal desc = broken"
        assert kubelet.capacity() == {}
        assert plugin.open_streams == 0
        await plugin.stop()


async def test_kubelet_asks_for_the_options_before_it_answers(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, hold_options=asyncio.Event())
        assert plugin.hold_options is not None
        await plugin.serve()
        registering = asyncio.create_task(plugin.register())
        await until(lambda: plugin.options_calls)
        assert not registering.done()
        plugin.hold_options.set()
        await registering
        await plugin.stop()


async def test_kubelet_gives_up_when_the_plugins_deadline_expires(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"), hold_options=asyncio.Event())
        assert plugin.hold_options is not None
        await plugin.serve()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await plugin.register(timeout=0.05)
        assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        plugin.hold_options.set()
        await plugin.stop()
        assert kubelet.capacity() == {}


async def test_the_first_list_is_not_part_of_register(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, list_at_once=False)
        async with plugin:
            await until(lambda: plugin.open_streams)
            assert kubelet.capacity() == {}
            plugin.send(devices("d0"))
            await kubelet.wait_for(THING)


async def test_an_empty_first_list_makes_the_resource_known(kubelet: EmbeddedKubelet) -> None:
    async with kubelet, FakePlugin(THING, kubelet.plugin_directory):
        await kubelet.wait_until(lambda: kubelet.capacity() == {THING: 0})


async def test_an_absolute_endpoint_ends_up_below_the_directory(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        await plugin.serve()
        plugin.endpoint = "/fake.sock"
        await plugin.register()
        await kubelet.wait_for(THING)
        await plugin.stop()


async def test_an_endpoint_may_leave_the_directory(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"), endpoint="../outside.sock")
        async with plugin:
            await kubelet.wait_for(THING)


async def test_every_call_of_register_is_in_the_journal(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        await refusal(FakePlugin("bad", kubelet.plugin_directory))
        async with FakePlugin(THING, kubelet.plugin_directory):
            pass
    assert [(call.resource, call.refusal) for call in kubelet.registrations] == [
        ("bad", 'the ResourceName "bad" is invalid'),
        (THING, None),
    ]
    assert kubelet.registrations[1].options == PluginOptions(get_preferred_allocation_available=True)


async def test_the_options_of_the_request_are_ignored(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        plugin.registered_options = wire.DevicePluginOptions(pre_start_required=True)
        async with plugin:
            await kubelet.wait_for(THING)
            options = kubelet.manager.state.plugins[THING].options
    assert options == PluginOptions(get_preferred_allocation_available=True)
    assert kubelet.registrations[0].options == PluginOptions(pre_start_required=True)


async def test_two_resources_on_one_socket_have_the_same_devices(kubelet: EmbeddedKubelet) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        async with plugin:
            plugin.resource = "example.com/other"
            await plugin.register()
            await kubelet.wait_until(lambda: kubelet.capacity() == {THING: 1, "example.com/other": 1})


async def test_after_a_new_registration_all_devices_count_unhealthy_until_the_list_arrives(
    kubelet: EmbeddedKubelet,
) -> None:
    async with kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        async with plugin:
            await kubelet.wait_for(THING)
            plugin.end_streams()
            await kubelet.wait_until(lambda: kubelet.allocatable() == {THING: 0})
            plugin.list_at_once = False
            await plugin.register()
            await until(lambda: plugin.open_streams)
            assert (kubelet.capacity(), kubelet.allocatable()) == ({THING: 1}, {THING: 0})
            plugin.send(devices("d0"))
            await kubelet.wait_for(THING)


async def test_until_1_24_register_answers_at_once_and_takes_the_options_from_the_request(
    directory: Path, random: Random
) -> None:
    async with EmbeddedKubelet(directory, random=random, behaviour=OLD) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0"))
        async with plugin:
            await kubelet.wait_for(THING)
            assert plugin.options_calls == 0
            assert kubelet.manager.state.plugins[THING].options == PluginOptions(
                get_preferred_allocation_available=True
            )


async def test_until_1_24_a_plugin_that_cannot_be_dialled_is_registered_all_the_same(
    directory: Path, random: Random
) -> None:
    async with EmbeddedKubelet(directory, random=random, behaviour=OLD, dial_timeout=0.05) as kubelet:
        await FakePlugin(THING, kubelet.plugin_directory).register()
        await asyncio.sleep(0.1)
        assert kubelet.capacity() == {}
