"""Which devices pods get when kubelet decides with our advice."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU, node_of, sharing
from tests.devicemanager.scene import Scene, scene


async def gpus_of_pods(at: Scene, sizes: Sequence[int]) -> list[list[int]]:
    """The physical GPU of each device that each of some pods gets."""
    pods = [await at.admit(size) for size in sizes]
    return [sorted(at.plugin.gpus_of(pod.device_ids(GPU)).elements()) for pod in pods]


@pytest.mark.parametrize(
    ("policy", "sizes", "placed"),
    [
        ("packed", [1, 1, 1, 2, 1], [[0], [0], [0], [0, 0], [1]]),
        ("distributed", [1, 1, 1, 2, 1], [[0], [1], [2], [2, 3], [0]]),
        ("spread", [2, 4, 1], [[0, 1], [0, 1, 2, 3], [2]]),
    ],
)
async def test_mig_devices_go_to_the_gpus_of_the_policy(
    backend: Backend, directory: Path, policy: str, sizes: list[int], placed: list[list[int]]
) -> None:
    async with scene(backend, directory, "a100-4-mig-5", policy=policy, mig_strategy="single") as at:
        assert await gpus_of_pods(at, sizes) == placed


@pytest.mark.parametrize(
    ("policy", "sizes", "placed"),
    [
        ("packed", [1, 1, 3, 1], [[0], [0], [1, 1, 1], [0]]),
        ("distributed", [1, 1, 3, 1], [[0], [1], [0, 2, 3], [1]]),
        ("spread", [2, 2, 3], [[0, 1], [2, 3], [0, 1, 2]]),
    ],
)
async def test_replicas_go_to_the_gpus_of_the_policy(
    backend: Backend, directory: Path, policy: str, sizes: list[int], placed: list[list[int]]
) -> None:
    config = sharing(directory, gpu=3)
    async with scene(backend, directory, "t4-4", policy=policy, config_file=config) as at:
        assert at.kubelet.capacity() == {GPU: 12}
        assert await gpus_of_pods(at, sizes) == placed


async def test_whole_gpus_go_in_linked_pairs_whatever_the_policy(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "dgx-1-v100", policy="packed") as at:
        assert await gpus_of_pods(at, [2, 4, 2]) == [[0, 3], [4, 5, 6, 7], [1, 2]]


async def test_packed_fills_the_gap_that_a_removed_pod_left(backend: Backend, directory: Path) -> None:
    config = sharing(directory, gpu=2)
    async with scene(backend, directory, "t4-4", policy="packed", config_file=config) as at:
        pods = [await at.admit(1) for _ in range(4)]
        at.remove(pods[1])
        new = await at.admit(1)
        assert at.plugin.gpus_of(new.device_ids(GPU)) == {0: 1}
        assert len({*new.device_ids(GPU), *(device for pod in pods[2:] for device in pod.device_ids(GPU))}) == 3


async def test_the_container_sees_exactly_the_devices_that_kubelet_took(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(2)
        container = pod.container("main")
        assert {*container.envs["NVIDIA_VISIBLE_DEVICES"].split(",")} == {*container.device_ids[GPU]}
        assert at.plugin.witness.allocations == [(GPU, container.device_ids[GPU])]


async def test_kubelet_takes_our_choice_each_time_until_nothing_is_left(backend: Backend, directory: Path) -> None:
    config = sharing(directory, gpu=4)
    async with scene(backend, directory, "t4-4", policy="packed", config_file=config) as at:
        for size in (1, 2, 3, 4, 5, 1):
            await at.admit(size)
        witness = at.plugin.witness
        assert [ids for _, ids in witness.allocations] == [question.answer for question in witness.questions]
        assert [len(question.available) for question in witness.questions] == [16, 15, 13, 10, 6, 1]


async def test_mig_devices_of_two_profiles_are_two_resources_of_one_pod(backend: Backend, directory: Path) -> None:
    node = node_of("hgx-h100-mig")
    async with scene(backend, directory, node, mig_strategy="mixed", policy="packed") as at:
        mig = sorted(name for name in at.plugin.resources if name != GPU)[:2]
        pod = await at.kubelet.admit(at.pod({mig[0]: 1, mig[1]: 2}))
        assert [len(pod.device_ids(resource)) for resource in mig] == [1, 2]
        assert len(at.plugin.witness.allocations) == 2
