"""Pods that kubelet refuses, and what it says."""

from pathlib import Path

import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet import Phase
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU, sharing
from tests.devicemanager.scene import Scene, scene


async def refusal(at: Scene, size: int) -> tuple[str, str]:
    """Why a pod that wants so many devices is refused."""
    with pytest.raises(AdmissionError) as refused:
        await at.admit(size)
    return refused.value.reason, refused.value.status_message


async def test_more_than_is_free_is_refused_with_both_numbers(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        await at.admit(3)
        reason, message = await refusal(at, 2)
        assert reason == "UnexpectedAdmissionError"
        assert message == (
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 2, Available: 1, which is unexpected"
        )
        assert len((await at.admit(1)).device_ids(GPU)) == 1


async def test_what_we_refuse_to_allocate_kubelet_refuses_with_our_words(backend: Backend, directory: Path) -> None:
    config = sharing(directory, one_each=True, gpu=3)
    async with scene(backend, directory, "t4-4", config_file=config) as at:
        reason, message = await refusal(at, 2)
        assert reason == "UnexpectedAdmissionError"
        assert message.startswith(
            "Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for 'nvidia.com/gpu': "
            "maximum request size for shared resources is 1; found 2"
        )
        assert message.endswith(", which is unexpected")
        assert len((await at.admit(1)).device_ids(GPU)) == 1, "nothing stays reserved"


async def test_without_any_device_nothing_is_admitted_and_we_are_not_asked(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        await at.plugin.set_sick(at.plugin.ids())
        reason, message = await refusal(at, 1)
        assert reason == "UnexpectedAdmissionError"
        assert message == (
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, "
            "which is unexpected"
        )
        assert at.plugin.witness.questions == []


async def test_a_resource_that_nobody_ever_served_is_none_of_kubelets_business(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(3, "example.com/nobody")
        assert pod.device_ids("example.com/nobody") == ()
        assert at.kubelet.pod_status("default", pod.pod.name).phase is Phase.RUNNING


async def test_zero_devices_are_no_request(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        assert (await at.admit(0)).device_ids(GPU) == ()
        assert at.plugin.witness.allocations == []
