"""A thousand pods come and go against our own plugin, which serves eight GPUs with a hundred replicas each."""

import asyncio
from collections import deque
from pathlib import Path
from random import Random

import pytest

from gpustow.config import load_config
from gpustow.hardware.nodemodel import load_node_model
from gpustow.hardware.simulated import SimulatedReader
from gpustow.plugin import Supervisor
from gpustow.simulation.kubelet import Container, EmbeddedKubelet, Pod
from tests.simulation.kubelet.core import seeded

GPU = "nvidia.com/gpu"
PODS = 1000
AT_ONCE = 20

CONFIG = """
version: v1
flags:
  plugin:
    sharedDevicesAllocationPolicy: packed
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 100
"""


@pytest.mark.slow
async def test_a_thousand_pods_come_and_go(directory: Path, random: Random) -> None:
    (directory / "config.yaml").write_text(CONFIG)
    model = load_node_model("dgx-a100")
    async with EmbeddedKubelet(directory, random=random) as kubelet:
        flags = {"config-file": str(directory / "config.yaml"), "kubelet-socket": str(kubelet.registration_socket)}
        supervisor = Supervisor(lambda: load_config(flags, {}), lambda _config: SimulatedReader(model), random=seeded())
        serving = asyncio.create_task(supervisor.run())
        await kubelet.wait_for(GPU, at_least=800)
        held: deque[str] = deque()
        for number in range(PODS):
            pod = await kubelet.admit(Pod(f"pod-{number}", containers=(Container("main", {GPU: 1 + number % 3}),)))
            assert len(pod.device_ids(GPU)) == 1 + number % 3
            held.append(pod.pod.name)
            if len(held) > AT_ONCE:
                kubelet.remove("default", held.popleft())
        gpus = {device.partition("::")[0] for device in kubelet.manager.state.in_use[GPU]}
        supervisor.stop()
        await serving
    assert len(kubelet.journal.allocations) == PODS
    assert len(gpus) == 1
