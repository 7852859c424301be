"""Random lives of a node on the real device manager and on the embedded kubelet: see `twins`."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from gpustow.hardware.node import Node
from gpustow.simulation.kubelet import TopologySettings
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import node_of, sharing
from tests.devicemanager.scene import Scene, scene
from tests.devicemanager.twins import Clock, Twins
from tests.plugin import samples

NUMA_NODES = (0, 1)
EVENTS = 40
SEEDS = range(3)


@dataclass(frozen=True, slots=True)
class Hardware:
    """A node and the flags that it is served with, and the policy; `sliced` is the number of replicas."""

    title: str
    node: Node
    policy: str
    mig_strategy: str = "none"
    sliced: int | None = None

    def __str__(self) -> str:
        return self.title


def gpus(number: int) -> Node:
    """GPUs on two NUMA nodes, half of them on each."""
    near = (replace(samples.gpu(index), numa_node=2 * index // number) for index in range(number))
    return samples.node(*near)


HARDWARE = (
    Hardware("whole GPUs", gpus(8), "distributed"),
    Hardware("replicas packed", gpus(4), "packed", sliced=5),
    Hardware("replicas distributed", gpus(4), "distributed", sliced=5),
    Hardware("MIG packed", node_of("a100-4-mig-5"), "packed", mig_strategy="mixed"),
)
TOPOLOGIES = (
    TopologySettings("none", numa_nodes=NUMA_NODES),
    TopologySettings("best-effort", numa_nodes=NUMA_NODES),
    TopologySettings("restricted", numa_nodes=NUMA_NODES),
    TopologySettings("single-numa-node", numa_nodes=NUMA_NODES),
    TopologySettings("restricted", scope="pod", numa_nodes=NUMA_NODES),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("hardware", HARDWARE, ids=lambda hardware: str(hardware).replace(" ", "-"))
@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: f"{topology.policy}-{topology.scope}")
async def test_the_embedded_kubelet_does_what_the_device_manager_does(
    device_manager: Backend, directory: Path, topology: TopologySettings, hardware: Hardware, seed: int
) -> None:
    clock = Clock()

    def node(backend: Backend, name: str) -> AbstractAsyncContextManager[Scene]:
        folder = directory / name
        (folder / "device-plugins").mkdir(parents=True)
        flags = {"mig_strategy": hardware.mig_strategy}
        if hardware.sliced is not None:
            flags["config_file"] = sharing(folder, gpu=hardware.sliced)
        return scene(
            backend, folder, hardware.node, topology=topology, policy=hardware.policy, clock=clock, flags=flags
        )

    async with node(device_manager, "real") as real, node(device_manager.twin, "embedded") as embedded:
        twins = Twins(real, embedded, Random(seed), clock)
        await twins.live(EVENTS)
    assert twins.admitted
    assert twins.questions
