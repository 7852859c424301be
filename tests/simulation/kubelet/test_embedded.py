from pathlib import Path
from random import Random

import pytest

from gpustow.errors import AdmissionError
from gpustow.kubelet.protocol import podresources_v1_pb2 as pod_wire
from gpustow.kubelet.protocol.services import PodResourcesCalls, unix_channel
from gpustow.simulation.kubelet import Container, EmbeddedKubelet, Pod
from tests.simulation.kubelet.fakeplugin import FakePlugin, devices

THING = "example.com/thing"


def wanting(name: str, size: int) -> Pod:
    return Pod(name, containers=(Container("main", {THING: size}),))


async def test_a_pod_gets_the_devices_that_the_plugin_prefers_and_its_answer(directory: Path, random: Random) -> None:
    async with EmbeddedKubelet(directory, random=random) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1 d2 d3"))
        async with plugin:
            await kubelet.wait_for(THING, at_least=4)
            admitted = await kubelet.admit(wanting("a", 2))
    assert admitted.device_ids(THING) == ("d0", "d1")
    assert admitted.container("main").envs == {"DEVICES": "d0,d1"}
    assert plugin.preferences == [(("d0", "d1", "d2", "d3"), (), 2)]
    assert plugin.allocations == [("d0", "d1")]


async def test_a_removed_pod_gives_its_devices_to_the_next_one(directory: Path, random: Random) -> None:
    async with (
        EmbeddedKubelet(directory, random=random) as kubelet,
        FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1")),
    ):
        await kubelet.wait_for(THING, at_least=2)
        await kubelet.admit(wanting("a", 2))
        with pytest.raises(AdmissionError, match="Requested: 1, Available: 0"):
            await kubelet.admit(wanting("b", 1))
        kubelet.remove("default", "a")
        assert (await kubelet.admit(wanting("c", 2))).device_ids(THING) == ("d0", "d1")


async def test_after_a_restart_the_plugin_registers_anew_and_pods_keep_their_devices(
    directory: Path, random: Random
) -> None:
    async with EmbeddedKubelet(directory, random=random) as kubelet:
        plugin = FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1"))
        async with plugin:
            await kubelet.wait_for(THING, at_least=2)
            await kubelet.admit(wanting("a", 1))
            await kubelet.restart()
            assert not plugin.socket.exists()
            assert kubelet.allocatable() == {THING: 0}
            await plugin.stop()
            async with plugin:
                await kubelet.wait_for(THING, at_least=2)
                assert (await kubelet.admit(wanting("b", 1))).device_ids(THING) == ("d1",)


async def test_pod_resources_lists_what_each_pod_holds(directory: Path, random: Random) -> None:
    async with (
        EmbeddedKubelet(directory, random=random) as kubelet,
        FakePlugin(THING, kubelet.plugin_directory, devices("d0 d1", nodes=(0,))),
    ):
        await kubelet.wait_for(THING, at_least=2)
        await kubelet.admit(wanting("a", 2))
        channel = unix_channel(kubelet.pod_resources_socket)
        response = await PodResourcesCalls(channel).list(pod_wire.ListPodResourcesRequest())
        await channel.close()
    (pod,) = response.pod_resources
    held = [(entry.resource_name, [*entry.device_ids]) for entry in pod.containers[0].devices]
    assert (pod.namespace, pod.name, held) == ("default", "a", [(THING, ["d0"]), (THING, ["d1"])])
