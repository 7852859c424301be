"""Pods of several containers: what init containers leave, what sidecars keep."""

from pathlib import Path

import pytest

from gpustow.errors import AdmissionError
from gpustow.simulation.kubelet import Container, Pod
from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU
from tests.devicemanager.scene import scene


async def test_an_app_container_has_the_devices_of_the_init_container_and_we_are_not_asked_again(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.kubelet.admit(at.pod({GPU: 2}, Container("init", {GPU: 2})))
        ids = pod.container("init").device_ids[GPU]
        assert pod.container("main").device_ids[GPU] == ids
        assert len(at.plugin.witness.questions) == 1
        assert at.plugin.witness.allocations == [(GPU, ids), (GPU, ids)]


async def test_an_app_container_that_wants_more_must_include_what_the_init_container_had(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.kubelet.admit(at.pod({GPU: 3}, Container("init", {GPU: 1})))
        (had,) = pod.container("init").device_ids[GPU]
        question = at.plugin.witness.questions[-1]
        assert (question.must_include, question.size) == ((had,), 3)
        assert question.available == tuple(sorted(at.plugin.ids()))
        assert pod.container("main").device_ids[GPU] == question.answer
        assert had in question.answer


async def test_what_the_init_container_had_beyond_the_app_container_is_free_when_the_pod_is_gone(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.kubelet.admit(at.pod({GPU: 1}, Container("init", {GPU: 4})))
        with pytest.raises(AdmissionError, match="Requested: 1, Available: 0"):
            await at.admit(1)
        at.remove(pod)
        assert len((await at.admit(4)).device_ids(GPU)) == 4


async def test_a_sidecar_keeps_its_devices_for_itself(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.kubelet.admit(at.pod({GPU: 2}, Container("sidecar", {GPU: 2}, restartable=True)))
        sidecar, main = (pod.container(name).device_ids[GPU] for name in ("sidecar", "main"))
        assert {*sidecar, *main} == {*at.plugin.ids()}
        assert len(at.plugin.witness.questions) == 2


async def test_a_sidecar_and_an_app_container_that_want_more_than_there_is_are_refused(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        with pytest.raises(AdmissionError, match="Requested: 3, Available: 2"):
            await at.kubelet.admit(at.pod({GPU: 3}, Container("sidecar", {GPU: 2}, restartable=True)))


async def test_a_sidecar_that_comes_after_an_init_container_takes_its_devices(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        init, sidecar = Container("init", {GPU: 1}), Container("sidecar", {GPU: 1}, restartable=True)
        pod = await at.kubelet.admit(at.pod({GPU: 1}, init, sidecar))
        had, kept, own = (pod.container(name).device_ids[GPU] for name in ("init", "sidecar", "main"))
        assert had == kept
        assert own != kept


async def test_the_app_containers_of_a_pod_have_different_devices(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.kubelet.admit(Pod("pod", containers=tuple(Container(f"c{n}", {GPU: 1}) for n in range(4))))
        assert pod.device_ids(GPU) == tuple(sorted(at.plugin.ids()))
        assert [len(question.available) for question in at.plugin.witness.questions] == [4, 3, 2, 1]
