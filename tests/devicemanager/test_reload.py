"""The configuration or the node changes under a running daemon."""

import asyncio
from dataclasses import replace
from pathlib import Path

from gpustow.simulation.kubelet import TopologySettings
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU, Plugin, node_of, sharing
from tests.devicemanager.scene import scene
from tests.kubelet.fakekubelet import until
from tests.plugin import samples
from tests.plugin.samples import SHORT

MIG = "nvidia.com/mig-1g.5gb"


async def test_a_reload_that_changes_the_resources_ends_the_old_and_brings_the_new(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "a100-4-mig-5", mig_strategy="single") as at:
        assert at.kubelet.capacity() == {GPU: 20}
        await at.plugin.reload(mig_strategy="mixed")
        await until(lambda: at.kubelet.capacity() == at.kubelet.allocatable() == {GPU: 0, MIG: 20})
        pod = await at.admit(2, MIG)
        await at.plugin.reload(mig_strategy="single")
        await until(lambda: at.kubelet.capacity() == {GPU: 20, MIG: 2})
        at.remove(pod)
        await at.plugin.supervisor.read_usage()
        await until(lambda: at.kubelet.capacity() == {GPU: 20, MIG: 0})


async def test_a_reload_that_shares_the_gpus_keeps_the_registration(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        held = await at.admit(1)
        await at.plugin.reload(config_file=sharing(directory, gpu=3))
        await until(lambda: at.kubelet.capacity() == {GPU: 13})
        assert at.kubelet.allocatable() == {GPU: 12}, "the GPU that is held as a whole is listed, and unhealthy"
        assert at.plugin.witness.registrations[GPU] == 1
        assert at.held(held) == held.device_ids(GPU)
        assert len((await at.admit(3)).device_ids(GPU)) == 3


async def test_a_reload_that_changes_nothing_is_not_noticed_by_kubelet(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        await at.admit(1)
        checkpoint = at.kubelet.plugin_directory / "kubelet_internal_checkpoint"
        before = checkpoint.stat().st_mtime_ns
        await at.plugin.reload()
        await asyncio.sleep(10 * SHORT.poll)
        assert checkpoint.stat().st_mtime_ns == before, "kubelet writes it with every list that it gets"
        assert at.plugin.witness.registrations[GPU] == 1


async def test_a_reload_that_is_refused_leaves_all_as_it_was(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        at.plugin.flags["mig_strategy"] = "nonsense"
        at.plugin.supervisor.reload()
        await until(lambda: "nonsense" in str(at.plugin.supervisor.not_ready))
        assert len((await at.admit(3)).device_ids(GPU)) == 3
        await at.plugin.reload(mig_strategy="none")
        assert len((await at.admit(1)).device_ids(GPU)) == 1
        assert at.plugin.witness.registrations[GPU] == 1


async def test_kubelet_looks_again_at_a_pod_whose_device_is_gone_and_finds_it_in_the_list(
    backend: Backend, directory: Path
) -> None:
    """With a Topology Manager policy, kubelet 1.36 crashes there if the list does not have it."""
    topology = TopologySettings("best-effort", numa_nodes=(0,))
    async with scene(backend, directory, samples.node(samples.gpu(0)), topology=topology) as at:
        pod = await at.admit(1)
        await at.plugin.reload(config_file=sharing(directory, gpu=2))
        await at.kubelet.restart(readmit=False)
        await at.plugin.settled()
        (readmitted,) = await at.kubelet.readmit()
        assert readmitted.refusal is None
        assert at.held(pod) == pod.device_ids(GPU)
        assert at.kubelet.capacity() == {GPU: 3}
        assert at.kubelet.allocatable() == {GPU: 2}


async def test_another_mig_layout_is_another_list(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "a100-4-mig-5", mig_strategy="single") as at:
        node = at.plugin.node
        gpus = tuple(replace(gpu, mig_devices=gpu.mig_devices[:3]) for gpu in node.gpus)
        at.plugin.reader.answer = replace(node, gpus=gpus)
        await at.plugin.reload()
        await until(lambda: at.kubelet.capacity() == at.kubelet.allocatable() == {GPU: 12})


async def test_a_daemon_that_finds_no_gpu_looks_again_until_there_are_some(backend: Backend, directory: Path) -> None:
    kubelet = backend.kubelet(directory)
    plugin = Plugin(kubelet, samples.node(), fail_on_init_error="false")
    async with kubelet:
        starting = asyncio.create_task(plugin.start())
        await until(lambda: "has no devices to serve" in str(plugin.supervisor.not_ready))
        assert kubelet.capacity() == {}
        plugin.reader.answer = node_of("t4-4")
        await starting
        assert kubelet.capacity() == {GPU: 4}
        await plugin.stop()
