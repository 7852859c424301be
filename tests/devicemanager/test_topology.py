"""Kubelet's Topology Manager with eight GPUs on two NUMA nodes, four on each."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpustow.errors import AdmissionError
from gpustow.hardware.node import Gpu, Node
from gpustow.simulation.kubelet import Container, Pod, TopologySettings
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU, sharing
from tests.devicemanager.scene import Scene, scene
from tests.plugin import samples

NODES = (0, 1)
REFUSED = r"\(TopologyAffinityError\): Resources cannot be allocated with Topology locality"


def gpu_near(index: int, numa_node: int) -> Gpu:
    return replace(samples.gpu(index), numa_node=numa_node)


def eight_gpus() -> Node:
    return samples.node(*(gpu_near(index, index // 4) for index in range(8)))


def numa_nodes(at: Scene, ids: tuple[str, ...]) -> set[int]:
    return {gpu // 4 for gpu in at.plugin.gpus_of(ids)}


async def test_single_numa_node_keeps_each_pod_on_one_node(backend: Backend, directory: Path) -> None:
    topology = TopologySettings("single-numa-node", numa_nodes=NODES)
    async with scene(backend, directory, eight_gpus(), topology=topology) as at:
        first, second = [await at.admit(3) for _ in range(2)]
        assert sorted(map(len, (numa_nodes(at, pod.device_ids(GPU)) for pod in (first, second)))) == [1, 1]
        with pytest.raises(AdmissionError, match=REFUSED):
            await at.admit(2)
        assert len((await at.admit(1)).device_ids(GPU)) == 1


async def test_single_numa_node_refuses_what_no_node_can_hold(backend: Backend, directory: Path) -> None:
    topology = TopologySettings("single-numa-node", numa_nodes=NODES)
    async with scene(backend, directory, eight_gpus(), topology=topology) as at:
        with pytest.raises(AdmissionError, match=REFUSED):
            await at.admit(5)


async def test_restricted_takes_two_nodes_only_for_what_one_could_never_hold(backend: Backend, directory: Path) -> None:
    topology = TopologySettings("restricted", numa_nodes=NODES)
    async with scene(backend, directory, eight_gpus(), topology=topology) as at:
        big = await at.admit(5)
        assert numa_nodes(at, big.device_ids(GPU)) == {0, 1}
        at.remove(big)
        for _ in range(2):
            assert len(numa_nodes(at, (await at.admit(3)).device_ids(GPU))) == 1
        with pytest.raises(AdmissionError, match=REFUSED):
            await at.admit(2)


async def test_best_effort_spreads_a_pod_rather_than_refuse_it(backend: Backend, directory: Path) -> None:
    topology = TopologySettings("best-effort", numa_nodes=NODES)
    async with scene(backend, directory, eight_gpus(), topology=topology) as at:
        for _ in range(2):
            assert len(numa_nodes(at, (await at.admit(3)).device_ids(GPU))) == 1
        assert numa_nodes(at, (await at.admit(2)).device_ids(GPU)) == {0, 1}


async def test_we_are_offered_only_the_devices_of_the_node_that_kubelet_chose(
    backend: Backend, directory: Path
) -> None:
    topology = TopologySettings("single-numa-node", numa_nodes=NODES)
    async with scene(backend, directory, eight_gpus(), topology=topology) as at:
        pod = await at.admit(2)
        (question,) = at.plugin.witness.questions
        assert len(question.available) == 4
        assert len(numa_nodes(at, question.available)) == 1
        assert pod.device_ids(GPU) == question.answer


async def test_we_are_not_asked_where_the_node_that_kubelet_chose_has_no_more_than_needed(
    backend: Backend, directory: Path
) -> None:
    topology = TopologySettings("single-numa-node", numa_nodes=NODES)
    async with scene(backend, directory, eight_gpus(), topology=topology) as at:
        assert len((await at.admit(4)).device_ids(GPU)) == 4
        assert at.plugin.witness.questions == []


async def test_pod_scope_puts_all_containers_of_a_pod_on_one_node(backend: Backend, directory: Path) -> None:
    topology = TopologySettings("single-numa-node", scope="pod", numa_nodes=NODES)
    async with scene(backend, directory, eight_gpus(), topology=topology) as at:
        two_twos = Pod("fits", containers=tuple(Container(name, {GPU: 2}) for name in "ab"))
        assert len(numa_nodes(at, (await at.kubelet.admit(two_twos)).device_ids(GPU))) == 1
        two_threes = Pod("too-big", containers=tuple(Container(name, {GPU: 3}) for name in "ab"))
        with pytest.raises(AdmissionError, match="TopologyAffinityError"):
            await at.kubelet.admit(two_threes)


async def test_replicas_are_aligned_as_their_gpus_are(backend: Backend, directory: Path) -> None:
    topology = TopologySettings("single-numa-node", numa_nodes=NODES)
    config = sharing(directory, gpu=4)
    async with scene(backend, directory, eight_gpus(), topology=topology, policy="packed", config_file=config) as at:
        first = await at.admit(5)
        assert sorted(at.plugin.gpus_of(first.device_ids(GPU)).values()) == [1, 4]
        assert len(numa_nodes(at, first.device_ids(GPU))) == 1
        with pytest.raises(AdmissionError, match=REFUSED):
            await at.admit(17)


async def test_devices_of_a_node_that_the_machine_lacks_fit_nowhere(backend: Backend, directory: Path) -> None:
    topology = TopologySettings("restricted", numa_nodes=(0,))
    node = samples.node(*(gpu_near(index, 7) for index in range(2)))
    async with scene(backend, directory, node, topology=topology) as at:
        with pytest.raises(AdmissionError, match=REFUSED):
            await at.admit(1)
