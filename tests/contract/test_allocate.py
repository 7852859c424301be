"""Allocate and PreStartContainer: their shape, again and again, beside a driver that hangs, and in one container."""

import asyncio
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
import pytest

from gpustow.config.health import HealthConfig
from gpustow.hardware.node import Node
from gpustow.injection.cdi.specification import parse_spec
from gpustow.kubelet.protocol import deviceplugin_v1beta1_pb2 as protocol
from gpustow.plugin import Supervisor
from gpustow.plugin.cdispecs import simulated_specs
from gpustow.plugin.observer import PluginState
from gpustow.simulation.kubelet import Container, Pod
from tests.contract.scene import allocation, embedded, health, offered, preference, serving
from tests.kubelet.fakekubelet import FakeKubelet, until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, Reader, config, gpu, node

FOUR = node(*(gpu(index) for index in range(4)))
CALLERS = 32


@pytest.mark.parametrize("containers", [[], [["GPU-0"]], [["GPU-1"], ["GPU-0", "GPU-2"], ["GPU-3"]]])
async def test_20_allocate_shape_is_that_of_the_request(directory: Path, containers: list[list[str]]) -> None:
    async with serving(directory, offered(FOUR)) as (_, calls):
        response = await calls.allocate(allocation(*containers), timeout=10)
    visible = [answer.envs["NVIDIA_VISIBLE_DEVICES"].split(",") for answer in response.container_responses]
    assert visible == containers


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_20_allocate_shape_with_an_unknown_id_is_an_error_that_names_it_and_changes_nothing(
    directory: Path, position: int
) -> None:
    containers = [["GPU-0"], ["GPU-1"]]
    containers.insert(position, ["GPU-2", "GPU-9"])
    daemon = Daemon(directory, FOUR)
    async with FakeKubelet(directory) as kubelet, daemon.running():
        await until(lambda: kubelet.live(GPU))
        [plugin] = kubelet.plugins
        before = await plugin.calls.allocate(allocation(["GPU-0"], ["GPU-2"]), timeout=10)
        with pytest.raises(grpc.aio.AioRpcError, match="GPU-9"):
            await plugin.calls.allocate(allocation(*containers), timeout=10)
        assert await plugin.calls.allocate(allocation(["GPU-0"], ["GPU-2"]), timeout=10) == before
        preferred = await plugin.calls.get_preferred_allocation(preference(["GPU-2"], [], 1), timeout=10)
        assert list(preferred.container_responses[0].deviceIDs) == ["GPU-2"]
        assert len(plugin.lists) == 1


async def test_21_allocate_repeat_gives_the_same_answer_to_whoever_asks(directory: Path) -> None:
    settings = config(device_list_strategy="envvar,volume-mounts,cdi-cri", pass_device_specs=True)
    overlapping = [["GPU-0", "GPU-1"], ["GPU-1", "GPU-2"], ["GPU-0"], ["GPU-3", "GPU-1"]]
    async with serving(directory, offered(FOUR, settings)) as (_, calls):
        for ids in overlapping:
            thrice = [await calls.allocate(allocation(ids), timeout=10) for _ in range(3)]
            assert thrice[0] == thrice[1] == thrice[2]
        alone = [await calls.allocate(allocation(ids), timeout=10) for ids in overlapping]
        requests = [allocation(ids) for ids in overlapping] * (CALLERS // len(overlapping))
        answers = await asyncio.gather(*(calls.allocate(request, timeout=30) for request in requests))
    assert answers == alone * (CALLERS // len(overlapping))


class HangingReader(Reader):
    """A reader that hangs from when it is told to until it is told to go on."""

    def __init__(self, answer: Node) -> None:
        super().__init__(answer)
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.hangs = False

    def read(self) -> Node:
        self.hangs = not self.goes_on.is_set()
        self.goes_on.wait()
        self.hangs = False
        return super().read()


@pytest.mark.parametrize("cause", [Supervisor.rescan, Supervisor.reload])
async def test_22_allocate_deadline_a_driver_that_hangs_holds_up_no_call(
    directory: Path, cause: Callable[[Supervisor], None]
) -> None:
    daemon = Daemon(directory, FOUR, timing=replace(SHORT, reading=0.1), health=HealthConfig(rescan_interval=0.1))
    reader = HangingReader(FOUR)
    daemon.supervisor._surveyor._make_reader = lambda _config: reader
    async with FakeKubelet(directory) as kubelet, daemon.running() as supervisor:
        await until(lambda: kubelet.live(GPU))
        [plugin] = kubelet.plugins
        reader.goes_on.clear()
        try:
            cause(supervisor)
            await until(lambda: reader.hangs)
            for _ in range(2):
                await plugin.calls.allocate(allocation(["GPU-0"]), timeout=10)
                await plugin.calls.get_preferred_allocation(preference(["GPU-1", "GPU-2"], [], 1), timeout=10)
                await plugin.calls.get_device_plugin_options(protocol.Empty(), timeout=10)
                stream = plugin.calls.list_and_watch(protocol.Empty(), timeout=10)
                assert len((await anext(aiter(stream))).devices) == len(FOUR.gpus)
                stream.cancel()
                await until(lambda: "has not answered" in str(supervisor.not_ready))
            supervisor.mark(lambda uuid: "XID 79" if uuid == "GPU-1" else None)
            await until(lambda: health(plugin.lists[-1])["GPU-1"] == "Unhealthy")
            await kubelet.restart()
            await until(lambda: kubelet.live(GPU))
        finally:
            reader.goes_on.set()
        supervisor.mark(lambda _uuid: None)
        await until(lambda: supervisor.not_ready is None)


def names_on_disk(place: Path) -> set[str]:
    """The CDI names that a runtime finds there."""
    specs = [parse_spec(path.read_text(encoding="utf-8")) for path in place.glob("*.json")]
    return {f"{spec.kind}={device.name}" for spec in specs for device in spec.devices}


@pytest.mark.parametrize("reboot", [False, True])
async def test_23_replay_finds_every_cdi_name_before_the_next_registration(directory: Path, *, reboot: bool) -> None:
    cdi = directory / "cdi"
    found = node(gpu(0), gpu(1), gpu(2, mig_devices=3))
    flags: dict[str, Any] = {"device_list_strategy": "cdi-cri", "mig_strategy": "mixed", "cdi_directory": str(cdi)}
    async with embedded(directory) as kubelet:
        place = kubelet.plugin_directory
        async with Daemon(place, found, make_specs=simulated_specs, **flags).running():
            for resource in (GPU, MIG):
                await kubelet.wait_for(resource, at_least=2)
            pod = await kubelet.admit(Pod("a", containers=(Container("main", {GPU: 2, MIG: 2}),)))
        stored = {*pod.container("main").cdi_devices}
        assert len(stored) == 4
        assert stored <= names_on_disk(cdi)
        renumbered = replace(found, gpus=tuple(replace(each, minor=2 - each.minor) for each in found.gpus))
        if reboot:
            shutil.rmtree(cdi)
            await kubelet.restart(reboot=True, readmit=False)
        daemon = Daemon(place, renumbered, make_specs=simulated_specs, **flags)
        at_bind: list[set[str]] = []

        def look(state: PluginState) -> None:
            if state is PluginState.BOUND:
                at_bind.append(names_on_disk(cdi))

        daemon.recorder._on_move = look
        async with daemon.running():
            for resource in (GPU, MIG):
                await kubelet.wait_for(resource, at_least=2)
        assert at_bind
        assert all(stored <= names for names in at_bind)


async def test_26_pre_start_is_not_asked_for_and_is_answered_at_once_all_the_same(directory: Path) -> None:
    async with serving(directory, offered(FOUR)) as (_, calls):
        assert not (await calls.get_device_plugin_options(protocol.Empty(), timeout=10)).pre_start_required
        requests = [protocol.PreStartContainerRequest(devices_ids=[f"GPU-{index % 5}"]) for index in range(CALLERS)]
        answers = await asyncio.gather(*(calls.pre_start_container(request, timeout=10) for request in requests))
    assert answers == [protocol.PreStartContainerResponse()] * CALLERS


MERGES = ("volume-mounts", "cdi-cri", "cdi-annotations", "volume-mounts,cdi-cri,cdi-annotations")


@pytest.mark.parametrize("strategies", MERGES)
@pytest.mark.parametrize("device_specs", ["false", "true"])
async def test_30_response_merge_of_two_resources_loses_nothing(
    directory: Path, strategies: str, device_specs: str
) -> None:
    flags: dict[str, Any] = {
        "device_list_strategy": strategies,
        "pass_device_specs": device_specs,
        "mig_strategy": "mixed",
    }
    async with embedded(directory) as kubelet:
        daemon = Daemon(kubelet.plugin_directory, node(gpu(0), gpu(1, mig_devices=2)), **flags)
        async with daemon.running():
            await kubelet.wait_for(GPU)
            await kubelet.wait_for(MIG, at_least=2)
            pod = await kubelet.admit(Pod("a", containers=(Container("main", {GPU: 1, MIG: 2}),)))
    container = pod.container("main")
    assert container.conflicts == ()
    named = {*chain.from_iterable(container.device_ids.values())}
    assert len(named) == 3
    said = [
        *(mount.container_path for mount in container.mounts),
        *container.cdi_devices,
        *container.annotations.values(),
    ]
    assert all(any(id_ in text for text in said) for id_ in named)


async def test_30_response_merge_that_loses_a_value_is_told_beforehand(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with embedded(directory) as kubelet:
        daemon = Daemon(kubelet.plugin_directory, node(gpu(0), gpu(1, mig_devices=2)), mig_strategy="mixed")
        async with daemon.running():
            await kubelet.wait_for(GPU)
            await kubelet.wait_for(MIG, at_least=2)
            pod = await kubelet.admit(Pod("a", containers=(Container("main", {GPU: 1, MIG: 2}),)))
    assert [conflict.key for conflict in pod.container("main").conflicts] == ["NVIDIA_VISIBLE_DEVICES"]
    assert "volume-mounts" in caplog.text
