"""Devices fall sick and recover."""

from pathlib import Path

import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet import AdmittedPod, Phase, ResourceStatus
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU, sharing
from tests.devicemanager.scene import Scene, scene
from tests.kubelet.fakekubelet import until


async def shows(at: Scene, backend: Backend, pod: AdmittedPod, health: str) -> None:
    """The pod's status shows, now or soon, this health for all its devices; before 1.36 it shows nothing."""
    devices = dict.fromkeys(pod.device_ids(GPU), health)
    expected = {"main": (ResourceStatus(GPU, devices),)} if backend.since("1.36") else {}
    await until(lambda: at.kubelet.pod_status("default", pod.pod.name).allocated_resources == expected)


async def test_a_sick_gpu_leaves_allocatable_and_comes_back(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        await at.plugin.set_sick(at.plugin.ids()[:1])
        assert (at.kubelet.capacity(), at.kubelet.allocatable()) == ({GPU: 4}, {GPU: 3})
        await at.plugin.set_sick([])
        assert (at.kubelet.capacity(), at.kubelet.allocatable()) == ({GPU: 4}, {GPU: 4})
        assert at.plugin.witness.registrations[GPU] == 1


async def test_all_replicas_of_a_sick_gpu_leave_allocatable(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4", config_file=sharing(directory, gpu=10)) as at:
        await at.plugin.set_sick(at.plugin.ids()[10:20])
        assert (at.kubelet.capacity(), at.kubelet.allocatable()) == ({GPU: 40}, {GPU: 30})
        pod = await at.admit(30)
        assert at.plugin.gpus_of(pod.device_ids(GPU)) == {0: 10, 2: 10, 3: 10}


async def test_no_pod_gets_a_sick_gpu(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        sick, *fit = at.plugin.ids()
        await at.plugin.set_sick([sick])
        with pytest.raises(AdmissionError, match="Requested: 4, Available: 3"):
            await at.admit(4)
        assert (await at.admit(3)).device_ids(GPU) == tuple(sorted(fit))


async def test_a_pod_goes_on_with_a_sick_gpu_and_its_status_says_so(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(1)
        (held,) = pod.device_ids(GPU)
        for sick, health in (([held], "Unhealthy"), ([], "Healthy")):
            await at.plugin.set_sick(sick)
            await shows(at, backend, pod, health)
            assert at.kubelet.pod_status("default", pod.pod.name).phase is Phase.RUNNING
        assert at.held(pod) == (held,)


async def test_after_a_restart_of_kubelet_a_sick_gpu_reads_healthy_until_we_have_listed_it(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(1)
        await at.plugin.set_sick(pod.device_ids(GPU))
        await shows(at, backend, pod, "Unhealthy")
        await at.plugin.stop()
        await at.kubelet.restart()
        await shows(at, backend, pod, "Healthy")
        await at.plugin.start()
        await at.plugin.set_sick(pod.device_ids(GPU))
        await shows(at, backend, pod, "Unhealthy")


async def test_a_pod_on_a_sick_gpu_does_not_survive_a_reboot(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(2)
        await at.plugin.set_sick(pod.device_ids(GPU)[:1])
        await at.kubelet.restart(reboot=True, readmit=False)
        await at.plugin.settled()
        (readmitted,) = await at.kubelet.readmit()
        assert readmitted.refusal is not None
        assert "previously allocated devices are no longer healthy" in readmitted.refusal.status_message


async def test_a_pod_on_a_sick_gpu_survives_a_restart_of_kubelet(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(2)
        await at.plugin.set_sick(pod.device_ids(GPU)[:1])
        (readmitted,) = await at.kubelet.restart()
        assert readmitted.refusal is None
        await at.plugin.settled()
        assert at.held(pod) == pod.device_ids(GPU)
