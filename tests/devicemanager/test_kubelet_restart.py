"""Kubelet is restarted, killed, started late, or comes back after a reboot."""

from pathlib import Path

import pytest

from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU, Plugin, node_of
from tests.devicemanager.scene import scene
from tests.kubelet.fakekubelet import until


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
async def test_after_a_restart_of_kubelet_the_plugin_is_back_and_pods_keep_their_devices(
    backend: Backend, directory: Path, *, killed: bool
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        before = await at.admit(2)
        readmitted = await at.kubelet.restart(killed=killed)
        assert [(entry.pod, entry.refusal) for entry in readmitted] == [(before.pod, None)]
        await at.plugin.settled()
        assert at.held(before) == before.device_ids(GPU)
        after = await at.admit(2)
        assert {*before.device_ids(GPU), *after.device_ids(GPU)} == {*at.plugin.ids()}


async def test_each_restart_of_kubelet_brings_one_registration_a_resource(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "hgx-h100-mig", mig_strategy="mixed") as at:
        for restart in range(4):
            at.plugin.witness.registrations.clear()
            await at.kubelet.restart(killed=restart % 2 == 1)
            await at.plugin.settled()
            assert +at.plugin.witness.registrations == dict.fromkeys(at.plugin.resources, 1)


async def test_between_kubelets_restart_and_our_registration_the_resource_is_there_without_devices(
    backend: Backend, directory: Path
) -> None:
    kubelet = backend.kubelet(directory)
    plugin = Plugin(kubelet, node_of("t4-4"))
    async with kubelet:
        async with plugin.running():
            assert kubelet.capacity() == kubelet.allocatable() == {GPU: 4}
        await kubelet.restart()
        assert kubelet.capacity() == kubelet.allocatable() == {GPU: 0}
        async with plugin.running():
            assert kubelet.capacity() == kubelet.allocatable() == {GPU: 4}


async def test_a_plugin_that_waits_for_kubelet_registers_when_kubelet_comes(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        await at.kubelet.stop()
        await until(lambda: "waits for kubelet" in str(at.plugin.supervisor.not_ready))
        await at.kubelet.start()
        await at.plugin.settled()
        assert (await at.admit(4)).device_ids(GPU) == tuple(sorted(at.plugin.ids()))


async def test_the_stored_answer_is_given_again_after_a_restart_without_a_call(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(2)
        await at.kubelet.restart()
        await at.plugin.settled()
        again = await at.kubelet.start_container("default", pod.pod.name, "main")
        assert again == pod.container("main").edits
        assert len(at.plugin.witness.allocations) == 1


async def test_after_a_reboot_a_pod_that_comes_before_the_plugin_fails(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        await at.admit(2)
        (pod,) = await at.kubelet.restart(reboot=True)
        assert pod.refusal is not None
        assert pod.refusal.reason == "UnexpectedAdmissionError"
        assert pod.refusal.status_message == (
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, "
            "which is unexpected"
        )
        await at.plugin.settled()
        assert len((await at.admit(4)).device_ids(GPU)) == 4, "the devices of the failed pod are free"


async def test_after_a_reboot_a_pod_that_comes_after_the_plugin_has_its_old_devices(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(2)
        await at.kubelet.restart(reboot=True, readmit=False)
        await at.plugin.settled()
        (readmitted,) = await at.kubelet.readmit()
        assert readmitted.refusal is None
        assert at.held(pod) == pod.device_ids(GPU)
        assert len(at.plugin.witness.allocations) == 1


async def test_a_pod_that_was_removed_while_kubelet_was_down_holds_nothing_afterwards(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(4)
        await at.kubelet.stop()
        at.remove(pod)
        await at.kubelet.start()
        await at.plugin.settled()
        assert len((await at.admit(4)).device_ids(GPU)) == 4


async def test_a_node_without_checkpoint_counts_as_new_and_all_extended_resources_fall_to_0(
    backend: Backend, directory: Path
) -> None:
    kubelet = backend.kubelet(directory, node_resources={"example.com/dongle": 3})
    async with kubelet:
        assert kubelet.node_status().capacity == {"example.com/dongle": 0}
    other = directory / "other"
    (other / "device-plugins").mkdir(parents=True)
    (other / "device-plugins" / "kubelet_internal_checkpoint").write_text("unreadable")
    kubelet = backend.kubelet(other, node_resources={"example.com/dongle": 3})
    async with kubelet:
        assert kubelet.node_status().capacity == {"example.com/dongle": 3}
