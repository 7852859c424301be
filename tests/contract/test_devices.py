"""The list of devices: health, what has vanished, identity, topology, size."""

import asyncio
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from gpustow.config.health import HealthConfig, RecoveryConfig
from gpustow.errors import ConfigError
from gpustow.hardware.links import Links
from gpustow.hardware.node import Node, Platform
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader
from gpustow.hardware.systemfiles import numa_node
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.kubelet.protocol.services import DevicePluginCalls, unix_address
from gpustow.plugin.offer import Offer
from gpustow.simulation.kubelet import Container, EmbeddedKubelet, Pod
from tests.contract.scene import embedded, health, offered, reseeded, serving, some_polls, told
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, config, gpu, node, with_health
from tests.plugin.source import WELL, FakeSource, xid

BOTH = {"GPU-0": "Healthy", "GPU-1": "Healthy"}
MODELS = ("a100-4-mig-5", "hgx-h100-mig", "dgx-1-v100", "a40-bridged-cross-numa", "wsl", "jetson-orin")
SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}\n"


async def quiet_passes(daemon: Daemon) -> None:
    """Reloads, rescans, and looks of all kinds that find nothing new."""
    for again in (daemon.supervisor.reload, daemon.supervisor.rescan):
        reads = daemon.reader.reads
        again()
        await until(lambda reads=reads: daemon.reader.reads > reads)  # type: ignore[misc] # those of this turn
    await some_polls()


async def test_14_health_flip_is_one_message_with_all_ids_and_nothing_else_is(directory: Path) -> None:
    source = FakeSource()
    quick = HealthConfig(check_interval=0.02, recovery=RecoveryConfig(hold_time=0.05), rescan_interval=0.1)
    daemon = Daemon(directory, health=quick, make_source=source.make)
    async with FakeKubelet(directory) as kubelet, daemon.running():
        await until(lambda: kubelet.live(GPU) and source.watched)
        lists = kubelet.plugins[0].lists
        source.proofs["GPU-0"] = replace(WELL, row_remap_pending=True)
        source.events.put(xid(64, "GPU-0"))
        await until(lambda: len(lists) == 2)
        source.events.put(xid(64, "GPU-0"))
        await quiet_passes(daemon)
        del source.proofs["GPU-0"]
        await until(lambda: len(lists) == 3)
        await quiet_passes(daemon)
        assert [health(each) for each in lists] == [BOTH, {**BOTH, "GPU-0": "Unhealthy"}, BOTH]
        assert len(kubelet.requests) == 1


async def admit(kubelet: EmbeddedKubelet, name: str, resource: str = GPU) -> str:
    """The device that a pod gets."""
    pod = await kubelet.admit(Pod(name, containers=(Container("main", {resource: 1}),)))
    [device] = pod.device_ids(resource)
    return device


LISTS_OF_KUBELET = 0.5
"""Seconds in which the daemon reads several times from kubelet what is held."""


async def test_15_vanished_device_stays_listed_and_unhealthy_as_long_as_a_pod_holds_it(directory: Path) -> None:
    async with embedded(directory) as kubelet:
        daemon = Daemon(kubelet.plugin_directory, timing=replace(SHORT, usage_every=0.05))
        async with daemon.running() as supervisor:
            await kubelet.wait_for(GPU, at_least=2)
            held = await admit(kubelet, "a")
            daemon.reader.answer = node(gpu(1 - int(held[-1])))
            supervisor.rescan()
            await until(lambda: kubelet.allocatable() == {GPU: 1})
            await asyncio.sleep(LISTS_OF_KUBELET)
            assert kubelet.capacity() == {GPU: 2}
            assert held in str(supervisor.not_ready)
            [status] = kubelet.pod_status("default", "a").allocated_resources["main"]
            assert status.resources == {held: "Unhealthy"}
            assert await admit(kubelet, "b") != held
            kubelet.remove("default", "a")
            await until(lambda: kubelet.capacity() == {GPU: 1})


async def test_15_vanished_resource_stays_listed_and_unhealthy_as_long_as_a_pod_holds_of_it(directory: Path) -> None:
    two = node(gpu(0), gpu(1, mig_devices=2))
    async with embedded(directory) as kubelet:
        daemon = Daemon(kubelet.plugin_directory, two, mig_strategy="mixed", timing=replace(SHORT, usage_every=0.05))
        async with daemon.running() as supervisor:
            await kubelet.wait_for(MIG, at_least=2)
            await admit(kubelet, "a", MIG)
            daemon.reader.answer = node(gpu(0), gpu(1))
            supervisor.rescan()
            await until(lambda: kubelet.allocatable() == {GPU: 2, MIG: 0} and kubelet.capacity()[MIG] == 1)
            await asyncio.sleep(LISTS_OF_KUBELET)
            assert kubelet.capacity() == {GPU: 2, MIG: 1}
            kubelet.remove("default", "a")
            await until(lambda: kubelet.capacity() == {GPU: 2, MIG: 0})


def reenumerated(found: Node) -> Node:
    """The same cards, found in the opposite order."""
    last = len(found.gpus) - 1
    gpus = [replace(each, index=last - each.index, minor=last - each.index) for each in reversed(found.gpus)]
    return replace(found, gpus=tuple(gpus), links=Links())


async def lists_of(directory: Path, found: Node, seed: int) -> dict[str, dict[str, tuple[int, ...]]]:
    """What a daemon of its own tells kubelet: for each resource the ids, each with its NUMA nodes."""
    async with FakeKubelet(directory) as kubelet:
        daemon = reseeded(Daemon(directory, found, mig_strategy="mixed"), seed)
        async with daemon.running() as supervisor:
            await until(lambda: supervisor.not_ready is None and all(map(kubelet.live, supervisor.states)))
            return {name: dict(map(told, kubelet.live(name)[0].lists[-1])) for name in supervisor.states}


@pytest.mark.parametrize("model", MODELS)
async def test_16_stable_identity_over_restart_and_reboot(directory: Path, model: str) -> None:
    def read() -> Node:
        return SimulatedReader(load_node_model(model)).read()

    first = await lists_of(directory, read(), 1)
    assert all(first.values())
    assert await lists_of(directory, read(), 2) == first
    if read().platform is Platform.NVML:
        assert await lists_of(directory, reenumerated(read()), 3) == first


@pytest.mark.parametrize("missing", [None, -1])
async def test_17_topology_is_sent_for_no_device_if_one_has_none(directory: Path, missing: int | None) -> None:
    devices = node(gpu(0), replace(gpu(1), numa_node=missing))
    async with FakeKubelet(directory) as kubelet, Daemon(directory, devices).running():
        await until(lambda: kubelet.live(GPU))
        assert [device.HasField("topology") for device in kubelet.plugins[0].lists[0]] == [False, False]


async def test_17_topology_is_sent_for_all_if_all_have_one(directory: Path) -> None:
    devices = node(gpu(0), replace(gpu(1), numa_node=1))
    async with FakeKubelet(directory) as kubelet, Daemon(directory, devices).running():
        await until(lambda: kubelet.live(GPU))
        assert [told(device)[1] for device in kubelet.plugins[0].lists[0]] == [(0,), (1,)]


@pytest.mark.parametrize(("text", "found"), [("-1\n", None), ("0\n", 0), ("3\n", 3), (None, None)])
def test_17_topology_of_sysfs_without_a_node_is_none(directory: Path, text: str | None, found: int | None) -> None:
    if text is not None:
        place = directory / "sys/bus/pci/devices/0000:07:00.0"
        place.mkdir(parents=True)
        (place / "numa_node").write_text(text, encoding="ascii")
    assert numa_node(directory, "00000000:07:00.0") == found


def shared(directory: Path, replicas: int) -> str:
    """A configuration file that shares each GPU."""
    path = directory / "config.yaml"
    path.write_text(SHARED % replicas, encoding="utf-8")
    return str(path)


def long_names(gpus: int) -> Node:
    """GPUs with UUIDs as long as real ones."""
    return node(*(replace(gpu(index), uuid=f"GPU-{index:08}-7c3a-9d5e-1f20-b84c6e0a2d17") for index in range(gpus)))


async def test_24_size_guard_refuses_a_list_that_kubelet_could_not_take_when_all_devices_fail(directory: Path) -> None:
    daemon = Daemon(directory, long_names(8), config_file=shared(directory, 8200), fail_on_init_error=True)
    with pytest.raises(ConfigError, match=r"65600 entries make a list of up to \d+ bytes, more than kubelet's limit"):
        await daemon.supervisor.run()


def test_24_size_guard_warns_of_a_list_that_comes_close(directory: Path) -> None:
    notes = Offer.of(long_names(8), config(config_file=shared(directory, 7200))).notes
    assert any("57600 entries make a list of up to" in note and "close to kubelet's limit" in note for note in notes)


@pytest.mark.slow
async def test_24_size_guard_lets_50000_ids_pass_to_a_client_with_default_limits(directory: Path) -> None:
    many = offered(long_names(8), config(config_file=shared(directory, 6250)))
    sick = with_health(many, **{f"_{index}": False for index in range(8)})
    for resource, word in ((many, "Healthy"), (sick, "Unhealthy")):
        async with serving(directory, resource), grpc.aio.insecure_channel(unix_address(directory / "s")) as channel:
            stream = DevicePluginCalls(channel).list_and_watch(protocol.Empty(), timeout=60)
            first = await anext(aiter(stream))
            assert len(set(health(first.devices))) == 50_000
            assert set(health(first.devices).values()) == {word}
            stream.cancel()
