"""Kubelet restarts again and again while pods come and go: the daemon against the embedded kubelet."""

import asyncio
import gc
import random
from collections import Counter
from itertools import count
from pathlib import Path

import psutil
import pytest

from gpustow.errors import AdmissionError, UsageError
from gpustow.simulation.kubelet import AdmittedPod, Container, EmbeddedKubelet, Pod
from tests.kubelet.fakekubelet import until
from tests.plugin.daemon import Daemon
from tests.plugin.samples import GPU, MIG, SHORT, gpu, node, our_sockets

RESTARTS = 50
EXPECTED = {GPU: 2, MIG: 14}


class Load:
    """Pods without a pause, two of them at a time; counts those that kubelet admitted."""

    def __init__(self, kubelet: EmbeddedKubelet) -> None:
        self.admitted = 0
        self._kubelet = kubelet
        self._held: list[AdmittedPod] = []

    async def run(self) -> None:
        for number in count():
            pod = Pod(f"pod-{number}", containers=(Container("main", {GPU: 1, MIG: 3}),))
            try:
                admitted = await self._kubelet.admit(pod)
            except (AdmissionError, UsageError):  # kubelet or its plugins are down
                await asyncio.sleep(0.001)
                continue
            self._held.append(admitted)
            self.admitted += 1
            for resource in EXPECTED:
                ids = [device for held in self._held for device in held.device_ids(resource)]
                assert len(ids) == len(set(ids)), f"a device of {resource} was given to two pods"
            if len(self._held) == 2:
                gone = self._held.pop(0).pod
                self._kubelet.remove(gone.namespace, gone.name)

    async def goes_on(self) -> None:
        """Waits until three more pods are admitted."""
        goal = self.admitted + 3
        await until(lambda: self.admitted >= goal)


def resources_of_the_process() -> tuple[int, int, int]:
    gc.collect()
    process = psutil.Process()
    return process.num_fds(), process.num_threads(), len(asyncio.all_tasks())


@pytest.mark.slow
async def test_fifty_restarts_under_load_make_one_registration_each_and_nothing_grows(tmp_path: Path) -> None:
    kubelet = EmbeddedKubelet(tmp_path, random=random.Random(1))
    devices = node(gpu(0), gpu(1), gpu(2, mig_devices=7), gpu(3, mig_devices=7))
    kubelet.plugin_directory.mkdir()
    daemon = Daemon(kubelet.plugin_directory, devices, mig_strategy="mixed")
    async with kubelet, daemon.running():
        for resource, number in EXPECTED.items():
            await kubelet.wait_for(resource, at_least=number)
        load = Load(kubelet)
        loading = asyncio.create_task(load.run())
        before = None
        for restart in range(RESTARTS):
            kubelet.registrations.clear()
            await kubelet.restart(killed=restart % 2 == 1)
            for resource, number in EXPECTED.items():
                await kubelet.wait_for(resource, at_least=number)
            await load.goes_on()
            taken = Counter(call.resource for call in kubelet.registrations if call.refusal is None)
            assert taken == dict.fromkeys(EXPECTED, 1)
            assert kubelet.capacity() == kubelet.allocatable() == EXPECTED
            assert len(our_sockets(kubelet.plugin_directory)) == len(EXPECTED)
            if restart == 4:  # by then all that is made once has been made
                before = resources_of_the_process()
        after = resources_of_the_process()
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
    assert before is not None
    for grown, was in zip(after, before, strict=True):
        assert grown <= was + 4, f"open files, threads, tasks: {before} -> {after}"


async def test_kubelet_does_not_take_the_end_of_the_old_stream_for_that_of_the_new_one(tmp_path: Path) -> None:
    kubelet = EmbeddedKubelet(tmp_path, random=random.Random(1))
    kubelet.plugin_directory.mkdir()
    daemon = Daemon(kubelet.plugin_directory)
    async with kubelet, daemon.running() as supervisor:
        await kubelet.wait_for(GPU, at_least=2)
        for _ in range(5):
            (socket,) = our_sockets(kubelet.plugin_directory)
            (kubelet.plugin_directory / socket).unlink()
            await until(lambda: supervisor.not_ready is not None)
            await until(lambda: supervisor.not_ready is None and kubelet.allocatable() == {GPU: 2})
        await asyncio.sleep(10 * SHORT.poll)
        assert supervisor.not_ready is None
        assert kubelet.allocatable() == {GPU: 2}
