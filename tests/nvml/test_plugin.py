"""The daemon end to end: the true nvidia-ml-py on the fake library below it, an embedded kubelet above it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from gpustow.hardware.nodemodel import NodeModel, load_node_model, parse_node_model
from gpustow.simulation.kubelet import Container, EmbeddedKubelet, Pod
from tests.cli.commands import BIN, environment
from tests.nvml.fakedriver import FakeDriver

PATIENCE = 60
"""Seconds until a test gives up on a daemon, on a machine that has much else to do."""


@asynccontextmanager
async def daemon(driver: FakeDriver, folder: Path, *words: str) -> AsyncIterator[EmbeddedKubelet]:
    """A kubelet with which the daemon on that machine registers; the daemon has to end well."""
    variables = driver.environment | {"NODE_NAME": "node"}
    async with EmbeddedKubelet(folder / "k", random=Random(1)) as kubelet:
        process = await asyncio.create_subprocess_exec(
            str(BIN / "gpustow"),
            "plugin",
            f"--kubelet-socket={kubelet.registration_socket}",
            f"--system-root={driver.system_root}",
            *words,
            env=environment(variables),
        )
        try:
            yield kubelet
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _given(kubelet: EmbeddedKubelet, resource: str, devices: int) -> tuple[tuple[str, ...], str]:
    """What a pod gets that asks for one device, once there are as many as expected: ids, and what the runtime sees."""
    await kubelet.wait_for(resource, at_least=devices, timeout=PATIENCE)
    name = resource.rpartition("/")[2].replace(".", "-")
    pod = await kubelet.admit(Pod(name, containers=(Container("main", {resource: 1}),)))
    return pod.device_ids(resource), pod.container("main").envs["NVIDIA_VISIBLE_DEVICES"]


def _mixed() -> NodeModel:
    return parse_node_model(
        "name: node\ncudaVersion: 12.4\ngpus: [{model: NVIDIA A100-SXM4-40GB, count: 2, "
        "mig: [{enabled: false}, {devices: [3g.20gb, 1g.5gb+me]}]}]",
        "node",
    )


async def test_without_mig_strategy_gpus_are_served_whole(tmp_path: Path) -> None:
    model = load_node_model("dgx-1-v100")
    async with daemon(FakeDriver(tmp_path, model), tmp_path, "--mig-strategy=none") as kubelet:
        [device], visible = await _given(kubelet, "nvidia.com/gpu", 8)
        assert kubelet.capacity() == {"nvidia.com/gpu": 8}
        assert visible == device
        assert device in {gpu.uuid for gpu in model.node.gpus}


async def test_with_the_single_strategy_mig_devices_are_gpus(tmp_path: Path) -> None:
    model = load_node_model("a100-4-mig-5")
    async with daemon(FakeDriver(tmp_path, model), tmp_path, "--mig-strategy=single") as kubelet:
        [device], visible = await _given(kubelet, "nvidia.com/gpu", 20)
        assert kubelet.capacity() == {"nvidia.com/gpu": 20}
        assert visible == device
        assert device in {mig.uuid for gpu in model.node.gpus for mig in gpu.mig_devices}


async def test_with_the_mixed_strategy_each_profile_is_a_resource(tmp_path: Path) -> None:
    model = _mixed()
    whole, cut = model.node.gpus
    expected = {
        "nvidia.com/gpu": whole.uuid,
        "nvidia.com/mig-3g.20gb": cut.mig_devices[0].uuid,
        "nvidia.com/mig-1g.5gb.me": cut.mig_devices[1].uuid,
    }
    async with daemon(FakeDriver(tmp_path, model), tmp_path, "--mig-strategy=mixed") as kubelet:
        for resource, uuid in expected.items():
            assert await _given(kubelet, resource, 1) == ((uuid,), uuid)
        assert kubelet.capacity() == dict.fromkeys(expected, 1)


async def test_a_lost_gpu_costs_that_gpu_and_the_others_are_served(tmp_path: Path) -> None:
    model = load_node_model("dgx-1-v100")
    driver = FakeDriver(tmp_path, model)
    driver.lose(3)
    async with daemon(driver, tmp_path) as kubelet:
        await kubelet.wait_for("nvidia.com/gpu", at_least=7, timeout=PATIENCE)
        pod = await kubelet.admit(Pod("p", containers=(Container("main", {"nvidia.com/gpu": 7}),)))
        assert set(pod.device_ids("nvidia.com/gpu")) == {gpu.uuid for gpu in model.node.gpus if gpu.index != 3}
